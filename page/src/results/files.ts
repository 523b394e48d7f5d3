// Tables and graphs as files: CSV, TSV and JSON as the SPARQL 1.1 results formats define them, N-Triples.
import type { Table } from './result';
import { plain, write, type Term, type Triple } from './term';

export function csv({ variables, rows }: Table): string {
  const lines = [variables, ...rows.map((row) => row.map((term) => (term === null ? '' : plain(term))))];
  return lines.map((line) => `${line.map(quoted).join(',')}\r\n`).join('');
}

export function tsv({ variables, rows }: Table): string {
  const head = variables.map((name) => `?${name}`).join('\t');
  return [head, ...rows.map((row) => row.map((term) => (term === null ? '' : write(term))).join('\t'))]
    .map((line) => `${line}\n`)
    .join('');
}

export function json({ variables, rows }: Table): string {
  const bindings = rows.map((row) =>
    Object.fromEntries(row.flatMap((term, i) => (term === null ? [] : [[variables[i] ?? '', jsonTerm(term)]]))),
  );
  return `${JSON.stringify({ head: { vars: variables }, results: { bindings } })}\n`;
}

export function ntriples(triples: readonly Triple[]): string {
  return triples.map(({ subject, predicate, object }) => `${write(subject)} ${write(predicate)} ${write(object)} .\n`).join('');
}

function quoted(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function jsonTerm(term: Term): unknown {
  switch (term.kind) {
    case 'iri':
      return { type: 'uri', value: term.value };
    case 'blank':
      return { type: 'bnode', value: term.value };
    case 'literal': {
      const [language, direction] = term.language?.split('--') ?? [];
      return {
        type: 'literal',
        value: term.value,
        ...(term.datatype === undefined ? {} : { datatype: term.datatype }),
        ...(language === undefined ? {} : { 'xml:lang': language }),
        ...(direction === undefined ? {} : { 'its:dir': direction }),
      };
    }
    case 'triple': {
      const { subject, predicate, object } = term;
      const value = { subject: jsonTerm(subject), predicate: jsonTerm(predicate), object: jsonTerm(object) };
      return { type: 'triple', value };
    }
    default:
      // SPARQL results have no other terms.
      return { type: 'literal', value: plain(term) };
  }
}
