import { describe, expect, it } from 'vitest';
import { parseExact, termOf } from '../../src/gremlin/graphson';
import { planIn } from '../../src/gremlin/plan';
import { ValuesReader, type Shape } from '../../src/gremlin/reader';
import { Namespaces, XSD } from '../../src/namespaces';
import { csv } from '../../src/results/files';
import type { Table } from '../../src/results/result';
import { compare, nameOf, plain, write, type Term, type VertexTerm } from '../../src/results/term';
import { addElements } from '../../src/view/picture-elements';
import { PictureModel } from '../../src/view/picture-model';
import { answerGremlin, edge, list, long, map, response, typed, vertex } from '../fake-gremlin';
import { seeded } from './random';

const COLUMNS: Shape = { maps: 'columns', single: false };

function read(pieces: readonly string[], shape = COLUMNS, rowsMax?: number): { table: Table; complete: boolean } {
  const reader = new ValuesReader(shape, rowsMax);
  for (const piece of pieces) if (!reader.push(piece)) break;
  const { content, complete } = reader.finish();
  if (content.kind !== 'values') expect.fail('not values');
  return { table: content.table, complete };
}
const table = (items: readonly unknown[], shape = COLUMNS): Table => read([response(items)], shape).table;
const texts = ({ rows }: Table): (string | null)[][] => rows.map((row) => row.map((cell) => cell && plain(cell)));

const MARKO = vertex(long(1), 'person', { name: 'marko', age: typed('g:Int32', 29) });
const JOSH = vertex(long(4), 'person', { name: 'josh' });
const KNOWS = edge(typed('g:Int32', 8), 'knows', long(1), long(4), { weight: typed('g:Double', 1) });
const path = (...objects: unknown[]): object => typed('g:Path', { labels: list(), objects: list(...objects) });

describe('GraphSON 3', () => {
  it('has every kind of value', () => {
    const cases: [unknown, string, string | undefined][] = [
      ['a', 'a', undefined],
      [true, 'true', `${XSD}boolean`],
      [typed('g:Int32', 5), '5', `${XSD}int`],
      [typed('g:Double', 'NaN'), 'NaN', `${XSD}double`],
      [typed('gx:BigDecimal', '1.50'), '1.50', `${XSD}decimal`],
      [typed('g:UUID', '41d2e28a-20a4-4ab0-b379-d810dede3786'), '41d2e28a-20a4-4ab0-b379-d810dede3786', 'g:UUID'],
      [typed('gx:Duration', 'PT2M'), 'PT2M', 'gx:Duration'],
      [typed('g:T', 'label'), 'label', undefined],
      [typed('g:Date', 0), '1970-01-01T00:00:00.000Z', `${XSD}dateTime`],
    ];
    for (const [value, text, datatype] of cases) expect(termOf(value)).toEqual({ kind: 'literal', value: text, ...(datatype === undefined ? {} : { datatype }) });
    expect(termOf(null)).toBeNull();
  });

  it('keeps numbers that a double cannot hold', () => {
    const text = '[{"@type":"g:Int64","@value":9223372036854775807},{"@type":"gx:BigInteger","@value" : -123456789012345678901},"\\"@value\\":9223372036854775807"]';
    expect((parseExact(text) as unknown[]).map((value) => plain(termOf(value) as Term))).toEqual(['9223372036854775807', '-123456789012345678901', '"@value":9223372036854775807']);
  });

  it('has elements and collections, written as Gremlin prints them', () => {
    expect(termOf(MARKO)).toMatchObject({ kind: 'vertex', id: '1', iri: 'urn:vervet:vertex:1', label: 'person', properties: [{ key: 'name' }, { key: 'age' }] });
    expect(write(termOf(KNOWS) as Term)).toBe('e[8][1-knows->4]');
    expect(termOf(KNOWS)).toMatchObject({ iri: null, properties: [{ key: 'weight' }] });
    expect(write(termOf(path(MARKO, KNOWS, JOSH)) as Term)).toBe('path[v[1], e[8][1-knows->4], v[4]]');
    expect(write(termOf(map('a', list('x', null), long(2), typed('g:Set', ['y']))) as Term)).toBe('[a: [x, null], 2: {y}]');
    expect(write(termOf(typed('g:BulkSet', ['x', long(2)])) as Term)).toBe('[x, x]');
    expect(write(termOf(typed('g:Tree', [{ key: 'a', value: typed('g:Tree', []) }])) as Term)).toBe('[a: []]');
    expect(termOf(vertex(typed('g:UUID', '41d2e28a-20a4-4ab0-b379-d810dede3786'), 'x'))).toMatchObject({ iri: 'urn:uuid:41d2e28a-20a4-4ab0-b379-d810dede3786' });
  });

  it('calls vertices by what names them best', () => {
    const called = (properties: Readonly<Record<string, unknown>>): string | null => nameOf(termOf(vertex('x', 'y', properties)) as VertexTerm);
    expect(called({ code: 'AUS', age: 1, name: 'Austin' })).toBe('Austin');
    expect(called({ code: 'AUS', 'http://www.w3.org/2000/01/rdf-schema#label': 'Austin' })).toBe('Austin');
    expect(called({ age: 1 })).toBeNull();
  });

  it('shows what it does not know', () => {
    expect(plain(termOf(typed('x:New', { a: 1 })) as Term)).toBe('[a: 1]');
    expect(plain(termOf(typed('x:New', 'y')) as Term)).toBe('y');
    expect(() => termOf(typed('g:Vertex', null))).not.toThrow();
    expect(() => termOf(typed('g:Edge', 3))).not.toThrow();
    expect(() => termOf(typed('g:Path', {}))).not.toThrow();
  });
});

