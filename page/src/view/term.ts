// A term as an element. Resources are buttons with `data-iri`; whoever holds them listens for the click.
import { h } from '../dom';
import { XSD, abbreviate, type Namespaces } from '../namespaces';
import { isNumber, write, type Term } from '../results/term';

/** Characters of a literal that a cell shows. */
const SHOWN_MAX = 300;

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
      return h('span', { class: 'blank', title: 'a blank node: it has no name outside of this answer' }, `_:${term.value}`);
    case 'literal': {
      const text = term.value.length > SHOWN_MAX ? `${term.value.slice(0, SHOWN_MAX)}…` : term.value;
      const tag = term.language ?? datatypeTag(term, namespaces);
      const full = write(term);
      return h(
        'span',
        { class: isNumber(term) ? 'literal number' : 'literal', title: full.length > 2000 ? `${full.slice(0, 2000)}…` : full },
        text,
        tag !== null && h('span', { class: 'tag' }, tag),
      );
    }
    case 'triple': {
      const text = write(term, namespaces);
      return h('span', { class: 'triple', title: write(term) }, text);
    }
  }
}

/** About the number of characters that `termElement` shows. */
export function shownLength(term: Term, namespaces: Namespaces): number {
  if (term.kind === 'iri') {
    const { head, local } = iriParts(term.value, namespaces);
    return head.length + local.length;
  }
  if (term.kind !== 'literal') return write(term, namespaces).length;
  return Math.min(term.value.length, SHOWN_MAX) + (term.language ?? datatypeTag(term, namespaces) ?? '').length;
}

export function iriParts(iri: string, namespaces: Namespaces): { head: string; local: string } {
  const short = namespaces.split(iri);
  return short === null ? abbreviate(iri) : { head: `${short.prefix}:`, local: short.local };
}

/** Datatypes that a value's look gives away have no tag. */
function datatypeTag(term: Term & { kind: 'literal' }, namespaces: Namespaces): string | null {
  const { datatype } = term;
  if (datatype === undefined || datatype === `${XSD}boolean` || isNumber(term)) return null;
  const { local } = iriParts(datatype, namespaces);
  return local === '' ? datatype : local;
}
