// Heuristic analysis of SPARQL text without a parser: texts in an editor are rarely complete.
//
// Everything here is linear in the text and never fails; on an invalid text the results are guesses.
import { RDF_TYPE, unescapeIri } from '../namespaces';
import type { Edge } from '../language';
import { tokens, type Token } from './tokens';
import { STARTS } from './words';

/** The kind of a request, which determines its endpoint and its result. */
export type Request = 'table' | 'boolean' | 'graph' | 'update';

/** The syntactic role of a position. `class`: an object after `a`. */
export type Role = 'start' | 'prefix' | 'subject' | 'predicate' | 'object' | 'class' | 'expression';

export function requestOf(text: string): Request {
  for (const token of tokens(text)) {
    const start = token.kind === 'keyword' ? STARTS.get(token.text.toUpperCase()) : undefined;
    if (start !== undefined) return start;
  }
  return 'table';
}

/** Declared prefixes, without their colon, to IRIs. */
export function declaredIn(all: readonly Token[]): Map<string, string> {
  const found = new Map<string, string>();
  for (let i = 0; i + 2 < all.length; i += 1) {
    const [word, name, iri] = [all[i]!, all[i + 1]!, all[i + 2]!];
    if (word.kind !== 'keyword' || word.text.toUpperCase() !== 'PREFIX') continue;
    if (name.kind === 'name' && name.text.endsWith(':') && iri.kind === 'iri') {
      found.set(name.text.slice(0, -1), unescapeIri(iri.text.slice(1, -1)));
    }
  }
  return found;
}

/** Variables by first occurrence, with their `?`. `$x` and `?x` are the same variable. */
export function variablesIn(all: readonly Token[]): string[] {
  return [...new Set(all.filter(({ kind }) => kind === 'variable').map(({ text }) => `?${text.slice(1)}`))];
}

/** A bracket that is open at the position. */
interface Frame {
  readonly kind: 'group' | 'list' | 'path' | 'expression';
  /** The number of terms of the current statement: 0 to 3. */
  terms: number;
  subject: string;
  /** As written, with path operators. */
  predicate: string;
  /** The next term is not part of a statement: the name of a graph, or a datatype. */
  skip: boolean;
}

const TERMS: ReadonlySet<string> = new Set(['variable', 'iri', 'name', 'blank', 'string', 'number', 'boolean']);

/** The role of the position after the tokens `before`. */
export function roleAfter(before: readonly Token[]): Role {
  const { frame, previous } = walk(before, () => undefined);
  if (frame === undefined) {
    if (previous?.kind === 'keyword' && previous.text.toUpperCase() === 'PREFIX') return 'prefix';
    return 'start';
  }
  if (frame.kind === 'expression') return 'expression';
  if (frame.kind === 'path') return 'predicate';
  if (frame.kind === 'list') return 'object';
  if (frame.terms === 0) return 'subject';
  if (frame.terms === 1) return 'predicate';
  return isType(frame.predicate) ? 'class' : 'object';
}

/** Patterns `?source predicate ?target` of a text: variables without `?`, predicates as written. */
export function edgesIn(all: readonly Token[]): Edge[] {
  const found: Edge[] = [];
  walk(all, (source, predicate, target) => {
    if (/^[?$]/.test(source) && /^[?$]/.test(target)) {
      found.push({ source: source.slice(1), predicate, target: target.slice(1) });
    }
  });
  return found;
}

type OnStatement = (subject: string, predicate: string, object: string) => void;

/** Tracks brackets and statements; returns the innermost bracket that is open at the end. */
function walk(all: readonly Token[], onStatement: OnStatement): { frame: Frame | undefined; previous: Token | undefined } {
  const frames: Frame[] = [];
  let previous: Token | undefined;
  for (const token of all) {
    if (token.kind === 'comment') continue;
    step(frames, token, previous, onStatement);
    previous = token;
  }
  return { frame: frames.at(-1), previous };
}

function step(frames: Frame[], token: Token, previous: Token | undefined, onStatement: OnStatement): void {
  const open = (kind: Frame['kind'], terms = 0): void => {
    frames.push({ kind, terms, subject: '', predicate: '', skip: false });
  };
  const frame = frames.at(-1);
  const text = token.text;
  switch (text) {
    case '{':
    case '<<':
    case '<<(':
      return open('group');
    case '[':
    case '{|':
      return open('group', 1);
    case '(':
      if (frame?.kind === 'path') return open('path');
      if (frame?.kind !== 'group' || previous?.kind === 'keyword' || previous?.kind === 'function') {
        // `a (…)` is a list after a keyword; all other parentheses after words are expressions.
        return open(previous?.text === 'a' && frame?.kind === 'group' ? 'list' : 'expression');
      }
      return open(frame.terms === 1 ? 'path' : 'list');
    case '}':
    case '|}':
      frames.pop();
      if (text === '}') reset(frames.at(-1));
      return;
    case ']':
    case '>>':
    case ')>>':
    case ')': {
      const closed = frames.pop();
      const outer = frames.at(-1);
      if (closed?.kind === 'expression') return outer?.kind === 'group' ? reset(outer) : undefined;
      return term(outer, closed?.kind === 'path' ? '(…)' : text, onStatement);
    }
  }
  if (frame?.kind !== 'group') return;
  if (text === '.') reset(frame);
  else if (text === ';') [frame.terms, frame.predicate] = [1, ''];
  else if (text === ',') frame.terms = 2;
  else if (text === '^^') frame.skip = true;
  else if (/^[/|^!*+?]$/.test(text) && (frame.terms === 1 || frame.terms === 2)) {
    frame.predicate += text;
    if (/[/|^]/.test(text)) frame.terms = 1;
  } else if (text === 'a') term(frame, 'a', onStatement);
  else if (token.kind === 'keyword') {
    reset(frame);
    frame.skip = /^(?:GRAPH|SERVICE)$/i.test(text);
  } else if (TERMS.has(token.kind)) term(frame, text, onStatement);
}

function term(frame: Frame | undefined, text: string, onStatement: OnStatement): void {
  if (frame?.kind !== 'group') return;
  if (frame.skip) {
    frame.skip = false;
    return;
  }
  if (frame.terms === 0) [frame.subject, frame.predicate] = [text, ''];
  else if (frame.terms === 1) frame.predicate += text;
  else if (frame.terms === 2) onStatement(frame.subject, frame.predicate, text);
  frame.terms = Math.min(frame.terms + 1, 3);
}

function reset(frame: Frame | undefined): void {
  if (frame === undefined) return;
  frame.terms = 0;
  frame.skip = false;
}

function isType(predicate: string): boolean {
  return predicate === 'a' || predicate === 'rdf:type' || predicate === `<${RDF_TYPE}>`;
}
