// A choice among a few visible options: radio buttons in one row. One tab stop; arrow keys choose.
import { h } from '../dom';

export interface Choice {
  readonly id: string;
  readonly title: string;
}

export interface Switch {
  readonly element: HTMLElement;
  /** Shows the chosen option, without a notification. */
  show(id: string): void;
}

/** `hint`: an addition to the label in the tooltip. */
export function choiceOf(label: string, hint: string, choices: readonly Choice[], onChoose: (id: string) => void): Switch {
  let chosen = choices[0]?.id ?? '';
  const buttons = choices.map(({ id, title }) => h('button', { type: 'button', role: 'radio', onclick: () => onChoose(id) }, title));
  const element = h('div', { class: 'switch', role: 'radiogroup', 'aria-label': label, title: hint }, ...buttons);
  element.addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const at = choices.findIndex(({ id }) => id === chosen);
    const next = (at + step + choices.length) % choices.length;
    onChoose(choices[next]?.id ?? chosen);
    buttons[next]?.focus();
  });
  const show = (id: string): void => {
    chosen = id;
    choices.forEach((choice, i) => {
      buttons[i]?.setAttribute('aria-checked', String(choice.id === id));
      buttons[i]?.setAttribute('tabindex', choice.id === id ? '0' : '-1');
    });
  };
  show(chosen);
  return { element, show };
}