describe('the answer to a traversal', () => {
  it('has a column for elements, paths and values', () => {
    expect(table([MARKO, JOSH]).variables).toEqual(['vertex']);
    expect(table([KNOWS]).variables).toEqual(['edge']);
    expect(table([MARKO, KNOWS]).variables).toEqual(['element']);
    expect(table([path(MARKO)]).variables).toEqual(['path']);
    expect(table([long(1), 'x', map()]).variables).toEqual(['value']);
    expect(table([])).toEqual({ variables: ['value'], rows: [] });
  });

  it('has a column for each key of maps', () => {
    const maps = [map('a', long(1), 'b', 'x'), map('b', 'y', 'c', MARKO)];
    expect(table(maps).variables).toEqual(['a', 'b', 'c']);
    expect(texts(table(maps))).toEqual([['1', 'x', null], [null, 'y', 'v[1]']]);
    expect(table([map(typed('g:T', 'id'), long(1), 'id', 'x')]).variables).toEqual(['id', 'id']);
  });

  it('has rows of key and value for the map of a group', () => {
    const counts = [map('person', long(4), MARKO, long(2))];
    expect(texts(table(counts, { maps: 'entries', single: false }))).toEqual([['person', '4'], ['v[1]', '2']]);
    expect(texts(table([map('a', long(1)), map('b', long(2))], { maps: 'entries', single: false }))).toEqual([['a', '1'], ['b', '2']]);
  });

  it('takes lists of one value apart where valueMap made them', () => {
    const maps = [map('name', list('marko'), 'city', list('a', 'b'))];
    expect(texts(table(maps, { maps: 'columns', single: true }))).toEqual([['marko', '[a, b]']]);
    expect(texts(table(maps))).toEqual([['[marko]', '[a, b]']]);
    const property = typed('g:VertexProperty', { id: 1, label: 'name', value: 'marko' });
    expect(texts(table([map('name', list(property))], { maps: 'columns', single: true }))).toEqual([['marko']]);
    expect(texts(table([property]))).toEqual([['name', 'marko']]);
  });

  it('has no end of columns but shows the maps then', () => {
    const wide = Array.from({ length: 300 }, (_, i) => map(`k${i}`, long(i)));
    expect(table(wide).variables).toEqual(['value']);
    expect(table(wide).rows.length).toBe(300);
  });

  it('spreads traversers and graphs', () => {
    expect(texts(table([typed('g:Traverser', { bulk: long(3), value: 'x' })]))).toEqual([['x'], ['x'], ['x']]);
    expect(table([typed('tinker:graph', { vertices: [MARKO, JOSH], edges: [KNOWS] })]).variables).toEqual(['element']);
  });

  it('does not care where pieces end', () => {
    const items = [MARKO, 'say "]},{[\\"', list(list(), map()), null, true, path(MARKO, KNOWS), long(7), '"@value":'];
    const whole = response(items);
    const expected = read([whole]);
    expect(expected.table.rows.length).toBe(items.length);
    const { seed, next } = seeded();
    for (let round = 0; round < 200; round += 1) {
      const pieces: string[] = [];
      for (let at = 0; at < whole.length; ) {
        const to = at + 1 + next(15);
        pieces.push(whole.slice(at, to));
        at = to;
      }
      expect(read(pieces), `VERVET_SEED=${seed}`).toEqual(expected);
    }
  });

  it('stops at the cap', () => {
    const reader = new ValuesReader(COLUMNS, 2);
    expect(reader.push(response([long(1), long(2), long(3)]))).toBe(false);
    expect(reader.finish()).toMatchObject({ complete: false });
    expect(read([response([typed('g:Traverser', { bulk: long(1e12), value: 'x' })])], COLUMNS, 5)).toMatchObject({ complete: false });
    expect(read([response([long(1), long(2)])], COLUMNS, 2).complete).toBe(true);
  });

  it('is read from other servers, too: status first, untyped, nothing', () => {
    expect(texts(read(['{"status":{"code":200},"result":{"data" : [1, "x"], "meta":{}}}']).table)).toEqual([['1'], ['x']]);
    expect(read(['{"requestId":"x","result":{"data":null},"status":{"code":204}}']).table.rows).toEqual([]);
    expect(read(['']).table.rows).toEqual([]);
    expect(() => read(['{"result":{"data":null},"status":{"code":597,"message":"no such step"}}'])).toThrow('no such step');
    expect(() => read(['{"x":1}'])).toThrow('not the result of a traversal');
    expect(() => read([response([long(1)]).slice(0, 90)])).toThrow();
    expect(() => read([response([long(1), MARKO]).slice(0, 180)])).toThrow('ends in the middle');
  });

  it('is a file, and in order', () => {
    expect(csv(table([map('v', MARKO, 'n', long(2))]))).toBe('v,n\r\nv[1],2\r\n');
    const cells = [vertex(long(10), 'x'), vertex(long(9), 'x'), 'a', long(3)].map(termOf);
    expect([...cells].sort(compare).map((cell) => cell && plain(cell))).toEqual(['v[9]', 'v[10]', '3', 'a']);
  });
});

