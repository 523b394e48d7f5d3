// A virtualized table: only the visible rows are elements.
//
// Rows have a fixed height, so a row's position is its number times `ROW`; a spacer of the total height gives
// the scroll bar its size. Columns fit their texts until the user drags their edge (or presses Alt and an
// arrow key on their title); a double click resets them. The grid is one tab stop; arrow keys move a cell
// cursor, Enter opens a resource.
import { h, icon } from '../dom';
import type { Namespaces } from '../namespaces';
import type { Table } from '../results/result';
import { compare, iriOf, isNumber, plain, type Term } from '../results/term';
import { count } from '../quantities';
import { iriParts, shownLength, termElement } from './term';

/** Height of a row in CSS pixels; the style sheet contains the same value. */
const ROW = 32;
/** Rows rendered above and below the visible ones. */
const MARGIN = 10;
/** Rows whose texts determine the widths of columns. */
const SAMPLE = 200;
/** The minimum width of a column, and the step of a key, in CSS pixels. */
const WIDTH_MIN = 48;
const WIDTH_STEP = 24;

export class TableView {
  readonly element: HTMLElement;
  readonly #head = h('div', { class: 'row head', role: 'row', 'aria-rowindex': 1 });
  readonly #body = h('div', { class: 'rows', role: 'presentation' });
  #table: Table = { variables: [], rows: [] };
  #namespaces: Namespaces | null = null;
  #order: Uint32Array | null = null;
  #sorted: { column: number; down: boolean } | null = null;
  #numeric: boolean[] = [];
  /** Widths by the texts, the column of row numbers first. */
  #natural: number[] = [];
  /** Widths set by the user, without the first column; null if not set. */
  #wanted: number[] | null = null;
  #drawn = new Map<number, HTMLElement>();
  #cursor = { row: 0, column: 0 };
  #frame = 0;

