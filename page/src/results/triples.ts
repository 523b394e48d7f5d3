// Incremental reader of N-Triples (1.2: with triple terms), line by line.
import { XSD } from '../namespaces';
import { ROWS_MAX, type Content, type Reader } from './result';
import type { Term, Triple } from './term';

const IRI = /<([^<>\s]*)>/y;
const BLANK = /_:([^\s<>"]*[^\s<>".])/y;
const LITERAL = /"((?:[^"\\]|\\.)*)"(?:@([A-Za-z0-9-]+)|\^\^<([^<>\s]*)>)?/y;
const SPACE = /\s*/y;

export class TriplesReader implements Reader {
  readonly #rowsMax: number;
  #triples: Triple[] = [];
  #complete = true;
  #line = '';
  #number = 0;

  constructor(rowsMax: number = ROWS_MAX) {
    this.#rowsMax = rowsMax;
  }

  get count(): number {
    return this.#triples.length;
  }

  push(text: string): boolean {
    const lines = (this.#line + text).split('\n');
    this.#line = lines.pop() ?? '';
    for (const line of lines) this.#add(line);
    return this.#complete;
  }

  finish(): { content: Content; complete: boolean } {
    if (this.#complete) this.#add(this.#line);
    return { content: { kind: 'graph', triples: this.#triples }, complete: this.#complete };
  }

  #add(line: string): void {
    this.#number += 1;
    const text = line.trim();
    if (text === '' || text.startsWith('#')) return;
    if (this.#triples.length >= this.#rowsMax) {
      this.#complete = false;
      return;
    }
    const parsed = triple(text, 0);
    if (parsed === null) throw new Error(`the answer's line ${this.#number} is not a triple: ${text.slice(0, 80)}`);
    this.#triples.push(parsed.triple);
  }
}

function triple(text: string, from: number): { triple: Triple; to: number } | null {
  const subject = term(text, from);
  const predicate = subject && term(text, subject.to);
  const object = predicate && term(text, predicate.to);
  if (!subject || !predicate || !object) return null;
  return { triple: { subject: subject.term, predicate: predicate.term, object: object.term }, to: object.to };
}

function term(text: string, from: number): { term: Term; to: number } | null {
  SPACE.lastIndex = from;
  SPACE.exec(text);
  const at = SPACE.lastIndex;
  if (text.startsWith('<<(', at)) {
    const inner = triple(text, at + 3);
    if (inner === null) return null;
    const end = text.indexOf(')>>', inner.to);
    return end < 0 ? null : { term: { kind: 'triple', ...inner.triple }, to: end + 3 };
  }
  const match = (rule: RegExp): RegExpExecArray | null => {
    rule.lastIndex = at;
    return rule.exec(text);
  };
  const iri = match(IRI);
  if (iri) return { term: { kind: 'iri', value: unescape(iri[1] ?? '') }, to: at + iri[0].length };
  const blank = match(BLANK);
  if (blank) return { term: { kind: 'blank', value: blank[1] ?? '' }, to: at + blank[0].length };
  const found = match(LITERAL);
  if (!found) return null;
  const [, value = '', language, datatype] = found;
  const literal: Term = {
    kind: 'literal',
    value: unescape(value),
    ...(language === undefined ? {} : { language }),
    ...(datatype === undefined || datatype === `${XSD}string` ? {} : { datatype: unescape(datatype) }),
  };
  return { term: literal, to: at + found[0].length };
}

const ESCAPES: Readonly<Record<string, string>> = { t: '\t', n: '\n', r: '\r', b: '\b', f: '\f' };

function unescape(text: string): string {
  if (!text.includes('\\')) return text;
  return text.replace(/\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))/g, (_, short?: string, long?: string, one?: string) => {
    if (one !== undefined) return ESCAPES[one] ?? one;
    const code = parseInt(short ?? long ?? '0', 16);
    return String.fromCodePoint(code <= 0x10ffff ? code : 0xfffd);
  });
}
