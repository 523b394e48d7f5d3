// The servers of a cluster, and the traffic with each, as tables.
import { NO_TRAFFIC, type ClusterServer, type Traffic } from '../cluster';
import { h } from '../dom';
import { bytes, count, duration } from '../quantities';

/** The text alternative of the picture. `traffic`: since the page was opened. */
export function serverTable(servers: readonly ClusterServer[], traffic: ReadonlyMap<string, Traffic>): HTMLElement {
  const rows = servers.map((server) => {
    const { requests, sent, received, failures } = traffic.get(server.name) ?? NO_TRAFFIC;
    const time = server.microseconds === null ? (server.error ?? 'no answer') : duration(server.microseconds * 1000);
    const cells = server.isOwn ? ['this server', '', '', '', ''] : [time, count(requests), bytes(sent), bytes(received), count(failures)];
    return row(server.name, [server.partitions.join(' '), ...cells], server.error !== null);
  });
  return table('Since this page was opened', ['Server', 'Partitions', 'Round trip', 'Requests', 'Sent', 'Received', 'Failures'], rows);
}

/** The traffic of one query with the servers of these names. */
export function trafficTable(names: readonly string[], traffic: ReadonlyMap<string, Traffic>): HTMLElement {
  const rows = names.map((name) => {
    const { requests, sent, received } = traffic.get(name) ?? NO_TRAFFIC;
    return row(name, [count(requests), bytes(sent), bytes(received)], false);
  });
  return table('With requests of other clients in that time', ['Server', 'Requests', 'Sent', 'Received'], rows);
}

function table(caption: string, columns: readonly string[], rows: readonly HTMLElement[]): HTMLElement {
  const head = h('thead', {}, h('tr', {}, ...columns.map((name) => h('th', { scope: 'col' }, name))));
  return h('table', {}, h('caption', { class: 'faint' }, caption), head, h('tbody', {}, ...rows));
}

function row(name: string, cells: readonly string[], isBad: boolean): HTMLElement {
  return h('tr', { class: isBad ? 'bad' : null }, h('th', { scope: 'row' }, name), ...cells.map((cell) => h('td', {}, cell)));
}
