// How property graphs stand in RDF, which is how one graph is seen by two languages (docs/gremlin.md): ids, labels
// and keys to IRIs and back.

const VERTEX = 'urn:vervet:vertex:';
const LABEL = 'urn:vervet:label:';
const KEY = 'urn:vervet:key:';
export const EDGE = 'urn:vervet:edge:';

/** Characters of a name that stand in an IRI as they are; of those from U+00A0 on all but private ones do. */
const PLAIN = /^[A-Za-z0-9\-._~:@!$&()*+,;=/]$/;

/** The vertex with this id; null for blank nodes, which have no name. */
export function vertexIri(id: string): string | null {
  if (id.startsWith('_:')) return null;
  return isIri(id) ? id : VERTEX + encode(id);
}

export function labelIri(label: string): string {
  return isIri(label) ? label : LABEL + encode(label);
}

/** The id of a resource, as Gremlin has it. */
export function vertexId(iri: string): string {
  return decode(VERTEX, iri) ?? iri;
}

/** What Gremlin calls a class (`label`) or a predicate (`key`); null if it has no way to name it. */
export function nameOf(kind: 'label' | 'key', iri: string): string | null {
  return decode(kind === 'label' ? LABEL : KEY, iri) ?? (isIri(iri) ? iri : null);
}

/** What a part of a name looks like inside an IRI. */
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
