// Browser storage: saved queries, history, theme, the text in the editor.
//
// If storage is full, forbidden or damaged, the page works without it.

import type { LanguageId } from './language';

export interface Saved {
  readonly name: string;
  readonly text: string;
  /** Default SPARQL: early entries have no language. */
  readonly language?: LanguageId;
}

export interface Past {
  readonly text: string;
  readonly language?: LanguageId;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly note: string;
}

export type Theme = 'auto' | 'light' | 'dark';

const PAST_MAX = 100;
/** The maximum number of characters of a text in the history. */
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
    // Storage is full or forbidden: the page works without it.
  }
}

const hasText = (value: unknown): value is { text: string } =>
  typeof value === 'object' && value !== null && typeof (value as { text?: unknown }).text === 'string';
const isString = (value: unknown): value is string => typeof value === 'string';
const isLanguage = (value: unknown): value is LanguageId => value === 'sparql' || value === 'gremlin';
const draftOf = (language: LanguageId): string => (language === 'sparql' ? 'draft' : `draft.${language}`);

export const memory = {
  saved: (): Saved[] =>
    load('saved', [], (value): value is Saved[] => Array.isArray(value) && value.every((one) => hasText(one) && 'name' in one)),

  /** Replaces a query with the same name. */
  save(query: Saved): void {
    const others = memory.saved().filter(({ name }) => name !== query.name);
    store('saved', [...others, query].sort((a, b) => a.name.localeCompare(b.name)));
  },

  unsave(name: string): void {
    store('saved', memory.saved().filter((one) => one.name !== name));
  },

  past: (): Past[] => load('past', [], (value): value is Past[] => Array.isArray(value) && value.every(hasText)),

  /** Newest first; equal texts once. */
  remember(past: Past): void {
    if (past.text.length > TEXT_MAX) return;
    store('past', [past, ...memory.past().filter((one) => one.text !== past.text || languageOf(one) !== languageOf(past))].slice(0, PAST_MAX));
  },

  forgetPast: (): void => store('past', []),

  language: (): LanguageId => load('language', 'sparql', isLanguage),
  setLanguage: (language: LanguageId): void => store('language', language),

  /** The text in the editor, one per language. */
  draft: (language: LanguageId): string => load(draftOf(language), '', isString),
  setDraft: (language: LanguageId, text: string): void => store(draftOf(language), text.slice(0, TEXT_MAX)),

  /** The time limit in seconds; null for the server's limit. */
  seconds: (): number | null => load('seconds', null, (value): value is number => typeof value === 'number' && value > 0),
  setSeconds: (seconds: number | null): void => store('seconds', seconds),

  theme: (): Theme => load('theme', 'auto', (value): value is Theme => value === 'light' || value === 'dark' || value === 'auto'),
  setTheme: (theme: Theme): void => store('theme', theme),

  sideOpen: (): boolean | null => load('side', null, (value): value is boolean => typeof value === 'boolean'),
  setSideOpen: (open: boolean): void => store('side', open),

  clusterOpen: (): boolean | null => load('cluster', null, (value): value is boolean => typeof value === 'boolean'),
  setClusterOpen: (open: boolean): void => store('cluster', open),
};

export function languageOf({ language }: { readonly language?: LanguageId }): LanguageId {
  return isLanguage(language) ? language : 'sparql';
}

/** The query in a shared link, if any. */
export function sharedQuery(hash: string): { text: string; language: LanguageId } | null {
  const parameters = new URLSearchParams(hash.replace(/^#/, ''));
  const [text, language] = [parameters.get('query'), parameters.get('language')];
  return text === null ? null : { text, language: isLanguage(language) ? language : 'sparql' };
}

export function shareAddress(location: Location, text: string, language: LanguageId): string {
  const parameters = { query: text, ...(language === 'sparql' ? {} : { language }) };
  return `${location.origin}${location.pathname}#${new URLSearchParams(parameters)}`;
}
