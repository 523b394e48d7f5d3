// The page: puts the parts together and passes what happens in one to the others.
//
// One request of the editor runs at a time; a new one cancels the old one. Requests of panels (names, labels,
// what is around a vertex) run beside it and never change the status line.
import { button, h, icon, keys } from './dom';
import { createEditor, type Editor } from './editor';
import { placeIn } from './failure';
import type { Language } from './language';
import { memory, shareAddress, sharedQuery, type Theme } from './memory';
import { Names } from './names';
import type { Namespaces } from './namespaces';
import { bytes, count, counted, duration } from './quantities';
import { plain, type Triple } from './results/term';
import { BrokenOffError, Server, ServerError, UnreachableError, type Info } from './server';
import { askForCredentials, askForName, showKeys } from './view/dialogs';
import { Inspector } from './view/inspector';
import { PictureView, type Fact } from './view/picture';
import { ResultView, amount, saveFile, type ViewName } from './view/result';
import { Side } from './view/side';

/** Statements that a click on a vertex of a picture asks for, in each direction. */
const AROUND = 24;
const VIEWS: readonly ViewName[] = ['table', 'picture', 'text', 'plan'];

export function start(root: HTMLElement, language: Language): void {
  new App(root, language);
}

class App {
  readonly #language: Language;
  readonly #server = new Server();
  readonly #names = new Names(this.#server);
  readonly #editor: Editor;
  readonly #side: Side;
  readonly #result: ResultView;
  readonly #picture: PictureView;
  readonly #inspector: Inspector;
  readonly #status = h('p', { class: 'status', role: 'status' });
  readonly #failure = h('div', { class: 'failure', role: 'alert', hidden: true });
  readonly #run = button({ class: 'primary run', onClick: () => (this.#running === null ? void this.#runQuery() : this.#cancel()) });
  readonly #info = h('p', { class: 'info' });
  readonly #theme = button({ label: 'Theme', onClick: () => this.#nextTheme() });
  #running: AbortController | null = null;
  #readOnly = false;

