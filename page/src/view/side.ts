// The side panel: queries (steps of a tour, saved ones, examples, history), and names in the data.
import { button, h } from '../dom';
import type { Language, LanguageId } from '../language';
import { languageOf, memory, type Past } from '../memory';
import type { Name } from '../server';
import type { NameKind, Names } from '../names';
import { count } from '../quantities';
import { readQueries, writeQueries } from '../saved-file';
import type { Tour } from '../tour';
import { saveFile } from './result';
import { iriParts } from './term';
import { tabs, type Tabs } from './tabs';

interface SideOptions {
  /** The language of the editor. */
  readonly language: () => Language;
  readonly languages: readonly Language[];
  readonly names: Names;
  readonly onQuery: (text: string, language: LanguageId) => void;
  readonly onStep: (index: number) => void;
  readonly onName: (iri: string) => void;
  readonly onSay: (text: string) => void;
}

/** The number of names of a kind in the list. */
const NAMES_SHOWN = 100;

export class Side {
  readonly element: HTMLElement;
  readonly #options: SideOptions;
  readonly #queries = h('div', { class: 'list' });
  readonly #names = h('div', { class: 'list' });
  readonly #tabs: Tabs;
  #tour: Tour | null = null;
  #step: number | null = null;
  #wanted = '';
  #asked = 0;

