import { describe, expect, it } from 'vitest';
import { parseFailure, placeIn } from '../../src/failure';

const TEXT = `the prefix b: is not declared (line 2, column 15)
2 |   FILTER(?c = b:foo)
  |               ^^
hint: add PREFIX b: <...> before the query
`;

describe('errors of the server', () => {
  it('finds message, place, width and hint', () => {
    expect(parseFailure(TEXT)).toMatchObject({
      message: 'the prefix b: is not declared (line 2, column 15)',
      line: 2,
      column: 15,
      width: 2,
      hint: 'add PREFIX b: <...> before the query',
    });
  });

  it('marks the place in the text', () => {
    const query = 'SELECT * {\n  FILTER(?c = b:foo)\n}';
    const place = placeIn(query, parseFailure(TEXT));
    expect(place && query.slice(place.from, place.to)).toBe('b:');
  });

  it('counts characters, not UTF-16 units', () => {
    const query = '"é😀" b:x';
    const place = placeIn(query, parseFailure('no (line 1, column 6)\n1 | "é😀" b:x\n  |      ^^^'));
    expect(place && query.slice(place.from, place.to)).toBe('b:x');
  });

  it('keeps to the line', () => {
    expect(placeIn('abc', parseFailure('no (line 1, column 4)'))).toEqual({ from: 3, to: 3 });
    expect(placeIn('abc', parseFailure('no (line 9, column 1)'))).toBeNull();
    expect(placeIn('abc', parseFailure('out of memory'))).toBeNull();
  });

  it('reads errors in JSON the same way', () => {
    const [lines, hint] = TEXT.trimEnd().split('\nhint: ');
    expect(parseFailure(JSON.stringify({ error: { kind: 'query', message: lines, hint } }))).toEqual(parseFailure(TEXT));
    expect(parseFailure('{"error":{"message":"no","hint":null}}')).toMatchObject({ message: 'no', text: 'no' });
    expect(parseFailure('{"other":1}').message).toBe('{"other":1}');
    expect(parseFailure('{').message).toBe('{');
  });

  it('has a message in any case', () => {
    expect(parseFailure('').message).not.toBe('');
    expect(parseFailure('error: bad').message).toBe('bad');
  });
});
