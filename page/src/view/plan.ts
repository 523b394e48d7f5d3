// The view of a plan: steps as a tree, estimated beside actual rows, time as bars. Without steps: its text.
import { h } from '../dom';
import { count, duration } from '../quantities';
import type { Plan, Step } from '../server';
import { stepsIn } from './plan-text';
import { inOrder } from './plan-tree';

/** An estimate is highlighted if it is off by more than this factor. */
const OFF = 10;

export function planElement(plan: Plan, shorten: (text: string) => string): HTMLElement {
  const steps = plan.steps.length > 0 ? plan.steps : stepsIn(plan.text);
  if (steps.length === 0) return h('pre', { class: 'plan-text', tabindex: 0 }, plan.text);
  const ran = steps.some(({ rows, nanoseconds }) => rows !== null || nanoseconds !== null);
  // The time of a step includes that of the steps inside it.
  const total = steps.filter(({ parent }) => parent === null).reduce((sum, { nanoseconds }) => sum + (nanoseconds ?? 0), 0);
  const most = Math.max(1, ...steps.map(({ nanoseconds }) => nanoseconds ?? 0));
  const estimated = steps.some(({ estimated_rows }) => estimated_rows !== null);
  const head = ['Step', ...(estimated ? ['Estimated'] : []), ...(ran ? ['Actual', 'Time'] : [])];
  return h(
    'div',
    { class: 'plan' },
    h(
      'table',
      {},
      h('thead', {}, h('tr', {}, ...head.map((text, i) => h('th', { scope: 'col', class: i === 0 ? null : 'right' }, text)))),
      h('tbody', {}, ...inOrder(steps).map(({ step, depth }) => row(step, depth, { ran, estimated, total, most, shorten }))),
      ran && h('tfoot', {}, h('tr', {}, h('td', { colspan: estimated ? 3 : 2 }, 'All steps'), h('td', { class: 'right' }, duration(total)))),
    ),
    plan.text !== '' && h('details', {}, h('summary', {}, 'As text'), h('pre', { class: 'plan-text' }, plan.text)),
  );
}

interface RowOptions {
  readonly ran: boolean;
  readonly estimated: boolean;
  readonly total: number;
  readonly most: number;
  readonly shorten: (text: string) => string;
}

function row(step: Step, depth: number, { ran, estimated, total, most, shorten }: RowOptions): HTMLElement {
  const time = step.nanoseconds;
  const threads = (step.threads ?? 1) > 1 ? `${step.threads} threads` : null;
  const ratio = offBy(step);
  return h(
    'tr',
    {},
    h(
      'td',
      { class: 'step', style: `--depth:${depth}` },
      h('span', { class: 'operator' }, step.operator),
      h('span', { class: 'detail', title: step.detail }, shorten(step.detail)),
      threads && h('span', { class: 'tag' }, threads),
    ),
    estimated && h('td', { class: 'right' }, step.estimated_rows === null ? '' : count(Math.round(step.estimated_rows))),
    ran &&
      h(
        'td',
        { class: 'right' },
        step.rows === null ? '–' : count(step.rows),
        ratio !== null && h('span', { class: 'off', title: 'the estimate is off by this factor' }, ratio),
      ),
    ran &&
      h(
        'td',
        { class: 'time right' },
        time !== null && h('span', { class: 'bar', style: `--part:${time / most}`, 'aria-hidden': 'true' }),
        h('span', { title: total > 0 && time !== null ? `${Math.round((100 * time) / total)} % of the time` : null }, time === null ? '–' : duration(time)),
      ),
  );
}

function offBy({ rows, estimated_rows }: Step): string | null {
  if (rows === null || estimated_rows === null) return null;
  const [actual, estimated] = [Math.max(rows, 1), Math.max(estimated_rows, 1)];
  const ratio = Math.max(actual / estimated, estimated / actual);
  if (ratio < OFF) return null;
  return `${actual > estimated ? '↑' : '↓'} ${ratio >= 1000 ? ratio.toExponential(0).replace('e+', 'e') : Math.round(ratio)}×`;
}
