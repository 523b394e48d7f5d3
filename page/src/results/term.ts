// Terms of RDF, and how they are written.
import { XSD, type Namespaces } from '../namespaces';

export type Term =
  | { readonly kind: 'iri'; readonly value: string }
  | { readonly kind: 'blank'; readonly value: string }
  | { readonly kind: 'literal'; readonly value: string; readonly datatype?: string; readonly language?: string }
  | { readonly kind: 'triple'; readonly subject: Term; readonly predicate: Term; readonly object: Term };

export interface Triple {
  readonly subject: Term;
  readonly predicate: Term;
  readonly object: Term;
}

/** As in N-Triples; `namespaces` shortens IRIs as Turtle does. */
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
  }
}

/** A term as a person reads it: literals without their marks. */
export function plain(term: Term): string {
  return term.kind === 'iri' || term.kind === 'literal' ? term.value : write(term);
}

/** Equal for equal terms only. */
export function keyOf(term: Term): string {
  return term.kind === 'iri' ? term.value : write(term);
}

const NUMBERS: ReadonlySet<string> = new Set(
  `integer decimal double float long int short byte nonNegativeInteger positiveInteger nonPositiveInteger
  negativeInteger unsignedLong unsignedInt unsignedShort unsignedByte`.split(/\s+/).map((name) => XSD + name),
);

export function isNumber(term: Term | null): boolean {
  return term?.kind === 'literal' && term.datatype !== undefined && NUMBERS.has(term.datatype);
}

/** Order of a sorted column: unbound, blank, IRIs, numbers by value, other literals by text. */
export function compare(a: Term | null, b: Term | null): number {
  const [x, y] = [rank(a), rank(b)];
  if (x !== y || a === null || b === null) return x - y;
  if (x === 3) return Number(plain(a)) - Number(plain(b));
  const [s, t] = [plain(a), plain(b)];
  return s < t ? -1 : s > t ? 1 : 0;
}

function rank(term: Term | null): number {
  if (term === null) return 0;
  if (term.kind === 'literal') return isNumber(term) ? 3 : 4;
  return term.kind === 'blank' ? 1 : term.kind === 'iri' ? 2 : 5;
}

function escape(character: string): string {
  return { '\n': '\\n', '\r': '\\r', '\t': '\\t' }[character] ?? `\\${character}`;
}
