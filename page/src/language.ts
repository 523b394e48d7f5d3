// The interface of a query language in the console, implemented by SPARQL and Gremlin.
//
// A `Language` has no page state and does not touch the DOM: it analyses texts, creates texts and requests,
// and provides highlighting and completion for the editor. Both languages see the single graph of the
// server, so the queries of panels and pictures are always in SPARQL.
import type { Extension } from '@codemirror/state';
import type { CompletionSource } from '@codemirror/autocomplete';
import type { Names } from './names';
import type { Namespaces } from './namespaces';
import type { Reader } from './results/result';
import type { Plan } from './server';

export type LanguageId = 'sparql' | 'gremlin';

/** A request, with the reader of its response. */
export interface Call {
  /** Relative to the page. */
  readonly path: string;
  /** The content type of `body`. */
  readonly type: string;
  readonly body: string;
  readonly accept?: string;
  /** `rowsMax`: the maximum number of rows or statements to read. */
  readonly reader: (rowsMax?: number) => Reader;
}

/** A request for a plan, with the parser of its response. */
export interface PlanCall {
  readonly path: string;
  readonly type: string;
  readonly body: string;
  readonly accept?: string;
  readonly read: (answer: string) => Plan;
}

/** Two variables of a query and the predicate between them, as written. */
export interface Edge {
  readonly source: string;
  readonly predicate: string;
  readonly target: string;
}

/**
 * The insertion of a name into a text: `text` at the cursor, and `line` (or nothing) at the offset `place`.
 */
export interface Naming {
  readonly text: string;
  readonly line: string;
  readonly place: number;
}

/** An example query. Works on any data. */
export interface Example {
  readonly title: string;
  readonly about: string;
  readonly text: string;
}

export interface Language {
  readonly id: LanguageId;
  readonly name: string;
  readonly examples: readonly Example[];
  /** Writes a little data, for an empty database. */
  readonly firstData: Example;
  /** Message: what a result needs so that it can be drawn. */
  readonly drawable: string;
  /** Tokens, brackets and indentation for the editor. */
  highlighting(): Extension;
  /** Proposes keywords, variables of the text, and names from the data. */
  completion(names: Names): CompletionSource;
  /** Whether the text may change the data. */
  writes(text: string): boolean;
  /** `seconds`: the timeout; null for the server's limit. */
  call(text: string, seconds: number | null): Call;
  /** The response as a file of the type `accept`. */
  file(text: string, accept: string): Call;
  /** `run`: with measured times. A string is the reason why the text has no plan. */
  plan(text: string, run: boolean): PlanCall | string;
  /** Prefixes that the text declares: prefix (without colon) to IRI. */
  declared(text: string): ReadonlyMap<string, string>;
  /** Variables connected by patterns of the text: the edges of a picture of the rows. */
  edges(text: string): readonly Edge[];
  naming(text: string, iri: string, namespaces: Namespaces): Naming;
  /** A query that describes `iri`, for the editor. */
  describe(iri: string, namespaces: Namespaces): string;
}
