// The model of a picture: vertices, edges, labels and types, built from triples or from rows.
//
// Literals are not vertices: the panel about a resource shows them. Types are colours, not edges, unless the
// picture would have no edges otherwise. A triple term between resources is an edge too, with its predicate
// in triple-term brackets: it need not be asserted. At most `VERTICES_MAX` vertices; the rest is counted.
import type { Edge as VariableEdge } from '../language';
import { LABELS, RDF_TYPE, localName, type Namespaces } from '../namespaces';
import type { Table } from '../results/result';
import { isNumber, keyOf, plain, type Term, type Triple } from '../results/term';

export const VERTICES_MAX = 300;
const EDGES_MAX = 2000;

export interface Vertex {
  readonly id: string;
  readonly iri: string | null;
  label: string;
  type: string | null;
  /** True once a click has shown its neighbourhood. */
  expanded: boolean;
}

export interface Edge {
  readonly id: string;
  readonly source: string;
  readonly target: string;
  readonly label: string;
  /** The same edge exists in the other direction. */
  bothWays: boolean;
}

export class PictureModel {
  readonly vertices = new Map<string, Vertex>();
  readonly edges = new Map<string, Edge>();
  readonly #named = new Set<string>();
  readonly #asked = new Set<string>();
  readonly #left = new Set<string>();
  readonly #namespaces: Namespaces;

  constructor(namespaces: Namespaces) {
    this.#namespaces = namespaces;
  }

  /** Edges between vertices of the picture that exceed the limit. */
  leftEdges = 0;

  /** The number of vertices that exceed the limit. */
  get left(): number {
    return this.#left.size;
  }

  /** Resources without a label or a type that were not queried yet. Marks them as queried. */
  takeUnknown(): string[] {
    const unknown = [...this.vertices.values()].filter(
      ({ id, iri, type }) => iri !== null && !this.#asked.has(id) && (type === null || !this.#named.has(id)),
    );
    for (const { id } of unknown) this.#asked.add(id);
    return unknown.flatMap(({ iri }) => iri ?? []);
  }

