import { describe, expect, it } from 'vitest';
import { csv, json, ntriples, tsv } from '../../src/results/files';
import { JsonReader } from '../../src/results/json';
import type { Content, Reader } from '../../src/results/result';
import { compare, type Term } from '../../src/results/term';
import { TriplesReader } from '../../src/results/triples';
import { seeded } from './random';

function readAll(reader: Reader, pieces: readonly string[]): { content: Content; complete: boolean } {
  for (const piece of pieces) if (!reader.push(piece)) break;
  return reader.finish();
}

const ROWS = JSON.stringify({
  head: { vars: ['a', 'b', 'c'] },
  results: {
    bindings: [
      { a: { type: 'uri', value: 'http://a/1' }, b: { type: 'literal', value: 'say "x}\\" ]{', 'xml:lang': 'en' } },
      {},
      { c: { type: 'literal', value: '5', datatype: 'http://www.w3.org/2001/XMLSchema#integer' }, b: { type: 'bnode', value: 'n' } },
      { a: { type: 'triple', value: { subject: { type: 'uri', value: 's' }, predicate: { type: 'uri', value: 'p' }, object: { type: 'literal', value: 'o' } } } },
    ],
  },
});

describe('SPARQL results in JSON', () => {
  it('reads every kind of term, and cells without one', () => {
    const { content, complete } = readAll(new JsonReader(), [ROWS]);
    expect(complete).toBe(true);
    expect(content).toEqual({
      kind: 'table',
      table: {
        variables: ['a', 'b', 'c'],
        rows: [
          [{ kind: 'iri', value: 'http://a/1' }, { kind: 'literal', value: 'say "x}\\" ]{', language: 'en' }, null],
          [null, null, null],
          [null, { kind: 'blank', value: 'n' }, { kind: 'literal', value: '5', datatype: 'http://www.w3.org/2001/XMLSchema#integer' }],
          [{ kind: 'triple', subject: { kind: 'iri', value: 's' }, predicate: { kind: 'iri', value: 'p' }, object: { kind: 'literal', value: 'o' } }, null, null],
        ],
      },
    });
  });

  it('does not care where pieces end', () => {
    const whole = readAll(new JsonReader(), [ROWS]);
    const { seed, next } = seeded();
    for (let round = 0; round < 200; round += 1) {
      const pieces: string[] = [];
      for (let at = 0; at < ROWS.length; ) {
        const to = at + 1 + next(12);
        pieces.push(ROWS.slice(at, to));
        at = to;
      }
      expect(readAll(new JsonReader(), pieces), `VERVET_SEED=${seed}`).toEqual(whole);
    }
  });

  it('stops at the cap', () => {
    const reader = new JsonReader(2);
    expect(reader.push(ROWS)).toBe(false);
    const { content, complete } = reader.finish();
    expect(complete).toBe(false);
    expect(content.kind === 'table' && content.table.rows.length).toBe(2);
  });

  it('reads booleans and empty tables', () => {
    expect(readAll(new JsonReader(), ['{"head":{},"boo', 'lean":false}']).content).toEqual({ kind: 'boolean', value: false });
    const none = readAll(new JsonReader(), ['{"head":{"vars":["x"]},"results":{"bindings":[]}}']);
    expect(none.content).toEqual({ kind: 'table', table: { variables: ['x'], rows: [] } });
  });

  it('refuses what is cut off or something else', () => {
    expect(() => readAll(new JsonReader(), [ROWS.slice(0, -20)])).toThrow('ends in the middle');
    expect(() => readAll(new JsonReader(), ['{"head":{}}'])).toThrow('neither');
    expect(() => readAll(new JsonReader(), ['<html>'])).toThrow();
  });
});

const TRIPLES = `# a comment
<http://a/s> <http://a/p> "line\\nbreak \\u00e9 \\"q\\""@en .
_:b1 <http://a/p> <http://a/o> .
<http://a/s> <http://a/q> "5"^^<http://www.w3.org/2001/XMLSchema#integer> .
<http://a/r> <http://a/reifies> <<( <http://a/s> <http://a/p> _:b1 )>> .
`;

describe('N-Triples', () => {
  it('reads every kind of term, whatever the pieces', () => {
    for (const size of [1, 7, 1000]) {
      const pieces = Array.from({ length: Math.ceil(TRIPLES.length / size) }, (_, i) => TRIPLES.slice(i * size, (i + 1) * size));
      const { content } = readAll(new TriplesReader(), pieces);
      const triples = content.kind === 'graph' ? content.triples : [];
      expect(triples.map(({ object }) => object)).toEqual([
        { kind: 'literal', value: 'line\nbreak é "q"', language: 'en' },
        { kind: 'iri', value: 'http://a/o' },
        { kind: 'literal', value: '5', datatype: 'http://www.w3.org/2001/XMLSchema#integer' },
        { kind: 'triple', subject: { kind: 'iri', value: 'http://a/s' }, predicate: { kind: 'iri', value: 'http://a/p' }, object: { kind: 'blank', value: 'b1' } },
      ]);
    }
  });

  it('comes back the same when written', () => {
    const first = readAll(new TriplesReader(), [TRIPLES]).content;
    const text = first.kind === 'graph' ? ntriples(first.triples) : '';
    expect(readAll(new TriplesReader(), [text]).content).toEqual(first);
  });

  it('stops at the cap and says which line is wrong', () => {
    const reader = new TriplesReader(1);
    expect(reader.push(TRIPLES)).toBe(false);
    expect(reader.finish()).toMatchObject({ complete: false });
    expect(() => readAll(new TriplesReader(), ['<a> <b> <c> .\nnonsense\n'])).toThrow('line 2');
  });
});

describe('files', () => {
  const content = readAll(new JsonReader(), [ROWS]).content;
  const table = content.kind === 'table' ? content.table : { variables: [], rows: [] };

  it('writes CSV', () => {
    expect(csv(table).split('\r\n').slice(0, 4)).toEqual(['a,b,c', 'http://a/1,"say ""x}\\"" ]{",', ',,', ',_:n,5']);
  });

  it('writes TSV', () => {
    expect(tsv(table).split('\n').slice(0, 2)).toEqual(['?a\t?b\t?c', '<http://a/1>\t"say \\"x}\\\\\\" ]{"@en\t']);
  });

  it('writes JSON that reads as it was', () => {
    expect(readAll(new JsonReader(), [json(table)]).content).toEqual(content);
  });
});

describe('order of a column', () => {
  it('puts numbers by value and texts by letters', () => {
    const integer = (value: string): Term => ({ kind: 'literal', value, datatype: 'http://www.w3.org/2001/XMLSchema#integer' });
    const terms: (Term | null)[] = [{ kind: 'literal', value: 'b' }, integer('10'), null, integer('9'), { kind: 'literal', value: 'a' }, { kind: 'iri', value: 'x' }];
    expect([...terms].sort(compare).map((term) => (term && 'value' in term ? term.value : null))).toEqual([null, 'x', '9', '10', 'a', 'b']);
  });
});
