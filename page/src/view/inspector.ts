// A panel about one resource: its types, outgoing and incoming statements, with navigation and a way back.
import { button, h } from '../dom';
import { LABELS, RDF_TYPE, localName, type Namespaces } from '../namespaces';
import { keyOf, plain, type Term, type Triple } from '../results/term';
import { count } from '../quantities';
import type { Fact } from './picture';
import { iriParts, termElement } from './term';

/** Values of a predicate shown initially. */
const VALUES_SHOWN = 12;

interface InspectorOptions {
  /** Statements about `iri`, at most `limit` in each direction. */
  readonly load: (iri: string, limit: number) => Promise<readonly Triple[]>;
  /** Display names of resources. */
  readonly facts: (iris: readonly string[]) => Promise<readonly Fact[]>;
  readonly namespaces: () => Promise<Namespaces>;
  readonly onPicture: (iri: string) => void;
  readonly onQuery: (iri: string) => void;
  readonly onToggle: (open: boolean) => void;
}

/** Statements read in each direction. */
const LIMIT = 200;

export class Inspector {
  readonly element = h('aside', { class: 'inspector', 'aria-label': 'About a resource', hidden: true });
  readonly #options: InspectorOptions;
  #trail: string[] = [];
  #opener: HTMLElement | null = null;

