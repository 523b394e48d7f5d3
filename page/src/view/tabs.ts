// ARIA tabs: one tab stop, arrow keys choose.
import { h } from '../dom';

export interface Tab {
  readonly id: string;
  readonly title: string;
  readonly panel: HTMLElement;
}

export interface Tabs {
  readonly list: HTMLElement;
  readonly panels: readonly HTMLElement[];
  chosen(): string;
  choose(id: string): void;
}

export function tabs(label: string, all: readonly Tab[], onChoose: (id: string) => void = () => undefined): Tabs {
  let chosen = all[0]?.id ?? '';
  const buttons = all.map(({ id, title }) =>
    h('button', { type: 'button', role: 'tab', id: `tab-${id}`, 'aria-controls': id, onclick: () => choose(id, true) }, title),
  );
  const panels = all.map(({ id, panel }) => h('div', { role: 'tabpanel', id, class: 'panel', 'aria-labelledby': `tab-${id}` }, panel));
  const list = h('div', { role: 'tablist', 'aria-label': label }, ...buttons);
  const choose = (id: string, byHand: boolean): void => {
    chosen = id;
    all.forEach((tab, i) => {
      const on = tab.id === id;
      buttons[i]?.setAttribute('aria-selected', String(on));
      buttons[i]?.setAttribute('tabindex', on ? '0' : '-1');
      panels[i]?.toggleAttribute('hidden', !on);
    });
    if (byHand) onChoose(id);
  };
  list.addEventListener('keydown', (event) => {
    const at = all.findIndex(({ id }) => id === chosen);
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    const next = (at + step + all.length) % all.length;
    if (step === 0) return;
    event.preventDefault();
    buttons[next]?.focus();
    choose(all[next]?.id ?? chosen, true);
  });
  choose(chosen, false);
  return { list, panels, chosen: () => chosen, choose: (id) => choose(id, false) };
}
