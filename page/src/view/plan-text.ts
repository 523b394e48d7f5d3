// Parses the steps of a plan from its text, for servers without structured steps:
// `├─ expand  …   461  8,354  190.2 µs`.
//
// The header names the columns, whose cells end where their names end. A text with a line that does not match
// has no steps: it is shown as it is.
import type { Step } from '../server';

const HEADER = /^plan\b.*? {2,}(est\. rows)(?: +(rows) +(time))?(?: +(threads))?$/;
const LINE = /^((?:│ {2}| {3})*)[├└]─ (.*)$/;
const UNITS: Readonly<Record<string, number>> = { ns: 1, µs: 1e3, ms: 1e6, s: 1e9 };

export function stepsIn(text: string): Step[] {
  const [head = '', ...lines] = text.trimEnd().split('\n');
  const header = HEADER.exec(head);
  if (header === null) return [];
  const names = ['est. rows', 'rows', 'time', 'threads'] as const;
  const present = names.filter((_, i) => header[i + 1] !== undefined);
  const ends = columnEnds(head, present);
  const steps: Step[] = [];
  const open: number[] = [];
  for (const [id, line] of lines.entries()) {
    const points = [...line];
    const left = LINE.exec(points.slice(0, ends[0]).join(''));
    if (left === null) return [];
    const depth = (left[1] ?? '').length / 3;
    if (depth > open.length) return [];
    open.length = depth;
    const cells = new Map(present.slice(1).map((name, i) => [name, points.slice(ends[i], ends[i + 1]).join('').trim()]));
    const step = stepOf(left[2] ?? '', cells);
    if (step === null) return [];
    steps.push({ id, parent: open.at(-1) ?? null, ...step });
    open.push(id);
  }
  return steps;
}

/** Offsets in characters. */
function columnEnds(head: string, names: readonly string[]): number[] {
  let from = head.lastIndexOf('est. rows');
  return names.map((name) => {
    from = head.indexOf(name, from) + name.length;
    return [...head.slice(0, from)].length;
  });
}

function stepOf(left: string, cells: ReadonlyMap<string, string>): Omit<Step, 'id' | 'parent'> | null {
  // A branch has no numbers.
  const whole = /^(.*?)(?: {2,}([\d,.]+(?:e\d+)?))?$/.exec(left.trimEnd());
  const [, what = '', estimate] = whole ?? [];
  const [, operator = what, detail = ''] = /^(\S+) {2,}(.*)$/.exec(what) ?? /^(hash (?:\w+ )?(?:join|minus)|\S+) (.*)$/.exec(what) ?? [];
  const [rows, time, threads] = ['rows', 'time', 'threads'].map((name) => cells.get(name) || null);
  const numbers = [estimate, rows, threads].map((cell) => (cell ? Number(cell.replaceAll(',', '')) : null));
  const nanoseconds = time ? duration(time) : null;
  if (numbers.some(Number.isNaN) || Number.isNaN(nanoseconds)) return null;
  const [estimated_rows = null, actual = null, many = null] = numbers;
  return { operator, detail: detail.trim(), estimated_rows, rows: actual, nanoseconds, threads: many };
}

function duration(text: string): number {
  const [, value, unit] = /^([\d.,]+) (ns|µs|ms|s)$/.exec(text) ?? [];
  return Number(value?.replaceAll(',', '')) * (UNITS[unit ?? ''] ?? NaN);
}
