// Completion for Gremlin: steps after a dot, arguments in parentheses, and names from the data in quotation
// marks.
import { pickedCompletion, type Completion, type CompletionContext, type CompletionResult, type CompletionSource } from '@codemirror/autocomplete';
import type { EditorView } from '@codemirror/view';
import type { Names } from '../names';
import { localName } from '../namespaces';
import type { Name } from '../server';
import { marksIn, quoted, roleAfter, unquoted, type Role } from './analysis';
import { encode, nameOf } from './mapping';
import { tokens, type Token } from './tokens';
import { MEMBERS, PREDICATES, SOURCE, STARTS, STEPS, TERMINALS, type Takes, type Word } from './words';

/** The word before the cursor, outside quotation marks. */
const WORD = /[\p{L}_$][\p{L}\p{N}_$]*$/u;
/** Vervet's internal keys, which are not useful as completions. */
const INNER = new Set(['http://www.w3.org/1999/02/22-rdf-syntax-ns#type', 'http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies', 'urn:vervet:id']);
/** Steps whose argument is usually a traversal. */
const OFTEN: ReadonlySet<string> = new Set('out in both outE inE bothE has hasLabel values where count order limit dedup by group groupCount path select repeat valueMap'.split(' '));

export function completion(names: Names): CompletionSource {
  return async (context: CompletionContext): Promise<CompletionResult | null> => {
    const text = context.state.doc.toString();
    const all = tokens(text);
    const inside = all.find(({ from, to, open }) => from < context.pos && (to > context.pos || (open && to === context.pos)));
    if (inside?.kind === 'comment') return null;
    const labels = new Set((await names.first('class')).map(({ iri }) => nameOf('label', iri)));
    const role = (at: number): Role => roleAfter(all.filter(({ to }) => to <= at), (label) => labels.has(label));
    if (inside?.kind === 'string') return inString(names, context, inside, role(inside.from), marksIn(all.filter((token) => token !== inside)));

    const word = context.matchBefore(WORD);
    const from = word?.from ?? context.pos;
    const here = role(from);
    // After a dot, completion always starts; elsewhere the user must have begun a word, or requested it.
    const asked = context.explicit || word !== null || here.kind === 'spawn' || here.kind === 'step' || here.kind === 'member';
    const options = asked ? outside(here) : [];
    return options.length === 0 ? null : { from, options, validFor: WORD };
  };
}

/** Name completions in the form that the step needs. */
async function inString(names: Names, context: CompletionContext, token: Token, role: Role, marks: readonly string[]): Promise<CompletionResult | null> {
  if (role.kind !== 'argument' || role.takes === null) return null;
  const from = token.from + 1;
  const wanted = unquoted(`"${context.state.sliceDoc(from, context.pos)}`);
  const options = role.takes === 'mark' ? marks.map((label): Completion => ({ label, type: 'variable' })) : await fromData(names, role.takes, wanted);
  if (context.aborted || options.length === 0) return null;
  const end = token.open ? context.pos : token.to - 1;
  return { from, to: Math.max(context.pos, end), options, getMatch };
}

async function fromData(names: Names, takes: Exclude<Takes, 'mark'>, wanted: string): Promise<Completion[]> {
  const part = encode(wanted);
  const found = async (kind: 'class' | 'predicate'): Promise<Completion[]> =>
    (await names.find(kind, part)).flatMap((name) => option(name, kind) ?? []);
  if (takes !== 'label') return found('predicate');
  // `hasLabel` also applies to edges.
  return [...(await found('class')), ...(await found('predicate')).map((one) => ({ ...one, boost: (one.boost ?? 0) - 20 }))];
}

function option(name: Name, kind: 'class' | 'predicate'): Completion | null {
  const full = INNER.has(name.iri) ? null : nameOf(kind === 'class' ? 'label' : 'key', name.iri);
  if (full === null) return null;
  const isIri = full === name.iri;
  return {
    // Typed text is matched against the local name of an IRI, which is shown with its prefix.
    label: isIri ? localName(full) : full,
    ...(isIri ? { displayLabel: name.label ?? full, info: full } : {}),
    detail: name.count === undefined ? '' : name.count.toLocaleString('en'),
    type: kind === 'class' ? 'class' : 'property',
    boost: Math.min(9, Math.log10((name.count ?? 0) + 1)),
    apply: (view, completion, from, to) => {
      // Escapes for the quotation mark that the string begins with.
      const insert = quoted(full).slice(1, -1);
      view.dispatch({
        changes: { from, to, insert: view.state.sliceDoc(from - 1, from) === "'" ? insert : insert.replaceAll("\\'", "'").replaceAll('"', '\\"') },
        selection: { anchor: from + insert.length },
        annotations: pickedCompletion.of(completion),
        userEvent: 'input.complete',
      });
    },
  };
}

