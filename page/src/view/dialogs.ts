// Modal dialogs: sign-in, the name of a saved query, keyboard shortcuts.
import { h, keys } from '../dom';

/** Prompts for a user and password or a token. Returns an `Authorization` header, or null if closed. */
export function askForCredentials(again: boolean): Promise<string | null> {
  const user = h('input', { name: 'user', autocomplete: 'username', spellcheck: 'false' });
  const password = h('input', { name: 'password', type: 'password', autocomplete: 'current-password' });
  const token = h('input', { name: 'token', type: 'password', autocomplete: 'off', spellcheck: 'false' });
  const form = [
    again
      ? h('p', { class: 'bad', role: 'alert' }, 'The server rejected these credentials.')
      : h('p', { class: 'faint' }, 'This server requires authentication. The credentials are kept until this tab is closed.'),
    h('label', {}, 'User', user),
    h('label', {}, 'Password', password),
    h('p', { class: 'or' }, 'or'),
    h('label', {}, 'Token', token),
  ];
  return ask('Sign in', 'Sign in', form, () => {
    if (token.value.trim() !== '') return `Bearer ${token.value.trim()}`;
    const bytes = new TextEncoder().encode(`${user.value}:${password.value}`);
    return `Basic ${btoa(String.fromCharCode(...bytes))}`;
  });
}

export function askForName(suggestion: string): Promise<string | null> {
  const name = h('input', { name: 'name', value: suggestion, required: true, maxlength: 80 });
  return ask('Save this query', 'Save', [h('label', {}, 'Name', name)], () => name.value.trim() || null);
}

export function showKeys(): void {
  const rows: [string, string][] = [
    ['Mod-Enter', 'run the query'],
    ['Escape', 'cancel it'],
    ['Mod-Shift-Enter', 'show its plan without running it'],
    ['Ctrl-Space', 'show completions, as typing does'],
    ['Tab', 'accept the completion; otherwise, move on'],
    ['Mod-/', 'comment out a line'],
    ['Mod-S', 'save the query in this browser'],
    ['Alt-1 … Alt-4', 'table, picture, text, plan'],
    ['Alt-L', 'switch the language'],
    ['Alt-E', 'go to the editor'],
    ['↑ ↓ ← →, Enter', 'in the table: move, open a resource'],
    ['Alt-←, Alt-→', 'on a column header: change its width'],
    ['+ − 0, arrows', 'in the picture: zoom, fit, move'],
  ];
  const list = h('table', { class: 'keys' }, ...rows.map(([key, does]) => h('tr', {}, h('th', { scope: 'row' }, h('kbd', {}, keys(key))), h('td', {}, does))));
  const parts = h('p', { class: 'parts' }, h('a', { href: 'licenses.txt', target: '_blank', rel: 'noreferrer' }, 'Licences of the libraries in this page'));
  void ask('Keys', null, [list, parts], () => null);
}

function ask<T>(title: string, action: string | null, content: readonly HTMLElement[], answer: () => T | null): Promise<T | null> {
  return new Promise((resolve) => {
    const before = document.activeElement;
    let result: T | null = null;
    const dialog = h(
      'dialog',
      { 'aria-label': title },
      h(
        'form',
        {
          method: 'dialog',
          onsubmit: () => {
            result = answer();
          },
        },
        h('h2', {}, title),
        ...content,
        h(
          'p',
          { class: 'actions' },
          h('button', { type: 'button', class: 'plain', onclick: () => dialog.close() }, action === null ? 'Close' : 'Not now'),
          action !== null && h('button', { type: 'submit', class: 'primary' }, action),
        ),
      ),
    );
    dialog.addEventListener('close', () => {
      dialog.remove();
      if (before instanceof HTMLElement) before.focus();
      resolve(result);
    });
    document.body.append(dialog);
    dialog.showModal();
    dialog.querySelector('input')?.select();
  });
}