  addTriples(triples: readonly Triple[]): void {
    const typesAsEdges = !triples.some((triple) => isEdge(triple) && !isTyping(triple)) && this.edges.size === 0;
    for (const triple of triples) {
      const { subject, predicate, object } = triple;
      if (isEdge(triple) && (typesAsEdges || !isTyping(triple))) this.connect(subject, this.#short(predicate), object);
    }
    for (const triple of triples) {
      const { subject, object } = triple;
      if (!typesAsEdges && isTyping(triple) && object.kind === 'iri') {
        this.type(keyOf(subject), object.value);
      }
    }
    for (const { object } of triples) this.quoted(object);
    for (const label of LABELS) {
      for (const { subject, predicate, object } of triples) {
        if (predicate.kind === 'iri' && predicate.value === label) this.name(keyOf(subject), plain(object));
      }
    }
  }

  /**
   * `edges` are the pairs of variables that a row connects. Other resources of a row are connected to the
   * row's first resource by the name of their variable.
   */
  addTable({ variables, rows }: Table, edges: readonly VariableEdge[]): void {
    const place = new Map(variables.map((name, i) => [name, i] as const));
    const known = edges.flatMap(({ source, predicate, target }) => {
      const [from, to] = [place.get(source), place.get(target)];
      const by = /^[?$]/.test(predicate) ? place.get(predicate.slice(1)) : undefined;
      return from === undefined || to === undefined || from === to ? [] : [{ from, to, by, label: edgeLabel(predicate) }];
    });
    const connected = new Set(known.flatMap(({ from, to, by }) => (by === undefined ? [from, to] : [from, to, by])));
    const names = namesOf(variables);
    for (const row of rows) {
      for (const { from, to, by, label } of known) {
        const [source, target, middle] = [row[from], row[to], by === undefined ? null : row[by]];
        if (source && target && isVertex(source) && isVertex(target)) this.connect(source, middle ? this.#short(middle) : label, target);
      }
      const resources = row.flatMap((term, i) => (term && isVertex(term) ? [{ term, i }] : []));
      const [first, ...others] = resources.filter(({ i }) => known.length === 0 || !connected.has(i));
      const hub = known.length === 0 ? first : (resources.find(({ i }) => connected.has(i)) ?? first);
      if (hub !== undefined) this.vertex(hub.term);
      for (const { term, i } of known.length === 0 ? others : [...(first ? [first] : []), ...others]) {
        if (hub !== undefined && hub.i !== i) this.connect(hub.term, variables[i] ?? '', term);
      }
      for (const term of row) this.quoted(term);
      for (const { name, of } of names) {
        const [text, term] = [row[name], of === null ? (resources[0]?.term ?? null) : (row[of] ?? null)];
        if (text?.kind === 'literal' && !isNumber(text) && term && isVertex(term)) this.name(keyOf(term), text.value);
      }
    }
  }

  /** Draws a triple term, and the triple terms in it. */
  quoted(term: Term | null): void {
    if (term?.kind !== 'triple') return;
    const { subject, predicate, object } = term;
    if (isEdge(term)) this.connect(subject, `<<${this.#short(predicate)}>>`, object);
    else if (isVertex(subject)) this.vertex(subject);
    this.quoted(object);
  }

  name(id: string, label: string): void {
    const vertex = this.vertices.get(id);
    if (vertex === undefined || this.#named.has(id)) return;
    this.#named.add(id);
    vertex.label = label;
  }

  /** The first type counts. */
  type(id: string, type: string): void {
    const vertex = this.vertices.get(id);
    if (vertex !== undefined) vertex.type ??= type;
  }

  connect(source: Term, label: string, target: Term): void {
    const from = this.vertex(source);
    const to = this.vertex(target);
    if (from === null || to === null) return;
    const back = this.edges.get(`${to.id}\n${label}\n${from.id}`);
    if (back !== undefined && from !== to) {
      back.bothWays = true;
      return;
    }
    const id = `${from.id}\n${label}\n${to.id}`;
    if (this.edges.has(id)) return;
    if (this.edges.size >= EDGES_MAX) this.leftEdges += 1;
    else this.edges.set(id, { id, source: from.id, target: to.id, label, bothWays: false });
  }

  /** The number of edges, with bidirectional ones counted twice. */
  get edgeCount(): number {
    return [...this.edges.values()].reduce((sum, { bothWays }) => sum + (bothWays ? 2 : 1), 0);
  }

  /** The types of the vertices, most frequent first. */
  types(): { type: string; count: number }[] {
    const counts = new Map<string, number>();
    for (const { type } of this.vertices.values()) if (type !== null) counts.set(type, (counts.get(type) ?? 0) + 1);
    return [...counts].map(([type, count]) => ({ type, count })).sort((a, b) => b.count - a.count);
  }

  /** The vertex of a term, added if necessary; null if the picture is full. */
  vertex(term: Term): Vertex | null {
    const id = keyOf(term);
    const known = this.vertices.get(id);
    if (known !== undefined) return known;
    if (this.vertices.size >= VERTICES_MAX) {
      this.#left.add(id);
      return null;
    }
    const iri = term.kind === 'iri' ? term.value : null;
    const label = iri === null ? plain(term) : localName(iri);
    const vertex: Vertex = { id, iri, label, type: null, expanded: false };
    this.vertices.set(id, vertex);
    return vertex;
  }

  #short(predicate: Term): string {
    if (predicate.kind !== 'iri') return plain(predicate);
    return this.#namespaces.split(predicate.value)?.local || localName(predicate.value);
  }
}

function isVertex(term: Term): boolean {
  return term.kind === 'iri' || term.kind === 'blank';
}

function isEdge({ subject, object }: Triple): boolean {
  return isVertex(subject) && isVertex(object);
}

function isTyping({ predicate }: Triple): boolean {
  return predicate.kind === 'iri' && predicate.value === RDF_TYPE;
}

/** A predicate as written, without its prefixes: `ub:worksFor/ub:name` is `worksFor/name`. */
function edgeLabel(predicate: string): string {
  return predicate.replace(/<([^>]*)>/g, (_, iri: string) => localName(iri)).replace(/[\p{L}\p{N}_.\-]*:(?=[\p{L}\p{N}_])/gu, '');
}

/** Columns with display names: `label` or `name` for the first resource, `xLabel` or `xName` for `x`. */
function namesOf(variables: readonly string[]): { name: number; of: number | null }[] {
  return variables.flatMap((variable, name): { name: number; of: number | null }[] => {
    if (/^(?:label|name|title)$/i.test(variable)) return [{ name, of: null }];
    const of = variables.findIndex((other) => new RegExp(`^${other}_?(?:label|name|title)$`, 'i').test(variable));
    return of >= 0 ? [{ name, of }] : [];
  });
}
