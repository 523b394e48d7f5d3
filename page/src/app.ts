// The console: creates the parts of the page and connects them.
//
// One request of the editor runs at a time; a new one cancels the old one. Requests of panels (names, labels,
// neighbourhood of a vertex) run concurrently and never change the status line. They are in SPARQL for
// both languages of the editor, since both see the same graph.
import { clusterIn, type Cluster } from './cluster';
import { button, h, icon, keys } from './dom';
import { createEditor, type Editor } from './editor';
import { placeIn } from './failure';
import type { Language, LanguageId } from './language';
import { languageOf, memory, shareAddress, sharedQuery, type Theme } from './memory';
import { Names } from './names';
import type { Namespaces } from './namespaces';
import { bytes, count, counted, duration } from './quantities';
import type { Result } from './results/result';
import { plain, type Triple } from './results/term';
import { BrokenOffError, Server, ServerError, UnreachableError, type Info, type Plan } from './server';
import { SPARQL } from './sparql/language';
import { around, facts } from './sparql/questions';
import { ClusterPanel } from './view/cluster';
import { askForCredentials, askForName, showKeys } from './view/dialogs';
import { Inspector } from './view/inspector';
import { timeLimit } from './view/limit';
import { PictureView, type Fact } from './view/picture';
import { ResultView, amount, saveFile, type ViewName } from './view/result';
import { showRunning } from './view/running';
import { Side } from './view/side';
import { choiceOf, type Switch } from './view/switch';
import { TourBar, stepList } from './view/tour';
import { runsAtOnce, tourIn, type Tour } from './tour';

/** Statements requested in each direction by a click on a vertex of a picture. */
const AROUND = 24;
const VIEWS: readonly ViewName[] = ['table', 'picture', 'text', 'plan'];

/** The first language is the default. */
export function start(root: HTMLElement, languages: readonly Language[]): void {
  new App(root, languages);
}

