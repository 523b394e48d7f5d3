import { describe, expect, it } from 'vitest';
import { declaredIn, edgesIn, requestOf, roleAfter, variablesIn } from '../../src/sparql/analysis';
import { tokens } from '../../src/sparql/tokens';

const role = (text: string): string => roleAfter(tokens(text));

describe('what a text asks for', () => {
  it.each([
    ['PREFIX a: <b> SELECT * {}', 'table'],
    ['ask {}', 'boolean'],
    ['# INSERT\nCONSTRUCT WHERE {}', 'graph'],
    ['DESCRIBE <x>', 'graph'],
    ['PREFIX select: <x> INSERT DATA {}', 'update'],
    ['WITH <g> DELETE {} WHERE {}', 'update'],
    ['', 'table'],
  ])('%s: %s', (text, request) => expect(requestOf(text)).toBe(request));
});

describe('what may stand at a place', () => {
  it.each([
    ['PREFIX ', 'prefix'],
    ['SELECT ', 'start'],
    ['SELECT * {', 'subject'],
    ['SELECT * { ?s ', 'predicate'],
    ['SELECT * { ?s a ', 'class'],
    ['SELECT * { ?s rdf:type ', 'class'],
    ['SELECT * { ?s <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> ', 'class'],
    ['SELECT * { ?s :p ', 'object'],
    ['SELECT * { ?s :p ?o . ', 'subject'],
    ['SELECT * { ?s a :C ; ', 'predicate'],
    ['SELECT * { ?s a :C ; :p ', 'object'],
    ['SELECT * { ?s a :C , ', 'class'],
    ['SELECT * { ?s :p/', 'predicate'],
    ['SELECT * { ?s :p/:q ', 'object'],
    ['SELECT * { ?s (:p|', 'predicate'],
    ['SELECT * { ?s (:p|:q)+ ', 'object'],
    ['SELECT * { ?s :p [ ', 'predicate'],
    ['SELECT * { ?s :p [ a :C ] ; ', 'predicate'],
    ['SELECT * { ?s :p "1"^^xsd:int ; ', 'predicate'],
    ['SELECT * { ?s :p "x"@en . ', 'subject'],
    ['SELECT * { ?s :p 1 FILTER(', 'expression'],
    ['SELECT * { ?s :p 1 FILTER(?s > 1) ', 'subject'],
    ['SELECT * { ?s :p 1 FILTER regex(?s, ', 'expression'],
    ['SELECT * { OPTIONAL { ?s ', 'predicate'],
    ['SELECT * { { ?s ?p ?o } ', 'subject'],
    ['SELECT * { GRAPH ?g { ?s ', 'predicate'],
    ['SELECT * { ?s :p ?o # a { b\n . ?x ', 'predicate'],
    ['SELECT * { ?s :p (1 ', 'object'],
    ['SELECT (COUNT(', 'expression'],
  ])('%s: %s', (text, expected) => expect(role(text)).toBe(expected));
});

describe('what a text holds', () => {
  it('finds prefixes', () => {
    const text = 'PREFIX a: <http://a#>\nprefix : <http://b/\\u00e9> SELECT * { a:x :y "PREFIX c: <d>" }';
    expect([...declaredIn(tokens(text))]).toEqual([['a', 'http://a#'], ['', 'http://b/é']]);
  });

  it('finds variables once', () => {
    expect(variablesIn(tokens('SELECT ?a $b { ?b ?a ?c } # ?d'))).toEqual(['?a', '?b', '?c']);
  });

  it('finds what patterns connect', () => {
    expect(edgesIn(tokens('SELECT * { ?a :p ?b ; :q/^:r ?c , ?d . ?b ?y 1 . ?c (:s|:t)* ?a FILTER(?a = ?b) }'))).toEqual([
      { source: 'a', predicate: ':p', target: 'b' },
      { source: 'a', predicate: ':q/^:r', target: 'c' },
      { source: 'a', predicate: ':q/^:r', target: 'd' },
      { source: 'c', predicate: '(…)*', target: 'a' },
    ]);
  });
});
