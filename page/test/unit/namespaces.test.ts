import { describe, expect, it } from 'vitest';
import { Namespaces, WELL_KNOWN, abbreviate, inventPrefixes, localName } from '../../src/namespaces';

const some = new Namespaces([['ub', 'http://u.edu/onto#'], ['odd', 'http://odd.org/id-']], [['other', 'http://u.edu/onto#'], ['rdf', 'http://mine/']], WELL_KNOWN);

describe('short names', () => {
  it.each([
    ['http://u.edu/onto#Course', 'ub:Course'],
    ['http://u.edu/onto#', 'ub:'],
    ['http://u.edu/onto#a.b', 'ub:a.b'],
    ['http://u.edu/onto#a.', '<http://u.edu/onto#a.>'],
    ['http://u.edu/onto#a/b', '<http://u.edu/onto#a/b>'],
    ['http://u.edu/onto#a b', '<http://u.edu/onto#a b>'],
    ['http://u.edu/onto#-a', '<http://u.edu/onto#-a>'],
    ['http://u.edu/onto#é', 'ub:é'],
    ['http://odd.org/id-17', 'odd:17'],
    ['http://www.w3.org/2000/01/rdf-schema#label', 'rdfs:label'],
    ['urn:isbn:12', '<urn:isbn:12>'],
    ['', '<>'],
  ])('%s: %s', (iri, short) => expect(some.shorten(iri)).toBe(short));

  it('lets the first source win', () => {
    expect(some.iriOf('rdf')).toBe('http://mine/');
    expect(some.shorten('http://mine/x')).toBe('rdf:x');
    // The well-known IRI has lost its prefix.
    expect(some.shorten('http://www.w3.org/1999/02/22-rdf-syntax-ns#type')).toMatch(/^</);
  });

  it('says what a person calls it', () => {
    expect(localName('http://a/b/c%20d')).toBe('c d');
    expect(localName('http://a/b/')).toBe('b');
    expect(localName('http://a#%zz')).toBe('%zz');
    expect(abbreviate('http://example.org/air/airport/3')).toEqual({ head: '…/airport/', local: '3' });
    expect(abbreviate('x')).toEqual({ head: '', local: 'x' });
  });
});

describe('prefixes for what has none', () => {
  it.each([
    ['http://example.org/air/ont#', 'air'],
    ['http://swat.cse.lehigh.edu/onto/univ-bench.owl#', 'ub'],
    ['http://dbpedia.org/ontology/', 'dbpedia'],
    ['http://www.ldbc.eu/ldbc_socialnet/1.0/vocabulary/', 'ls'],
    ['urn:x-thing:', 'xt'],
    ['http://1.2.3.4/5#', 'ns'],
  ])('%s: %s', (namespace, prefix) => {
    expect(inventPrefixes([`${namespace}a`], new Namespaces(WELL_KNOWN))).toEqual([[prefix, namespace]]);
  });

  it('are different, and only for what needs one', () => {
    const iris = ['http://a/foaf/x', 'http://b/foaf/x', 'http://b/foaf/y', 'http://xmlns.com/foaf/0.1/name', 'http://c/z/not a name', 'x'];
    // users 36: `urn:p` was `ns:p`.
    expect(inventPrefixes(['urn:p', 'x:y'], new Namespaces(WELL_KNOWN))).toEqual([]);
    expect(inventPrefixes(iris, new Namespaces(WELL_KNOWN))).toEqual([['foaf2', 'http://b/foaf/'], ['foaf3', 'http://a/foaf/']]);
  });
});
