// Values of results and their notation: RDF terms, and Gremlin's elements and collections.
import { LABELS, NAME_KEYS, XSD, type Namespaces } from '../namespaces';

export type Term =
  | { readonly kind: 'iri'; readonly value: string }
  | { readonly kind: 'blank'; readonly value: string }
  | { readonly kind: 'literal'; readonly value: string; readonly datatype?: string; readonly language?: string }
  | { readonly kind: 'triple'; readonly subject: Term; readonly predicate: Term; readonly object: Term }
  | VertexTerm
  | EdgeTerm
  | { readonly kind: 'list'; readonly form: 'list' | 'set' | 'path'; readonly items: readonly (Term | null)[] }
  | { readonly kind: 'map'; readonly entries: readonly (readonly [Term | null, Term | null])[] };

/** A vertex of a property graph. */
export interface VertexTerm {
  readonly kind: 'vertex';
  /** Its id in readable form. */
  readonly id: string;
  /** Its IRI; null for a blank node. */
  readonly iri: string | null;
  readonly label: string;
  readonly properties: readonly Property[];
}

export interface EdgeTerm {
  readonly kind: 'edge';
  readonly id: string;
  /** Its IRI; null if its id is not its IRI in RDF. */
  readonly iri: string | null;
  readonly label: string;
  readonly source: VertexTerm;
  readonly target: VertexTerm;
  readonly properties: readonly Property[];
}

export interface Property {
  readonly key: string;
  readonly value: Term | null;
}

export interface Triple {
  readonly subject: Term;
  readonly predicate: Term;
  readonly object: Term;
}

/**
 * As in N-Triples, elements and collections as Gremlin prints them; `namespaces` shortens IRIs as in Turtle.
 */
export function write(term: Term, namespaces?: Namespaces): string {
  const iri = (value: string): string => namespaces?.shorten(value) ?? `<${value}>`;
  switch (term.kind) {
    case 'iri':
      return iri(term.value);
    case 'blank':
      return `_:${term.value}`;
    case 'literal': {
      const text = `"${term.value.replace(/[\\"\n\r\t]/g, escape)}"`;
      if (term.language !== undefined) return `${text}@${term.language}`;
      return term.datatype === undefined ? text : `${text}^^${iri(term.datatype)}`;
    }
    case 'triple':
      return `<<( ${write(term.subject, namespaces)} ${write(term.predicate, namespaces)} ${write(term.object, namespaces)} )>>`;
    case 'vertex':
      return `v[${term.id}]`;
    case 'edge':
      return `e[${term.id}][${term.source.id}-${term.label}->${term.target.id}]`;
    case 'list': {
      const items = term.items.map(inside).join(', ');
      return term.form === 'set' ? `{${items}}` : term.form === 'path' ? `path[${items}]` : `[${items}]`;
    }
    case 'map':
      return `[${term.entries.map(([key, value]) => `${inside(key)}: ${inside(value)}`).join(', ')}]`;
  }
}

function inside(term: Term | null): string {
  return term === null ? 'null' : plain(term);
}

/** A term in readable form: literals without quotation marks and tags. */
export function plain(term: Term): string {
  return term.kind === 'iri' || term.kind === 'literal' ? term.value : write(term);
}

/** A key that is equal exactly for equal terms. */
export function keyOf(term: Term): string {
  return iriOf(term) ?? write(term);
}

/** The IRI of a term, if it is a resource with an IRI. */
export function iriOf(term: Term): string | null {
  if (term.kind === 'iri') return term.value;
  return term.kind === 'vertex' || term.kind === 'edge' ? term.iri : null;
}

/** The display name of a vertex; null if no property provides one. */
export function nameOf({ properties }: VertexTerm): string | null {
  // Data from RDF have predicates as keys.
  for (const name of [...LABELS.slice(0, 1), ...NAME_KEYS]) {
    const value = properties.find(({ key }) => key === name)?.value;
    if (value) return plain(value);
  }
  return null;
}

const NUMBERS: ReadonlySet<string> = new Set(
  `integer decimal double float long int short byte nonNegativeInteger positiveInteger nonPositiveInteger
  negativeInteger unsignedLong unsignedInt unsignedShort unsignedByte`.split(/\s+/).map((name) => XSD + name),
);

export function isNumber(term: Term | null): boolean {
  return term?.kind === 'literal' && term.datatype !== undefined && NUMBERS.has(term.datatype);
}

/**
 * Order of a sorted column: unbound, blank, IRIs, elements by id, numbers by value, other literals by text,
 * the rest.
 */
export function compare(a: Term | null, b: Term | null): number {
  const [x, y] = [rank(a), rank(b)];
  if (x !== y || a === null || b === null) return x - y;
  if (x === 4) return Number(plain(a)) - Number(plain(b));
  if ('id' in a && 'id' in b && WHOLE.test(a.id) && WHOLE.test(b.id)) return Number(a.id) - Number(b.id);
  const [s, t] = [plain(a), plain(b)];
  return s < t ? -1 : s > t ? 1 : 0;
}

const WHOLE = /^-?\d+$/;

function rank(term: Term | null): number {
  if (term === null) return 0;
  if (term.kind === 'literal') return isNumber(term) ? 4 : 5;
  if (term.kind === 'vertex' || term.kind === 'edge') return 3;
  return term.kind === 'blank' ? 1 : term.kind === 'iri' ? 2 : 6;
}

function escape(character: string): string {
  return { '\n': '\\n', '\r': '\\r', '\t': '\\t' }[character] ?? `\\${character}`;
}
