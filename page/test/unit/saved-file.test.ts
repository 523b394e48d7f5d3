import { describe, expect, it } from 'vitest';
import type { Saved } from '../../src/memory';
import { readQueries, writeQueries } from '../../src/saved-file';

describe('a file of saved queries', () => {
  it('comes back as it was', () => {
    const queries: Saved[] = [{ name: 'Ä "b"', text: 'SELECT *\n{}', language: 'sparql' }, { name: 'w', text: 'g.V()', language: 'gremlin' }];
    expect(readQueries(writeQueries(queries))).toEqual(queries);
    // Those of before there were two languages.
    expect(readQueries(writeQueries([{ name: 'old', text: 'ASK {}' }]))).toEqual([{ name: 'old', text: 'ASK {}', language: 'sparql' }]);
  });

  it('is refused with a reason if it is something else', () => {
    for (const [text, reason] of [
      ['SELECT', 'not JSON'],
      ['[]', 'not a list'],
      ['null', 'not a list'],
      ['{"queries":[{"name":"a"}]}', 'query 1'],
      ['{"queries":[{"name":"a","text":"b"},7]}', 'query 2'],
      ['{"queries":[{"name":" ","text":"b"}]}', 'query 1'],
      ['{"queries":[{"name":"a","text":"b","language":"cypher"}]}', 'does not know'],
      [JSON.stringify({ queries: Array(1001).fill({ name: 'a', text: 'b' }) }), 'more than 1000'],
    ] as const) {
      expect(() => readQueries(text), text.slice(0, 60)).toThrow(reason);
    }
  });
});