  constructor(root: HTMLElement, language: Language) {
    this.#language = language;
    this.#server.askForCredentials = askForCredentials;
    this.#side = new Side({ language, names: this.#names, onQuery: (text) => this.#take(text), onName: (iri) => void this.#insertName(iri) });
    this.#picture = new PictureView({
      load: (iri) => this.#around(iri, AROUND),
      facts: (iris) => this.#facts(iris),
      onOpen: (iri) => void this.#inspector.open(iri, true),
      onProblem: (message) => this.#say(message),
    });
    this.#inspector = new Inspector({
      load: (iri, limit) => this.#around(iri, limit),
      namespaces: () => this.#namespaces(),
      onPicture: (iri) => void this.#drawAround(iri),
      onQuery: (iri) => void this.#describe(iri),
      onToggle: (open) => root.classList.toggle('inspecting', open),
    });
    this.#result = new ResultView({
      language,
      picture: this.#picture,
      welcome: this.#welcome(),
      onOpen: (iri) => void this.#inspector.open(iri),
      onPlan: (run) => void this.#plan(run),
      onDownload: (accept, extension) => void this.#download(accept, extension),
    });
    const parent = h('div', { class: 'editor' });
    const divider = h('div', { class: 'divider', role: 'separator', tabindex: 0, 'aria-label': 'Height of the editor', 'aria-orientation': 'horizontal' });
    const write = h('section', { class: 'write', 'aria-label': 'Query' }, parent, this.#bar(), this.#failure);
    root.replaceChildren(
      this.#top(),
      h(
        'div',
        { class: 'body' },
        this.#side.element,
        h('div', { class: 'shade', onclick: () => this.#toggleSide(false) }),
        h('main', {}, write, divider, h('div', { class: 'read' }, this.#result.element, this.#inspector.element)),
      ),
    );
    const text = sharedQuery(location.hash) ?? memory.draft();
    this.#editor = createEditor({ parent, language, names: this.#names, text, onChange: () => this.#changed() });
    draggable(divider, parent);
    this.#setTheme(memory.theme());
    this.#toggleSide(memory.sideOpen() ?? innerWidth >= 1200, false);
    this.#setRunning(null);
    document.addEventListener('keydown', (event) => this.#key(event), true);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#picture.restyle());
    addEventListener('hashchange', () => {
      const text = sharedQuery(location.hash);
      if (text !== null) this.#take(text);
    });
    if (innerWidth >= 700) this.#editor.view.focus();
    void this.#readInfo();
    void this.#side.refreshNames();
  }

  // The parts of the page.

  #top(): HTMLElement {
    return h(
      'header',
      { class: 'top' },
      button({ icon: 'side', label: 'Queries and names', class: 'quiet side-toggle', onClick: () => this.#toggleSide() }),
      h('h1', {}, h('img', { src: 'icon.svg', alt: '', width: 22, height: 22 }), 'Vervet'),
      this.#info,
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
      this.#status,
    );
  }

  #welcome(): HTMLElement {
    const examples = this.#language.examples.map(({ title, about, text }) =>
      h(
        'button',
        {
          type: 'button',
          class: 'example',
          onclick: () => {
            this.#take(text);
            void this.#runQuery();
          },
        },
        h('strong', {}, title),
        h('span', {}, about),
      ),
    );
    return h(
      'div',
      { class: 'empty welcome' },
      h('h2', {}, 'What is in here?'),
      h('p', {}, 'Write a query above, or start with one of these. ', h('span', { class: 'with-keys' }, h('kbd', {}, keys('Mod-Enter')), ' runs it.')),
      h('div', { class: 'examples' }, ...examples),
    );
  }

  // Running.

  async #runQuery(): Promise<void> {
    const text = this.#editor.text();
    if (text.trim() === '') return this.#say('there is no query to run');
    if (this.#readOnly && this.#language.request(text) === 'update') return this.#say('this server is read-only: it takes no updates');
    await this.#do(async (signal) => {
      const start = performance.now();
      const result = await this.#server.run(this.#language, text, {
        signal,
        onProgress: ({ rows, bytes: size }) => this.#say(`${counted(rows, 'row')} · ${bytes(size)} so far`, true),
      });
      const namespaces = await this.#namespaces(text);
      const note = `${amount(result)} in ${duration((performance.now() - start) * 1e6)}`;
      this.#result.show({ result, text, namespaces });
      const more = result.complete ? '' : ' · there is more: the files have all of it';
      this.#say(`${note} · ${bytes(result.bytes)}${more}`);
      this.#remember(text, note);
      const wasAway = this.#info.classList.contains('bad');
      if (result.content.kind === 'update' || wasAway) {
        this.#names.forget();
        void this.#readInfo();
        void this.#side.refreshNames();
      }
    });
  }

  async #plan(run: boolean): Promise<void> {
    const text = this.#editor.text();
    if (text.trim() === '') return this.#say('there is no query to plan');
    if (this.#language.request(text) === 'update') return this.#say('an update has no plan to show');
    await this.#do(async (signal) => {
      const start = performance.now();
      const plan = await this.#server.plan(this.#language, text, run, signal);
      this.#result.showPlan(plan, await this.#namespaces(text));
      this.#say(`${run ? 'profiled' : 'planned'} in ${duration((performance.now() - start) * 1e6)}`);
    });
  }

  async #download(accept: string, extension: string): Promise<void> {
    const text = this.#result.result?.text;
    if (text === undefined) return;
    await this.#do(async (signal) => {
      saveFile(await this.#server.download(this.#language, text, accept, signal), `result.${extension}`);
      this.#say('saved');
    });
  }

  /** Runs `work` as the page's one request. Shows what goes wrong with it. */
  async #do(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const text = this.#editor.text();
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
      if (controller.signal.aborted) this.#say(`cancelled after ${duration((performance.now() - start) * 1e6)}`);
      else this.#fail(error, text);
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

  /** `text`: what was in the editor when it started. A place in it is marked if it is still there. */
  #fail(error: unknown, text: string): void {
    if (error instanceof ServerError) {
      this.#say(error.status === 401 ? 'not signed in' : 'failed');
      this.#showFailure(error.failure.text);
      const place = this.#editor.text() === text ? placeIn(text, error.failure) : null;
      this.#editor.mark(place);
      if (place !== null) this.#editor.view.focus();
      this.#remember(text, 'failed');
      return;
    }
    this.#say('failed');
    const message = error instanceof Error ? error.message : String(error);
    const hint =
      error instanceof UnreachableError
        ? '\nhint: is it still running? It may have been stopped, or the network is gone'
        : error instanceof BrokenOffError
          ? '\nhint: the query may have reached a limit of the server (time or memory), or the server was stopped'
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
    const { content } = await this.#server.run(this.#language, this.#language.around(iri, limit), { signal: AbortSignal.timeout(20_000) });
    return content.kind === 'graph' ? content.triples : [];
  }

  async #facts(iris: readonly string[]): Promise<readonly Fact[]> {
    const { content } = await this.#server.run(this.#language, this.#language.facts(iris), { signal: AbortSignal.timeout(10_000) });
    const rows = content.kind === 'table' ? content.table.rows : [];
    return rows.flatMap(([vertex, label, type]) =>
      vertex ? [{ iri: plain(vertex), label: label ? plain(label) : null, type: type ? plain(type) : null }] : [],
    );
  }

  async #drawAround(iri: string): Promise<void> {
    const text = this.#language.around(iri, AROUND);
    await this.#do(async (signal) => {
      const result = await this.#server.run(this.#language, text, { signal });
      this.#result.drawGraph({ result, text, namespaces: await this.#namespaces() });
      this.#say(`${amount(result)} in ${duration(result.milliseconds * 1e6)}`);
    });
  }

  async #describe(iri: string): Promise<void> {
    this.#take(this.#language.describe(iri, await this.#namespaces()));
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
      this.#info.replaceChildren(error instanceof UnreachableError ? 'no answer from the server' : 'no word from the server');
      return;
    }
    this.#readOnly = info.read_only ?? false;
    const facts = [
      info.statements === undefined ? null : counted(info.statements, 'statement'),
      info.vertices === undefined ? null : counted(info.vertices, 'vertex'),
      info.bytes === undefined ? null : bytes(info.bytes),
    ].filter((fact) => fact !== null);
    const badge = this.#readOnly ? h('span', { class: 'badge' }, 'read-only') : '';
    this.#info.replaceChildren(...facts.map((fact) => h('span', {}, fact)), badge);
    if (info.version !== undefined) this.#info.title = `Vervet ${info.version}`;
  }

  // The editor's text.

  #take(text: string): void {
    this.#editor.setText(text);
    if (innerWidth < 900) this.#toggleSide(false);
    else this.#editor.view.focus();
  }

  #changed(): void {
    memory.setDraft(this.#editor.text());
    this.#failure.classList.add('old');
  }

  #remember(text: string, note: string): void {
    memory.remember({ text, at: Date.now(), note });
    this.#side.refreshQueries();
  }

  async #save(): Promise<void> {
    const text = this.#editor.text();
    if (text.trim() === '') return this.#say('there is no query to save');
    const known = memory.saved().find((saved) => saved.text === text)?.name;
    const name = await askForName(known ?? `Query ${count(memory.saved().length + 1)}`);
    if (name === null) return;
    memory.save({ name, text });
    this.#side.refreshQueries();
    this.#say(`saved as ${name}`);
  }

  async #share(): Promise<void> {
    const address = shareAddress(location, this.#editor.text());
    history.replaceState(null, '', address);
    try {
      await navigator.clipboard.writeText(address);
      this.#say('the link is copied');
    } catch {
      this.#say('the link is in the address bar');
    }
  }

  // The frame.

  #say(text: string, often = false): void {
    // What changes often is shown, but not read out each time.
    this.#status.setAttribute('aria-live', often ? 'off' : 'polite');
    this.#status.textContent = text;
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
    const title = { auto: 'Theme: as the system', light: 'Theme: light', dark: 'Theme: dark' }[theme];
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
