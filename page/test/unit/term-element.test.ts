import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Namespaces, WELL_KNOWN } from '../../src/namespaces';
import type { Term } from '../../src/results/term';

/** As much of an element as cells are made of. */
class FakeElement {
  readonly attributes = new Map<string, string>();
  readonly children: (FakeElement | string)[] = [];
  setAttribute(name: string, value: string): void {
    this.attributes.set(name, value);
  }
  append(child: FakeElement | string): void {
    this.children.push(child);
  }
  get text(): string {
    return this.children.map((child) => (typeof child === 'string' ? child : child.text)).join('');
  }
  get links(): string[] {
    const own = this.attributes.get('data-iri');
    return [...(own === undefined ? [] : [own]), ...this.children.flatMap((child) => (typeof child === 'string' ? [] : child.links))];
  }
}

describe('a cell', () => {
  let view: typeof import('../../src/view/term');
  beforeAll(async () => {
    vi.stubGlobal('navigator', { platform: '' });
    vi.stubGlobal('document', { createElement: () => new FakeElement() });
    view = await import('../../src/view/term');
  });
  afterAll(() => vi.unstubAllGlobals());
  const namespaces = new Namespaces([['ex', 'http://e/']], WELL_KNOWN);
  const iri = (value: string): Term => ({ kind: 'iri', value });
  const shown = (term: Term): FakeElement => view.termElement(term, namespaces) as unknown as FakeElement;

  it('shows a triple term by its parts, which can be opened', () => {
    const inner: Term = { kind: 'triple', subject: { kind: 'blank', value: 'b' }, predicate: iri('http://e/p'), object: { kind: 'literal', value: 'x', language: 'en' } };
    const outer: Term = { kind: 'triple', subject: iri('http://e/s'), predicate: iri('http://e/says'), object: inner };
    const element = shown(outer);
    expect(element.text).toBe('<<( ex:s ex:says <<( _:b ex:p xen )>> )>>');
    expect(element.links).toEqual(['http://e/s', 'http://e/says', 'http://e/p']);
    expect(element.attributes.get('title')).toBe('<<( <http://e/s> <http://e/says> <<( _:b <http://e/p> "x"@en )>> )>>');
    expect(view.shownLength(outer, namespaces)).toBeGreaterThanOrEqual(element.text.length - 4);
    expect(view.shownLength(outer, namespaces)).toBeLessThanOrEqual(element.text.length + 8);
  });

  it('shows text from data as text', () => {
    const term: Term = { kind: 'triple', subject: iri('http://e/s'), predicate: iri('http://e/p'), object: { kind: 'literal', value: '<img src=x>' } };
    expect(shown(term).text).toContain('<img src=x>');
    expect(shown(term).links).toHaveLength(2);
  });
});