  constructor(onOpen: (iri: string) => void) {
    this.element = h('div', { class: 'grid', role: 'grid', tabindex: 0, 'aria-label': 'Rows of the result' }, this.#head, this.#body);
    this.element.addEventListener('scroll', () => this.#schedule(), { passive: true });
    new ResizeObserver(() => this.#schedule()).observe(this.element);
    this.element.addEventListener('keydown', (event) => this.#key(event, onOpen));
    this.#body.addEventListener('click', (event) => {
      const target = event.target as HTMLElement;
      const cell = target.closest<HTMLElement>('[role=gridcell]');
      if (cell?.dataset['row'] !== undefined) this.#moveTo(Number(cell.dataset['row']), Number(cell.dataset['column']));
      const iri = target.closest<HTMLElement>('[data-iri]')?.dataset['iri'];
      if (iri !== undefined) onOpen(iri);
    });
  }

  show(table: Table, namespaces: Namespaces): void {
    this.#table = table;
    this.#namespaces = namespaces;
    this.#order = null;
    this.#sorted = null;
    this.#cursor = { row: 0, column: 0 };
    const sample = table.rows.slice(0, SAMPLE);
    this.#numeric = table.variables.map((_, i) => {
      const bound = sample.map((row) => row[i] ?? null).filter((term) => term !== null);
      return bound.length > 0 && bound.every(isNumber);
    });
    const digits = count(table.rows.length).length;
    const widths = table.variables.map((name, i) => {
      const longest = sample.reduce((most, row) => {
        const term = row[i];
        return term ? Math.max(most, shownLength(term, namespaces)) : most;
      }, this.#title(name).length + 3);
      return Math.min(460, Math.max(90, Math.round(longest * 7.3 + 34)));
    });
    const first = Math.max(44, digits * 8 + 20);
    this.#natural = [first, ...widths];
    this.#wanted = null;
    this.#setWidths();
    this.element.setAttribute('aria-rowcount', String(table.rows.length + 1));
    this.element.setAttribute('aria-colcount', String(table.variables.length));
    this.#body.style.height = `${table.rows.length * ROW}px`;
    this.element.scrollTo(0, 0);
    this.#drawHead();
    this.#redraw();
  }

  #setWidths(): void {
    const [first = 0, ...natural] = this.#natural;
    const widths = this.#wanted ?? natural;
    // The last column takes the remaining width, so that rows extend to the edge.
    const columns = widths.map((width, i) => (this.#wanted === null ? `minmax(${width}px, ${width}fr)` : i + 1 < widths.length ? `${width}px` : `minmax(${width}px, 1fr)`));
    this.element.style.setProperty('--columns', [`${first}px`, ...columns].join(' '));
    this.element.style.setProperty('--width', `${first + widths.reduce((sum, width) => sum + width, 0)}px`);
  }

  #widen(column: number, width: number, from: readonly number[]): void {
    this.#wanted = from.map((before, i) => (i === column ? Math.max(WIDTH_MIN, Math.round(width)) : before));
    this.#setWidths();
  }

  /** The current widths on the screen. */
  #measured(): number[] {
    return [...this.#head.querySelectorAll('[role=columnheader]')].map((cell) => cell.getBoundingClientRect().width);
  }

  /** The draggable edge of a column. */
  #handle(column: number): HTMLElement {
    const handle = h('span', { class: 'handle', 'aria-hidden': 'true', ondblclick: () => ((this.#wanted = null), this.#setWidths()) });
    handle.addEventListener('pointerdown', (event) => {
      event.preventDefault();
      const [start, from] = [event.clientX, this.#measured()];
      handle.setPointerCapture(event.pointerId);
      const move = (now: PointerEvent): void => this.#widen(column, (from[column] ?? 0) + now.clientX - start, from);
      handle.addEventListener('pointermove', move);
      handle.addEventListener('lostpointercapture', () => handle.removeEventListener('pointermove', move), { once: true });
    });
    return handle;
  }

  #drawHead(): void {
    const cells = this.#table.variables.map((name, column) => {
      const sorted = this.#sorted?.column === column ? (this.#sorted.down ? 'descending' : 'ascending') : 'none';
      return h(
        'div',
        { role: 'columnheader', 'aria-sort': sorted, class: this.#numeric[column] ? 'cell right' : 'cell' },
        h(
          'button',
          { type: 'button', class: 'sort', title: `sort by ${name}`, onclick: () => this.#sort(column), onkeydown: (event: KeyboardEvent) => this.#headKey(event, column) },
          this.#title(name),
          sorted !== 'none' && icon(sorted === 'ascending' ? 'up' : 'down'),
        ),
        this.#handle(column),
      );
    });
    this.#head.replaceChildren(h('div', { class: 'cell number', 'aria-hidden': 'true' }), ...cells);
  }

  /** Gremlin keys may be IRIs. */
  #title(name: string): string {
    if (this.#namespaces === null || !/:\/\/|^urn:/.test(name)) return name;
    const { head, local } = iriParts(name, this.#namespaces);
    return head + local;
  }

  #headKey(event: KeyboardEvent, column: number): void {
    const step = event.key === 'ArrowRight' ? WIDTH_STEP : event.key === 'ArrowLeft' ? -WIDTH_STEP : 0;
    if (step === 0 || !event.altKey) return;
    event.preventDefault();
    const from = this.#measured();
    this.#widen(column, (from[column] ?? 0) + step, from);
  }

  /** Cycles through ascending, descending and original order. */
  #sort(column: number): void {
    const before = this.#sorted?.column === column ? this.#sorted : null;
    this.#sorted = before === null ? { column, down: false } : before.down ? null : { column, down: true };
    const { rows } = this.#table;
    this.#order = null;
    if (this.#sorted !== null) {
      const sign = this.#sorted.down ? -1 : 1;
      const order = Uint32Array.from(rows, (_, i) => i);
      this.#order = order.sort((a, b) => sign * compare(rows[a]?.[column] ?? null, rows[b]?.[column] ?? null) || a - b);
    }
    this.#drawHead();
    this.#head.querySelectorAll('button')[column]?.focus();
    this.#redraw();
  }

  #redraw(): void {
    this.#drawn.clear();
    this.#body.replaceChildren();
    this.#draw();
  }

  #schedule(): void {
    if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#draw());
  }

  #draw(): void {
    this.#frame = 0;
    const from = Math.max(0, Math.floor(this.element.scrollTop / ROW) - MARGIN);
    const to = Math.min(this.#table.rows.length, Math.ceil((this.element.scrollTop + this.element.clientHeight) / ROW) + MARGIN);
    for (const [index, element] of this.#drawn) {
      if (index >= from && index < to) continue;
      element.remove();
      this.#drawn.delete(index);
    }
    for (let index = from; index < to; index += 1) {
      if (this.#drawn.has(index)) continue;
      const element = this.#row(index);
      this.#drawn.set(index, element);
      this.#body.append(element);
    }
    this.#showCursor();
  }

  #row(index: number): HTMLElement {
    const row = this.#table.rows[this.#order?.[index] ?? index] ?? [];
    const cells = this.#table.variables.map((_, column) => this.#cell(row[column] ?? null, index, column));
    return h(
      'div',
      { class: index % 2 === 0 ? 'row' : 'row odd', role: 'row', 'aria-rowindex': index + 2, style: `top:${index * ROW}px` },
      h('div', { class: 'cell number', 'aria-hidden': 'true' }, count(index + 1)),
      ...cells,
    );
  }

  #cell(term: Term | null, row: number, column: number): HTMLElement {
    const id = `cell-${row}-${column}`;
    const shown = term === null || this.#namespaces === null ? null : termElement(term, this.#namespaces);
    const kind = this.#numeric[column] ? 'cell right' : 'cell';
    return h('div', { role: 'gridcell', id, class: kind, 'data-row': row, 'data-column': column, 'aria-colindex': column + 1 }, shown);
  }

