// Parses plans of traversals: `explain()` returns a text, `profile()` returns steps with their times.
import type { Plan, Step } from '../server';
import { entriesOf, isTyped, itemsOf, parseExact, textOf } from './graphson';

/** The plan in the response to a traversal that ends in `explain()` or `profile()`. */
export function planIn(answer: string): Plan {
  const { result } = parseExact(answer) as { result?: { data?: unknown } };
  const [first] = itemsOf(result?.data);
  if (!isTyped(first)) return { text: typeof first === 'string' ? first : '', steps: [] };
  if (first['@type'] !== 'g:TraversalMetrics') return { text: textOf(first), steps: [] };
  const steps: Step[] = [];
  add(steps, membersOf(first).get('metrics'), null);
  return { text: '', steps };
}

function add(steps: Step[], metrics: unknown, parent: number | null): void {
  for (const metric of itemsOf(metrics)) {
    const members = membersOf(metric);
    const counts = new Map(entriesOf(members.get('counts')).map(([name, value]) => [String(name), Number(textOf(value))]));
    const milliseconds = Number(textOf(members.get('dur') ?? NaN));
    const [, operator = '', detail = ''] = /^([^(\s]+)\s*(.*)$/s.exec(textOf(members.get('name') ?? '')) ?? [];
    const id = steps.length;
    steps.push({
      id,
      parent,
      operator,
      detail,
      estimated_rows: null,
      rows: counts.get('elementCount') ?? counts.get('traverserCount') ?? null,
      nanoseconds: Number.isNaN(milliseconds) ? null : milliseconds * 1e6,
    });
    add(steps, members.get('metrics'), id);
  }
}

/** The members of metrics, which are a typed map. */
function membersOf(value: unknown): Map<string, unknown> {
  const inner = isTyped(value) ? value['@value'] : value;
  return new Map(entriesOf(inner).map(([name, member]) => [String(name), member] as const));
}
