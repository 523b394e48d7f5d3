// The panel about a cluster: its servers as a picture and as a table, and the traffic of the last query.
//
// It reads `/cluster` while it is open and the tab is visible: every 2 s, and before and after each query.
import { trafficSince, total, type Cluster, type Traffic } from '../cluster';
import { button, h } from '../dom';
import { bytes, counted } from '../quantities';
import { ServerError } from '../server';
import { ServerPicture } from './cluster-picture';
import { serverTable, trafficTable } from './cluster-table';

const READ_EVERY_MS = 2000;
/** A query waits at most this long for the counts before it, since a dead server delays the answer. */
const BEFORE_MS_MAX = 300;

interface ClusterOptions {
  /** The state now; null if the server is not a part of a cluster. */
  readonly load: () => Promise<Cluster | null>;
  readonly onToggle: (open: boolean) => void;
}

export class ClusterPanel {
  readonly element = h('aside', { class: 'cluster', id: 'cluster', 'aria-label': 'Cluster', hidden: true });
  readonly #options: ClusterOptions;
  readonly #title = h('h2', {});
  readonly #summary = h('p', { class: 'faint', role: 'status' });
  readonly #problem = h('p', { class: 'bad', role: 'alert', hidden: true });
  readonly #picture = new ServerPicture();
  readonly #query = h('p', { role: 'status' }, h('span', { class: 'faint' }, 'Run a query to see what it sends to other servers.'));
  readonly #queryTable = h('div', { class: 'scroll' });
  readonly #table = h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Servers as a table' });
  /** The first state: the start of all counts that the page shows. */
  #first: Cluster | null = null;
  #latest: Cluster | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;
  /** The number of measured queries. */
  #queries = 0;
  /** The number of reads, and the last one that was shown: reads may overlap. */
  #reads = 0;
  #shown = 0;
  /** Whether the last read was refused for its credentials: reading again would prompt for them again. */
  #isRefused = false;

  constructor(options: ClusterOptions) {
    this.#options = options;
    this.element.append(
      h('header', {}, this.#title, button({ icon: 'close', label: 'Close', class: 'quiet close', onClick: () => this.close() })),
      this.#summary,
      this.#problem,
      this.#picture.element,
      h('section', { class: 'query-traffic', 'aria-label': 'Traffic of the last query' }, this.#query, this.#queryTable),
      h('details', {}, h('summary', {}, 'As a table'), this.#table),
    );
    this.element.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.close();
    });
    document.addEventListener('visibilitychange', () => {
      if (this.isOpen && !document.hidden) this.#poll();
    });
  }

  get isOpen(): boolean {
    return !this.element.hidden;
  }

  /** `first`: the state when the page was opened. */
  start(first: Cluster): void {
    this.#first = first;
    this.#show(first);
  }

  open(): void {
    if (this.#first === null || this.isOpen) return;
    this.element.hidden = false;
    this.#options.onToggle(true);
    this.#poll();
  }

  close(): void {
    if (!this.isOpen) return;
    this.#stop();
    this.#options.onToggle(false);
    this.element.hidden = true;
  }

  /** Runs a query. Shows its traffic if the panel is open. */
  async measured<T>(query: () => Promise<T>): Promise<T> {
    if (!this.isOpen) return query();
    const number = (this.#queries += 1);
    const late = new Promise<Cluster | null>((resolve) => setTimeout(() => resolve(this.#latest), BEFORE_MS_MAX));
    const before = await Promise.race([this.#read(), late]);
    try {
      return await query();
    } finally {
      void this.#measure(number, before);
    }
  }

  async #measure(number: number, before: Cluster | null): Promise<void> {
    const after = await this.#read();
    if (before === null || after === null || number !== this.#queries) return;
    const traffic = trafficSince(before, after);
    const { requests, sent, received } = total(traffic.values());
    const facts = requests === 0 ? 'nothing was sent to other servers' : `${counted(requests, 'request')}, ${bytes(sent)} sent, ${bytes(received)} received`;
    const others = after.servers.filter(({ isOwn }) => !isOwn);
    this.#query.title = 'Between this server and the others, from the start of the query to its end. Requests that the server sent for other clients in that time are included.';
    this.#query.replaceChildren(h('strong', {}, 'Last query: '), facts);
    this.#queryTable.replaceChildren(requests === 0 ? '' : trafficTable(others.map(({ name }) => name), traffic));
  }

  #stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  /** Reads now, and again after each answer. */
  #poll(): void {
    this.#stop();
    // The value is also the mark of this sequence of reads: closing the panel ends it.
    const timer = setTimeout(() => {
      void this.#read().then((state) => {
        if (this.#timer === timer && !(state === null && this.#isRefused)) this.#pollLater();
      });
    });
    this.#timer = timer;
  }

  #pollLater(): void {
    this.#timer = setTimeout(() => {
      if (!document.hidden) this.#poll();
    }, READ_EVERY_MS);
  }

  /** Reads and shows the state; null if it could not be read. */
  async #read(): Promise<Cluster | null> {
    const number = (this.#reads += 1);
    try {
      const state = await this.#options.load();
      this.#isRefused = false;
      if (state === null) throw new Error('this server is not a part of a cluster');
      if (number > this.#shown) {
        this.#shown = number;
        this.#show(state);
      }
      return state;
    } catch (error) {
      this.#isRefused = error instanceof ServerError && (error.status === 401 || error.status === 403);
      this.#problem.textContent = error instanceof Error ? error.message : String(error);
      this.#problem.hidden = false;
      return null;
    }
  }

  #show(state: Cluster): void {
    const traffic: ReadonlyMap<string, Traffic> = trafficSince(this.#first ?? state, state);
    const recent = trafficSince(this.#latest ?? state, state);
    this.#latest = state;
    this.#problem.hidden = true;
    this.#title.textContent = state.name === '' ? 'Cluster' : `Cluster ${state.name}`;
    const silent = state.servers.filter(({ error }) => error !== null).length;
    const facts = [counted(state.servers.length, 'server'), counted(state.partitions, 'partition'), counted(state.statements, 'statement')];
    if (silent > 0) facts.push(`${silent === 1 ? '1 server does' : `${silent} servers do`} not answer`);
    const text = facts.join(' · ');
    // Screen readers announce changes only.
    if (this.#summary.textContent !== text) this.#summary.textContent = text;
    this.#picture.show(state.servers, traffic, recent);
    this.#table.replaceChildren(serverTable(state.servers, traffic));
  }
}
