// Creates DOM elements in one expression. Text is always inserted as text, never as HTML.

type Child = Node | string | null | undefined | false;

/** Attributes by name; `class`, `data-*` and `aria-*` included. Functions are listeners (`onclick`). */
export type Attributes = Readonly<Record<string, string | number | boolean | null | undefined | ((event: never) => void)>>;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name.slice(2), value as EventListener);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children) if (child !== null && child !== undefined && child !== false) element.append(child);
  return element;
}

const ICONS = {
  play: 'M7 5l11 7-11 7z',
  stop: 'M7 7h10v10H7z',
  plan: 'M5 6h9M8 12h9M11 18h8',
  save: 'M7 4h10v16l-5-4-5 4z',
  link: 'M10 14a4 4 0 005.7 0l3-3A4 4 0 0013 5.300l-1 1M14 10a4 4 0 00-5.700 0l-3 3A4 4 0 0011 18.700l1-1',
  sun: 'M12 8a4 4 0 100 8 4 4 0 000-8zM12 3v2M12 19v2M3 12h2M19 12h2M5.600 5.600L7 7M17 17l1.400 1.400M18.400 5.600L17 7M7 17l-1.400 1.400',
  moon: 'M19 14.500A7.500 7.500 0 019.500 5a7.500 7.500 0 109.500 9.500z',
  auto: 'M12 4a8 8 0 100 16zM12 4a8 8 0 010 16',
  side: 'M4 5h16v14H4zM10 5v14',
  keys: 'M3 7h18v10H3zM7 10.500h.01M10.500 10.500h.01M14 10.500h.01M17.500 10.500h.01M8 14h8',
  list: 'M5 7h.01M9 7h10M5 12h.01M9 12h10M5 17h.01M9 17h10',
  cluster: 'M9 4h6v5H9zM3 15h6v5H3zM15 15h6v5h-6zM12 9v3M6 15v-3h12v3',
  close: 'M6 6l12 12M18 6L6 18',
  copy: 'M9 9h10v10H9zM15 9V5H5v10h4',
  remove: 'M5 7h14M10 7V5h4v2M7 7l1 12h8l1-12',
  fit: 'M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5',
  plus: 'M12 5v14M5 12h14',
  minus: 'M5 12h14',
  again: 'M19 12a7 7 0 11-2-5M19 3v5h-5',
  picture: 'M12 3v12M7 10l5 5 5-5M5 20h14',
  more: 'M6 12a2 2 0 104 0 2 2 0 10-4 0M14 6a2 2 0 104 0 2 2 0 10-4 0M14 18a2 2 0 104 0 2 2 0 10-4 0M10 11l4-4M10 13l4 4',
  left: 'M15 6l-6 6 6 6',
  right: 'M9 6l6 6-6 6',
  up: 'M6 15l6-6 6 6',
  down: 'M6 9l6 6 6-6',
} as const;

export type Icon = keyof typeof ICONS;

export function icon(name: Icon): SVGSVGElement {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('class', 'icon');
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  path.setAttribute('d', ICONS[name]);
  if (name === 'play' || name === 'stop') path.setAttribute('class', 'solid');
  svg.append(path);
  return svg;
}

interface ButtonOptions {
  readonly icon?: Icon;
  /** The action, if the text does not state it; also the tooltip. */
  readonly label?: string;
  readonly text?: string;
  readonly class?: string;
  readonly onClick: () => void;
}

export function button(options: ButtonOptions): HTMLButtonElement {
  const { label, text } = options;
  return h(
    'button',
    { type: 'button', class: options.class ?? 'quiet', title: label, 'aria-label': label, onclick: options.onClick },
    options.icon && icon(options.icon),
    text && h('span', {}, text),
  );
}

export const MAC = /Mac|iP(?:hone|ad)/.test(navigator.platform);

/** `Mod` is ⌘ or Ctrl. */
export function keys(combination: string): string {
  return MAC ? combination.replace('Mod-', '⌘').replace('Shift-', '⇧').replace('Alt-', '⌥') : combination.replace('Mod', 'Ctrl').replaceAll('-', '+');
}
