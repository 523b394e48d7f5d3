// The Gremlin `Language`: TinkerPop's HTTP form, responses in GraphSON 3.
import { tags } from '@lezer/highlight';
import { highlighting } from '../highlight';
import type { Call, Language } from '../language';
import { planned, quoted, shapeOf, writesIn } from './analysis';
import { completion } from './completion';
import { EXAMPLES, FIRST_DATA } from './examples';
import { GRAPHSON } from './graphson';
import { EDGE, nameOf, vertexId } from './mapping';
import { planIn } from './plan';
import { ValuesReader } from './reader';
import { scan, type Mode, type TokenKind } from './tokens';

/** The number of edges of a vertex in a neighbourhood query. */
const NEAR = 50;

export const GREMLIN: Language = {
  id: 'gremlin',
  name: 'Gremlin',
  examples: EXAMPLES,
  firstData: FIRST_DATA,
  drawable: 'A picture needs vertices, edges or paths: end the traversal with one of these, or with path().',
  highlighting: () =>
    highlighting<TokenKind, Mode>({
      name: 'gremlin',
      scan,
      comment: '//',
      pairs: ['(', '[', '{', '"', "'"],
      goesOn: /^\s*\./,
      tags: {
        source: tags.keyword,
        step: tags.function(tags.name),
        predicate: tags.propertyName,
        member: tags.keyword,
        word: tags.name,
        boolean: tags.bool,
        string: tags.string,
        number: tags.number,
        comment: tags.comment,
        bracket: tags.bracket,
        separator: tags.separator,
        invalid: tags.invalid,
      },
    }),
  completion,
  writes: writesIn,
  call,
  file: (text, accept) => ({ ...call(text, null), accept }),
  plan: (text, run) => {
    const found = planned(text, run);
    if ('refused' in found) return found.refused;
    const { path, type, body } = call(found.text, null);
    return { path, type, body, accept: GRAPHSON, read: planIn };
  },
  declared: () => new Map(),
  edges: () => [],
  naming: (_, iri) => ({ text: quoted(nameIn(iri)), line: '', place: 0 }),
  describe: (iri) => {
    if (iri.startsWith(EDGE)) return `g.E(${quoted(iri)})\n  .elementMap()\n`;
    return `g.V(${idOf(iri)})\n  .bothE().limit(${NEAR}).otherV()\n  .path()\n`;
  },
};

function call(text: string, seconds: number | null): Call {
  const body = { gremlin: text, language: 'gremlin-lang', ...(seconds === null ? {} : { evaluationTimeout: Math.round(seconds * 1000) }) };
  return {
    path: 'gremlin',
    type: 'application/json',
    body: JSON.stringify(body),
    accept: GRAPHSON,
    reader: (rowsMax) => new ValuesReader(shapeOf(text), rowsMax),
  };
}

/** A vertex id as a Gremlin literal: 64-bit numbers as numbers. */
function idOf(iri: string): string {
  const id = vertexId(iri);
  if (!/^(?:0|-?[1-9]\d{0,17})$/.test(id)) return quoted(id);
  return Math.abs(Number(id)) < 2 ** 31 ? id : `${id}L`;
}

/** The Gremlin name of a class or a predicate. */
function nameIn(iri: string): string {
  const [label, key] = [nameOf('label', iri), nameOf('key', iri)];
  // An IRI outside both namespaces is its own name.
  return label === iri ? (key ?? iri) : (label ?? key ?? iri);
}
