// What came back from the server. Rows of a table have a cell for each variable, null where it is unbound.
import type { Term, Triple } from './term';

export interface Table {
  readonly variables: readonly string[];
  readonly rows: readonly (readonly (Term | null)[])[];
}

export type Content =
  | { readonly kind: 'table'; readonly table: Table }
  /** What a traversal found: cells may be elements, paths and collections. */
  | { readonly kind: 'values'; readonly table: Table }
  | { readonly kind: 'graph'; readonly triples: readonly Triple[] }
  | { readonly kind: 'boolean'; readonly value: boolean }
  | { readonly kind: 'update'; readonly message: string };

export interface Result {
  readonly content: Content;
  /** False if reading stopped at `ROWS_MAX`. */
  readonly complete: boolean;
  /** The beginning of the answer, as it came: at most `RAW_MAX` characters. */
  readonly raw: string;
  readonly bytes: number;
  /** From sending the request to the last byte read. */
  readonly milliseconds: number;
  /** Names in the query that match nothing, in words. */
  readonly warnings: readonly string[];
}

/** Rows or statements that the page reads; then it stops the query. */
export const ROWS_MAX = 200_000;
/** Characters of an answer that are kept as they came. */
export const RAW_MAX = 500_000;

/** Reads an answer piece by piece, so that a long one can be stopped. */
export interface Reader {
  /** Returns false if it wants no more. */
  push(text: string): boolean;
  /** After the last piece. Throws if the answer is not what it should be, and was not stopped. */
  finish(): { content: Content; complete: boolean };
  readonly count: number;
}

export function tableOf(triples: readonly Triple[]): Table {
  return {
    variables: ['subject', 'predicate', 'object'],
    rows: triples.map(({ subject, predicate, object }) => [subject, predicate, object]),
  };
}
