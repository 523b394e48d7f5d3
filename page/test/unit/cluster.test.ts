import { describe, expect, it } from 'vitest';
import { clusterIn, total, trafficSince } from '../../src/cluster';
import { FakeCluster } from '../fake-cluster';

const HTTP = 'http:';

describe('a cluster', () => {
  it('is read from an answer', () => {
    const fake = new FakeCluster();
    fake.silent.set('c', 'connection refused');
    const cluster = clusterIn(fake.state(), HTTP);
    expect(cluster).toMatchObject({ name: 'demo', partitions: 16, statements: 302978 });
    expect(cluster?.servers[0]).toMatchObject({ name: 'a', isOwn: true, partitions: [0, 4, 8, 12] });
    expect(cluster?.servers[1]).toMatchObject({ name: 'b', isOwn: false, microseconds: 190, error: null, sent: 50_000, console: 'http://127.0.0.1:7879/' });
    expect(cluster?.servers[2]).toMatchObject({ name: 'c', microseconds: null, error: 'connection refused' });
  });

  it('is absent from other answers, and incomplete ones are no errors', () => {
    for (const answer of [null, 'text', {}, { servers: 3 }]) expect(clusterIn(answer, HTTP)).toBeNull();
    expect(clusterIn({ servers: [{}, null, 7] }, HTTP)?.servers).toEqual([
      { name: '?', isOwn: false, console: null, partitions: [], microseconds: null, error: 'no answer', requests: 0, sent: 0, received: 0, failures: 0 },
    ]);
  });

  it('has consoles at web addresses only', () => {
    const console = (http: unknown, protocol = HTTP): string | null | undefined => clusterIn({ servers: [{ http }] }, protocol)?.servers[0]?.console;
    expect(console('db.test:7878')).toBe('http://db.test:7878/');
    expect(console('db.test:7878', 'https:')).toBe('https://db.test:7878/');
    expect(console('https://db.test/graph/')).toBe('https://db.test/graph/');
    expect(console('[::1]:7878')).toBe('http://[::1]:7878/');
    for (const http of [null, 7, '', 'javascript://x/%0aalert(1)', 'a b']) expect(console(http)).toBeNull();
  });

  it('counts the traffic between two answers', () => {
    const fake = new FakeCluster();
    const before = clusterIn(fake.state(), HTTP);
    fake.count();
    const after = clusterIn(fake.state(), HTTP);
    if (before === null || after === null) throw new Error('no cluster');
    const traffic = trafficSince(before, after);
    expect(traffic.get('a')).toMatchObject({ requests: 0, sent: 0 });
    expect(traffic.get('b')).toMatchObject({ requests: 4, sent: 700, received: 1300 });
    expect(total(traffic.values())).toEqual({ requests: 12, sent: 2100, received: 3900, failures: 0 });
    // A server that was started again counts from zero.
    expect(trafficSince(after, before).get('b')).toMatchObject({ requests: 100, sent: 50_000, received: 90_000 });
  });
});
