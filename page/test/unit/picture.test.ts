import { describe, expect, it } from 'vitest';
import { Namespaces, WELL_KNOWN } from '../../src/namespaces';
import type { Term, Triple } from '../../src/results/term';
import { arrange, type Box } from '../../src/view/layout';
import { PictureModel, VERTICES_MAX } from '../../src/view/picture-model';
import { seeded } from './random';

const iri = (value: string): Term => ({ kind: 'iri', value });
const text = (value: string): Term => ({ kind: 'literal', value });
const triple = (subject: string, predicate: string, object: Term): Triple => ({ subject: iri(subject), predicate: iri(predicate), object });
const TYPE = 'http://www.w3.org/1999/02/22-rdf-syntax-ns#type';
const LABEL = 'http://www.w3.org/2000/01/rdf-schema#label';
const model = (): PictureModel => new PictureModel(new Namespaces([], WELL_KNOWN));
const edges = (from: PictureModel): string[] => [...from.edges.values()].map(({ source, label, target }) => `${source} ${label} ${target}`);

describe('a picture', () => {
  it('has resources as vertices, types as colours, labels as labels', () => {
    const picture = model();
    picture.addTriples([
      triple('h:/a', 'h:/knows', iri('h:/b')),
      triple('h:/a', TYPE, iri('h:/Person')),
      triple('h:/a', LABEL, text('Ann')),
      triple('h:/a', 'h:/age', text('5')),
    ]);
    expect(edges(picture)).toEqual(['h:/a knows h:/b']);
    expect(picture.vertices.get('h:/a')).toMatchObject({ label: 'Ann', type: 'h:/Person' });
    expect(picture.vertices.get('h:/b')).toMatchObject({ label: 'b', type: null });
    expect(picture.takeUnknown()).toEqual(['h:/b']);
    expect(picture.takeUnknown()).toEqual([]);
  });

  it('draws types where there is nothing else to draw', () => {
    const picture = model();
    picture.addTriples([triple('h:/a', TYPE, iri('h:/Person'))]);
    expect(edges(picture)).toEqual(['h:/a type h:/Person']);
  });

  it('connects the resources of rows as the query does', () => {
    const picture = model();
    const table = { variables: ['a', 'aName', 'p', 'b', 'c'], rows: [[iri('h:/1'), text('One'), iri('h:/p'), iri('h:/2'), iri('h:/3')]] };
    picture.addTable(table, [
      { source: 'a', predicate: '?p', target: 'b' },
      { source: 'b', predicate: 'x:q/x:r', target: 'c' },
      { source: 'a', predicate: ':s', target: 'gone' },
    ]);
    expect(edges(picture)).toEqual(['h:/1 p h:/2', 'h:/2 q/r h:/3']);
    expect(picture.vertices.get('h:/1')?.label).toBe('One');
  });

  it('connects the resources of rows to the first one if nobody knows better', () => {
    const picture = model();
    picture.addTable({ variables: ['a', 'b', 'c'], rows: [[iri('h:/1'), iri('h:/2'), text('x')], [iri('h:/4'), null, null]] }, []);
    expect(edges(picture)).toEqual(['h:/1 b h:/2']);
    expect(picture.vertices.size).toBe(3);
  });

  it('draws triple terms between resources, and says that they are such', () => {
    const inner = { kind: 'triple', ...triple('h:/a', 'h:/knows', iri('h:/b')) } as const;
    const outer = { kind: 'triple', ...triple('h:/c', 'h:/says', inner) } as const;
    const rows = model();
    rows.addTable({ variables: ['x', 't'], rows: [[iri('h:/x'), inner], [null, outer], [null, { kind: 'triple', ...triple('h:/d', 'h:/age', text('5')) }]] }, []);
    expect(edges(rows)).toEqual(['h:/a <<knows>> h:/b']);
    expect([...rows.vertices.keys()]).toEqual(['h:/x', 'h:/a', 'h:/b', 'h:/c', 'h:/d']);
    const graph = model();
    graph.addTriples([triple('h:/x', 'h:/says', outer), triple('h:/a', 'h:/knows', iri('h:/b'))]);
    expect(edges(graph)).toEqual(['h:/a knows h:/b', 'h:/a <<knows>> h:/b']);
    expect(graph.vertices.has('h:/x')).toBe(false);
  });

  it('has a cap and counts what is above', () => {
    const picture = model();
    picture.addTriples(Array.from({ length: VERTICES_MAX + 50 }, (_, i) => triple('h:/hub', 'h:/p', iri(`h:/${i}`))));
    expect(picture.vertices.size).toBe(VERTICES_MAX);
    expect(picture.left).toBe(51);
    expect(picture.leftEdges).toBe(0);
  });

  it('has a cap for edges, too', () => {
    const picture = model();
    const pairs = Array.from({ length: 2100 }, (_, i) => triple(`h:/${i % 50}`, 'h:/p', iri(`h:/${50 + Math.floor(i / 50)}`)));
    picture.addTriples(pairs);
    expect(picture.edges.size).toBe(2000);
    expect(picture.leftEdges).toBe(100);
  });

  it('makes one edge of two that say the same both ways', () => {
    const picture = model();
    picture.addTriples([triple('h:/a', 'h:/p', iri('h:/b')), triple('h:/b', 'h:/p', iri('h:/a')), triple('h:/b', 'h:/q', iri('h:/a'))]);
    expect([...picture.edges.values()].map(({ label, bothWays }) => [label, bothWays])).toEqual([['p', true], ['q', false]]);
    expect(picture.edgeCount).toBe(3);
  });
});

describe('the layout', () => {
  it('places every vertex, apart, and the same way again', () => {
    const { seed, next } = seeded();
    for (let round = 0; round < 10; round += 1) {
      const n = 1 + next(40);
      const boxes: Box[] = Array.from({ length: n }, (_, i) => ({ id: String(i), width: 40 + next(80), height: 40, drop: 0, at: null }));
      const pairs = Array.from({ length: next(60) }, () => ({ source: String(next(n)), target: String(next(n)) }));
      const places = arrange(boxes, pairs);
      expect(arrange(boxes, pairs)).toEqual(places);
      expect(places.size).toBe(n);
      for (const { x, y } of places.values()) expect(Number.isFinite(x) && Number.isFinite(y), `VERVET_SEED=${seed}`).toBe(true);
      const near = [...places.values()].flatMap((a, i, all) => all.slice(i + 1).map((b) => Math.hypot(a.x - b.x, a.y - b.y)));
      expect(Math.min(Infinity, ...near), `VERVET_SEED=${seed}, ${n} vertices`).toBeGreaterThan(20);
    }
  });

  it('moves those with a place little when others come', () => {
    const before = arrange([{ id: 'a', width: 40, height: 40, drop: 0, at: null }, { id: 'b', width: 40, height: 40, drop: 0, at: null }], [{ source: 'a', target: 'b' }]);
    const boxes = ['a', 'b', 'c'].map((id) => ({ id, width: 40, height: 40, drop: 0, at: before.get(id) ?? null }));
    const after = arrange(boxes, [{ source: 'a', target: 'b' }, { source: 'b', target: 'c' }]);
    for (const id of ['a', 'b']) {
      const [p, q] = [before.get(id)!, after.get(id)!];
      expect(Math.hypot(p.x - q.x, p.y - q.y)).toBeLessThan(100);
    }
  });
});
