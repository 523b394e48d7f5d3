// What the page needs to know of a query language: the interface that SPARQL and Gremlin implement.
//
// A `Language` holds no state of the page and touches no element of it: it reads texts and makes texts and requests,
// and gives the editor its highlighting and completion. The server has one graph, which both languages see, so what
// panels and pictures ask for themselves they ask in SPARQL, whichever language the editor has.
import type { Extension } from '@codemirror/state';
import type { CompletionSource } from '@codemirror/autocomplete';
import type { Names } from './names';
import type { Namespaces } from './namespaces';
import type { Reader } from './results/result';
import type { Plan } from './server';

export type LanguageId = 'sparql' | 'gremlin';

/** A request, and how its answer is read. */
export interface Call {
  /** Relative to the page. */
  readonly path: string;
  /** Type of `body`. */
  readonly type: string;
  readonly body: string;
  readonly accept?: string;
  /** `rowsMax`: rows or statements to read at most. */
  readonly reader: (rowsMax?: number) => Reader;
}

/** A request for a plan, and how its answer is read. */
export interface PlanCall {
  readonly path: string;
  readonly type: string;
  readonly body: string;
  readonly accept?: string;
  readonly read: (answer: string) => Plan;
}

/** Two variables of a query and what connects them, as the text has it. */
export interface Edge {
  readonly source: string;
  readonly predicate: string;
  readonly target: string;
}

/** How a name is put into a text: `text` at the cursor, and `line` (or nothing) at the offset `place`. */
export interface Naming {
  readonly text: string;
  readonly line: string;
  readonly place: number;
}

/** A query for an empty editor. Works on any data. */
export interface Example {
  readonly title: string;
  readonly about: string;
  readonly text: string;
}

export interface Language {
  readonly id: LanguageId;
  readonly name: string;
  readonly examples: readonly Example[];
  /** What a result needs so that there is something to draw. */
  readonly drawable: string;
  /** Tokens, brackets and indentation for the editor. */
  highlighting(): Extension;
  /** Proposes words, variables of the text, and names that occur in the data. */
  completion(names: Names): CompletionSource;
  /** Whether the text may change the data. */
  writes(text: string): boolean;
  /** `seconds`: how long it may take; null for as long as the server allows. */
  call(text: string, seconds: number | null): Call;
  /** The answer as a file of the type `accept`. */
  file(text: string, accept: string): Call;
  /** `run`: with its times. A string says why the text has no plan. */
  plan(text: string, run: boolean): PlanCall | string;
  /** Prefixes that the text declares: prefix (without colon) to IRI. */
  declared(text: string): ReadonlyMap<string, string>;
  /** Variables that patterns of the text connect: what a picture of the rows has as edges. */
  edges(text: string): readonly Edge[];
  naming(text: string, iri: string, namespaces: Namespaces): Naming;
  /** A query to put into the editor, that describes `iri`. */
  describe(iri: string, namespaces: Namespaces): string;
}
