// SPARQL, as the page uses it.
import { HighlightStyle, StreamLanguage, indentUnit, syntaxHighlighting, type StreamParser } from '@codemirror/language';
import { tags } from '@lezer/highlight';
import type { Language } from '../language';
import { declaredIn, edgesIn, requestOf } from './analysis';
import { completion, naming } from './completion';
import { EXAMPLES } from './examples';
import { scan, tokens, type Mode, type TokenKind } from './tokens';

export const SPARQL: Language = {
  id: 'sparql',
  name: 'SPARQL',
  queryType: 'application/sparql-query',
  updateType: 'application/sparql-update',
  examples: EXAMPLES,
  highlighting: () => [StreamLanguage.define(PARSER), syntaxHighlighting(STYLE), indentUnit.of('  ')],
  completion,
  request: requestOf,
  declared: (text) => declaredIn(tokens(text)),
  edges: (text) => edgesIn(tokens(text)),
  naming,
  around: (iri, limit) => `CONSTRUCT { ${quoted(iri)} ?p ?o . ?s ?q ${quoted(iri)} }
WHERE {
  { SELECT ?p ?o WHERE { ${quoted(iri)} ?p ?o } LIMIT ${limit} }
  UNION
  { SELECT ?s ?q WHERE { ?s ?q ${quoted(iri)} } LIMIT ${limit} }
}`,
  facts: (iris) => `PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
SELECT ?vertex ?label ?type WHERE {
  VALUES ?vertex { ${iris.map(quoted).join(' ')} }
  OPTIONAL { ?vertex rdfs:label ?label }
  OPTIONAL { ?vertex a ?type }
}`,
  describe: (iri, namespaces) => {
    const short = namespaces.split(iri);
    if (short === null) return `DESCRIBE ${quoted(iri)}\n`;
    return `PREFIX ${short.prefix}: <${short.namespace}>\nDESCRIBE ${short.prefix}:${short.local}\n`;
  },
};

/** An IRI from data, as a query may have it: nothing in it can end it. */
function quoted(iri: string): string {
  return `<${iri.replace(/[\x00-\x20<>"{}|^`\\]/g, encodeURIComponent)}>`;
}

interface State {
  mode: Mode;
  depth: number;
}

const PARSER: StreamParser<State> = {
  name: 'sparql',
  startState: () => ({ mode: null, depth: 0 }),
  copyState: (state) => ({ ...state }),
  token(stream, state) {
    const { kind, to, mode } = scan(stream.string, stream.pos, state.mode);
    const text = stream.string.slice(stream.pos, to);
    if (kind === 'bracket') state.depth = Math.max(0, state.depth + (/[{([]/.test(text) ? 1 : -1));
    stream.pos = to;
    state.mode = mode;
    return kind === 'space' ? null : kind;
  },
  indent(state, after, context) {
    if (state.mode !== null) return null;
    const closes = /^\s*[})\]]/.test(after) ? 1 : 0;
    return Math.max(0, state.depth - closes) * context.unit;
  },
  languageData: {
    commentTokens: { line: '#' },
    closeBrackets: { brackets: ['(', '[', '{', '"'] },
    indentOnInput: /^\s*[})\]]$/,
  },
  tokenTable: {
    keyword: tags.keyword,
    function: tags.function(tags.name),
    word: tags.name,
    boolean: tags.bool,
    variable: tags.variableName,
    iri: tags.link,
    name: tags.propertyName,
    blank: tags.labelName,
    string: tags.string,
    tag: tags.annotation,
    number: tags.number,
    comment: tags.comment,
    operator: tags.operator,
    bracket: tags.bracket,
    separator: tags.separator,
    invalid: tags.invalid,
  } satisfies Record<TokenKind, unknown>,
};

const STYLE = HighlightStyle.define([
  { tag: tags.keyword, color: 'var(--code-keyword)', fontWeight: '600' },
  { tag: tags.function(tags.name), color: 'var(--code-function)' },
  { tag: tags.variableName, color: 'var(--code-variable)' },
  { tag: tags.link, color: 'var(--code-iri)' },
  { tag: tags.propertyName, color: 'var(--code-name)' },
  { tag: tags.labelName, color: 'var(--code-name)' },
  { tag: tags.string, color: 'var(--code-string)' },
  { tag: tags.annotation, color: 'var(--code-comment)' },
  { tag: [tags.number, tags.bool], color: 'var(--code-number)' },
  { tag: tags.comment, color: 'var(--code-comment)', fontStyle: 'italic' },
  { tag: [tags.operator, tags.bracket, tags.separator], color: 'var(--code-mark)' },
  { tag: tags.invalid, color: 'var(--bad)' },
]);