class App {
  readonly #languages: readonly Language[];
  #language: Language;
  readonly #server = new Server();
  readonly #names = new Names(this.#server);
  readonly #editor: Editor;
  readonly #side: Side;
  readonly #tourBar: TourBar;
  readonly #result: ResultView;
  readonly #picture: PictureView;
  readonly #inspector: Inspector;
  readonly #cluster = new ClusterPanel({ load: () => this.#readCluster(), onToggle: (open) => this.#clusterToggled(open) });
  readonly #clusterButton = button({
    icon: 'cluster',
    label: 'Cluster',
    class: 'quiet cluster-button',
    onClick: () => (this.#cluster.isOpen ? this.#cluster.close() : this.#cluster.open()),
  });
  readonly #status = h('p', { class: 'status', role: 'status' });
  readonly #failure = h('div', { class: 'failure', role: 'alert', hidden: true });
  readonly #run = button({ class: 'primary run', onClick: () => (this.#running === null ? void this.#runQuery() : this.#cancel()) });
  readonly #switch: Switch;
  readonly #limit = timeLimit(memory.seconds(), memory.setSeconds);
  readonly #info = h('p', { class: 'info' });
  readonly #theme = button({ label: 'Theme', onClick: () => this.#nextTheme() });
  #running: AbortController | null = null;
  #readOnly = false;
  /** Whether the database has no statements. */
  #isEmpty = false;
  /** The server's saved queries. */
  #tour: Tour | null = null;

  constructor(root: HTMLElement, languages: readonly Language[]) {
    const shared = sharedQuery(location.hash);
    this.#languages = languages;
    this.#language = this.#find(shared?.language ?? memory.language());
    this.#switch = choiceOf('Language', `Language (${keys('Alt-L')})`, languages.map(({ id, name }) => ({ id, title: name })), (id) => this.#use(id));
    this.#server.askForCredentials = askForCredentials;
    this.#side = new Side({
      language: () => this.#language,
      languages,
      names: this.#names,
      onQuery: (text, id) => this.#take(text, id),
      onStep: (index) => this.#step(index),
      onName: (iri) => void this.#insertName(iri),
      onSay: (text) => this.#say(text),
    });
    this.#tourBar = new TourBar({
      languages,
      onStep: (index) => this.#step(index),
      onList: () => {
        this.#toggleSide(true);
        this.#side.focusTour();
      },
      onClose: () => {
        this.#side.showTour(this.#tour, null);
        this.#editor.view.focus();
      },
    });
    this.#picture = new PictureView({
      load: (iri) => this.#around(iri, AROUND),
      facts: (iris) => this.#facts(iris),
      onOpen: (iri) => this.#open(iri, true),
      onProblem: (message) => this.#say(message),
    });
    this.#inspector = new Inspector({
      load: (iri, limit) => this.#around(iri, limit),
      facts: (iris) => this.#facts(iris),
      namespaces: () => this.#namespaces(),
      onPicture: (iri) => void this.#drawAround(iri),
      onQuery: (iri) => void this.#describe(iri),
      onToggle: (open) => root.classList.toggle('inspecting', open),
    });
    this.#result = new ResultView({
      picture: this.#picture,
      onOpen: (iri) => this.#open(iri),
      onPlan: (run) => void this.#plan(run),
      onDownload: (accept, extension) => void this.#download(accept, extension),
    });
    const parent = h('div', { class: 'editor' });
    const divider = h('div', { class: 'divider', role: 'separator', tabindex: 0, 'aria-label': 'Height of the editor', 'aria-orientation': 'horizontal' });
    const write = h('section', { class: 'write', 'aria-label': 'Query' }, parent, this.#bar(), this.#failure);
    this.#clusterButton.hidden = true;
    this.#clusterButton.setAttribute('aria-controls', 'cluster');
    root.replaceChildren(
      this.#top(),
      h(
        'div',
        { class: 'body' },
        this.#side.element,
        h('div', { class: 'shade', onclick: () => this.#toggleSide(false) }),
        h('main', {}, this.#tourBar.element, write, divider, h('div', { class: 'read' }, this.#result.element, this.#inspector.element)),
        this.#cluster.element,
      ),
    );
    const text = shared?.text ?? memory.draft(this.#language.id);
    this.#editor = createEditor({ parent, language: this.#language, names: this.#names, text, onChange: () => this.#changed() });
    this.#switch.show(this.#language.id);
    this.#result.welcome(this.#welcome());
    draggable(divider, parent);
    this.#setTheme(memory.theme());
    this.#toggleSide(memory.sideOpen() ?? innerWidth >= 1200, false);
    this.#setRunning(null);
    document.addEventListener('keydown', (event) => this.#key(event), true);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#picture.restyle());
    addEventListener('hashchange', () => {
      const shared = sharedQuery(location.hash);
      if (shared !== null) this.#take(shared.text, shared.language);
    });
    if (innerWidth >= 700) this.#editor.view.focus();
    void this.#readInfo();
    void this.#side.refreshNames();
    void this.#readTour();
    void this.#findCluster();
  }

  // The parts of the page.

  #top(): HTMLElement {
    return h(
      'header',
      { class: 'top' },
      button({ icon: 'side', label: 'Queries and names', class: 'quiet side-toggle', onClick: () => this.#toggleSide() }),
      h('h1', {}, h('img', { src: 'icon.svg', alt: '', width: 22, height: 22 }), 'Vervet'),
      this.#info,
      this.#clusterButton,
      button({
        icon: 'list',
        label: 'Running requests',
        class: 'quiet running-button',
        onClick: () => showRunning({ list: () => this.#server.running(), stop: (id) => this.#server.stop(id) }),
      }),
      button({ icon: 'keys', label: 'Keys', class: 'quiet keys-button', onClick: showKeys }),
      this.#theme,
    );
  }

  #bar(): HTMLElement {
    return h(
      'div',
      { class: 'bar' },
      this.#run,
      button({ icon: 'plan', text: 'Plan', label: `Show the plan (${keys('Mod-Shift-Enter')})`, onClick: () => void this.#plan(false) }),
      button({ icon: 'save', text: 'Save', label: `Save in this browser (${keys('Mod-S')})`, onClick: () => void this.#save() }),
      button({ icon: 'link', text: 'Link', label: 'Copy a link to this query', onClick: () => void this.#share() }),
      this.#switch.element,
      this.#limit.element,
      this.#status,
    );
  }

  #welcome(): HTMLElement {
    if (this.#isEmpty) return this.#welcomeToEmpty();
    const examples = this.#language.examples.map(({ title, about, text }) =>
      h(
        'button',
        {
          type: 'button',
          class: 'example',
          onclick: () => {
            this.#take(text, this.#language.id);
            void this.#runQuery();
          },
        },
        h('strong', {}, title),
        h('span', {}, about),
      ),
    );
    const tour = this.#tour;
    return h(
      'div',
      { class: 'empty welcome' },
      tour && h('h2', {}, tour.title),
      tour && tour.about !== '' && h('p', {}, tour.about),
      tour && stepList(tour, this.#languages, (index) => this.#step(index)),
      h('h2', {}, 'What is in this database?'),
      h('p', {}, 'Write a query above, or start with one of these. ', h('span', { class: 'with-keys' }, h('kbd', {}, keys('Mod-Enter')), ' runs it.')),
      h('div', { class: 'examples' }, ...examples),
    );
  }

  #welcomeToEmpty(): HTMLElement {
    const { title, about, text } = this.#language.firstData;
    const example = h('button', { type: 'button', class: 'example', onclick: () => this.#take(text, this.#language.id) }, h('strong', {}, title), h('span', {}, about));
    const input = h('input', { type: 'file', multiple: true, hidden: true, 'aria-label': 'Files to load', onchange: () => void this.#load([...(input.files ?? [])]) });
    const files = h(
      'button',
      { type: 'button', class: 'example', onclick: () => input.click() },
      h('strong', {}, 'Load files'),
      h('span', {}, 'CSV, Parquet, RDF, GraphML or GraphSON, uncompressed; vertices and edges may be separate files'),
    );
    return h(
      'div',
      { class: 'empty welcome' },
      h('h2', {}, 'This database is empty'),
      h('p', {}, 'Large files are loaded on the machine of the server, before it starts: ', h('code', {}, 'vervet load DB FILE…')),
      this.#readOnly ? h('p', {}, 'This server is read-only.') : h('div', { class: 'examples' }, files, input, example),
    );
  }

  /** Loads files into the database. */
  async #load(files: readonly File[]): Promise<void> {
    if (files.length === 0) return;
    await this.#do(async (signal) => {
      const start = performance.now();
      const { statements, notes } = await this.#server.load(files, signal);
      const milliseconds = performance.now() - start;
      const result: Result = {
        content: { kind: 'update', message: notes.join('\n'), changes: { inserted: statements, removed: 0 } },
        complete: true, raw: notes.join('\n'), bytes: 0, milliseconds, warnings: [],
      };
      this.#result.show({ result, language: this.#language, text: '', namespaces: await this.#namespaces() });
      this.#say(`${counted(statements, 'statement')} loaded in ${duration(milliseconds * 1e6)}`);
      this.#names.forget();
      void this.#readInfo();
      void this.#side.refreshNames();
    });
  }

  // The tour.

  async #readTour(): Promise<void> {
    try {
      this.#tour = tourIn(await this.#server.savedQueries());
    } catch {
      // The page works without it, and other requests report why the server does not answer.
      return;
    }
    if (this.#tour === null) return;
    this.#side.showTour(this.#tour, null);
    if (this.#result.result === null) this.#result.welcome(this.#welcome());
  }

  /** Puts a step of the tour into the editor, and runs it unless it changes the data. */
  #step(index: number): void {
    const step = this.#tour?.steps[index];
    if (this.#tour === null || step === undefined) return;
    this.#use(step.language);
    this.#editor.setText(step.text);
    if (innerWidth < 900) this.#toggleSide(false);
    this.#side.showTour(this.#tour, index);
    this.#tourBar.show(this.#tour, index);
    if (!runsAtOnce(step, this.#language)) {
      this.#running?.abort();
      return this.#say(`this changes the data: ${keys('Mod-Enter')} runs it`);
    }
    if (step.view === 'plan' || step.view === 'profile') void this.#plan(step.view === 'profile');
    else void this.#runQuery(step.view ?? undefined);
  }

  // Running.

  /** `view`: the view of the result, instead of the last one used. */
  async #runQuery(view?: ViewName): Promise<void> {
    const [text, language] = [this.#editor.text(), this.#language];
    if (text.trim() === '') return this.#say('there is no query to run');
    const writes = language.writes(text);
    if (this.#readOnly && writes) return this.#say('this server is read-only: it rejects updates');
    await this.#do(async (signal) => {
      let start = performance.now();
      const found = await this.#cluster.measured(() => {
        start = performance.now();
        return this.#server.run(language.call(text, this.#limit.seconds()), {
          signal,
          onProgress: ({ rows, bytes: size }) => this.#say(`${counted(rows, 'row')} · ${bytes(size)} so far`, true),
        });
      });
      // A traversal may write and return no results.
      const silent = writes && found.content.kind === 'values' && found.content.table.rows.length === 0;
      const result: Result = silent ? { ...found, content: { kind: 'update', message: '' } } : found;
      const namespaces = await this.#namespaces(text);
      const note = `${amount(result)} in ${duration((performance.now() - start) * 1e6)}`;
      this.#result.show({ result, language, text, namespaces }, view);
      this.#inspector.dismiss();
      const whole = result.content.kind === 'values' ? 'GraphSON has' : 'files have';
      // Short enough for the status line.
      const size = result.bytes === 0 ? '' : ` · ${bytes(result.bytes)}`;
      this.#say(result.complete ? note + size : `${note}; ${whole} all`);
      this.#remember(text, language, note);
      const wasAway = this.#info.classList.contains('bad');
      if (writes || wasAway) {
        this.#names.forget();
        void this.#readInfo();
        void this.#side.refreshNames();
      }
    }, (how) => this.#result.outdate(how, writes));
  }

  async #plan(run: boolean): Promise<void> {
    const text = this.#editor.text();
    if (text.trim() === '') return this.#say('there is no query to plan');
    const call = this.#language.plan(text, run);
    if (typeof call === 'string') {
      this.#result.planFailed(call);
      return this.#say('no plan');
    }
    await this.#do(async (signal) => {
      let start = performance.now();
      const request = (): Promise<Plan> => {
        start = performance.now();
        return this.#server.plan(call, signal);
      };
      const plan = await (run ? this.#cluster.measured(request) : request());
      this.#result.showPlan(plan, await this.#namespaces(text));
      this.#say(`${run ? 'profiled' : 'planned'} in ${duration((performance.now() - start) * 1e6)}`);
    });
  }

  async #download(accept: string, extension: string): Promise<void> {
    const shown = this.#result.result;
    if (shown === null) return;
    const call = shown.language.file(shown.text, accept);
    await this.#do(async (signal) => {
      saveFile(await this.#cluster.measured(() => this.#server.download(call, signal)), `result.${extension}`);
      this.#say('saved');
    });
  }

  /** Runs `work` as the page's single request. Shows its failure; `lost` is called if it has no result. */
  async #do(work: (signal: AbortSignal) => Promise<void>, lost?: (how: 'cancelled' | 'failed') => void): Promise<void> {
    const [text, language] = [this.#editor.text(), this.#language];
    this.#running?.abort();
    const controller = new AbortController();
    const start = performance.now();
    this.#showFailure(null);
    this.#editor.mark(null);
    this.#setRunning(controller);
    const tick = setInterval(() => this.#run.style.setProperty('--elapsed', `"${((performance.now() - start) / 1000).toFixed(1)} s"`), 100);
    this.#say('running …');
    try {
      await work(controller.signal);
    } catch (error) {
      if (this.#running !== controller) return;
      lost?.(controller.signal.aborted ? 'cancelled' : 'failed');
      if (controller.signal.aborted) this.#say(`cancelled after ${duration((performance.now() - start) * 1e6)}`);
      else this.#fail(error, text, language);
    } finally {
      clearInterval(tick);
      if (this.#running === controller) this.#setRunning(null);
    }
  }

  #cancel(): void {
    this.#running?.abort();
  }

  #setRunning(controller: AbortController | null): void {
    this.#running = controller;
    const on = controller !== null;
    document.documentElement.classList.toggle('running', on);
    this.#run.replaceChildren(
      icon(on ? 'stop' : 'play'),
      h('span', {}, on ? 'Cancel' : 'Run'),
      h('kbd', {}, on ? 'Esc' : keys('Mod-Enter')),
    );
    this.#run.style.removeProperty('--elapsed');
  }

  /** `text`: the editor's content at the start. Marks the position of the error if the text is unchanged. */
  #fail(error: unknown, text: string, language: Language): void {
    if (error instanceof ServerError && error.status === 404) {
      this.#say('failed');
      return this.#showFailure(`this server does not support ${language.name}\nhint: a newer version may support it`);
    }
    if (error instanceof ServerError) {
      this.#say(error.status === 401 ? 'not signed in' : 'failed');
      this.#showFailure(error.failure.text);
      const place = this.#language === language && this.#editor.text() === text ? placeIn(text, error.failure) : null;
      this.#editor.mark(place);
      if (place !== null) this.#editor.view.focus();
      this.#remember(text, language, 'failed');
      return;
    }
    this.#say('failed');
    const message = error instanceof Error ? error.message : String(error);
    const hint =
      error instanceof UnreachableError
        ? '\nhint: check that the server is running and that the network is available'
        : error instanceof BrokenOffError
          ? '\nhint: the query may have exceeded a server limit (time or memory), or the server was stopped'
          : '';
    this.#showFailure(message + hint);
  }

  #showFailure(text: string | null): void {
    this.#failure.hidden = text === null;
    this.#failure.classList.remove('old');
    const lines = (text ?? '').split('\n');
    const [message = '', ...others] = lines;
    const hint = others.filter((line) => line.startsWith('hint: '));
    const excerpt = others.filter((line) => !line.startsWith('hint: '));
    this.#failure.replaceChildren(
      h('strong', {}, message),
      excerpt.length > 0 ? h('pre', { 'aria-hidden': 'true' }, excerpt.join('\n')) : '',
      ...hint.map((line) => h('p', {}, line)),
    );
  }

  // Resources and names.

  async #namespaces(text = this.#editor.text()): Promise<Namespaces> {
    return this.#names.namespaces(this.#language.declared(text));
  }

  async #around(iri: string, limit: number): Promise<readonly Triple[]> {
    const { content } = await this.#server.run(SPARQL.call(around(iri, limit), null), { signal: AbortSignal.timeout(20_000) });
    return content.kind === 'graph' ? content.triples : [];
  }

  async #facts(iris: readonly string[]): Promise<readonly Fact[]> {
    const { content } = await this.#server.run(SPARQL.call(facts(iris), null), { signal: AbortSignal.timeout(10_000) });
    const rows = content.kind === 'table' ? content.table.rows : [];
    return rows.flatMap(([vertex, label, type]) =>
      vertex ? [{ iri: plain(vertex), label: label ? plain(label) : null, type: type ? plain(type) : null }] : [],
    );
  }

  async #drawAround(iri: string): Promise<void> {
    const text = around(iri, AROUND);
    await this.#do(async (signal) => {
      const result = await this.#cluster.measured(() => this.#server.run(SPARQL.call(text, null), { signal }));
      this.#result.drawGraph({ result, language: SPARQL, text, namespaces: await this.#namespaces() });
      this.#say(`${amount(result)} in ${duration(result.milliseconds * 1e6)}`);
    });
  }

  async #describe(iri: string): Promise<void> {
    this.#take(this.#language.describe(iri, await this.#namespaces()), this.#language.id);
  }

  /** `quietly`: without taking the focus. */
  #open(iri: string, quietly = false): void {
    void this.#inspector.open(iri, quietly);
  }

  async #insertName(iri: string): Promise<void> {
    const text = this.#editor.text();
    this.#editor.insert(this.#language.naming(text, iri, await this.#namespaces(text)));
    if (innerWidth < 900) this.#toggleSide(false);
  }

  async #readInfo(): Promise<void> {
    let info: Info = {};
    try {
      info = await this.#server.info();
      this.#info.classList.remove('bad');
    } catch (error) {
      this.#info.classList.add('bad');
      this.#info.replaceChildren(error instanceof UnreachableError ? 'no answer from the server' : 'error response from the server');
      return;
    }
    this.#readOnly = info.read_only ?? false;
    const wasEmpty = this.#isEmpty;
    this.#isEmpty = info.statements === 0;
    if (this.#isEmpty !== wasEmpty && this.#result.result === null) this.#result.welcome(this.#welcome());
    if (info.timeout_seconds !== undefined) this.#limit.allow(info.timeout_seconds);
    const facts = [
      info.statements === undefined ? null : counted(info.statements, 'statement'),
      info.vertices === undefined || info.vertices === null ? null : counted(info.vertices, 'vertex'),
      info.bytes === undefined ? null : bytes(info.bytes),
    ].filter((fact) => fact !== null);
    const badge = this.#readOnly ? h('span', { class: 'badge' }, 'read-only') : '';
    this.#info.replaceChildren(...facts.map((fact) => h('span', {}, fact)), badge);
    if (info.version !== undefined) this.#info.title = `Vervet ${info.version}`;
  }

  // The cluster.

  async #readCluster(): Promise<Cluster | null> {
    return clusterIn(await this.#server.cluster(), location.protocol);
  }

  /** Shows the panel if the server is a part of a cluster. */
  async #findCluster(): Promise<void> {
    // Without an answer the page works as it does with one server.
    const cluster = await this.#readCluster().catch(() => null);
    if (cluster === null) return;
    this.#cluster.start(cluster);
    this.#clusterButton.hidden = false;
    this.#clusterButton.setAttribute('aria-expanded', 'false');
    if (innerWidth >= 1200 && (memory.clusterOpen() ?? true)) this.#cluster.open();
  }

  #clusterToggled(open: boolean): void {
    document.documentElement.classList.toggle('cluster-open', open);
    this.#clusterButton.setAttribute('aria-expanded', String(open));
    if (innerWidth >= 1200) memory.setClusterOpen(open);
    if (!open && this.#cluster.element.contains(document.activeElement)) this.#clusterButton.focus();
  }

  // The editor's text.

  #find(id: LanguageId): Language {
    const found = this.#languages.find((language) => language.id === id) ?? this.#languages[0];
    if (found === undefined) throw new Error('the page has no language');
    return found;
  }

  #use(id: string): void {
    const language = this.#languages.find((one) => one.id === id);
    if (language === undefined || language === this.#language) return;
    this.#language = language;
    memory.setLanguage(language.id);
    this.#editor.setLanguage(language, memory.draft(language.id));
    this.#switch.show(language.id);
    this.#showFailure(null);
    this.#side.refreshQueries();
    if (this.#result.result === null) this.#result.welcome(this.#welcome());
  }

  #take(text: string, id: LanguageId): void {
    this.#use(id);
    this.#editor.setText(text);
    if (innerWidth < 900) this.#toggleSide(false);
    else this.#editor.view.focus();
  }

  #changed(): void {
    memory.setDraft(this.#language.id, this.#editor.text());
    this.#failure.classList.add('old');
  }

  #remember(text: string, { id: language }: Language, note: string): void {
    memory.remember({ text, language, at: Date.now(), note });
    this.#side.refreshQueries();
  }

  async #save(): Promise<void> {
    const text = this.#editor.text();
    if (text.trim() === '') return this.#say('there is no query to save');
    const known = memory.saved().find((saved) => saved.text === text && languageOf(saved) === this.#language.id)?.name;
    const name = await askForName(known ?? `Query ${count(memory.saved().length + 1)}`);
    if (name === null) return;
    memory.save({ name, text, language: this.#language.id });
    this.#side.refreshQueries();
    this.#say(`saved as ${name}`);
  }

  async #share(): Promise<void> {
    const address = shareAddress(location, this.#editor.text(), this.#language.id);
    history.replaceState(null, '', address);
    try {
      await navigator.clipboard.writeText(address);
      this.#say('link copied');
    } catch {
      this.#say('the link is in the address bar');
    }
  }

  // The frame.

  #say(text: string, often = false): void {
    // Frequent changes are shown, but not announced by screen readers.
    this.#status.setAttribute('aria-live', often ? 'off' : 'polite');
    this.#status.textContent = text;
    this.#status.title = text;
  }

  #toggleSide(open?: boolean, keep = true): void {
    const root = document.documentElement;
    const next = open ?? !root.classList.contains('side-open');
    root.classList.toggle('side-open', next);
    document.querySelector('.side-toggle')?.setAttribute('aria-expanded', String(next));
    if (keep && innerWidth >= 900) memory.setSideOpen(next);
  }

  #nextTheme(): void {
    const next: Record<Theme, Theme> = { auto: 'light', light: 'dark', dark: 'auto' };
    this.#setTheme(next[memory.theme()]);
  }

  #setTheme(theme: Theme): void {
    memory.setTheme(theme);
    document.documentElement.dataset['theme'] = theme;
    const title = { auto: 'Theme: system', light: 'Theme: light', dark: 'Theme: dark' }[theme];
    this.#theme.replaceChildren(icon(({ auto: 'auto', light: 'sun', dark: 'moon' } as const)[theme]));
    this.#theme.setAttribute('aria-label', title);
    this.#theme.title = title;
    this.#picture.restyle();
  }

  #key(event: KeyboardEvent): void {
    if (document.querySelector('dialog[open]') !== null) return;
    const mod = event.ctrlKey || event.metaKey;
    const stop = (): void => {
      event.preventDefault();
      event.stopPropagation();
    };
    if (mod && event.key === 'Enter') {
      stop();
      void (event.shiftKey ? this.#plan(false) : this.#runQuery());
    } else if (mod && !event.shiftKey && event.key.toLowerCase() === 's') {
      stop();
      void this.#save();
    } else if (event.key === 'Escape' && this.#running !== null && document.querySelector('.cm-tooltip-autocomplete') === null) {
      stop();
      this.#cancel();
    } else if (event.altKey && !mod && /^Digit[1-4]$/.test(event.code)) {
      stop();
      this.#result.choose(VIEWS[Number(event.code.slice(-1)) - 1] ?? 'table');
    } else if (event.altKey && !mod && event.code === 'KeyL') {
      stop();
      const at = this.#languages.indexOf(this.#language);
      this.#use(this.#languages[(at + 1) % this.#languages.length]?.id ?? '');
    } else if (event.altKey && !mod && event.code === 'KeyE') {
      stop();
      this.#editor.view.focus();
    }
  }
}

/** Lets the divider change the editor's height, by pointer and by arrow keys. */
function draggable(divider: HTMLElement, editor: HTMLElement): void {
  const set = (height: number): void => {
    const most = innerHeight - 220;
    document.documentElement.style.setProperty('--editor-height', `${Math.round(Math.max(124, Math.min(height, most)))}px`);
  };
  divider.addEventListener('pointerdown', (event) => {
    const [from, height] = [event.clientY, editor.clientHeight];
    divider.setPointerCapture(event.pointerId);
    const move = (now: PointerEvent): void => set(height + now.clientY - from);
    divider.addEventListener('pointermove', move);
    divider.addEventListener('pointerup', () => divider.removeEventListener('pointermove', move), { once: true });
  });
  divider.addEventListener('keydown', (event) => {
    const step = event.key === 'ArrowDown' ? 24 : event.key === 'ArrowUp' ? -24 : 0;
    if (step === 0) return;
    event.preventDefault();
    set(editor.clientHeight + step);
  });
}
