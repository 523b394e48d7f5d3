// A term as an element; a triple term contains its parts. Resources, vertices and edges are buttons with
// `data-iri`; the container listens for clicks.
import { h } from '../dom';
import { XSD, abbreviate, type Namespaces } from '../namespaces';
import { isNumber, nameOf, plain, write, type EdgeTerm, type Property, type Term, type VertexTerm } from '../results/term';

/** The maximum number of characters of a literal in a cell. */
const SHOWN_MAX = 300;
/** The maximum number of items of a collection in a cell, and of properties in a tooltip. */
const ITEMS_MAX = 40;

export function termElement(term: Term, namespaces: Namespaces): HTMLElement {
  switch (term.kind) {
    case 'iri': {
      const { head, local } = iriParts(term.value, namespaces);
      return h(
        'button',
        { type: 'button', class: 'iri', tabindex: -1, title: term.value, 'data-iri': term.value },
        h('span', { class: 'head' }, head),
        local,
      );
    }
    case 'blank':
      return h('span', { class: 'blank', title: 'a blank node: its label is only valid in this result' }, `_:${term.value}`);
    case 'literal': {
      const text = term.value.length > SHOWN_MAX ? `${term.value.slice(0, SHOWN_MAX)}…` : readable(term);
      const tag = term.language ?? datatypeTag(term, namespaces);
      return h(
        'span',
        { class: isNumber(term) ? 'literal number' : 'literal', title: short(write(term)) },
        text,
        tag !== null && h('span', { class: 'tag' }, tag),
      );
    }
    case 'triple': {
      const parts = [term.subject, term.predicate, term.object].map((part) => termElement(part, namespaces));
      return h('span', { class: 'triple', title: short(write(term)) }, '<<( ', ...between(parts, ' '), ' )>>');
    }
    case 'vertex':
      return vertexElement(term);
    case 'edge':
      return h(
        'span',
        { class: 'edge', title: tooltip(write(term), term.properties) },
        vertexElement(term.source, true),
        edgeElement(term, namespaces),
        vertexElement(term.target, true),
      );
    case 'list': {
      if (term.form === 'path') return pathElement(term.items, namespaces);
      const items = between(term.items.slice(0, ITEMS_MAX).map((item) => itemElement(item, namespaces)), ', ');
      const [open, close] = term.form === 'set' ? ['{', '}'] : ['[', ']'];
      return h('span', { class: 'collection', title: short(write(term)) }, open, ...items, term.items.length > ITEMS_MAX ? ' …' : '', close);
    }
    case 'map': {
      const entries = term.entries
        .slice(0, ITEMS_MAX)
        .map(([key, value]) => h('span', {}, h('span', { class: 'head' }, itemElement(key, namespaces), ': '), itemElement(value, namespaces)));
      return h('span', { class: 'collection', title: short(write(term)) }, ...between(entries, ', '), term.entries.length > ITEMS_MAX ? ' …' : '');
    }
  }
}

/** `brief`: without the label, as the end of an edge. */
function vertexElement(vertex: VertexTerm, brief = false): HTMLElement {
  const { iri, id, label } = vertex;
  const name = brief ? null : nameOf(vertex);
  const title = tooltip(`v[${id}] ${label}`, vertex.properties);
  const inner = [shortId(id), ...(name === null ? [] : [' ', h('span', { class: 'called' }, name)]), ...(brief ? [] : [' ', h('span', { class: 'tag' }, shortId(label))])];
  if (iri === null) return h('span', { class: 'blank', title }, ...inner);
  return h('button', { type: 'button', class: 'iri vertex', tabindex: -1, title, 'data-iri': iri }, ...inner);
}

function edgeElement({ iri, label }: EdgeTerm, namespaces: Namespaces): HTMLElement {
  const text = label.includes('://') ? iriParts(label, namespaces).local : label;
  const inner = ['─', h('span', { class: 'by' }, text), '→'];
  return iri === null
    ? h('span', { class: 'arrow' }, ...inner)
    : h('button', { type: 'button', class: 'arrow', tabindex: -1, 'data-iri': iri }, ...inner);
}

