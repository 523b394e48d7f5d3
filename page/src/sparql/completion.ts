// Completion for SPARQL: the role of the cursor's position determines the proposals and their order.
//
// A name from the data is inserted in its short form; if the text does not declare the prefix, the same
// change adds the PREFIX line.
import { pickedCompletion, type Completion, type CompletionContext, type CompletionResult, type CompletionSource } from '@codemirror/autocomplete';
import type { EditorView } from '@codemirror/view';
import type { Naming } from '../language';
import type { NameKind, Names } from '../names';
import { localName, type Namespaces } from '../namespaces';
import type { Name } from '../server';
import { declaredIn, roleAfter, variablesIn, type Role } from './analysis';
import { tokens, type Token } from './tokens';
import { FUNCTIONS, KEYWORDS } from './words';

/** The word before the cursor: a variable, a (partial) prefixed name, an open IRI. */
const WORD = /(?:[?$][\p{L}\p{N}_]*|<[^<>"{}|^`\\\s]*|[\p{L}_][\p{L}\p{N}_.\-]*(?::[\p{L}\p{N}_.%\-]*)?|:[\p{L}\p{N}_.%\-]*)$/u;

/** Keywords that may start a pattern. */
const IN_GROUP = new Set('FILTER OPTIONAL UNION MINUS BIND VALUES GRAPH SERVICE EXISTS NOT SELECT'.split(' '));
const IN_EXPRESSION = new Set('AS IN NOT EXISTS DISTINCT SEPARATOR'.split(' '));

export function completion(names: Names): CompletionSource {
  return async (context: CompletionContext): Promise<CompletionResult | null> => {
    const word = context.matchBefore(WORD);
    if (word === null && !context.explicit) return null;
    const text = context.state.doc.toString();
    const all = tokens(text);
    const from = word?.from ?? context.pos;
    const start = word?.text ?? '';
    const inside = all.find((token) => token.from < from && token.to >= context.pos && token.to > from);
    if (inside?.kind === 'comment' || inside?.kind === 'string') return null;
    const others = all.filter((token) => token.from !== from);
    const role = roleAfter(all.filter((token) => token.to <= from));
    const declared = declaredIn(all);
    const namespaces = await names.namespaces(declared);

    if (role === 'prefix') return { from, options: prefixLines(namespaces, declared), validFor: /^[\w.-]*:?$/ };
    const options: Completion[] = [];
    if (!start.startsWith('<')) options.push(...variables(others, role));
    if (!/^[?$]/.test(start)) {
      if (!/[:<]/.test(start)) options.push(...words(role), ...prefixes(namespaces, declared));
      const kinds = kindsOf(role, context.explicit || start.length > 0);
      const wanted = start.includes(':') ? start.slice(start.indexOf(':') + 1) : start.replace('<', '');
      for (const kind of kinds) {
        const found = await names.find(kind, wanted);
        if (context.aborted) return null;
        options.push(...found.map((name) => option(name, kind, namespaces, start)));
      }
    }
    return options.length === 0 ? null : { from, options, getMatch };
  };
}

/** The positions of matched letters in the displayed label: after the prefix. */
function getMatch({ label, displayLabel = label }: Completion, matched: readonly number[] = []): readonly number[] {
  return matched.map((at) => at + displayLabel.length - label.length);
}

function kindsOf(role: Role, started: boolean): NameKind[] {
  if (role === 'predicate') return ['predicate'];
  if (role === 'class') return ['class'];
  return started && (role === 'object' || role === 'expression' || role === 'subject') ? ['class', 'predicate'] : [];
}

function variables(all: readonly Token[], role: Role): Completion[] {
  const boost = role === 'predicate' || role === 'class' ? -10 : 10;
  return variablesIn(all).map((label) => ({ label, type: 'variable', boost }));
}

function words(role: Role): Completion[] {
  const keyword = (label: string): Completion => ({ label, type: 'keyword', boost: -5 });
  const call = (label: string): Completion => ({ label, type: 'function', apply: applyCall, boost: -6 });
  if (role === 'expression') return [...[...IN_EXPRESSION].map(keyword), ...[...FUNCTIONS].map(call)];
  if (role === 'start') return [...[...KEYWORDS].map(keyword), ...[...FUNCTIONS].map(call)];
  const some = role === 'subject' ? [...IN_GROUP] : role === 'object' ? ['FILTER', 'OPTIONAL'] : [];
  const type: Completion[] = role === 'predicate' ? [{ label: 'a', detail: 'rdf:type', type: 'keyword', boost: 20 }] : [];
  return [...type, ...some.map(keyword)];
}

function applyCall(view: EditorView, completion: Completion, from: number, to: number): void {
  view.dispatch({
    changes: { from, to, insert: `${completion.label}()` },
    selection: { anchor: from + completion.label.length + 1 },
    annotations: pickedCompletion.of(completion),
    userEvent: 'input.complete',
  });
}

/** After the keyword PREFIX: whole declarations. */
function prefixLines(namespaces: Namespaces, declared: ReadonlyMap<string, string>): Completion[] {
  return [...namespaces]
    .filter(([prefix]) => !declared.has(prefix))
    .map(([prefix, iri]) => ({ label: `${prefix}:`, detail: iri, apply: `${prefix}: <${iri}>\n`, type: 'namespace' }));
}

function prefixes(namespaces: Namespaces, declared: ReadonlyMap<string, string>): Completion[] {
  return [...namespaces].map(([prefix, iri]) => ({
    label: `${prefix}:`,
    detail: iri,
    type: 'namespace',
    boost: declared.has(prefix) ? 5 : -20,
    apply: (view, completion, from, to) => {
      const declaration = declaring(view.state.doc.toString(), prefix, iri);
      insert(view, completion, { from, to }, { text: `${prefix}:`, ...declaration });
    },
  }));
}

function option(name: Name, kind: NameKind, namespaces: Namespaces, start: string): Completion {
  const asIri = start.startsWith('<');
  const short = asIri ? null : namespaces.split(name.iri);
  const full = short === null ? `<${name.iri}>` : `${short.prefix}:${short.local}`;
  return {
    // Typed text is matched against the local name, until it contains a colon.
    label: short === null || start.includes(':') ? full : short.local,
    displayLabel: full,
    detail: name.count === undefined ? '' : name.count.toLocaleString('en'),
    type: kind === 'class' ? 'class' : 'property',
    // More frequent names rank higher, by the number of digits of their count.
    boost: Math.min(9, Math.log10((name.count ?? 0) + 1)),
    info: short === null ? localName(name.iri) : name.iri,
    apply: (view, completion, from, to) => {
      const text = view.state.doc.toString();
      insert(view, completion, { from, to }, asIri ? { text: full, line: '', place: 0 } : naming(text, name.iri, namespaces));
    },
  };
}

/** The short form of an IRI, with the PREFIX line that the text lacks. */
export function naming(text: string, iri: string, namespaces: Namespaces): Naming {
  const short = namespaces.split(iri);
  if (short === null) return { text: `<${iri}>`, line: '', place: 0 };
  return { text: `${short.prefix}:${short.local}`, ...declaring(text, short.prefix, short.namespace) };
}

function declaring(text: string, prefix: string, iri: string): { line: string; place: number } {
  const all = tokens(text);
  if (declaredIn(all).get(prefix) === iri) return { line: '', place: 0 };
  let place = 0;
  all.forEach((token, i) => {
    if (token.kind !== 'keyword' || token.text.toUpperCase() !== 'PREFIX') return;
    const end = text.indexOf('\n', all[i + 2]?.to ?? token.to);
    place = end < 0 ? place : end + 1;
  });
  return { line: `PREFIX ${prefix}: <${iri}>\n`, place };
}

function insert(view: EditorView, completion: Completion, at: { from: number; to: number }, { text, line, place }: Naming): void {
  // An open IRI may have its bracket already.
  const close = text.endsWith('>') && view.state.sliceDoc(at.to, at.to + 1) === '>' ? 1 : 0;
  view.dispatch({
    changes: [
      ...(line === '' ? [] : [{ from: place, insert: line }]),
      { from: at.from, to: at.to + close, insert: text },
    ],
    selection: { anchor: at.from + line.length + text.length },
    annotations: pickedCompletion.of(completion),
    userEvent: 'input.complete',
  });
}
