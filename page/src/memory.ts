// What the page remembers in this browser: saved queries, history, theme, the text in the editor.
//
// Storage may be full, forbidden or damaged; then the page forgets instead of failing.

export interface Saved {
  readonly name: string;
  readonly text: string;
}

export interface Past {
  readonly text: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly note: string;
}

export type Theme = 'auto' | 'light' | 'dark';

const PAST_MAX = 100;
/** Characters of a text that goes into the history. */
const TEXT_MAX = 20_000;

function load<T>(key: string, fallback: T, valid: (value: unknown) => value is T): T {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(`vervet.${key}`) ?? 'null');
    return valid(value) ? value : fallback;
  } catch {
    return fallback;
  }
}

function store(key: string, value: unknown): void {
  try {
    localStorage.setItem(`vervet.${key}`, JSON.stringify(value));
  } catch {
    // Full or forbidden: the page works without.
  }
}

const hasText = (value: unknown): value is { text: string } =>
  typeof value === 'object' && value !== null && typeof (value as { text?: unknown }).text === 'string';
const isString = (value: unknown): value is string => typeof value === 'string';

export const memory = {
  saved: (): Saved[] =>
    load('saved', [], (value): value is Saved[] => Array.isArray(value) && value.every((one) => hasText(one) && 'name' in one)),

  /** Replaces a query of the same name. */
  save(query: Saved): void {
    const others = memory.saved().filter(({ name }) => name !== query.name);
    store('saved', [...others, query].sort((a, b) => a.name.localeCompare(b.name)));
  },

  unsave(name: string): void {
    store('saved', memory.saved().filter((one) => one.name !== name));
  },

  past: (): Past[] => load('past', [], (value): value is Past[] => Array.isArray(value) && value.every(hasText)),

  /** Newest first; the same text once. */
  remember(past: Past): void {
    if (past.text.length > TEXT_MAX) return;
    store('past', [past, ...memory.past().filter(({ text }) => text !== past.text)].slice(0, PAST_MAX));
  },

  forgetPast: (): void => store('past', []),

  draft: (): string => load('draft', '', isString),
  setDraft: (text: string): void => store('draft', text.slice(0, TEXT_MAX)),

  theme: (): Theme => load('theme', 'auto', (value): value is Theme => value === 'light' || value === 'dark' || value === 'auto'),
  setTheme: (theme: Theme): void => store('theme', theme),

  sideOpen: (): boolean | null => load('side', null, (value): value is boolean => typeof value === 'boolean'),
  setSideOpen: (open: boolean): void => store('side', open),
};

/** The query in an address, if it has one. */
export function sharedQuery(hash: string): string | null {
  return new URLSearchParams(hash.replace(/^#/, '')).get('query');
}

export function shareAddress(location: Location, text: string): string {
  return `${location.origin}${location.pathname}#${new URLSearchParams({ query: text })}`;
}