  #key(event: KeyboardEvent, onOpen: (iri: string) => void): void {
    if (event.target !== this.element) return;
    const { row, column } = this.#cursor;
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW) - 2);
    const last = this.#table.rows.length - 1;
    const term = this.#table.rows[this.#order?.[row] ?? row]?.[column];
    if ((event.metaKey || event.ctrlKey) && event.key === 'c') {
      if (window.getSelection()?.isCollapsed !== false && term) void navigator.clipboard?.writeText(plain(term));
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moves: Record<string, [number, number]> = {
      ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
      PageUp: [row - page, column], PageDown: [row + page, column], Home: [0, column], End: [last, column],
    };
    const move = moves[event.key];
    if (move !== undefined) {
      event.preventDefault();
      this.#moveTo(...move);
      this.#reveal();
    } else if (event.key === 'Enter') {
      // The first item of the cell that can be opened.
      const iri = term && (iriOf(term) ?? this.#drawn.get(row)?.querySelector<HTMLElement>(`#cell-${row}-${column} [data-iri]`)?.dataset['iri']);
      if (!iri) return;
      event.preventDefault();
      onOpen(iri);
    }
  }

  #moveTo(row: number, column: number): void {
    const clamp = (value: number, end: number): number => Math.max(0, Math.min(value, end - 1));
    this.#cursor = { row: clamp(row, this.#table.rows.length), column: clamp(column, this.#table.variables.length) };
    this.#showCursor();
  }

  #reveal(): void {
    const top = this.#cursor.row * ROW;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + 2 * ROW > scrollTop + clientHeight) this.element.scrollTop = top + 2 * ROW - clientHeight;
    this.#draw();
    this.element.querySelector('.cursor')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }

  #showCursor(): void {
    const id = `cell-${this.#cursor.row}-${this.#cursor.column}`;
    for (const old of this.#body.querySelectorAll('.cursor')) old.classList.remove('cursor');
    const cell = this.#drawn.get(this.#cursor.row)?.querySelector(`#${id}`);
    cell?.classList.add('cursor');
    if (cell) this.element.setAttribute('aria-activedescendant', id);
    else this.element.removeAttribute('aria-activedescendant');
  }
}
