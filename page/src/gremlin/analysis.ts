// Heuristic analysis of Gremlin text without a parser: texts in an editor are rarely complete.
//
// Everything here is linear in the text and never fails; on an invalid text the results are guesses.
import type { Shape } from './reader';
import { tokens, type Token } from './tokens';
import { MARKS, MEMBERS, SOURCE_NAMES, TAKES, TERMINAL_NAMES, WRITES, type Takes } from './words';

/** The syntactic role of a position. */
export type Role =
  | { readonly kind: 'start' }
  /** After `g.`: spawns a traversal. */
  | { readonly kind: 'spawn' }
  /** After a step and a dot. */
  | { readonly kind: 'step' }
  /** After `P.`, `Order.` and so on. */
  | { readonly kind: 'member'; readonly of: string }
  /** In the parentheses of a step, at the start of an argument. */
  | { readonly kind: 'argument'; readonly step: string; readonly takes: Takes | null }
  | { readonly kind: 'none' };

/** A bracket that is open at the position. */
interface Frame {
  /** The step of the bracket; empty for other brackets. */
  readonly step: string;
  /** The number of arguments before this one. */
  arguments: number;
  /** Whether the chain at this position starts with the source and has only source steps so far. */
  fromSource: boolean;
  /** String arguments so far. */
  readonly texts: string[];
}

const frame = (step: string): Frame => ({ step, arguments: 0, fromSource: false, texts: [] });

/** The role of the position after the tokens `before`. `isLabel`: whether a string is a label. */
export function roleAfter(before: readonly Token[], isLabel: (text: string) => boolean = () => false): Role {
  const code = before.filter(({ kind }) => kind !== 'comment');
  const frames = [frame('')];
  code.forEach((token, i) => follow(frames, token, code[i - 1]));
  const here = frames.at(-1) ?? frame('');
  const [last, previous] = [code.at(-1), code.at(-2)];
  if (last?.text === '.') {
    if (previous === undefined) return { kind: 'none' };
    if (previous.kind === 'member' && (MEMBERS.has(previous.text) || /^(?:Text)?P$/.test(previous.text))) return { kind: 'member', of: previous.text };
    if (previous.kind !== 'source' && previous.text !== ')') return { kind: 'none' };
    return { kind: here.fromSource ? 'spawn' : 'step' };
  }
  if (here.step !== '') {
    if (last?.text !== '(' && last?.text !== ',') return { kind: 'none' };
    return { kind: 'argument', step: here.step, takes: takesOf(here, isLabel) };
  }
  return frames.length === 1 && (last === undefined || last.text === ';') ? { kind: 'start' } : { kind: 'none' };
}

function takesOf(here: Frame, isLabel: (text: string) => boolean): Takes | null {
  const takes = TAKES.get(here.step) ?? null;
  const place = here.arguments;
  switch (here.step) {
    case 'has':
      // `has(label, key, value)`
      return place === 0 || (place === 1 && isLabel(here.texts[0] ?? '')) ? 'key' : null;
    case 'addV':
    case 'addE':
    case 'hasNot':
    case 'where':
    case 'by':
      return place === 0 ? takes : null;
    case 'property':
      return place === 0 || (place === 1 && here.texts.length === 0) ? 'key' : null;
    case 'toE':
      return place > 0 ? takes : null;
    case 'to':
      return place > 0 ? 'edge' : takes;
    default:
      return takes;
  }
}

function follow(frames: Frame[], token: Token, previous: Token | undefined): void {
  const here = frames.at(-1);
  switch (token.text) {
    case '(':
      frames.push(frame(previous?.kind === 'step' || previous?.kind === 'predicate' || previous?.kind === 'word' ? previous.text : ''));
      return;
    case '[':
    case '{':
      frames.push(frame(''));
      return;
    case ')':
    case ']':
    case '}':
      if (frames.length > 1) frames.pop();
      return;
    case ',':
      if (here !== undefined) [here.arguments, here.fromSource] = [here.arguments + 1, false];
      return;
    case ';':
      if (here !== undefined) here.fromSource = false;
      return;
  }
  if (here === undefined) return;
  if (token.kind === 'source') here.fromSource = token.text === 'g';
  else if (token.kind === 'step') here.fromSource = here.fromSource && SOURCE_NAMES.has(token.text) && previous?.text === '.';
  else if (token.kind === 'string') here.texts.push(unquoted(token.text));
}

