// Editor support common to all languages: colours, brackets, indentation.
import { HighlightStyle, StreamLanguage, indentUnit, syntaxHighlighting, type StreamParser } from '@codemirror/language';
import type { Extension } from '@codemirror/state';
import { tags, type Tag } from '@lezer/highlight';

/** The result of a scan: a token or spaces up to `to`, and the mode in which the next line starts. */
export interface Scan<Kind extends string, Mode> {
  readonly kind: Kind | 'space';
  readonly to: number;
  readonly mode: Mode;
}

interface Options<Kind extends string, Mode> {
  readonly name: string;
  readonly scan: (line: string, at: number, mode: Mode | null) => Scan<Kind, Mode | null>;
  readonly tags: Readonly<Record<Kind, Tag>>;
  readonly comment: string;
  /** Characters that are closed automatically: brackets and quotation marks. */
  readonly pairs: readonly string[];
  /** Matches the start of a continuation line, which is indented by one more step. */
  readonly goesOn?: RegExp;
}

export function highlighting<Kind extends string, Mode>(options: Options<Kind, Mode>): Extension {
  return [StreamLanguage.define(parser(options)), syntaxHighlighting(STYLE), indentUnit.of('  ')];
}

interface State<Mode> {
  mode: Mode | null;
  depth: number;
}

function parser<Kind extends string, Mode>({ name, scan, tags, comment, pairs, goesOn }: Options<Kind, Mode>): StreamParser<State<Mode>> {
  return {
    name,
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
      const further = goesOn?.test(after) ? 1 : 0;
      return Math.max(0, state.depth - closes + further) * context.unit;
    },
    languageData: {
      commentTokens: { line: comment },
      closeBrackets: { brackets: pairs },
      indentOnInput: /^\s*[.})\]]$/,
    },
    tokenTable: tags,
  };
}

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