function outside(role: Role): Completion[] {
  switch (role.kind) {
    case 'start':
      return [{ label: 'g', detail: 'the graph', type: 'keyword' }];
    case 'spawn':
      return [...STARTS.map((word) => call(word, 10)), ...SOURCE.map((word) => call(word)), { label: 'tx', detail: 'the transaction of a session', type: 'function', apply: applyCall, boost: -20 }];
    case 'step':
      return [...STEPS.map((word) => call(word, OFTEN.has(word[0]) ? 10 : 0)), ...TERMINALS.map((word) => call(word, -10))];
    case 'member':
      if (role.of === 'P' || role.of === 'TextP') return PREDICATES.map((word) => call(word));
      return (MEMBERS.get(role.of) ?? []).map((label) => ({ label, type: 'keyword' }));
    case 'argument':
      return inBrackets(role.step);
    case 'none':
      return [];
  }
}

function inBrackets(step: string): Completion[] {
  const members = (...of: string[]): Completion[] =>
    of.flatMap((name) => (MEMBERS.get(name) ?? []).map((label): Completion => ({ label, detail: name, type: 'keyword', boost: 20 })));
  const traversals = STEPS.map((word) => call(word));
  const predicates = PREDICATES.map((word) => call(word, 5));
  const here: Completion = { label: '__', detail: 'an anonymous traversal', type: 'keyword', boost: -5 };
  switch (step) {
    case 'by':
      return [...members('T', 'Order', 'Column'), ...traversals, here];
    case 'has':
      return [...members('T'), ...predicates, ...traversals];
    case 'is':
    case 'all':
    case 'any':
    case 'none':
    case 'hasId':
    case 'hasLabel':
    case 'hasKey':
    case 'hasValue':
      return predicates;
    case 'where':
    case 'until':
    case 'filter':
    case 'choose':
    case 'emit':
      return [...predicates, ...traversals, here];
    case 'select':
      return [...members('Column', 'Pop'), ...traversals];
    case 'order':
    case 'count':
    case 'dedup':
    case 'limit':
    case 'range':
    case 'tail':
    case 'sample':
    case 'sum':
    case 'min':
    case 'max':
    case 'mean':
      return members('Scope');
    case 'property':
      return members('Cardinality', 'T');
    case 'option':
      return [...members('Merge', 'Pick'), ...traversals];
    case 'to':
    case 'toE':
    case 'toV':
      return [...members('Direction'), ...traversals];
    case 'not':
      return [...traversals, ...predicates, here];
    case 'V':
    case 'E':
    case 'out':
    case 'in':
    case 'both':
    case 'values':
    case 'as':
      return [];
    default:
      return [...traversals, here];
  }
}

function call([label, detail]: Word, boost = 0): Completion {
  return { label, detail, type: 'function', boost, apply: applyCall };
}

/** Steps without required arguments. */
const EMPTY: ReadonlySet<string> = new Set(
  `count dedup path simplePath cyclicPath fold unfold id label key value inV outV bothV otherV identity drop element valueMap elementMap order
  iterate next toList toSet hasNext tryNext explain profile sum max min mean groupCount group none discard index reverse tree`.split(/\s+/),
);

/** Inserts the parentheses, with the cursor inside if the step takes arguments. */
function applyCall(view: EditorView, completion: Completion, from: number, to: number): void {
  const has = view.state.sliceDoc(to, to + 1) === '(';
  const text = has ? completion.label : `${completion.label}()`;
  const inner = from + completion.label.length + 1;
  view.dispatch({
    changes: { from, to, insert: text },
    selection: { anchor: !has && EMPTY.has(completion.label) ? inner + 1 : inner },
    annotations: pickedCompletion.of(completion),
    userEvent: 'input.complete',
  });
}

/** The positions of matched letters in the displayed label: at its end. */
function getMatch({ label, displayLabel = label }: Completion, matched: readonly number[] = []): readonly number[] {
  const shift = displayLabel.endsWith(label) ? displayLabel.length - label.length : 0;
  return displayLabel.endsWith(label) ? matched.map((at) => at + shift) : [];
}
