// The result: four views, and export to files. A view is rendered when it is first shown.
import { button, h } from '../dom';
import { GRAPHSON } from '../gremlin/graphson';
import type { Language } from '../language';
import type { Namespaces } from '../namespaces';
import { count, counted } from '../quantities';
import { csv, json, ntriples, tsv } from '../results/files';
import { RAW_MAX, tableOf, type Changes, type Content, type Result, type Table } from '../results/result';
import type { Plan } from '../server';
import { addElements } from './picture-elements';
import { PictureModel } from './picture-model';
import type { PictureView } from './picture';
import { planElement } from './plan';
import { TableView } from './table';
import { tabs, type Tabs } from './tabs';

export type ViewName = 'table' | 'picture' | 'text' | 'plan';

interface ResultOptions {
  readonly picture: PictureView;
  readonly onOpen: (iri: string) => void;
  /** Called to show the plan of the text in the editor; `run`: with measured times. */
  readonly onPlan: (run: boolean) => void;
  readonly onDownload: (accept: string, extension: string) => void;
}

interface Shown {
  readonly result: Result;
  readonly language: Language;
  readonly text: string;
  readonly namespaces: Namespaces;
}

export class ResultView {
  readonly element: HTMLElement;
  readonly #options: ResultOptions;
  readonly #table: TableView;
  readonly #panels: Record<ViewName, HTMLElement>;
  readonly #files = h('div', { class: 'files', role: 'group', 'aria-label': 'Save as' });
  readonly #tabs: Tabs;
  #shown: Shown | null = null;
  #drawn = new Set<ViewName>();
  /** The last view used for each kind of result. */
  #preferred: Record<Content['kind'], ViewName> = { table: 'table', values: 'table', graph: 'picture', boolean: 'table', update: 'table' };

  constructor(options: ResultOptions) {
    this.#options = options;
    this.#table = new TableView(options.onOpen);
    const panel = (): HTMLElement => h('div', { class: 'view' });
    this.#panels = { table: panel(), picture: panel(), text: panel(), plan: panel() };
    const titles: [ViewName, string][] = [['table', 'Table'], ['picture', 'Picture'], ['text', 'Text'], ['plan', 'Plan']];
    this.#tabs = tabs('Result as', titles.map(([id, title]) => ({ id, title, panel: this.#panels[id] })), (id) => this.#prefer(id as ViewName));
    this.element = h('section', { class: 'result', 'aria-label': 'Result' }, h('div', { class: 'result-bar' }, this.#tabs.list, this.#files), ...this.#tabs.panels);
    this.#offerPlan();
  }

  get result(): Shown | null {
    return this.#shown;
  }

  /** Shown while there is no result. */
  welcome(element: HTMLElement): void {
    this.#panels.table.replaceChildren(element);
    for (const name of ['picture', 'text'] as const) this.#panels[name].replaceChildren(empty('No result yet', 'Run a query to see it here.'));
  }

  /** `view`: instead of the last one used for this kind of result. */
  show(shown: Shown, view?: ViewName): void {
    this.#shown = shown;
    this.#drawn.clear();
    this.#offerPlan();
    this.#tabs.choose(view ?? this.#preferred[shown.result.content.kind]);
    this.#drawFiles();
    this.#draw();
  }

  /**
   * Removes an earlier result after a failed or cancelled query, so that it is not mistaken for the answer.
   */
  outdate(how: 'cancelled' | 'failed', wrote: boolean): void {
    this.#shown = null;
    this.#drawn.clear();
    this.#offerPlan();
    this.#drawFiles();
    const title = how === 'cancelled' ? 'Cancelled' : 'Failed';
    const said = how === 'cancelled' && wrote
      ? 'It is unknown whether the update was committed before it was cancelled: check the data.'
      : how === 'cancelled' ? 'The query was cancelled, so there is no result.' : 'The query failed, so there is no result.';
    for (const name of ['table', 'picture', 'text'] as const) this.#panels[name].replaceChildren(empty(title, said));
  }

  showPlan(plan: Plan, namespaces: Namespaces): void {
    const shorten = (text: string): string => text.replace(/<([^<>\s]+)>/g, (_, iri: string) => namespaces.shorten(iri));
    this.#panels.plan.replaceChildren(this.#planBar(), planElement(plan, shorten));
    this.#drawn.add('plan');
    this.#tabs.choose('plan');
  }

  planFailed(message: string): void {
    this.#panels.plan.replaceChildren(this.#planBar(), empty('No plan', message));
    this.#tabs.choose('plan');
  }

  choose(view: ViewName): void {
    this.#tabs.choose(view);
    this.#prefer(view);
    this.element.querySelector<HTMLElement>(`#tab-${view}`)?.focus();
  }

  /** Shows a graph as a picture, whatever view was used last. */
  drawGraph(shown: Shown): void {
    this.#preferred.graph = 'picture';
    this.show(shown);
  }

  #prefer(view: ViewName): void {
    const kind = this.#shown?.result.content.kind;
    if ((kind === 'table' || kind === 'values' || kind === 'graph') && view !== 'plan') this.#preferred[kind] = view;
    this.#draw();
  }

  #offerPlan(): void {
    this.#panels.plan.replaceChildren(this.#planBar(), empty('How a query runs', 'The plan shows the steps with their estimated rows; the profile runs the query and shows actual rows and times.'));
  }

