import { CompletionContext } from '@codemirror/autocomplete';
import { EditorState } from '@codemirror/state';
import { describe, expect, it } from 'vitest';
import { Names } from '../../src/names';
import type { Name, Server } from '../../src/server';
import { completion, naming } from '../../src/sparql/completion';
import { Namespaces } from '../../src/namespaces';

const UB = 'http://u.edu/onto#';
const KNOWN: Readonly<Record<string, Name[]>> = {
  class: [{ iri: `${UB}Course`, count: 7 }, { iri: 'http://x.org/no prefix/C', count: 1 }],
  predicate: [{ iri: `${UB}teacherOf`, count: 99 }, { iri: `${UB}name`, count: 100 }],
};

function source(): ReturnType<typeof completion> {
  const server = {
    prefixes: () => Promise.resolve([{ prefix: 'ub', iri: UB }]),
    names: (kind: string) => Promise.resolve(KNOWN[kind] ?? []),
  };
  return completion(new Names(server as unknown as Server));
}

/** Labels that are proposed at the bar in `text`. */
async function proposed(text: string, explicit = true): Promise<string[]> {
  const at = text.indexOf('|');
  const state = EditorState.create({ doc: text.replace('|', '') });
  const result = await source()(new CompletionContext(state, at, explicit));
  return (result?.options ?? []).map(({ label, displayLabel }) => displayLabel ?? label);
}

describe('completion', () => {
  it('proposes predicates between subject and object', async () => {
    const labels = await proposed('SELECT * { ?s te|');
    expect(labels).toContain('ub:teacherOf');
    expect(labels).toContain('a');
    expect(labels).not.toContain('ub:Course');
    expect(labels).not.toContain('SELECT');
  });

  it('proposes classes behind a', async () => {
    const labels = await proposed('SELECT * { ?s a ub:|');
    expect(labels).toContain('ub:Course');
    expect(labels).toContain('<http://x.org/no prefix/C>');
    expect(labels).not.toContain('ub:teacherOf');
  });

  it('proposes variables of the text', async () => {
    expect(await proposed('SELECT ?x { ?x :p ?long . ?|')).toEqual(['?x', '?long']);
  });

  it('proposes keywords where a query starts and functions in expressions', async () => {
    expect(await proposed('SEL|')).toContain('SELECT');
    expect(await proposed('SELECT * { FILTER(re|')).toContain('REGEX');
  });

  it('proposes whole declarations behind PREFIX, but those that there are', async () => {
    const labels = await proposed('PREFIX ub: <http://u.edu/onto#>\nPREFIX r|');
    expect(labels).toContain('rdfs:');
    expect(labels).not.toContain('ub:');
  });

  it('keeps out of strings and comments, and quiet until something is typed', async () => {
    expect(await proposed('SELECT * { ?s ?p "te|" }')).toEqual([]);
    expect(await proposed('# te|')).toEqual([]);
    expect(await proposed('SELECT * { ?s | }', false)).toEqual([]);
  });
});

describe('a name in a text', () => {
  const namespaces = new Namespaces([['ub', UB]]);

  it('brings the prefix that is missing, behind those that are there', () => {
    const text = 'PREFIX a: <b>\nSELECT * {}';
    expect(naming(text, `${UB}Course`, namespaces)).toEqual({ text: 'ub:Course', line: `PREFIX ub: <${UB}>\n`, place: 14 });
  });

  it('brings nothing if it is declared, or has no short form', () => {
    expect(naming(`PREFIX ub: <${UB}>\nSELECT * {}`, `${UB}Course`, namespaces).line).toBe('');
    expect(naming('', 'http://x/y', namespaces)).toEqual({ text: '<http://x/y>', line: '', place: 0 });
  });
});
