import { CompletionContext, type CompletionResult } from '@codemirror/autocomplete';
import { EditorState } from '@codemirror/state';
import { describe, expect, it } from 'vitest';
import { completion } from '../../src/gremlin/completion';
import { Names } from '../../src/names';
import type { Name, Server } from '../../src/server';

const KNOWN: Readonly<Record<string, Name[]>> = {
  class: [{ iri: 'urn:vervet:label:person', count: 7 }, { iri: 'http://x.org/ns#Course', label: 'ns:Course', count: 2 }, { iri: 'mailto:no', count: 1 }],
  predicate: [
    { iri: 'urn:vervet:key:knows', count: 99 }, { iri: 'urn:vervet:key:last%20name', count: 100 }, { iri: 'urn:vervet:id', count: 5 },
    { iri: 'http://www.w3.org/1999/02/22-rdf-syntax-ns#type', count: 500 },
  ],
};

/** What is proposed at the bar in `text`. */
async function asked(text: string, explicit = true): Promise<CompletionResult | null> {
  const server = {
    prefixes: () => Promise.resolve([]),
    names: (kind: string) => Promise.resolve(KNOWN[kind] ?? []),
  };
  const at = text.indexOf('|');
  const state = EditorState.create({ doc: text.replace('|', '') });
  return completion(new Names(server as unknown as Server))(new CompletionContext(state, at, explicit));
}
async function proposed(text: string, explicit = true): Promise<string[]> {
  return ((await asked(text, explicit))?.options ?? []).map(({ label, displayLabel }) => displayLabel ?? label);
}

describe('completion of Gremlin', () => {
  it('starts with the graph', async () => {
    expect(await proposed('|')).toEqual(['g']);
    const labels = await proposed('g.|', false);
    expect(labels).toContain('V');
    expect(labels).toContain('withSideEffect');
    expect(labels).not.toContain('out');
  });

  it('proposes steps behind a dot, in brackets, too', async () => {
    for (const text of ['g.V().|', 'g.V().ou|', 'g.V().where(__.|', 'g.V().repeat(out().|)']) {
      const labels = await proposed(text, false);
      expect(labels, text).toContain('out');
      expect(labels, text).not.toContain('V2');
    }
    expect(await proposed('g.V().|')).toContain('explain');
    expect(await proposed('g.V().order().by(|')).toEqual(expect.arrayContaining(['desc', 'label', 'values', '__']));
    expect(await proposed('g.V().has("age", g|')).toContain('gt');
    expect(await proposed('P.|')).toContain('within');
    expect(await proposed('Order.|')).toEqual(['asc', 'desc', 'shuffle']);
  });

  it('proposes names that occur in the data inside of quotation marks', async () => {
    expect(await proposed(`g.V().hasLabel('|`, false)).toEqual(['person', 'ns:Course', 'knows', 'last name']);
    expect(await proposed(`g.V().out("kn|")`, false)).toEqual(['knows']);
    expect(await proposed(`g.V().has('|')`, false)).toEqual(['knows', 'last name']);
    expect(await proposed(`g.V().values('last n|')`, false)).toEqual(['last name']);
    expect(await proposed(`g.V().has('person', '|')`, false)).toEqual(['knows', 'last name']);
    expect(await proposed(`g.V().has('knows', '|')`, false)).toEqual([]);
  });

  it('replaces the whole string', async () => {
    const result = await asked(`g.V().out('kn|owz').count()`);
    expect(result).toMatchObject({ from: 11, to: 16 });
  });

  it('proposes names that the text has given', async () => {
    expect(await proposed(`g.V().as('a').out().as('bee').select('|')`, false)).toEqual(['a', 'bee']);
  });

  it('keeps out of comments and other strings, and quiet until something is typed', async () => {
    expect(await proposed('g.V() // ou|')).toEqual([]);
    expect(await proposed(`g.V().is('ou|')`)).toEqual([]);
    expect(await proposed('g.V().where(|)', false)).toEqual([]);
    expect(await proposed('g.V()|', false)).toEqual([]);
  });
});