  #planBar(): HTMLElement {
    const { onPlan } = this.#options;
    return h(
      'div',
      { class: 'plan-bar' },
      button({ text: 'Show plan', class: 'plain', onClick: () => onPlan(false) }),
      button({ text: 'Run and profile', class: 'plain', onClick: () => onPlan(true) }),
    );
  }

  #draw(): void {
    const name = this.#tabs.chosen() as ViewName;
    if (this.#shown === null || this.#drawn.has(name) || name === 'plan') return;
    this.#drawn.add(name);
    if (name === 'table') this.#drawTable(this.#shown);
    else if (name === 'text') this.#drawText(this.#shown);
    else this.#drawPicture(this.#shown);
  }

  #drawTable({ result, namespaces }: Shown): void {
    const panel = this.#panels.table;
    const { content } = result;
    if (content.kind === 'boolean') {
      panel.replaceChildren(h('div', { class: content.value ? 'answer yes' : 'answer no' }, content.value ? 'Yes' : 'No'), warnings(result));
      return;
    }
    if (content.kind === 'update') {
      const { changes, message } = content;
      const about = changes === undefined ? '' : changed(changes);
      panel.replaceChildren(
        h('div', { class: 'answer yes' }, 'Done', about !== '' && h('p', { class: 'faint' }, about)),
        message === '' ? '' : h('pre', { class: 'plan-text' }, message),
      );
      return;
    }
    const table: Table = content.kind === 'graph' ? tableOf(content.triples) : content.table;
    if (table.rows.length === 0) {
      panel.replaceChildren(empty('No rows', 'Nothing in the data matches the pattern.'), warnings(result));
      return;
    }
    panel.replaceChildren(warnings(result), this.#table.element);
    this.#table.show(table, namespaces);
  }

  #drawText({ result }: Shown): void {
    const cut = result.raw.length >= RAW_MAX ? h('p', { class: 'faint' }, `The first ${count(RAW_MAX)} characters. The files are complete.`) : '';
    this.#panels.text.replaceChildren(h('pre', { class: 'raw', tabindex: 0, 'aria-label': 'The raw response' }, result.raw || '(empty)'), cut);
  }

  #drawPicture({ result, language, text, namespaces }: Shown): void {
    const panel = this.#panels.picture;
    const { content } = result;
    const model = new PictureModel(namespaces);
    if (content.kind === 'graph') model.addTriples(content.triples);
    else if (content.kind === 'values') addElements(model, content.table);
    else if (content.kind === 'table') {
      const { table } = content;
      const triples = table.variables.length === 3 ? asTriples(table) : null;
      if (triples === null) model.addTable(table, language.edges(text));
      else model.addTriples(triples);
    }
    if (model.vertices.size === 0) {
      panel.replaceChildren(empty('Nothing to draw', language.drawable));
      return;
    }
    const { picture } = this.#options;
    panel.replaceChildren(picture.element);
    picture.show(model, namespaces).catch(() => panel.replaceChildren(empty('No picture', 'The drawing component of this page could not be loaded.')));
  }

  #drawFiles(): void {
    const shown = this.#shown;
    if (shown === null) return this.#files.replaceChildren();
    const { content, complete } = shown.result;
    /** `alone`: made in the page without a server format, so a truncated result gives a truncated file. */
    const file = (title: string, extension: string, accept: string, make: (() => string) | null, alone = false): HTMLElement =>
      button({
        text: title,
        label: `Save as ${title}`,
        onClick: () => {
          if (make !== null && (complete || alone)) saveFile(new Blob([make()], { type: accept }), `result.${extension}`);
          else this.#options.onDownload(accept, extension);
        },
      });
    const files =
      content.kind === 'table'
        ? [
            file('CSV', 'csv', 'text/csv', () => csv(content.table)),
            file('TSV', 'tsv', 'text/tab-separated-values', () => tsv(content.table)),
            file('JSON', 'json', 'application/sparql-results+json', () => json(content.table)),
          ]
        : content.kind === 'values'
          ? [file('CSV', 'csv', 'text/csv', () => csv(content.table), true), file('GraphSON', 'json', GRAPHSON, null)]
          : content.kind === 'graph'
            ? [file('N-Triples', 'nt', 'application/n-triples', () => ntriples(content.triples)), file('Turtle', 'ttl', 'text/turtle', null)]
            : [];
    this.#files.replaceChildren(...files);
  }
}