  constructor(options: SideOptions) {
    this.#options = options;
    const filter = h('input', {
      type: 'search', placeholder: 'Find a name', 'aria-label': 'Find a class or predicate', spellcheck: 'false',
      oninput: () => {
        this.#wanted = filter.value.trim();
        void this.refreshNames();
      },
    });
    this.#tabs = tabs('Side', [
      { id: 'side-queries', title: 'Queries', panel: this.#queries },
      { id: 'side-names', title: 'Names', panel: h('div', { class: 'names' }, filter, this.#names) },
    ]);
    this.element = h('aside', { class: 'side', id: 'side', 'aria-label': 'Queries and names' }, this.#tabs.list, ...this.#tabs.panels);
    this.refreshQueries();
  }

  /** Shows the steps of a tour above the other queries. `step`: the current one. */
  showTour(tour: Tour | null, step: number | null): void {
    [this.#tour, this.#step] = [tour, step];
    this.refreshQueries();
  }

  /** Moves the focus to the current step, or to the first. */
  focusTour(): void {
    this.#tabs.choose('side-queries');
    this.#queries.querySelector<HTMLElement>(`[data-step="${this.#step ?? 0}"]`)?.focus();
  }

  refreshQueries(): void {
    const { onQuery, languages } = this.#options;
    const language = this.#options.language();
    const saved = memory.saved();
    const past = memory.past();
    // Queries in the other language are tagged.
    const tag = (id: LanguageId): HTMLElement | null =>
      id === language.id ? null : h('span', { class: 'tag' }, languages.find((one) => one.id === id)?.name ?? id);
    const take = (title: string, about: string, text: string, id: LanguageId): HTMLButtonElement =>
      h(
        'button',
        { type: 'button', class: 'item', title: text.slice(0, 600), onclick: () => onQuery(text, id) },
        h('span', { class: 'title' }, title, tag(id)),
        about !== '' && h('span', { class: 'about' }, about),
      );
    this.#queries.replaceChildren(
      ...this.#steps(),
      h(
        'h2',
        {},
        'Saved',
        h(
          'span',
          { class: 'both' },
          button({ text: 'Import', label: 'Import saved queries from a file', onClick: () => this.#import() }),
          saved.length > 0 && button({ text: 'Export', label: 'Export saved queries to a file', onClick: () => saveFile(new Blob([writeQueries(saved)], { type: 'application/json' }), 'queries.json') }),
        ),
      ),
      saved.length === 0 ? h('p', { class: 'faint' }, 'Save a query to find it here.') : '',
      ...saved.map((one) => ({ ...one, id: languageOf(one) })).map(({ name, text, id }) =>
        h(
          'div',
          { class: 'removable' },
          take(name, '', text, id),
          button({ icon: 'remove', label: `Remove ${name}`, onClick: () => (memory.unsave(name), this.refreshQueries()) }),
        ),
      ),
      h('h2', {}, 'Examples'),
      ...language.examples.map(({ title, about, text }) => take(title, about, text, language.id)),
      h(
        'h2',
        {},
        'History',
        past.length > 0 ? button({ text: 'Clear', onClick: () => (memory.forgetPast(), this.refreshQueries()) }) : '',
      ),
      past.length === 0 ? h('p', { class: 'faint' }, 'Nothing yet.') : '',
      ...past.map((one) => take(firstLine(one.text), pastNote(one), one.text, languageOf(one))),
    );
  }

  #steps(): HTMLElement[] {
    const tour = this.#tour;
    if (tour === null) return [];
    const steps = tour.steps.map(({ name, note, text }, i) =>
      h(
        'li',
        {},
        h(
          'button',
          {
            type: 'button', class: 'item', title: text.slice(0, 600), 'data-step': i, 'aria-current': i === this.#step ? 'step' : null,
            onclick: () => this.#options.onStep(i),
          },
          h('span', { class: 'title' }, h('span', { class: 'number' }, `${i + 1} `), name),
          note !== '' && h('span', { class: 'about' }, note),
        ),
      ),
    );
    return [h('h2', {}, tour.title), h('ol', { 'aria-label': tour.title }, ...steps)];
  }

  /** Imports the queries of a file, replacing those with the same name. */
  #import(): void {
    const input = h('input', { type: 'file', accept: 'application/json,.json' });
    input.addEventListener('change', () => {
      void input.files?.[0]
        ?.text()
        .then((text) => {
          const queries = readQueries(text);
          for (const query of queries) memory.save(query);
          this.refreshQueries();
          this.#options.onSay(`${queries.length} saved queries imported`);
        })
        .catch((error: unknown) => this.#options.onSay(error instanceof Error ? error.message : String(error)));
    });
    input.click();
  }

  /** Fetches the names again, and shows them. Later calls win. */
  async refreshNames(): Promise<void> {
    const { names } = this.#options;
    this.#asked += 1;
    const asked = this.#asked;
    const wanted = this.#wanted;
    const namespaces = await names.namespaces([]);
    const [classes, predicates] = await Promise.all([names.find('class', wanted), names.find('predicate', wanted)]);
    if (asked !== this.#asked) return;
    const section = (title: string, kind: NameKind, found: readonly Name[]): (HTMLElement | string)[] => [
      h('h2', {}, title, found.length > 0 ? h('span', { class: 'faint' }, count(found.length)) : ''),
      found.length === 0 ? h('p', { class: 'faint' }, wanted === '' ? 'The server reports none.' : 'No matching name.') : '',
      ...found.slice(0, NAMES_SHOWN).map(({ iri, count: number }) => {
        const { head, local } = iriParts(iri, namespaces);
        return h(
          'button',
          { type: 'button', class: `item name ${kind}`, title: `${iri}\n(insert at the cursor)`, onclick: () => this.#options.onName(iri) },
          h('span', { class: 'title' }, h('span', { class: 'head' }, head), local),
          number === undefined ? null : h('span', { class: 'about' }, count(number)),
        );
      }),
      found.length > NAMES_SHOWN ? h('p', { class: 'faint' }, `and ${count(found.length - NAMES_SHOWN)} more`) : '',
    ];
    this.#names.replaceChildren(...section('Classes', 'class', classes), ...section('Predicates', 'predicate', predicates));
  }
}

/** The first meaningful line: neither a prefix nor a comment. */
function firstLine(text: string): string {
  const lines = text.split('\n').map((line) => line.trim());
  const body = lines.filter((line) => line !== '' && !/^(?:#|\/\/|PREFIX\b|BASE\b)/i.test(line));
  return body.join(' ').slice(0, 120) || text.trim().slice(0, 120);
}

function pastNote({ at, note }: Past): string {
  const when = new Date(at);
  const today = when.toDateString() === new Date().toDateString();
  const time = when.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
  return [today ? time : when.toLocaleDateString(), note].filter((part) => part !== '').join(' · ');
}
