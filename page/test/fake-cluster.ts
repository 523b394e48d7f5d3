// `/cluster` of the fake server: four servers with 16 partitions. Each query sends the same to each other
// server.

export class FakeCluster {
  /** Servers that do not answer, and the reasons. */
  readonly silent = new Map<string, string>();
  /** The number of answers. */
  reads = 0;
  readonly #counts = { requests: 100, bytesSent: 50_000, bytesReceived: 90_000 };

  /** Counts the requests of one query. */
  count(): void {
    this.#counts.requests += 4;
    this.#counts.bytesSent += 700;
    this.#counts.bytesReceived += 1300;
  }

  state(): object {
    this.reads += 1;
    const servers = ['a', 'b', 'c', 'd'].map((name, i) => {
      const counts = i === 0 ? { requests: 0, bytesSent: 0, bytesReceived: 0 } : this.#counts;
      const error = this.silent.get(name) ?? null;
      const answers = error === null;
      return {
        name, self: i === 0, address: `127.0.0.1:${7900 + i}`, http: `127.0.0.1:${7878 + i}`, partitions: [0, 4, 8, 12].map((first) => first + i),
        answers, microseconds: answers ? 190 * i : null, error, failures: 0, ...counts,
      };
    });
    return { name: 'demo', partitions: 16, statements: 302978, connections: 3, servers };
  }
}
