// What the page needs to know of a query language. SPARQL is the first; another joins by implementing this.
//
// A `Language` holds no state of the page and touches no element of it: it reads texts and makes texts,
// and gives the editor its highlighting and completion.
import type { Extension } from '@codemirror/state';
import type { CompletionSource } from '@codemirror/autocomplete';
import type { Names } from './names';
import type { Namespaces } from './namespaces';

/** What a text asks for, which decides where it goes and what comes back. */
export type Request = 'table' | 'boolean' | 'graph' | 'update';

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
  readonly id: string;
  readonly name: string;
  readonly queryType: string;
  readonly updateType: string;
  readonly examples: readonly Example[];
  /** Tokens, brackets and indentation for the editor. */
  highlighting(): Extension;
  /** Proposes words, variables of the text, and names that occur in the data. */
  completion(names: Names): CompletionSource;
  request(text: string): Request;
  /** Prefixes that the text declares: prefix (without colon) to IRI. */
  declared(text: string): ReadonlyMap<string, string>;
  /** Variables that patterns of the text connect: what a picture of the rows has as edges. */
  edges(text: string): readonly Edge[];
  naming(text: string, iri: string, namespaces: Namespaces): Naming;
  /** A query for a graph of at most `limit` statements from and to `iri`, each. */
  around(iri: string, limit: number): string;
  /** A query for a table `?vertex ?label ?type` about `iris`, label and type unbound where there are none. */
  facts(iris: readonly string[]): string;
  /** A query to put into the editor, that describes `iri`. */
  describe(iri: string, namespaces: Namespaces): string;
}
