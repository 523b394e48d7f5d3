// The servers of a cluster as `GET /cluster` describes them, and the traffic between two such answers.

/** What the connected server has sent to another server and received from it, since it was started. */
export interface Traffic {
  readonly requests: number;
  readonly sent: number;
  readonly received: number;
  readonly failures: number;
}

export interface ClusterServer extends Traffic {
  readonly name: string;
  /** Whether it is the server that answered. */
  readonly isOwn: boolean;
  /** The address of its console; null if the map has none. */
  readonly console: string | null;
  readonly partitions: readonly number[];
  /** Duration of an empty request to it; null if it does not answer. */
  readonly microseconds: number | null;
  /** The reason why it does not answer. */
  readonly error: string | null;
}

export interface Cluster {
  readonly name: string;
  readonly partitions: number;
  readonly statements: number;
  readonly servers: readonly ClusterServer[];
}

export const NO_TRAFFIC: Traffic = { requests: 0, sent: 0, received: 0, failures: 0 };

/** The cluster in an answer; null if it has none. `protocol`: the page's, for addresses without one. */
export function clusterIn(answer: unknown, protocol: string): Cluster | null {
  if (!isObject(answer) || !Array.isArray(answer['servers'])) return null;
  const servers = answer['servers'].filter(isObject).map((server) => serverIn(server, protocol));
  return { name: text(answer['name']) ?? '', partitions: number(answer['partitions']), statements: number(answer['statements']), servers };
}

function serverIn(server: Readonly<Record<string, unknown>>, protocol: string): ClusterServer {
  const answers = server['answers'] === true;
  const partitions = Array.isArray(server['partitions']) ? server['partitions'] : [];
  const http = text(server['http']);
  return {
    name: text(server['name']) ?? '?',
    isOwn: server['self'] === true,
    console: http === null ? null : consoleAddress(http, protocol),
    partitions: partitions.filter((partition): partition is number => typeof partition === 'number'),
    microseconds: answers ? number(server['microseconds']) : null,
    error: answers ? null : (text(server['error']) ?? 'no answer'),
    requests: number(server['requests']),
    sent: number(server['bytesSent']),
    received: number(server['bytesReceived']),
    failures: number(server['failures']),
  };
}

/** The map of a cluster has host and port, or a whole address. Null if it cannot be opened as a page. */
function consoleAddress(http: string, protocol: string): string | null {
  try {
    const url = new URL(http.includes('://') ? http : `${protocol}//${http}`);
    return url.protocol === 'http:' || url.protocol === 'https:' ? url.href : null;
  } catch {
    return null;
  }
}

/** Traffic with each server, by name, from one answer to a later one. */
export function trafficSince(before: Cluster, after: Cluster): ReadonlyMap<string, Traffic> {
  const first = new Map(before.servers.map((server) => [server.name, server]));
  return new Map(after.servers.map((server) => [server.name, difference(first.get(server.name) ?? NO_TRAFFIC, server)]));
}

function difference(before: Traffic, after: Traffic): Traffic {
  // A server that was started again counts from zero.
  const start = after.requests < before.requests || after.sent < before.sent ? NO_TRAFFIC : before;
  return {
    requests: after.requests - start.requests,
    sent: after.sent - start.sent,
    received: Math.max(0, after.received - start.received),
    failures: Math.max(0, after.failures - start.failures),
  };
}

export function total(traffic: Iterable<Traffic>): Traffic {
  let sum = NO_TRAFFIC;
  for (const { requests, sent, received, failures } of traffic) {
    sum = { requests: sum.requests + requests, sent: sum.sent + sent, received: sum.received + received, failures: sum.failures + failures };
  }
  return sum;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function number(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
