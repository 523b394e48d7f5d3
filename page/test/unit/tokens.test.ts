import { describe, expect, it } from 'vitest';
import { scan, tokens, type Mode } from '../../src/sparql/tokens';
import { seeded } from './random';

const kinds = (text: string): string[] => tokens(text).map((token) => `${token.kind} ${token.text}`);

describe('tokens', () => {
  it('tells the parts of a query', () => {
    expect(kinds('SELECT ?x { ?x a ub:Course ; <http://a/b> 1.5 . } # end')).toEqual([
      'keyword SELECT', 'variable ?x', 'bracket {', 'variable ?x', 'keyword a', 'name ub:Course', 'separator ;',
      'iri <http://a/b>', 'number 1.5', 'separator .', 'bracket }', 'comment # end',
    ]);
  });

  it('tells an IRI from a comparison', () => {
    expect(kinds('?a<?b && ?b >= 3')).toEqual(['variable ?a', 'operator <', 'variable ?b', 'operator &&', 'variable ?b', 'operator >=', 'number 3']);
  });

  it('leaves the full stop behind a name and a number', () => {
    expect(kinds('?s a:b.c a:d. ?s a:e 1.')).toEqual([
      'variable ?s', 'name a:b.c', 'name a:d', 'separator .', 'variable ?s', 'name a:e', 'number 1', 'separator .',
    ]);
  });

  it('knows empty prefixes, escapes, other alphabets and blank nodes', () => {
    expect(kinds(':x a:\\~b%20c é:ö _:b.1 [] $v')).toEqual([
      'name :x', 'name a:\\~b%20c', 'name é:ö', 'blank _:b.1', 'bracket [', 'bracket ]', 'variable $v',
    ]);
  });

  it('knows strings with escapes, tags and datatypes', () => {
    expect(kinds(`"a\\"b"@en-GB 'c'^^xsd:int`)).toEqual(['string "a\\"b"', 'tag @en-GB', "string 'c'", 'operator ^^', 'name xsd:int']);
  });

  it('goes on with a long string in the next line', () => {
    expect(kinds('"""one\ntwo " \\""" still"""; 3')).toEqual(['string """one', 'string two " \\""" still"""', 'separator ;', 'number 3']);
  });

  it('marks a string that does not end, and functions', () => {
    expect(kinds('strlen("abc')).toEqual(['function strlen', 'bracket (', 'invalid "abc']);
  });

  it('knows triple terms and annotations of SPARQL 1.2', () => {
    expect(kinds('<<( ?s ?p ?o )>> {| :k 1 |} ~')).toEqual([
      'operator <<(', 'variable ?s', 'variable ?p', 'variable ?o', 'operator )>>', 'bracket {|', 'name :k', 'number 1', 'bracket |}', 'operator ~',
    ]);
  });

  it('covers every text without a gap', () => {
    const { seed, next } = seeded();
    const alphabet = [...'?$aé:<>"\'{}()[]|^&.,;#@_\\/*+-!=~ \n1😀%'];
    for (let round = 0; round < 2000; round += 1) {
      const text = Array.from({ length: next(40) }, () => alphabet[next(alphabet.length)]).join('');
      let mode: Mode = null;
      for (const line of text.split('\n')) {
        for (let at = 0; at < line.length; ) {
          const scanned = scan(line, at, mode);
          if (scanned.to <= at || scanned.to > line.length) expect.fail(`VERVET_SEED=${seed}: ${JSON.stringify(text)}`);
          [at, mode] = [scanned.to, scanned.mode];
        }
      }
    }
  });
});
