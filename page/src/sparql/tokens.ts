// SPARQL tokenizer, line by line, for highlighting and for `analysis.ts`.
//
// Every character belongs to exactly one token (`space` included), so a scan always advances; unmatched text
// is `invalid`. Only long strings cross line ends: `Mode` is the quotation mark that ends them.

import { FUNCTIONS, KEYWORDS } from './words';

export type TokenKind =
  | 'keyword' | 'function' | 'word' | 'boolean' | 'variable' | 'iri' | 'name' | 'blank' | 'string' | 'tag'
  | 'number' | 'comment' | 'operator' | 'bracket' | 'separator' | 'invalid';

export interface Token {
  readonly kind: TokenKind;
  /** Offset in the text, in UTF-16 units. */
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

export type Mode = null | '"""' | "'''";

export interface Scanned {
  readonly kind: TokenKind | 'space';
  /** Offset in the line, greater than where the scan started. */
  readonly to: number;
  readonly mode: Mode;
}

const LOCAL = String.raw`(?:[\p{L}\p{N}_:]|%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%])`;
const LOCAL_MORE = String.raw`(?:[\p{L}\p{N}_:\-·]|%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%])`;
const PREFIX = String.raw`(?:\p{L}(?:[\p{L}\p{N}_.\-·]*[\p{L}\p{N}_\-·])?)?`;

/** In order: the first match wins. Sticky, so that they match only at a position. */
const RULES: readonly (readonly [TokenKind | 'space', RegExp])[] = [
  ['space', /\s+/uy],
  ['comment', /#.*/uy],
  ['iri', /<(?:[^<>"{}|^`\\\s]|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})*>/uy],
  ['string', /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/uy],
  ['invalid', /["'].*/uy],
  ['variable', /[?$][\p{L}\p{N}_]+/uy],
  ['blank', /_:[\p{L}\p{N}_](?:[\p{L}\p{N}_.\-·]*[\p{L}\p{N}_\-·])?/uy],
  ['name', new RegExp(`${PREFIX}:(?:${LOCAL}(?:(?:${LOCAL_MORE}|\\.)*${LOCAL_MORE})?)?`, 'uy')],
  ['number', /(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?/uy],
  ['tag', /@[A-Za-z]+(?:-[A-Za-z0-9]+)*(?:--[a-z]+)?/uy],
  ['word', /[\p{L}_][\p{L}\p{N}_]*/uy],
  ['operator', /\^\^|&&|\|\||<<\(|\)>>|<<|>>|!=|<=|>=|[<>=!+\-*/^|?~]/uy],
  ['bracket', /\{\||\|\}|[{}()[\]]/uy],
  ['separator', /[.;,]/uy],
];

/** The token of `line` at `at`, which is below the line's length. */
export function scan(line: string, at: number, mode: Mode): Scanned {
  if (mode !== null) return rest(line, at, mode);
  const quote = line.slice(at, at + 3);
  if (quote === '"""' || quote === "'''") return rest(line, at + 3, quote);
  if (line.startsWith('{|', at) || line.startsWith('|}', at)) return { kind: 'bracket', to: at + 2, mode };
  for (const [kind, rule] of RULES) {
    rule.lastIndex = at;
    const match = rule.exec(line);
    if (match === null) continue;
    const to = rule.lastIndex;
    return { kind: kind === 'word' ? wordKind(match[0]) : kind, to, mode: null };
  }
  return { kind: 'invalid', to: at + ((line.codePointAt(at) ?? 0) > 0xffff ? 2 : 1), mode: null };
}

/** All tokens of `text` except spaces. A long string is one token per line. */
export function tokens(text: string): Token[] {
  const found: Token[] = [];
  let start = 0;
  let mode: Mode = null;
  for (const line of text.split('\n')) {
    for (let at = 0; at < line.length; ) {
      const { kind, to, mode: next } = scan(line, at, mode);
      if (kind !== 'space') found.push({ kind, from: start + at, to: start + to, text: line.slice(at, to) });
      at = to;
      mode = next;
    }
    start += line.length + 1;
  }
  return found;
}

/** The part of a long string on this line. */
function rest(line: string, at: number, mode: '"""' | "'''"): Scanned {
  for (let i = at; i < line.length; i += 1) {
    if (line[i] === '\\') i += 1;
    else if (line.startsWith(mode, i)) return { kind: 'string', to: i + 3, mode: null };
  }
  return { kind: 'string', to: line.length, mode };
}

function wordKind(text: string): TokenKind {
  if (text === 'a') return 'keyword';
  if (text === 'true' || text === 'false') return 'boolean';
  const upper = text.toUpperCase();
  return KEYWORDS.has(upper) ? 'keyword' : FUNCTIONS.has(upper) ? 'function' : 'word';
}