describe('a picture of elements', () => {
  const draw = (items: readonly unknown[]): PictureModel => {
    const model = new PictureModel(new Namespaces());
    addElements(model, table(items));
    return model;
  };
  const edges = (model: PictureModel): string[] => [...model.edges.values()].map(({ source, label, target }) => `${source} ${label} ${target}`.replaceAll('urn:vervet:vertex:', ''));

  it('has vertices with names and types, and edges with both ends', () => {
    const model = draw([MARKO, KNOWS]);
    expect(edges(model)).toEqual(['1 knows 4']);
    expect(model.vertices.get('urn:vervet:vertex:1')).toMatchObject({ label: 'marko', type: 'urn:vervet:label:person' });
    expect(model.vertices.get('urn:vervet:vertex:4')).toMatchObject({ label: '4', type: 'urn:vervet:label:airport' });
    expect(draw([JOSH]).vertices.size).toBe(1);
  });

  it('follows paths, with and without their edges, and paths of values', () => {
    expect(edges(draw([path(MARKO, KNOWS, JOSH)]))).toEqual(['1 knows 4']);
    expect(edges(draw([path(MARKO, JOSH)]))).toEqual(['1  4']);
    expect(edges(draw([path('a', 'b', 'c')]))).toEqual(['"a"  "b"', '"b"  "c"']);
    expect(edges(draw([path(MARKO, 'x', JOSH)]))).toEqual(['1  4']);
  });

  it('connects the vertices of a row by the names of columns', () => {
    expect(edges(draw([map('who', MARKO, 'friend', JOSH, 'n', long(1))]))).toEqual(['1 friend 4']);
    expect(edges(draw([map('who', MARKO, 'by', KNOWS, 'friend', JOSH)]))).toEqual(['1 knows 4']);
  });

  it('draws blank vertices, and nothing of values', () => {
    expect(draw([vertex('_:b0', 'x')]).vertices.get('_:b0')).toMatchObject({ iri: null });
    expect(draw([long(1), 'x']).vertices.size).toBe(0);
  });
});

describe('the plan of a traversal', () => {
  const answer = (text: string): string => answerGremlin(JSON.stringify({ gremlin: text, language: 'gremlin-lang' }))?.body ?? '';

  it('is a text if it is explained', () => {
    expect(planIn(answer('g.V().explain()'))).toMatchObject({ text: expect.stringContaining('hasLabel(airport)') as string, steps: [] });
  });

  it('has steps with times if it is profiled', () => {
    expect(planIn(answer('g.V().count().profile()')).steps).toEqual([
      { id: 0, parent: null, operator: 'query', detail: 'V() hasLabel(airport)', estimated_rows: null, rows: 3504, nanoseconds: 610_000 },
      { id: 1, parent: null, operator: 'count', detail: '()', estimated_rows: null, rows: 1, nanoseconds: 20_000 },
    ]);
  });
});
