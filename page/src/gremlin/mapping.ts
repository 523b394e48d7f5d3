// The mapping of property graphs to RDF (docs/gremlin.md): ids, labels and keys to IRIs and back.

const VERTEX = 'urn:vervet:vertex:';
const LABEL = 'urn:vervet:label:';
const KEY = 'urn:vervet:key:';
export const EDGE = 'urn:vervet:edge:';

/** Characters that need no encoding in an IRI; from U+00A0 on, all except private-use ones. */
const PLAIN = /^[A-Za-z0-9\-._~:@!$&()*+,;=/]$/;

/** The vertex with this id; null for blank nodes, which have no IRI. */
export function vertexIri(id: string): string | null {
  if (id.startsWith('_:')) return null;
  return isIri(id) ? id : VERTEX + encode(id);
}

export function labelIri(label: string): string {
  return isIri(label) ? label : LABEL + encode(label);
}

/** The Gremlin id of a resource. */
export function vertexId(iri: string): string {
  return decode(VERTEX, iri) ?? iri;
}

/** The Gremlin name of a class (`label`) or a predicate (`key`); null if it has none. */
export function nameOf(kind: 'label' | 'key', iri: string): string | null {
  return decode(kind === 'label' ? LABEL : KEY, iri) ?? (isIri(iri) ? iri : null);
}

/** Encodes a part of a name for an IRI. */
export function encode(name: string): string {
  return [...name].map((c) => (PLAIN.test(c) || isLetter(c.codePointAt(0) ?? 0) ? c : percent(c))).join('');
}

function isIri(name: string): boolean {
  return name.includes('://') || name.startsWith('urn:');
}

function isLetter(code: number): boolean {
  return code >= 0xa0 && !(code >= 0xd800 && code <= 0xf8ff) && code < 0xf0000;
}

function percent(character: string): string {
  return [...new TextEncoder().encode(character)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('');
}

function decode(namespace: string, iri: string): string | null {
  if (!iri.startsWith(namespace)) return null;
  try {
    return decodeURIComponent(iri.slice(namespace.length));
  } catch {
    return null;
  }
}
