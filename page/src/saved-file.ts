// Export and import of saved queries: JSON, `{"vervet": "queries", "queries": [{name, text, language}]}`.
import { languageOf, type Saved } from './memory';

/** The maximum number of queries in a file. */
const QUERIES_MAX = 1000;
/** The maximum number of characters of a name, as in the dialog. */
const NAME_MAX = 80;

export function writeQueries(queries: readonly Saved[]): string {
  const plain = queries.map((query) => ({ name: query.name, language: languageOf(query), text: query.text }));
  return `${JSON.stringify({ vervet: 'queries', queries: plain }, null, 2)}\n`;
}

/** The queries in a file. Throws an error with a displayable reason if the file is invalid. */
export function readQueries(text: string): Saved[] {
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch {
    throw new Error('this file has no saved queries: it is not JSON');
  }
  const queries = typeof file === 'object' && file !== null ? (file as { queries?: unknown }).queries : undefined;
  if (!Array.isArray(queries)) throw new Error('this file has no saved queries: "queries" is not a list');
  if (queries.length > QUERIES_MAX) throw new Error(`this file has ${queries.length} queries, more than ${QUERIES_MAX}`);
  return queries.map((query: unknown, i): Saved => {
    const { name, text: body, language } = (typeof query === 'object' && query !== null ? query : {}) as Record<string, unknown>;
    if (typeof name !== 'string' || name.trim() === '' || typeof body !== 'string') throw new Error(`query ${i + 1} of this file lacks a name or a text`);
    if (language !== undefined && language !== 'sparql' && language !== 'gremlin') throw new Error(`query ${i + 1} of this file is in a language that this page does not know`);
    return { name: name.trim().slice(0, NAME_MAX), text: body, language: language ?? 'sparql' };
  });
}
