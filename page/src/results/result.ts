// Results from the server. Rows of a table have a cell for each variable, null if unbound.
import type { Term, Triple } from './term';

export interface Table {
  readonly variables: readonly string[];
  readonly rows: readonly (readonly (Term | null)[])[];
}

export type Content =
  | { readonly kind: 'table'; readonly table: Table }
  /** Results of a traversal: cells may be elements, paths and collections. */
  | { readonly kind: 'values'; readonly table: Table }
  | { readonly kind: 'graph'; readonly triples: readonly Triple[] }
  | { readonly kind: 'boolean'; readonly value: boolean }
  | { readonly kind: 'update'; readonly message: string; readonly changes?: Changes };

/** The numbers of statements that an update has added and removed. */
export interface Changes {
  readonly inserted: number;
  readonly removed: number;
}

export interface Result {
  readonly content: Content;
  /** False if reading stopped at `ROWS_MAX`. */
  readonly complete: boolean;
  /** The beginning of the response as received: at most `RAW_MAX` characters. */
  readonly raw: string;
  readonly bytes: number;
  /** From sending the request to the last byte read. */
  readonly milliseconds: number;
  /** Warnings about names in the query that match nothing. */
  readonly warnings: readonly string[];
}

/** The maximum number of rows or statements that the page reads before it stops the query. */
export const ROWS_MAX = 200_000;
/** The maximum number of characters of the raw response that are kept. */
export const RAW_MAX = 500_000;

/** Incremental reader of a response, so that a long one can be stopped. */
export interface Reader {
  /** Returns false to stop. */
  push(text: string): boolean;
  /** Called after the last chunk. Throws if the response is malformed, unless reading was stopped. */
  finish(): { content: Content; complete: boolean };
  readonly count: number;
}

export function tableOf(triples: readonly Triple[]): Table {
  return {
    variables: ['subject', 'predicate', 'object'],
    rows: triples.map(({ subject, predicate, object }) => [subject, predicate, object]),
  };
}
