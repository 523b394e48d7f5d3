// The dialog of running requests, with a button to stop each. Refreshes every second while it is open.
import { button, h } from '../dom';
import { counted, duration } from '../quantities';
import type { Running } from '../server';

const READ_EVERY_MS = 1000;

interface Source {
  readonly list: () => Promise<readonly Running[]>;
  readonly stop: (id: number) => Promise<void>;
}

export function showRunning(source: Source): void {
  const before = document.activeElement;
  const list = h('div', { class: 'running', 'aria-live': 'polite' });
  const dialog = h(
    'dialog',
    { 'aria-label': 'Running requests' },
    h('form', { method: 'dialog' }, h('h2', {}, 'Running requests'), list, h('p', { class: 'actions' }, h('button', { type: 'submit', class: 'plain' }, 'Close'))),
  );
  const read = async (): Promise<void> => {
    try {
      show(list, await source.list(), (id) => void source.stop(id).then(read, read));
    } catch (error) {
      list.replaceChildren(h('p', { class: 'bad', role: 'alert' }, error instanceof Error ? error.message : 'no answer from the server'));
    }
  };
  const timer = setInterval(() => void read(), READ_EVERY_MS);
  dialog.addEventListener('close', () => {
    clearInterval(timer);
    dialog.remove();
    if (before instanceof HTMLElement) before.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  void read();
}

function show(list: HTMLElement, running: readonly Running[], stop: (id: number) => void): void {
  // A focused button is not replaced while the user operates it: its row stays in place by its number.
  const focused = document.activeElement instanceof HTMLElement ? document.activeElement.dataset['id'] : undefined;
  const rows = running.map((request) => row(request, stop));
  list.replaceChildren(...(rows.length > 0 ? rows : [h('p', { class: 'faint' }, 'There are no running requests that you may see. Short requests are not listed.')]));
  if (focused !== undefined) list.querySelector<HTMLElement>(`[data-id="${CSS.escape(focused)}"]`)?.focus();
}

function row(request: Running, stop: (id: number) => void): HTMLElement {
  const facts = [request.kind, request.user, duration(request.seconds * 1e9), counted(request.rows, 'row'), request.heavy && 'heavy'].filter(Boolean);
  const end = button({ icon: 'stop', text: request.stopped ? 'Stopping' : 'Stop', label: `Stop request ${request.id}`, onClick: () => stop(request.id) });
  end.dataset['id'] = String(request.id);
  end.disabled = request.stopped;
  return h('div', { class: 'request' }, h('div', {}, h('p', { class: 'faint' }, facts.join(' · ')), h('pre', {}, request.text)), end);
}
