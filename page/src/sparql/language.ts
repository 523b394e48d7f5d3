// The SPARQL `Language`.
import { tags } from '@lezer/highlight';
import { highlighting } from '../highlight';
import type { Call, Language } from '../language';
import { JsonReader } from '../results/json';
import { TextReader } from '../results/text';
import { TriplesReader } from '../results/triples';
import type { Plan } from '../server';
import { declaredIn, edgesIn, requestOf } from './analysis';
import { completion, naming } from './completion';
import { EXAMPLES, FIRST_DATA } from './examples';
import { quoted } from './questions';
import { scan, tokens, type Mode, type TokenKind } from './tokens';

const QUERY = 'application/sparql-query';
const UPDATE = 'application/sparql-update';

export const SPARQL: Language = {
  id: 'sparql',
  name: 'SPARQL',
  examples: EXAMPLES,
  firstData: FIRST_DATA,
  drawable: 'A picture needs resources: rows with IRIs, or the graph of a CONSTRUCT or DESCRIBE.',
  highlighting: () =>
    highlighting<TokenKind, NonNullable<Mode>>({
      name: 'sparql',
      scan,
      comment: '#',
      pairs: ['(', '[', '{', '"'],
      tags: {
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
      },
    }),
  completion,
  writes: (text) => requestOf(text) === 'update',
  call,
  file: (text, accept) => ({ ...call(text, null), accept }),
  plan: (text, run) => {
    if (requestOf(text) === 'update') return 'an update has no plan to show';
    return { path: `api/plan?run=${run}`, type: QUERY, body: text, read: planIn };
  },
  declared: (text) => declaredIn(tokens(text)),
  edges: (text) => edgesIn(tokens(text)),
  naming,
  describe: (iri, namespaces) => {
    const short = namespaces.split(iri);
    if (short === null) return `DESCRIBE ${quoted(iri)}\n`;
    return `PREFIX ${short.prefix}: <${short.namespace}>\nDESCRIBE ${short.prefix}:${short.local}\n`;
  },
};

function call(text: string, seconds: number | null): Call {
  const request = requestOf(text);
  const timeout = seconds === null ? '' : `?timeout=${seconds}`;
  if (request === 'update') return { path: `update${timeout}`, type: UPDATE, body: text, reader: () => new TextReader() };
  const query = { path: `query${timeout}`, type: QUERY, body: text };
  if (request === 'graph') return { ...query, accept: 'application/n-triples', reader: (rowsMax) => new TriplesReader(rowsMax) };
  return { ...query, accept: 'application/sparql-results+json', reader: (rowsMax) => new JsonReader(rowsMax) };
}

function planIn(answer: string): Plan {
  const { text = '', steps = [] } = JSON.parse(answer) as Partial<Plan>;
  return { text, steps };
}