/** Rows that are statements: resource, predicate, any term. */
function asTriples({ rows }: Table): { subject: never; predicate: never; object: never }[] | null {
  const triples = rows.map(([subject, predicate, object]) => ({ subject, predicate, object }));
  const fits = triples.every(({ subject, predicate, object }) => subject && subject.kind !== 'literal' && predicate?.kind === 'iri' && object);
  const predicates = new Set(triples.map(({ predicate }) => predicate && predicate.kind === 'iri' && predicate.value));
  // Predicates are few; three columns of other resources are not statements.
  return fits && predicates.size <= Math.max(4, triples.length / 2) ? (triples as never) : null;
}

/** The server's warnings about names that match nothing. */
function warnings({ warnings: texts }: Result): HTMLElement | '' {
  return texts.length === 0 ? '' : h('ul', { class: 'warnings', role: 'status' }, ...texts.map((text) => h('li', {}, text)));
}

export function empty(title: string, about: string): HTMLElement {
  return h('div', { class: 'empty' }, h('h2', {}, title), h('p', {}, about));
}

export function saveFile(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  h('a', { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** The size of a result: `1,234 rows`. */
export function amount({ content, complete }: Result): string {
  const first = complete ? '' : 'first ';
  switch (content.kind) {
    case 'table':
    case 'values':
      return first + counted(content.table.rows.length, 'row');
    case 'graph':
      return first + counted(content.triples.length, 'statement');
    case 'boolean':
      return content.value ? 'yes' : 'no';
    case 'update':
      return content.changes === undefined ? 'updated' : changed(content.changes);
  }
}

/** `2 statements added, 1 removed`. */
function changed({ inserted, removed }: Changes): string {
  if (inserted === 0 && removed === 0) return 'nothing has changed';
  const added = inserted > 0 ? `${counted(inserted, 'statement')} added` : '';
  if (removed === 0) return added;
  return inserted === 0 ? `${counted(removed, 'statement')} removed` : `${added}, ${count(removed)} removed`;
}
