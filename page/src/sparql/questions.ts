// SPARQL queries of the panels and the picture, for both languages of the editor.
import { LABELS } from '../namespaces';

/** A query for the graph around `iri`: at most `limit` statements in each direction. */
export function around(iri: string, limit: number): string {
  return `CONSTRUCT { ${quoted(iri)} ?p ?o . ?s ?q ${quoted(iri)} }
WHERE {
  { SELECT ?p ?o WHERE { ${quoted(iri)} ?p ?o } LIMIT ${limit} }
  UNION
  { SELECT ?s ?q WHERE { ?s ?q ${quoted(iri)} } LIMIT ${limit} }
}`;
}

/** A query for a table `?vertex ?label ?type` about `iris`; label and type may be unbound. */
export function facts(iris: readonly string[]): string {
  const labels = LABELS.map((predicate, i) => `  OPTIONAL { ?vertex ${quoted(predicate)} ?label${i} }`);
  return `SELECT ?vertex ?label ?type WHERE {
  VALUES ?vertex { ${iris.map(quoted).join(' ')} }
${labels.join('\n')}
  BIND(COALESCE(${LABELS.map((_, i) => `?label${i}`).join(', ')}) AS ?label)
  OPTIONAL { ?vertex a ?type }
}`;
}

/** An IRI from the data as an IRI reference, escaped so that it cannot end early. */
export function quoted(iri: string): string {
  return `<${iri.replace(/[\x00-\x20<>"{}|^`\\]/g, encodeURIComponent)}>`;
}
