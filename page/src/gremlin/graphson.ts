// Parses GraphSON 3: typed JSON (`{"@type": "g:Int64", "@value": 7}`) into terms.
//
// A value of an unknown type is shown as its text with the type name, so that no data is lost.
import { XSD } from '../namespaces';
import type { EdgeTerm, Property, Term, VertexTerm } from '../results/term';
import { EDGE, vertexIri } from './mapping';

/** The media type to accept. */
export const GRAPHSON = 'application/vnd.gremlin-v3.0+json';

export interface Typed {
  readonly '@type': string;
  readonly '@value': unknown;
}

/** GraphSON types of numbers and other scalars, with their XSD datatypes. */
const DATATYPES: Readonly<Record<string, string>> = {
  'g:Int32': `${XSD}int`,
  'g:Int64': `${XSD}long`,
  'g:Float': `${XSD}float`,
  'g:Double': `${XSD}double`,
  'gx:Byte': `${XSD}byte`,
  'gx:Int16': `${XSD}short`,
  'gx:BigInteger': `${XSD}integer`,
  'gx:BigDecimal': `${XSD}decimal`,
  'gx:OffsetDateTime': `${XSD}dateTime`,
  'gx:LocalDate': `${XSD}date`,
};
/** Types that are fully represented by their text. */
const WORDS: ReadonlySet<string> = new Set(
  'g:T g:Direction g:Cardinality g:Order g:Scope g:Pop g:Pick g:Column g:Operator g:Barrier g:Merge g:DT g:Class gx:Char'.split(' '),
);

/**
 * Parses JSON, with numbers that a double cannot represent as strings, so that 64-bit ids keep their value.
 * `"@value":` cannot occur inside a string, since quotation marks are escaped there.
 */
export function parseExact(json: string): unknown {
  return JSON.parse(json.replace(/("@value"\s*:\s*)(-?\d[\d.eE+-]{15,})/g, '$1"$2"'));
}

export function isTyped(value: unknown): value is Typed {
  return typeof value === 'object' && value !== null && '@type' in value;
}

/** The members of a typed list, set or array; empty for anything else. */
export function itemsOf(value: unknown): readonly unknown[] {
  const inner = isTyped(value) ? value['@value'] : value;
  return Array.isArray(inner) ? inner : [];
}

/** The entries of a map, typed or not. */
export function entriesOf(value: unknown): readonly (readonly [unknown, unknown])[] {
  const inner = isTyped(value) ? value['@value'] : value;
  if (Array.isArray(inner)) return Array.from({ length: inner.length >> 1 }, (_, i) => [inner[2 * i], inner[2 * i + 1]] as const);
  return typeof inner === 'object' && inner !== null ? Object.entries(inner) : [];
}

/** Null stays null: a key without a value, a step without a result. */
export function termOf(value: unknown): Term | null {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string') return { kind: 'literal', value };
  if (typeof value === 'boolean') return { kind: 'literal', value: String(value), datatype: `${XSD}boolean` };
  if (typeof value === 'number') return { kind: 'literal', value: String(value), datatype: `${XSD}${Number.isInteger(value) ? 'integer' : 'double'}` };
  if (Array.isArray(value)) return { kind: 'list', form: 'list', items: value.map(termOf) };
  if (!isTyped(value)) return mapOf(Object.entries(value));
  const { '@type': type, '@value': inner } = value;
  switch (type) {
    case 'g:List':
      return { kind: 'list', form: 'list', items: itemsOf(value).map(termOf) };
    case 'g:Set':
      return { kind: 'list', form: 'set', items: itemsOf(value).map(termOf) };
    case 'g:BulkSet':
      return { kind: 'list', form: 'list', items: entriesOf(value).flatMap(([item, times]) => repeated(termOf(item), textOf(times))) };
    case 'g:Path':
      return { kind: 'list', form: 'path', items: itemsOf(member(inner, 'objects')).map(termOf) };
    case 'g:Map':
      return mapOf(entriesOf(value));
    case 'g:Tree':
      return mapOf(itemsOf(value).map((branch) => [member(branch, 'key'), member(branch, 'value')]));
    case 'g:Traverser':
      return termOf(member(inner, 'value'));
    case 'g:Vertex':
      return vertexOf(inner);
    case 'g:Edge':
      return edgeOf(inner);
    case 'g:VertexProperty':
      return mapOf([[member(inner, 'label'), member(inner, 'value')]]);
    case 'g:Property':
      return mapOf([[member(inner, 'key'), member(inner, 'value')]]);
    case 'tinker:graph':
      return { kind: 'list', form: 'list', items: [...itemsOf(member(inner, 'vertices')), ...itemsOf(member(inner, 'edges'))].map(termOf) };
    case 'g:Date':
    case 'g:Timestamp':
      return { kind: 'literal', value: dateText(inner), datatype: `${XSD}dateTime` };
  }
  if (typeof inner === 'object' && inner !== null) return Array.isArray(inner) ? termOf(inner) : isTyped(inner) ? termOf(inner) : mapOf(Object.entries(inner));
  const text = String(inner);
  if (WORDS.has(type)) return { kind: 'literal', value: text };
  return { kind: 'literal', value: text, datatype: DATATYPES[type] ?? type };
}

/** A readable form of a value, for names of columns and ids. */
export function textOf(value: unknown): string {
  return isTyped(value) ? textOf(value['@value']) : typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

function mapOf(entries: readonly (readonly [unknown, unknown])[]): Term {
  return { kind: 'map', entries: entries.map(([key, value]) => [termOf(key), termOf(value)]) };
}

function repeated(term: Term | null, times: string): (Term | null)[] {
  return new Array<Term | null>(Math.min(Number(times) || 0, 1000)).fill(term);
}

function vertexOf(inner: unknown): VertexTerm {
  const properties = Object.values((member(inner, 'properties') ?? {}) as Record<string, unknown>)
    .flatMap((values) => (Array.isArray(values) ? values : [values]) as unknown[])
    .map((property): Property => {
      const value = isTyped(property) ? property['@value'] : property;
      return { key: textOf(member(value, 'label')), value: termOf(member(value, 'value')) };
    });
  return vertexWith(member(inner, 'id'), member(inner, 'label'), properties);
}

function vertexWith(id: unknown, label: unknown, properties: readonly Property[]): VertexTerm {
  const text = textOf(id);
  const iri = isTyped(id) && id['@type'] === 'g:UUID' ? `urn:uuid:${text}` : vertexIri(text);
  return { kind: 'vertex', id: text, iri, label: label === undefined ? 'vertex' : textOf(label), properties };
}

function edgeOf(inner: unknown): EdgeTerm {
  const id = textOf(member(inner, 'id'));
  const properties = Object.entries((member(inner, 'properties') ?? {}) as Record<string, unknown>).map(([key, property]): Property => {
    const value = isTyped(property) ? member(property['@value'], 'value') : property;
    return { key, value: termOf(value) };
  });
  return {
    kind: 'edge',
    id,
    iri: id.startsWith(EDGE) ? id : null,
    label: textOf(member(inner, 'label')),
    source: vertexWith(member(inner, 'outV'), member(inner, 'outVLabel'), []),
    target: vertexWith(member(inner, 'inV'), member(inner, 'inVLabel'), []),
    properties,
  };
}

function dateText(value: unknown): string {
  const date = new Date(Number(value));
  return Number.isNaN(date.getTime()) ? String(value) : date.toISOString();
}
