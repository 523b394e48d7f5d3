import { describe, expect, it } from 'vitest';
import { marksIn, planned, quoted, roleAfter, shapeOf, unquoted, writesIn } from '../../src/gremlin/analysis';
import { GREMLIN } from '../../src/gremlin/language';
import { encode, labelIri, nameOf, vertexId, vertexIri } from '../../src/gremlin/mapping';
import { scan, tokens, type Mode } from '../../src/gremlin/tokens';
import { Namespaces } from '../../src/namespaces';
import { seeded } from './random';

const kinds = (text: string): string[] => tokens(text).map((token) => `${token.kind} ${token.text}`);

describe('tokens of Gremlin', () => {
  it('tells the parts of a traversal', () => {
    expect(kinds(`g.V(1L).has("name", P.gt(-2.5)) // end`)).toEqual([
      'source g', 'separator .', 'step V', 'bracket (', 'number 1L', 'bracket )', 'separator .', 'step has', 'bracket (', 'string "name"',
      'separator ,', 'member P', 'separator .', 'predicate gt', 'bracket (', 'number -2.5', 'bracket )', 'bracket )', 'comment // end',
    ]);
  });

  it('tells steps from tokens and predicates of the same name', () => {
    expect(kinds('by(label)')).toEqual(['step by', 'bracket (', 'member label', 'bracket )']);
    expect(kinds('label()')).toEqual(['step label', 'bracket (', 'bracket )']);
    expect(kinds('P.not(within(x))').filter((kind) => !/bracket|sep/.test(kind))).toEqual(['member P', 'predicate not', 'predicate within', 'word x']);
    expect(kinds('not(out())').slice(0, 1)).toEqual(['step not']);
    expect(kinds('Order.desc, true, null')).toEqual(['member Order', 'separator .', 'member desc', 'separator ,', 'boolean true', 'separator ,', 'boolean null']);
  });

  it('goes on with a string in the next line, and keeps its escapes', () => {
    expect(kinds(`'it\\'s\n"two" lines' "open`)).toEqual([`string 'it\\'s`, `string "two" lines'`, 'string "open']);
    expect(tokens(`"open`)[0]?.open).toBe(true);
  });

  it('covers every text without a gap', () => {
    const { seed, next } = seeded();
    const alphabet = [...`g.V()aé"'[]{},;:/\\ \n1-+0xeL$_😀#`];
    for (let round = 0; round < 2000; round += 1) {
      const text = Array.from({ length: next(40) }, () => alphabet[next(alphabet.length)]).join('');
      let mode: Mode | null = null;
      for (const line of text.split('\n')) {
        for (let at = 0; at < line.length; ) {
          const scanned = scan(line, at, mode);
          if (scanned.to <= at || scanned.to > line.length) expect.fail(`VERVET_SEED=${seed}: ${JSON.stringify(text)}`);
          [at, mode] = [scanned.to, scanned.mode];
        }
      }
      // What looks at texts bears every text.
      roleAfter(tokens(text));
      marksIn(tokens(text));
      planned(text, true);
      shapeOf(text);
    }
  });
});

describe('what may stand at a place', () => {
  const role = (text: string): unknown => roleAfter(tokens(text), (label) => label === 'person');

  it('is a start, a step, or what a class has', () => {
    expect(role('')).toEqual({ kind: 'start' });
    expect(role('g.V(); ')).toEqual({ kind: 'start' });
    expect(role('g.')).toEqual({ kind: 'spawn' });
    expect(role('g.with("x", 1).')).toEqual({ kind: 'spawn' });
    expect(role('g.V().')).toEqual({ kind: 'step' });
    expect(role('g.V().where(__.')).toEqual({ kind: 'step' });
    expect(role('g.V().repeat(out().')).toEqual({ kind: 'step' });
    expect(role('g.V().order().by(Order.')).toEqual({ kind: 'member', of: 'Order' });
    expect(role('g.V()')).toEqual({ kind: 'none' });
  });

  it('is what the step takes, by the place of the argument', () => {
    const takes = (text: string): unknown => (role(text) as { takes?: unknown }).takes;
    expect(takes('g.V().hasLabel(')).toBe('label');
    expect(takes('g.V().hasLabel("a", ')).toBe('label');
    expect(takes('g.V().out(')).toBe('edge');
    expect(takes('g.V().has(')).toBe('key');
    expect(takes('g.V().has("person", ')).toBe('key');
    expect(takes('g.V().has("age", ')).toBe(null);
    expect(takes('g.V().property(single, ')).toBe('key');
    expect(takes('g.V().property("age", ')).toBe(null);
    expect(takes('g.V().as("a").select(')).toBe('mark');
    expect(takes('g.V().where(out("knows").has(')).toBe('key');
    expect(takes('g.V().limit(')).toBe(null);
  });

  it('knows the names that a text gives', () => {
    expect(marksIn(tokens(`g.V().as('a', "b").out().aggregate('x').as('a')`))).toEqual(['a', 'b', 'x']);
  });
});

