// Names in the data, for completion and the list of names. Fetches the most frequent ones once; queries the
// server again only if there are more.
import { Namespaces, WELL_KNOWN, inventPrefixes } from './namespaces';
import type { Name, Server } from './server';

export type NameKind = 'class' | 'predicate';

/** Names fetched first, for each kind. */
const FIRST = 500;
/** The maximum number of names in a search result. */
const FOUND_MAX = 50;

/** The maximum time to wait for names before inventing prefixes. */
const WAIT_MS = 1000;

export class Names {
  readonly #server: Server;
  #prefixes: Promise<readonly (readonly [string, string])[]> | null = null;
  #first = new Map<NameKind, Promise<Name[]>>();
  #found = new Map<string, Promise<Name[]>>();

  constructor(server: Server) {
    this.#server = server;
  }

  /** Clears the cache after an update. */
  forget(): void {
    this.#first.clear();
    this.#found.clear();
    this.#prefixes = null;
  }

  /**
   * Prefixes by precedence: the text's, the server's, well-known ones, generated ones for other namespaces.
   */
  async namespaces(declared: Iterable<readonly [string, string]>): Promise<Namespaces> {
    this.#prefixes ??= this.#server
      .prefixes()
      .then((all) => all.map(({ prefix, iri }) => [prefix, iri] as const))
      .catch(() => []);
    const prefixes = await this.#prefixes;
    const known = new Namespaces(declared, prefixes, WELL_KNOWN);
    // Slow names are not waited for: their IRIs are then shown in full.
    const names = await Promise.race([
      Promise.all([this.first('predicate'), this.first('class')]),
      new Promise<Name[][]>((resolve) => setTimeout(resolve, WAIT_MS, [])),
    ]);
    return new Namespaces(declared, prefixes, WELL_KNOWN, inventPrefixes(names.flat().map(({ iri }) => iri), known));
  }

  /** The most frequent names of a kind, most frequent first. Empty if the server does not provide them. */
  async first(kind: NameKind): Promise<Name[]> {
    let names = this.#first.get(kind);
    if (names === undefined) {
      names = this.#server.names(kind, '', FIRST).catch(() => {
        // The next call retries.
        this.#first.delete(kind);
        return [];
      });
      this.#first.set(kind, names);
    }
    return names;
  }

  /** Names whose IRI or label contains `contains`, ignoring case. */
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
