// Incremental reader of SPARQL results in JSON.
//
// The text before the first binding is buffered until `"bindings": [`; `ArrayScan` splits the bindings.
import { XSD } from '../namespaces';
import { ArrayScan } from './array';
import { ROWS_MAX, type Content, type Reader } from './result';
import type { Term } from './term';

interface JsonTerm {
  type: string;
  value: unknown;
  datatype?: string;
  'xml:lang'?: string;
  'its:dir'?: string;
}

export class JsonReader implements Reader {
  readonly #rowsMax: number;
  #head = '';
  #variables: string[] = [];
  #places = new Map<string, number>();
  #rows: (Term | null)[][] = [];
  #scan: ArrayScan | null = null;
  #complete = true;

  constructor(rowsMax: number = ROWS_MAX) {
    this.#rowsMax = rowsMax;
  }

  get count(): number {
    return this.#rows.length;
  }

  push(text: string): boolean {
    if (this.#scan !== null) return this.#take(text, this.#scan);
    this.#head += text;
    const start = /"bindings"\s*:\s*\[/.exec(this.#head);
    if (start === null) return true;
    const rest = this.#head.slice(start.index + start[0].length);
    this.#head = this.#head.slice(0, start.index);
    const variables = /"vars"\s*:\s*(\[[^\]]*\])/.exec(this.#head)?.[1] ?? '[]';
    for (const variable of JSON.parse(variables) as string[]) this.#column(variable);
    this.#scan = new ArrayScan();
    return this.#take(rest, this.#scan);
  }

  finish(): { content: Content; complete: boolean } {
    if (this.#scan !== null) {
      if (this.#complete && !this.#scan.ended) throw new Error('the answer ends in the middle');
      const width = this.#variables.length;
      for (const row of this.#rows) while (row.length < width) row.push(null);
      return {
        content: { kind: 'table', table: { variables: this.#variables, rows: this.#rows } },
        complete: this.#complete,
      };
    }
    const whole = JSON.parse(this.#head) as { boolean?: unknown };
    if (typeof whole.boolean !== 'boolean') throw new Error('the answer has neither rows nor a boolean');
    return { content: { kind: 'boolean', value: whole.boolean }, complete: true };
  }

  #take(text: string, scan: ArrayScan): boolean {
    for (const binding of scan.push(text) as Record<string, JsonTerm>[]) this.#row(binding);
    return this.#complete;
  }

  #row(binding: Record<string, JsonTerm>): void {
    if (this.#rows.length >= this.#rowsMax) {
      this.#complete = false;
      return;
    }
    const row: (Term | null)[] = new Array<Term | null>(this.#variables.length).fill(null);
    for (const [variable, value] of Object.entries(binding)) row[this.#column(variable)] = term(value);
    this.#rows.push(row);
  }

  #column(variable: string): number {
    let place = this.#places.get(variable);
    if (place === undefined) {
      place = this.#variables.length;
      this.#places.set(variable, place);
      this.#variables.push(variable);
    }
    return place;
  }
}

function term(json: JsonTerm): Term {
  const value = typeof json.value === 'string' ? json.value : '';
  if (json.type === 'uri') return { kind: 'iri', value };
  if (json.type === 'bnode') return { kind: 'blank', value };
  if (json.type === 'triple') {
    const { subject, predicate, object } = json.value as Record<'subject' | 'predicate' | 'object', JsonTerm>;
    return { kind: 'triple', subject: term(subject), predicate: term(predicate), object: term(object) };
  }
  const language = json['xml:lang'];
  if (language !== undefined) {
    const direction = json['its:dir'];
    return { kind: 'literal', value, language: direction === undefined ? language : `${language}--${direction}` };
  }
  if (json.datatype === undefined || json.datatype === `${XSD}string`) return { kind: 'literal', value };
  return { kind: 'literal', value, datatype: json.datatype };
}
