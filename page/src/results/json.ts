// Reads SPARQL results in JSON as they arrive.
//
// The text before the first binding is kept until `"bindings": [` ends it. Behind that a scan finds where
// objects end (depth of brackets, strings skipped), and each piece's complete objects are parsed in one call.
import { XSD } from '../namespaces';
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
  #inRows = false;
  #complete = true;
  /** Text since the end of the last complete object, and where the scan is in it. */
  #text = '';
  #at = 0;
  #depth = 0;
  #inString = false;
  #ended = false;

  constructor(rowsMax: number = ROWS_MAX) {
    this.#rowsMax = rowsMax;
  }

  get count(): number {
    return this.#rows.length;
  }

  push(text: string): boolean {
    if (this.#ended) return true;
    if (this.#inRows) {
      this.#text += text;
    } else {
      this.#head += text;
      const start = /"bindings"\s*:\s*\[/.exec(this.#head);
      if (start === null) return true;
      this.#inRows = true;
      this.#text = this.#head.slice(start.index + start[0].length);
      this.#head = this.#head.slice(0, start.index);
      const variables = /"vars"\s*:\s*(\[[^\]]*\])/.exec(this.#head)?.[1] ?? '[]';
      for (const variable of JSON.parse(variables) as string[]) this.#column(variable);
    }
    this.#scan();
    return this.#complete;
  }

  finish(): { content: Content; complete: boolean } {
    if (this.#inRows) {
      if (this.#complete && !this.#ended) throw new Error('the answer ends in the middle');
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

  #scan(): void {
    const text = this.#text;
    let end = 0;
    for (let i = this.#at; i < text.length; i += 1) {
      const code = text.charCodeAt(i);
      if (this.#inString) {
        if (code === 92) i += 1;
        else if (code === 34) this.#inString = false;
      } else if (code === 34) this.#inString = true;
      else if (code === 123) this.#depth += 1;
      else if (code === 125) {
        this.#depth -= 1;
        if (this.#depth === 0) end = i + 1;
      } else if (code === 93 && this.#depth === 0) {
        this.#ended = true;
        break;
      }
      // After an escape that the piece's end cuts in two this is past the end: the next piece is read from there.
      this.#at = i + 1;
    }
    if (end > 0) {
      const objects = text.slice(0, end).replace(/^[\s,]+/, '');
      for (const binding of JSON.parse(`[${objects}]`) as Record<string, JsonTerm>[]) this.#row(binding);
      this.#text = text.slice(end);
      this.#at -= end;
    }
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