  constructor(options: InspectorOptions) {
    this.#options = options;
    this.element.addEventListener('click', (event) => {
      const iri = (event.target as HTMLElement).closest<HTMLElement>('[data-iri]')?.dataset['iri'];
      if (iri !== undefined) void this.open(iri);
    });
    this.element.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.close();
    });
  }

  get isOpen(): boolean {
    return !this.element.hidden;
  }

  /** `quietly`: without taking the focus. */
  async open(iri: string, quietly = false): Promise<void> {
    if (!this.isOpen && document.activeElement instanceof HTMLElement) this.#opener = document.activeElement;
    if (this.#trail.at(-1) !== iri) this.#trail.push(iri);
    this.element.hidden = false;
    this.#options.onToggle(true);
    this.#show(iri, h('p', { class: 'faint' }, 'Reading …'), null);
    if (!quietly) this.element.querySelector<HTMLElement>('.close')?.focus();
    try {
      const [triples, namespaces] = await Promise.all([this.#options.load(iri, LIMIT), this.#options.namespaces()]);
      if (this.#trail.at(-1) !== iri) return;
      const content = body(iri, triples, namespaces);
      this.#show(iri, content, { triples, namespaces });
      await this.#name(content, iri);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (this.#trail.at(-1) === iri) this.#show(iri, h('p', { class: 'bad', role: 'alert' }, message), null);
    }
  }

  /** Adds the display names of the resources in `content`, and of those that *more* shows later. */
  async #name(content: HTMLElement, about: string): Promise<void> {
    const links = (): HTMLElement[] => [...content.querySelectorAll<HTMLElement>('dd [data-iri]')].filter(({ dataset }) => dataset['named'] === undefined);
    const name = async (): Promise<void> => {
      const unnamed = links().filter(({ dataset }) => dataset['iri'] !== about);
      if (unnamed.length === 0) return;
      const iris = [...new Set(unnamed.map(({ dataset }) => dataset['iri'] ?? ''))];
      // The panel works without names.
      const facts = await this.#options.facts(iris).catch(() => []);
      const labels = new Map(facts.flatMap(({ iri, label }) => (label === null ? [] : [[iri, label] as const])));
      for (const link of unnamed) {
        link.dataset['named'] = '';
        const label = labels.get(link.dataset['iri'] ?? '');
        if (label !== undefined && label !== link.textContent) link.append(' ', h('span', { class: 'called' }, label));
      }
    };
    content.addEventListener('click', (event) => {
      if ((event.target as HTMLElement).closest('.more') !== null) void name();
    });
    await name();
  }

  /** Closes the panel without moving the focus: a new result does not show this resource. */
  dismiss(): void {
    if (!this.element.contains(document.activeElement)) this.#opener = null;
    this.close();
  }

  close(): void {
    if (!this.isOpen) return;
    this.element.hidden = true;
    this.#trail = [];
    this.#options.onToggle(false);
    if (this.#opener?.isConnected) this.#opener.focus();
  }

  #back(): void {
    this.#trail.pop();
    const iri = this.#trail.at(-1);
    if (iri !== undefined) void this.open(iri);
  }

  #show(iri: string, content: HTMLElement, known: { triples: readonly Triple[]; namespaces: Namespaces } | null): void {
    const hadFocus = this.element.contains(document.activeElement);
    const labels = known?.triples.filter(({ subject, predicate }) => isIri(subject, iri) && predicate.kind === 'iri' && LABELS.includes(predicate.value));
    const label = LABELS.flatMap((name) => labels?.find(({ predicate }) => isIri(predicate, name)) ?? [])[0]?.object;
    const types = (known?.triples ?? [])
      .filter(({ subject, predicate, object }) => isIri(subject, iri) && isIri(predicate, RDF_TYPE) && object.kind === 'iri')
      .map(({ object }) => (known === null ? null : h('li', {}, termElement(object, known.namespaces))));
    this.element.replaceChildren(
      h(
        'header',
        {},
        this.#trail.length > 1 ? button({ text: '‹ Back', class: 'quiet back', onClick: () => this.#back() }) : null,
        button({ icon: 'close', label: 'Close', class: 'quiet close', onClick: () => this.close() }),
      ),
      h('h2', {}, label ? plain(label) : localName(iri)),
      h(
        'p',
        { class: 'address' },
        h('code', {}, iri),
        button({ icon: 'copy', label: 'Copy the IRI', onClick: () => void navigator.clipboard?.writeText(iri) }),
      ),
      types.length > 0 ? h('ul', { class: 'types', 'aria-label': 'Types' }, ...types) : '',
      h(
        'p',
        { class: 'actions' },
        button({ text: 'Draw', label: 'Draw its neighbourhood', class: 'plain', onClick: () => this.#options.onPicture(iri) }),
        button({ text: 'Describe in editor', class: 'plain', onClick: () => this.#options.onQuery(iri) }),
      ),
      content,
    );
    for (const link of this.element.querySelectorAll('[data-iri]')) link.setAttribute('tabindex', '0');
    if (hadFocus && !this.element.contains(document.activeElement)) this.element.querySelector<HTMLElement>('.close')?.focus();
  }
}

function isIri(term: Term, iri: string): boolean {
  return term.kind === 'iri' && term.value === iri;
}

function body(iri: string, triples: readonly Triple[], namespaces: Namespaces): HTMLElement {
  const out = grouped(triples.filter(({ subject }) => isIri(subject, iri)), ({ object }) => object, namespaces);
  const into = grouped(triples.filter(({ object }) => isIri(object, iri)), ({ subject }) => subject, namespaces);
  if (triples.length === 0) return h('p', { class: 'faint' }, 'There are no statements about it.');
  return h(
    'div',
    {},
    out.length > 0 && h('dl', {}, ...out),
    into.length > 0 && h('h3', {}, 'Referred to by'),
    into.length > 0 && h('dl', {}, ...into),
  );
}

function grouped(triples: readonly Triple[], value: (triple: Triple) => Term, namespaces: Namespaces): HTMLElement[] {
  const groups = new Map<string, { predicate: Term; values: Map<string, Term> }>();
  for (const triple of triples) {
    // Types are shown above.
    if (isIri(triple.predicate, RDF_TYPE) && value(triple) === triple.object) continue;
    const key = keyOf(triple.predicate);
    const group = groups.get(key) ?? { predicate: triple.predicate, values: new Map<string, Term>() };
    group.values.set(keyOf(value(triple)), value(triple));
    groups.set(key, group);
  }
  return [...groups.values()].flatMap(({ predicate, values }) => {
    const all = [...values.values()];
    const list = h('dd', {}, ...all.slice(0, VALUES_SHOWN).map((term) => h('div', {}, termElement(term, namespaces))));
    if (all.length > VALUES_SHOWN) {
      const hidden = all.slice(VALUES_SHOWN);
      const more = button({
        text: `${count(hidden.length)} more`,
        class: 'quiet more',
        onClick: () => more.replaceWith(...hidden.map((term) => h('div', {}, termElement(term, namespaces)))),
      });
      list.append(more);
    }
    return [h('dt', { title: plain(predicate) }, predicateText(predicate, namespaces)), list];
  });
}

function predicateText(predicate: Term, namespaces: Namespaces): string {
  if (predicate.kind !== 'iri') return plain(predicate);
  const { head, local } = iriParts(predicate.value, namespaces);
  return head + local;
}
