// Prefixes: IRIs to short names and back.
//
// The order of precedence is: prefixes of the query, prefixes of the server, well-known prefixes. The first
// prefix for a namespace wins. Shortening is one lookup, at the last `#`, `/` or `:`, and fast enough for
// every cell.

export const RDF_TYPE = 'http://www.w3.org/1999/02/22-rdf-syntax-ns#type';
export const XSD = 'http://www.w3.org/2001/XMLSchema#';

/** Keys whose value is a display name of a vertex of a property graph, the best first. */
export const NAME_KEYS: readonly string[] = ['name', 'label', 'title', 'code'];
/**
 * Predicates whose object is a display name of a resource, the best first: RDF's, and those of property
 * graphs.
 */
export const LABELS: readonly string[] = ['http://www.w3.org/2000/01/rdf-schema#label', ...NAME_KEYS.map((key) => `urn:vervet:key:${key}`)];

export const WELL_KNOWN: readonly (readonly [string, string])[] = [
  ['rdf', 'http://www.w3.org/1999/02/22-rdf-syntax-ns#'],
  ['rdfs', 'http://www.w3.org/2000/01/rdf-schema#'],
  ['xsd', XSD],
  ['owl', 'http://www.w3.org/2002/07/owl#'],
  ['skos', 'http://www.w3.org/2004/02/skos/core#'],
  ['foaf', 'http://xmlns.com/foaf/0.1/'],
  ['dc', 'http://purl.org/dc/elements/1.1/'],
  ['dcterms', 'http://purl.org/dc/terms/'],
  ['schema', 'https://schema.org/'],
  ['sh', 'http://www.w3.org/ns/shacl#'],
  ['prov', 'http://www.w3.org/ns/prov#'],
  ['geo', 'http://www.opengis.net/ont/geosparql#'],
  ['void', 'http://rdfs.org/ns/void#'],
  // Property graphs.
  ['vertex', 'urn:vervet:vertex:'],
  ['edge', 'urn:vervet:edge:'],
  ['label', 'urn:vervet:label:'],
  ['key', 'urn:vervet:key:'],
];

/** A local name without escapes, valid in every syntax. */
const LOCAL = /^(?:[\p{L}\p{N}_](?:[\p{L}\p{N}_.\-]*[\p{L}\p{N}_\-])?)?$/u;

export class Namespaces {
  readonly #prefixes = new Map<string, string>();
  readonly #byIri = new Map<string, string>();
  /** Namespaces that do not end with `#`, `/` or `:`. Each IRI is compared with all of them. */
  readonly #odd: string[] = [];

  /** `sources`: prefix and IRI, the most important source first. */
  constructor(...sources: readonly Iterable<readonly [string, string]>[]) {
    for (const source of sources) for (const [prefix, iri] of source) this.#add(prefix, iri);
  }

