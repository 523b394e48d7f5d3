// Incremental reader of traversal results, which become a table.
//
// Maps become columns if the traversal ends in a step with one map per result, and rows of key and value if
// it ends in a step with one map of all. Elements, paths and single values are one column.
import { ArrayScan } from '../results/array';
import { ROWS_MAX, type Content, type Reader, type Table } from '../results/result';
import { entriesOf, isTyped, itemsOf, parseExact, termOf, textOf } from './graphson';
import type { Term } from '../results/term';

/** How maps become rows. `single`: lists of one value, as in `valueMap`, become that value. */
export interface Shape {
  readonly maps: 'columns' | 'entries';
  readonly single: boolean;
}

/** The maximum number of columns of a table of maps; beyond it, the maps are shown in a single column. */
const COLUMNS_MAX = 200;
/** The text before the results. */
const START = /"data"\s*:\s*(?:\{\s*"@type"\s*:\s*"g:List"\s*,\s*"@value"\s*:\s*)?\[/;

export class ValuesReader implements Reader {
  readonly #shape: Shape;
  readonly #rowsMax: number;
  #head = '';
  #scan: ArrayScan | null = null;
  #values: unknown[] = [];
  #complete = true;

  constructor(shape: Shape, rowsMax: number = ROWS_MAX) {
    this.#shape = shape;
    this.#rowsMax = rowsMax;
  }

  get count(): number {
    return this.#values.length;
  }

  push(text: string): boolean {
    if (this.#scan !== null) return this.#take(text, this.#scan);
    this.#head += text;
    const start = START.exec(this.#head);
    if (start === null) return true;
    const rest = this.#head.slice(start.index + start[0].length);
    this.#head = '';
    this.#scan = new ArrayScan((json) => parseExact(json) as unknown[]);
    return this.#take(rest, this.#scan);
  }

  finish(): { content: Content; complete: boolean } {
    if (this.#scan === null) checkEmpty(this.#head);
    else if (this.#complete && !this.#scan.ended) throw new Error('the answer ends in the middle');
    return { content: { kind: 'values', table: tableOf(this.#values, this.#shape) }, complete: this.#complete };
  }

  #take(text: string, scan: ArrayScan): boolean {
    for (const value of scan.push(text)) for (const one of spread(value)) {
      if (this.#values.length >= this.#rowsMax) {
        this.#complete = false;
        return false;
      }
      this.#values.push(one);
    }
    return true;
  }
}

/** A result may stand for several: a traverser with a bulk, a graph with many elements. */
function* spread(value: unknown): Iterable<unknown> {
  if (!isTyped(value)) return yield value;
  const inner = value['@value'] as Record<string, unknown>;
  if (value['@type'] === 'tinker:graph') {
    yield* itemsOf(inner['vertices']);
    yield* itemsOf(inner['edges']);
  } else if (value['@type'] === 'g:Traverser') {
    const times = Number(textOf(inner['bulk']));
    for (let i = 0; i < times; i += 1) yield inner['value'];
  } else yield value;
}

/** Checks that a response without a list reports success without results. */
function checkEmpty(text: string): void {
  if (text.trim() === '') return;
  const answer = JSON.parse(text) as { result?: { data?: unknown }; status?: { code?: unknown; message?: unknown } };
  if (Number(answer.status?.code) >= 400) throw new Error(textOf(answer.status?.message) || 'the server gave no reason');
  if (answer.result?.data !== null) throw new Error('the answer is not the result of a traversal');
}

export function tableOf(values: readonly unknown[], shape: Shape): Table {
  const typesSeen = new Set(values.map(typeOf));
  const only = (...types: string[]): boolean => typesSeen.size > 0 && [...typesSeen].every((type) => types.includes(type));
  if (only('g:Map')) {
    if (shape.maps === 'entries') {
      return { variables: ['key', 'value'], rows: values.flatMap((map) => entriesOf(map).map(([key, value]) => [termOf(key), termOf(value)])) };
    }
    const table = columnsOf(values, shape.single);
    if (table !== null) return table;
  }
  if (only('g:VertexProperty', 'g:Property')) {
    const rows = values.map((value) => {
      const inner = (value as { '@value': Record<string, unknown> })['@value'];
      return [termOf(inner['label'] ?? inner['key']), termOf(inner['value'])];
    });
    return { variables: ['key', 'value'], rows };
  }
  const name = only('g:Vertex') ? 'vertex' : only('g:Edge') ? 'edge' : only('g:Path') ? 'path' : only('g:Vertex', 'g:Edge') ? 'element' : 'value';
  return { variables: [name], rows: values.map((value) => [termOf(value)]) };
}

function typeOf(value: unknown): string {
  if (isTyped(value)) return value['@type'];
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? 'g:Map' : typeof value;
}

/** A column for each key, in order of first occurrence; null if there are too many. */
function columnsOf(maps: readonly unknown[], single: boolean): Table | null {
  const places = new Map<string, number>();
  const variables: string[] = [];
  const rows: (Term | null)[][] = [];
  for (const map of maps) {
    const row: (Term | null)[] = [];
    for (const [key, value] of entriesOf(map)) {
      // The token `T.id` and a property `id` are different keys.
      const name = isTyped(key) ? `${key['@type']} ${textOf(key)}` : `${typeof key} ${textOf(key)}`;
      let place = places.get(name);
      if (place === undefined) {
        place = variables.length;
        if (place >= COLUMNS_MAX) return null;
        places.set(name, place);
        variables.push(titleOf(key));
      }
      const items = single && isTyped(value) && value['@type'] === 'g:List' ? itemsOf(value) : [];
      row[place] = termOf(items.length === 1 ? unwrapped(items[0]) : value);
    }
    rows.push(row);
  }
  for (const row of rows) for (let i = 0; i < variables.length; i += 1) row[i] ??= null;
  return { variables, rows };
}

/** The value of a property: `propertyMap` has properties where `valueMap` has values. */
function unwrapped(value: unknown): unknown {
  if (!isTyped(value) || (value['@type'] !== 'g:VertexProperty' && value['@type'] !== 'g:Property')) return value;
  return (value['@value'] as Record<string, unknown>)['value'];
}

function titleOf(key: unknown): string {
  if (!isTyped(key)) return String(key);
  const inner = key['@value'];
  if (key['@type'] === 'g:Vertex' && typeof inner === 'object' && inner !== null) return `v[${textOf((inner as { id?: unknown }).id)}]`;
  return textOf(key);
}
