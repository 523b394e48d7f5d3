// The picture of a cluster: a box for each server with a square for each partition, and a line from the
// connected server to each other one. Elements stay between updates, so that a click or the focus is not
// lost.
import { NO_TRAFFIC, type ClusterServer, type Traffic } from '../cluster';
import { h } from '../dom';
import { bytes, count, counted, duration } from '../quantities';

/** Squares drawn in one box. */
const SQUARES_MAX = 64;

export class ServerPicture {
  readonly element = h('div', { class: 'servers' });
  readonly #own = h('div', { class: 'own-server' });
  readonly #others = h('ul', { 'aria-label': 'Other servers' });
  readonly #boxes = new Map<string, Box>();

  constructor() {
    this.element.append(this.#own, this.#others);
  }

  /** `traffic`: since the page was opened; `recent`: since the last update. */
  show(servers: readonly ClusterServer[], traffic: ReadonlyMap<string, Traffic>, recent: ReadonlyMap<string, Traffic>): void {
    for (const server of servers) {
      let box = this.#boxes.get(server.name);
      if (box === undefined) {
        box = new Box(server);
        this.#boxes.set(server.name, box);
        (server.isOwn ? this.#own : this.#others).append(box.element);
      }
      box.show(server, traffic.get(server.name) ?? NO_TRAFFIC, (recent.get(server.name) ?? NO_TRAFFIC).requests > 0);
    }
    for (const [name, box] of this.#boxes) {
      if (servers.some((server) => server.name === name)) continue;
      box.element.remove();
      this.#boxes.delete(name);
    }
  }
}

/** One server, with the line to it. */
class Box {
  readonly element: HTMLElement;
  readonly #box: HTMLElement;
  readonly #time = h('span', { class: 'time' });
  readonly #bytes = h('span', { class: 'bytes' });
  readonly #squares = h('span', { class: 'squares' });
  readonly #error = h('p', { class: 'bad' });
  #partitions = '';

  constructor({ name, isOwn, console }: ClusterServer) {
    const content = h('span', { class: 'server-name' }, name, isOwn && h('span', { class: 'tag' }, 'this server'));
    this.#box =
      console === null || isOwn
        ? h('div', { class: 'server-box', role: 'img' }, content, this.#squares)
        : h('a', { class: 'server-box', href: console, target: '_blank', rel: 'noreferrer' }, content, this.#squares);
    if (isOwn) {
      this.element = this.#box;
      this.#box.setAttribute('aria-current', 'true');
      return;
    }
    const line = h('div', { class: 'line', 'aria-hidden': 'true', title: 'Round trip; bytes sent and received since this page was opened' }, this.#time, this.#bytes);
    this.element = h('li', {}, line, this.#box, this.#error);
  }

  show(server: ClusterServer, traffic: Traffic, isBusy: boolean): void {
    const { name, isOwn, partitions, microseconds, error } = server;
    const time = microseconds === null ? 'no answer' : duration(microseconds * 1000);
    this.element.classList.toggle('silent', error !== null);
    this.element.classList.toggle('busy', isBusy);
    this.#time.textContent = time;
    this.#bytes.textContent = `↑ ${bytes(traffic.sent)}  ↓ ${bytes(traffic.received)}`;
    this.#error.textContent = error ?? '';
    this.#error.hidden = error === null;
    const facts = [
      `server ${name}`,
      counted(partitions.length, 'partition'),
      ...(isOwn ? ['this server'] : [error ?? `answers in ${time}`, `${bytes(traffic.sent)} sent`, `${bytes(traffic.received)} received`]),
    ];
    const opens = this.#box instanceof HTMLAnchorElement ? '; opens its console' : '';
    this.#box.setAttribute('aria-label', facts.join(', ') + opens);
    this.#box.title = opens === '' ? '' : `Open the console of ${name}`;
    this.#draw(partitions);
  }

  #draw(partitions: readonly number[]): void {
    const key = partitions.join();
    if (key === this.#partitions) return;
    this.#partitions = key;
    const squares = partitions.slice(0, SQUARES_MAX).map((partition) => h('span', { class: 'square', title: `Partition ${partition}` }, String(partition)));
    const hidden = partitions.length - squares.length;
    this.#squares.replaceChildren(...squares, hidden > 0 ? h('span', { class: 'faint' }, `and ${count(hidden)} more`) : '');
  }
}
