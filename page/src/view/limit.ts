// The time limit of queries: the server's, or a shorter one.
import { h } from '../dom';

const CHOICES = [1, 5, 20, 60, 300, 1800];

export interface TimeLimit {
  readonly element: HTMLElement;
  /** In seconds; null for the server's limit. */
  seconds(): number | null;
  /** Sets the server's limit, in seconds, once it is known. */
  allow(most: number): void;
}

export function timeLimit(remembered: number | null, onChange: (seconds: number | null) => void): TimeLimit {
  const select = h('select', {
    class: 'limit',
    'aria-label': 'Time limit',
    title: 'Maximum time of a query',
    onchange: () => onChange(seconds()),
  });
  const seconds = (): number | null => (select.value === '' ? null : Number(select.value));
  const fill = (most: number | null, chosen: number | null): void => {
    const shorter = CHOICES.filter((choice) => most === null || choice < most);
    select.replaceChildren(
      h('option', { value: '' }, most === null ? 'No limit' : `≤ ${span(most)}`),
      ...shorter.map((choice) => h('option', { value: choice }, `≤ ${span(choice)}`)),
    );
    select.value = chosen !== null && shorter.includes(chosen) ? String(chosen) : '';
  };
  fill(null, remembered);
  return { element: select, seconds, allow: (most) => fill(most, seconds() ?? remembered) };
}

function span(seconds: number): string {
  return seconds < 120 ? `${seconds} s` : seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}
