// Gremlin tokenizer, line by line, for highlighting and for `analysis.ts`.
//
// Every character belongs to exactly one token (`space` included), so a scan always advances; unmatched text
// is `invalid`. Only strings cross line ends: `Mode` is the quotation mark that ends them.
import type { Scan } from '../highlight';
import { MEMBERS, MEMBER_NAMES, PREDICATE_NAMES, STEP_NAMES } from './words';

export type TokenKind =
  | 'source' | 'step' | 'predicate' | 'member' | 'word' | 'boolean' | 'string' | 'number' | 'comment' | 'bracket' | 'separator' | 'invalid';

export interface Token {
  readonly kind: TokenKind;
  /** Offset in the text, in UTF-16 units. */
  readonly from: number;
  readonly to: number;
  readonly text: string;
  /** Whether the token is a string that does not end in this line. */
  readonly open: boolean;
}

export type Mode = '"' | "'";

/** In order: the first match wins. Sticky, so that they match only at a position. */
const RULES: readonly (readonly [TokenKind | 'space', RegExp])[] = [
  ['space', /\s+/uy],
  ['comment', /\/\/.*/uy],
  ['number', /[+-]?(?:0[xX][0-9A-Fa-f]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)[bBsSiIlLnNfFdDmM]?/uy],
  ['number', /[+-]?(?:Infinity|NaN)(?![\p{L}\p{N}_$])/uy],
  ['word', /[\p{L}_$][\p{L}\p{N}_$]*/uy],
  ['bracket', /[{}()[\]]/uy],
  ['separator', /[.,;:]/uy],
];

/** The token of `line` at `at`, which is below the line's length. */
export function scan(line: string, at: number, mode: Mode | null): Scan<TokenKind, Mode | null> {
  if (mode !== null) return rest(line, at, mode);
  const first = line[at];
  if (first === '"' || first === "'") return rest(line, at + 1, first);
  for (const [kind, rule] of RULES) {
    rule.lastIndex = at;
    const match = rule.exec(line);
    if (match === null) continue;
    const to = rule.lastIndex;
    return { kind: kind === 'word' ? wordKind(match[0], line.slice(0, at), line.slice(to)) : kind, to, mode: null };
  }
  return { kind: 'invalid', to: at + ((line.codePointAt(at) ?? 0) > 0xffff ? 2 : 1), mode: null };
}

/** All tokens of `text` except spaces. A string over several lines is one token per line. */
export function tokens(text: string): Token[] {
  const found: Token[] = [];
  let start = 0;
  let mode: Mode | null = null;
  for (const line of text.split('\n')) {
    for (let at = 0; at < line.length; ) {
      const { kind, to, mode: next }: Scan<TokenKind, Mode | null> = scan(line, at, mode);
      if (kind !== 'space') found.push({ kind, from: start + at, to: start + to, text: line.slice(at, to), open: next !== null });
      at = to;
      mode = next;
    }
    start += line.length + 1;
  }
  return found;
}

/** The part of a string on this line. */
function rest(line: string, at: number, mode: Mode): Scan<TokenKind, Mode | null> {
  for (let i = at; i < line.length; i += 1) {
    if (line[i] === '\\') i += 1;
    else if (line[i] === mode) return { kind: 'string', to: i + 1, mode: null };
  }
  return { kind: 'string', to: line.length, mode };
}

/**
 * The context determines the kind of a word: `label` is a step before parentheses and otherwise a token;
 * `P.not` is not a step.
 */
function wordKind(text: string, before: string, after: string): TokenKind {
  if (text === 'true' || text === 'false' || text === 'null') return 'boolean';
  const of = /([\p{L}_]+)\s*\.\s*$/u.exec(before)?.[1];
  if (/^\s*\(/.test(after)) {
    if (PREDICATE_NAMES.has(text) && (text !== 'not' || of === 'P')) return 'predicate';
    return STEP_NAMES.has(text) || text === 'tx' ? 'step' : 'word';
  }
  if (text === 'g' || text === '__') return 'source';
  if (MEMBERS.has(text) || text === 'P' || text === 'TextP') return 'member';
  return MEMBER_NAMES.has(text) && (of === undefined || MEMBERS.has(of)) ? 'member' : 'word';
}