/** The objects of a path in order, with the labels of the edges between them. */
function pathElement(items: readonly (Term | null)[], namespaces: Namespaces): HTMLElement {
  const parts: (HTMLElement | string)[] = [];
  let at: string | null = null;
  let byEdge = true;
  for (const item of items.slice(0, ITEMS_MAX)) {
    if (item?.kind === 'edge' && at !== null && (item.source.id === at || item.target.id === at)) {
      const back = item.source.id !== at;
      parts.push(h('span', { class: 'arrow', title: tooltip(write(item), item.properties) }, back ? '←' : '─', h('span', { class: 'by' }, item.label), back ? '─' : '→'));
      byEdge = true;
    } else {
      if (!byEdge) parts.push(h('span', { class: 'arrow' }, '→'));
      parts.push(itemElement(item, namespaces));
      byEdge = false;
    }
    at = item?.kind === 'vertex' ? item.id : at;
  }
  if (items.length > ITEMS_MAX) parts.push(' …');
  return h('span', { class: 'edge' }, ...parts);
}

function itemElement(term: Term | null, namespaces: Namespaces): HTMLElement {
  return term === null ? h('span', { class: 'faint' }, 'null') : termElement(term, namespaces);
}

function between(items: readonly HTMLElement[], separator: string): (HTMLElement | string)[] {
  return items.flatMap((item, i) => (i === 0 ? [item] : [separator, item]));
}

/** Ids that are IRIs, shortened to their last part. */
function shortId(id: string): string {
  return id.includes('://') ? abbreviate(id).local || id : id;
}

function tooltip(head: string, properties: readonly Property[]): string {
  const lines = properties.slice(0, ITEMS_MAX).map(({ key, value }) => `${key}: ${value === null ? 'null' : plain(value).slice(0, SHOWN_MAX)}`);
  return [head, ...lines].join('\n');
}

function short(text: string): string {
  return text.length > 2000 ? `${text.slice(0, 2000)}…` : text;
}

/** The approximate number of characters that `termElement` shows. */
export function shownLength(term: Term, namespaces: Namespaces): number {
  if (term.kind === 'iri') {
    const { head, local } = iriParts(term.value, namespaces);
    return head.length + local.length;
  }
  if (term.kind === 'vertex') return shortId(term.id).length + (nameOf(term)?.length ?? 0) + term.label.length + 4;
  if (term.kind === 'edge') return term.source.id.length + term.label.length + term.target.id.length + 6;
  if (term.kind === 'list') return Math.min(SHOWN_MAX, term.items.reduce((sum, item) => sum + (item === null ? 4 : shownLength(item, namespaces)) + 2, 2));
  if (term.kind === 'triple') {
    const parts = [term.subject, term.predicate, term.object].map((part) => shownLength(part, namespaces));
    return Math.min(SHOWN_MAX, parts.reduce((sum, length) => sum + length + 1, 7));
  }
  if (term.kind !== 'literal') return Math.min(SHOWN_MAX, write(term, namespaces).length);
  return Math.min(term.value.length, SHOWN_MAX) + (term.language ?? datatypeTag(term, namespaces) ?? '').length;
}

export function iriParts(iri: string, namespaces: Namespaces): { head: string; local: string } {
  const short = namespaces.split(iri);
  return short === null ? abbreviate(iri) : { head: `${short.prefix}:`, local: short.local };
}

/** The value of a literal; a double in its canonical form, such as `4.8E1`, without its exponent if that is short. */
function readable({ value, datatype }: Term & { kind: 'literal' }): string {
  if (datatype !== `${XSD}double` || !/^-?\d\.\d+E-?\d+$/.test(value)) return value;
  const text = String(Number(value));
  return text.includes('e') || text.length > 24 ? value : text;
}

/** Datatypes that are evident from the value have no tag. */
function datatypeTag(term: Term & { kind: 'literal' }, namespaces: Namespaces): string | null {
  const { datatype } = term;
  if (datatype === undefined || datatype === `${XSD}boolean` || isNumber(term)) return null;
  const { local } = iriParts(datatype, namespaces);
  return local === '' ? datatype : local;
}