/** Step labels and side-effect names defined in the text, in order, without duplicates. */
export function marksIn(all: readonly Token[]): string[] {
  const found = new Set<string>();
  all.forEach((token, i) => {
    if (token.kind !== 'step' || !MARKS.has(token.text) || all[i + 1]?.text !== '(') return;
    for (let at = i + 2; all[at]?.kind === 'string'; at += 2) {
      if (all[at]?.open === false) found.add(unquoted(all[at]?.text ?? ''));
      if (all[at + 1]?.text !== ',') break;
    }
  });
  return [...found];
}

/** The content of a string literal, without its quotation marks. */
export function unquoted(text: string): string {
  const inner = text.replace(/^["']/, '').replace(/["']$/, '');
  return inner.replace(/\\(.)/g, (_, escaped: string) => ({ n: '\n', t: '\t', r: '\r' })[escaped] ?? escaped);
}

export function quoted(text: string): string {
  return `'${text.replace(/[\\'\n\r\t]/g, (c) => ({ '\n': '\\n', '\r': '\\r', '\t': '\\t' })[c] ?? `\\${c}`)}'`;
}

export function writesIn(text: string): boolean {
  return tokens(text).some(({ kind, text: word }) => kind === 'step' && WRITES.has(word));
}

/** The top-level steps of the last statement, and their ends. */
interface Outline {
  readonly statements: number;
  readonly startsAtSource: boolean;
  readonly steps: readonly { readonly name: string; readonly first: string }[];
  /** End of the last statement, without a trailing semicolon or comment. */
  readonly end: number;
}

function outlineOf(text: string): Outline {
  const all = tokens(text).filter(({ kind }) => kind !== 'comment');
  let [depth, statements, end, startsAtSource] = [0, 0, 0, false];
  let steps: { name: string; first: string }[] = [];
  let fresh = true;
  all.forEach((token, i) => {
    if (token.text === ';' && depth === 0) {
      fresh = true;
      return;
    }
    if (fresh) {
      [steps, fresh, startsAtSource] = [[], false, token.text === 'g'];
      statements += 1;
    }
    if (token.kind === 'bracket') depth += /[([{]/.test(token.text) ? 1 : -1;
    else if (token.kind === 'step' && depth === 0) steps.push({ name: token.text, first: all[i + 2]?.text ?? '' });
    end = token.to;
  });
  return { statements, startsAtSource, steps, end };
}

/** Steps that keep the shape of the results before them. */
const MODULATORS: ReadonlySet<string> = new Set('by with order limit range skip tail dedup toList next iterate sample option'.split(' '));

/** How maps in the results become a table. */
export function shapeOf(text: string): Shape {
  const { steps } = outlineOf(text);
  const last = steps.findLast(({ name }) => !MODULATORS.has(name));
  // `toList` returns a list of the results, `next` the entries of a map.
  const apart = steps.at(-1)?.name === 'next' && last !== undefined && !/^(?:project|select|valueMap|elementMap|propertyMap)$/.test(last.name);
  const maps = apart || /^(?:group|groupCount|cap|unfold)$/.test(last?.name ?? '') ? 'entries' : 'columns';
  return { maps, single: last?.name === 'valueMap' || last?.name === 'propertyMap' };
}

/** The text with a final `explain()` or `profile()` step, or the reason why it cannot have one. */
export function planned(text: string, run: boolean): { readonly text: string } | { readonly refused: string } {
  const { statements, startsAtSource, steps, end } = outlineOf(text);
  const last = steps.at(-1)?.name;
  if (statements !== 1) return { refused: 'a plan covers a single traversal: remove the others' };
  if (!startsAtSource || last === undefined || steps[0]?.name === 'tx') return { refused: 'only a traversal that begins with g has a plan' };
  const ask = run ? 'profile' : 'explain';
  if (last === ask) return { text: text.slice(0, end) };
  if (TERMINAL_NAMES.has(last) || last === 'profile') return { refused: `remove ${last}() at the end: ${ask}() must be the last step` };
  if (run && writesIn(text)) return { refused: 'profiling would change the data; the plan can be shown instead' };
  return { text: `${text.slice(0, end)}.${ask}()` };
}