describe('what a text asks for', () => {
  it('knows what writes', () => {
    expect(writesIn('g.addV("a")')).toBe(true);
    expect(writesIn('g.V().drop()')).toBe(true);
    expect(writesIn('g.V().has("drop") // drop()')).toBe(false);
  });

  it('knows how maps become rows', () => {
    expect(shapeOf('g.V().groupCount().by(label).order(local).by(values)')).toEqual({ maps: 'entries', single: false });
    expect(shapeOf('g.V().group().by("a").unfold()')).toEqual({ maps: 'entries', single: false });
    expect(shapeOf('g.V().project("a").by(out().group())')).toEqual({ maps: 'columns', single: false });
    expect(shapeOf('g.V().valueMap("a").limit(2).toList(); // x')).toEqual({ maps: 'columns', single: true });
    expect(shapeOf('g.V().groupCount(); g.V().elementMap()')).toEqual({ maps: 'columns', single: false });
  });

  it('has a plan if it is one traversal without an end', () => {
    expect(planned('g.V().out() // all\n', false)).toEqual({ text: 'g.V().out().explain()' });
    expect(planned('g.V()\n  .count();', true)).toEqual({ text: 'g.V()\n  .count().profile()' });
    expect(planned('g.V().explain()', false)).toEqual({ text: 'g.V().explain()' });
    expect(planned('g.addV("x")', false)).toEqual({ text: 'g.addV("x").explain()' });
    for (const [text, run] of [['g.V().toList()', false], ['g.V(); g.E()', false], ['1 + 1', false], ['g.tx().commit()', false], ['g.V().drop()', true], ['', false]] as const) {
      expect(planned(text, run), text).toHaveProperty('refused');
    }
  });

  it('quotes and reads quotes', () => {
    for (const text of [`it's`, 'a\\b', 'x\n\ty', '"q"', '']) expect(unquoted(quoted(text))).toBe(text);
    expect(quoted(`it's`)).toBe(`'it\\'s'`);
  });
});

describe('names of a property graph', () => {
  it('are IRIs as the server has them', () => {
    expect(vertexIri('1')).toBe('urn:vervet:vertex:1');
    expect(vertexIri('a b%é')).toBe('urn:vervet:vertex:a%20b%25é');
    expect(vertexIri('http://x.org/a')).toBe('http://x.org/a');
    expect(vertexIri('_:b')).toBeNull();
    expect(labelIri('Person')).toBe('urn:vervet:label:Person');
    expect(encode("'😀\ue000")).toBe('%27😀%EE%80%80');
  });

  it('come back', () => {
    const { seed, next } = seeded();
    for (let round = 0; round < 500; round += 1) {
      const name = Array.from({ length: 1 + next(8) }, () => String.fromCodePoint(33 + next(0x2fff))).join('');
      if (!/^_:|^urn:|:\/\//.test(name)) expect(vertexId(vertexIri(name) ?? ''), `VERVET_SEED=${seed}`).toBe(name);
    }
    expect(nameOf('label', 'urn:vervet:label:a%20b')).toBe('a b');
    expect(nameOf('key', 'http://x.org/p')).toBe('http://x.org/p');
    expect(nameOf('key', 'mailto:x')).toBeNull();
  });

  it('stand in queries', () => {
    const none = new Namespaces();
    expect(GREMLIN.describe('urn:vervet:vertex:7', none)).toContain('g.V(7)');
    expect(GREMLIN.describe('urn:vervet:vertex:1099511627776', none)).toContain('g.V(1099511627776L)');
    expect(GREMLIN.describe('urn:vervet:vertex:007', none)).toContain(`g.V('007')`);
    expect(GREMLIN.describe(`http://x.org/it's`, none)).toContain(`g.V('http://x.org/it\\'s')`);
    expect(GREMLIN.describe('urn:vervet:edge:3', none)).toContain(`g.E('urn:vervet:edge:3')`);
    expect(GREMLIN.naming('', 'urn:vervet:key:age', none).text).toBe(`'age'`);
    expect(GREMLIN.naming('', 'urn:vervet:label:Person', none).text).toBe(`'Person'`);
  });
});
