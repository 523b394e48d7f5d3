// Names that occur in the data, for completion and the list of names. Asks the server once for the most
// frequent ones; asks again only where there are more than those.
import { Namespaces, WELL_KNOWN, inventPrefixes } from './namespaces';
import type { Name, Server } from './server';

export type NameKind = 'class' | 'predicate';

/** Names that are fetched at first, for each kind. */
const FIRST = 500;
/** Names that an answer to a look-up has at most. */
const FOUND_MAX = 50;

/** How long prefixes wait for names at most. */
const WAIT_MS = 1000;

export class Names {
  readonly #server: Server;
  #prefixes: Promise<readonly (readonly [string, string])[]> | null = null;
  #first = new Map<NameKind, Promise<Name[]>>();
  #found = new Map<string, Promise<Name[]>>();

  constructor(server: Server) {
    this.#server = server;
  }

  /** After an update: what was known may be wrong. */
  forget(): void {
    this.#first.clear();
    this.#found.clear();
    this.#prefixes = null;
  }

  /** Prefixes in the order of their weight: the text's, the server's, well-known ones, invented ones for what has none. */
  async namespaces(declared: Iterable<readonly [string, string]>): Promise<Namespaces> {
    this.#prefixes ??= this.#server
      .prefixes()
      .then((all) => all.map(({ prefix, iri }) => [prefix, iri] as const))
      .catch(() => []);
    const prefixes = await this.#prefixes;
    const known = new Namespaces(declared, prefixes, WELL_KNOWN);
    // Names that take long are not worth waiting for: their IRIs are then written in full.
    const names = await Promise.race([
      Promise.all([this.first('predicate'), this.first('class')]),
      new Promise<Name[][]>((resolve) => setTimeout(resolve, WAIT_MS, [])),
    ]);
    return new Namespaces(declared, prefixes, WELL_KNOWN, inventPrefixes(names.flat().map(({ iri }) => iri), known));
  }

  /** The most frequent names of a kind, most frequent first. Empty if the server does not say. */
  async first(kind: NameKind): Promise<Name[]> {
    let names = this.#first.get(kind);
    if (names === undefined) {
      names = this.#server.names(kind, '', FIRST).catch(() => {
        // The next one asks again.
        this.#first.delete(kind);
        return [];
      });
      this.#first.set(kind, names);
    }
    return names;
  }

  /** Names with `contains` in their IRI or label, in any case of letters. */
  async find(kind: NameKind, contains: string): Promise<Name[]> {
    const first = await this.first(kind);
    const part = contains.toLowerCase();
    const known = first.filter(({ iri, label }) => iri.toLowerCase().includes(part) || label?.toLowerCase().includes(part));
    if (first.length < FIRST || part === '') return known;
    const key = `${kind} ${part}`;
    let found = this.#found.get(key);
    if (found === undefined) {
      found = this.#server.names(kind, contains, FOUND_MAX).catch(() => known);
      this.#found.set(key, found);
    }
    const iris = new Set(known.map(({ iri }) => iri));
    return [...known, ...(await found).filter(({ iri }) => !iris.has(iri))];
  }
}