  #add(prefix: string, iri: string): void {
    if (iri === '' || this.#prefixes.has(prefix)) return;
    this.#prefixes.set(prefix, iri);
    if (this.#byIri.has(iri)) return;
    this.#byIri.set(iri, prefix);
    if (!/[#/:]$/.test(iri)) this.#odd.push(iri);
  }

  iriOf(prefix: string): string | undefined {
    return this.#prefixes.get(prefix);
  }

  [Symbol.iterator](): IterableIterator<[string, string]> {
    return this.#prefixes.entries();
  }

  /** The prefix and the local name of `iri`, if it has a valid short form. */
  split(iri: string): { prefix: string; local: string; namespace: string } | null {
    const end = namespaceEnd(iri);
    const namespace = iri.slice(0, end);
    const prefix = this.#byIri.get(namespace);
    if (prefix !== undefined && LOCAL.test(iri.slice(end))) return { prefix, local: iri.slice(end), namespace };
    for (const odd of this.#odd) {
      const local = iri.slice(odd.length);
      if (iri.startsWith(odd) && LOCAL.test(local)) return { prefix: this.#byIri.get(odd) ?? '', local, namespace: odd };
    }
    return null;
  }

  /** `prefix:local`, or the IRI in angle brackets. */
  shorten(iri: string): string {
    const found = this.split(iri);
    return found === null ? `<${iri}>` : `${found.prefix}:${found.local}`;
  }
}

/** The readable local part of an IRI. */
export function localName(iri: string): string {
  const trimmed = iri.replace(/[#/]+$/, '');
  const local = trimmed.slice(namespaceEnd(trimmed));
  try {
    return decodeURIComponent(local) || iri;
  } catch {
    return local || iri;
  }
}

/**
 * The last segment of the namespace, then the local name: `…/airport/` and `3`. For IRIs without a prefix.
 */
export function abbreviate(iri: string): { head: string; local: string } {
  const end = namespaceEnd(iri);
  const space = iri.slice(0, end);
  const step = /[^/:#]+[/:#]+$/.exec(space)?.[0] ?? '';
  const head = step !== '' && step.length + 2 < space.length ? `…/${step}` : space;
  return { head, local: iri.slice(end) };
}

/** Segments of an IRI that are not suitable as a prefix. */
const DULL = new Set(
  `ont onto ontology ontologies schema schemas ns vocab vocabulary core term terms owl rdf rdfs id ids resource property
  properties data www org com net edu html def defs model`.split(/\s+/),
);
const PREFIX_MAX = 10;

/**
 * Generated prefixes for the namespaces of `iris` that `known` lacks: the last meaningful segment, shortened
 * (`http://x.org/univ-bench.owl#` is `ub`), with a number if it is taken. More frequent namespaces come
 * first.
 */
export function inventPrefixes(iris: Iterable<string>, known: Namespaces): [string, string][] {
  const counts = new Map<string, number>();
  for (const iri of iris) {
    const namespace = iri.slice(0, namespaceEnd(iri));
    // A scheme alone, as of `urn:p`, is shorter than any prefix for it.
    const isScheme = /^[a-z][a-z0-9+.-]*:$/i.test(namespace);
    if (!isScheme && /^[^\s<>"{}|^`\\]+$/.test(namespace) && known.split(iri) === null && LOCAL.test(iri.slice(namespace.length))) {
      counts.set(namespace, (counts.get(namespace) ?? 0) + 1);
    }
  }
  const found = new Map<string, string>();
  for (const [namespace] of [...counts].sort((a, b) => b[1] - a[1])) {
    const stem = stemOf(namespace);
    let prefix = stem;
    for (let i = 2; found.has(prefix) || known.iriOf(prefix) !== undefined; i += 1) prefix = `${stem}${i}`;
    found.set(prefix, namespace);
  }
  return [...found];
}

function stemOf(namespace: string): string {
  const [host = '', ...path] = namespace.replace(/^[a-z][a-z0-9+.-]*:\/*/i, '').split(/[/#:]+/);
  const steps = [...path.reverse(), host.replace(/\.[a-z]+$/i, '').replace(/^.*\./, '')];
  for (const step of steps) {
    const words = step.toLowerCase().replace(/\.(?:owl|rdf|ttl|html?)$/, '').split(/[^a-z0-9]+/).filter((word) => /^[a-z]/.test(word));
    const word = words.length > 1 ? words.map((one) => one[0]).join('') : (words[0] ?? '');
    if (word !== '' && !DULL.has(word) && !/^v\d+$/.test(word)) return word.slice(0, PREFIX_MAX);
  }
  return 'ns';
}

/** IRIs in queries may contain escapes such as `\u00e9`. */
export function unescapeIri(text: string): string {
  return text.replace(/\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})/g, (all: string, short?: string, long?: string) => {
    const code = parseInt(short ?? long ?? '', 16);
    return code <= 0x10ffff ? String.fromCodePoint(code) : all;
  });
}

function namespaceEnd(iri: string): number {
  const hash = iri.lastIndexOf('#');
  if (hash >= 0) return hash + 1;
  const slash = iri.lastIndexOf('/');
  return slash >= 0 ? slash + 1 : iri.lastIndexOf(':') + 1;
}
