// Adds a table of elements, edges and paths to a picture.
//
// An edge adds its two ends. Consecutive objects of a path are connected by the edge between them, or else by
// an unlabelled edge. Vertices of one row are connected to its first by the name of their column, as rows of
// resources are, unless the row has an edge or a path. A path that contains only values is drawn as well.
import { labelIri } from '../gremlin/mapping';
import type { Table } from '../results/result';
import { nameOf, type EdgeTerm, type Term, type VertexTerm } from '../results/term';
import type { PictureModel } from './picture-model';

export function addElements(model: PictureModel, { variables, rows }: Table): void {
  for (const row of rows) {
    const before = model.edgeCount;
    const vertices: { term: VertexTerm; column: number }[] = [];
    row.forEach((cell, column) => {
      if (cell?.kind === 'vertex') vertices.push({ term: cell, column });
      else if (cell !== null) add(model, cell);
    });
    const connected = model.edgeCount > before || row.some((cell) => cell?.kind === 'edge' || cell?.kind === 'list');
    for (const { term } of vertices) addVertex(model, term);
    const [first, ...others] = vertices;
    if (first === undefined || connected) continue;
    for (const { term, column } of others) if (term.id !== first.term.id) model.connect(resource(first.term), variables[column] ?? '', resource(term));
  }
}

function add(model: PictureModel, term: Term | null): void {
  switch (term?.kind) {
    case 'vertex':
      return addVertex(model, term);
    case 'edge':
      return addEdge(model, term);
    case 'list':
      return term.form === 'path' ? addPath(model, term.items) : term.items.forEach((item) => add(model, item));
    case 'map':
      return term.entries.forEach(([key, value]) => (add(model, key), add(model, value)));
    case 'iri':
      return void model.vertex(term);
  }
}

function addVertex(model: PictureModel, vertex: VertexTerm): void {
  const drawn = model.vertex(resource(vertex));
  if (drawn === null) return;
  // Several labels are one string; the first determines the colour.
  const [label = ''] = vertex.label.split('::');
  if (label !== 'vertex') model.type(drawn.id, labelIri(label));
  const name = nameOf(vertex);
  if (name !== null) model.name(drawn.id, name);
}

function addEdge(model: PictureModel, { source, label, target }: EdgeTerm): void {
  addVertex(model, source);
  addVertex(model, target);
  model.connect(resource(source), labelOf(label), resource(target));
}

function addPath(model: PictureModel, items: readonly (Term | null)[]): void {
  const values = !items.some((item) => item?.kind === 'vertex' || item?.kind === 'edge');
  let before: Term | null = null;
  let byEdge = false;
  for (const item of items) {
    if (item?.kind === 'edge') {
      addEdge(model, item);
      byEdge = true;
      continue;
    }
    if (item === null || (item.kind !== 'vertex' && !(values && item.kind === 'literal'))) {
      add(model, item);
      continue;
    }
    const place = item.kind === 'vertex' ? resource(item) : item;
    if (item.kind === 'vertex') addVertex(model, item);
    else model.vertex(place);
    if (before !== null && !byEdge) model.connect(before, '', place);
    [before, byEdge] = [place, false];
  }
}

/** A vertex as a resource, so that it is identical to the resource in statements. */
function resource({ iri, id }: VertexTerm): Term {
  return iri === null ? { kind: 'blank', value: id.replace(/^_:/, '') } : { kind: 'iri', value: iri };
}

/** Labels that are IRIs are shown as their local name. */
function labelOf(label: string): string {
  return /^urn:|:\/\//.test(label) ? (/[^#/:]+$/.exec(label)?.[0] ?? label) : label;
}
