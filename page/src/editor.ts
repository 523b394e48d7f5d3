// The editor: CodeMirror with one text per language, error marks, and the page's keys.
//
// The text, cursor and undo history of a language are kept while another one is shown.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, completionStatus, acceptCompletion } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { bracketMatching, indentOnInput } from '@codemirror/language';
import { EditorState, StateEffect, StateField, type Extension } from '@codemirror/state';
import {
  Decoration, EditorView, drawSelection, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, keymap, lineNumbers,
  placeholder, type DecorationSet,
} from '@codemirror/view';
import type { Language, LanguageId, Naming } from './language';
import type { Names } from './names';

export interface Editor {
  readonly view: EditorView;
  text(): string;
  /** Replaces the text; undo restores the old one. */
  setText(text: string): void;
  insert(naming: Naming): void;
  /** Shows the text of a language; `text` is the initial text if it has none yet. */
  setLanguage(language: Language, text: string): void;
  /** Marks a range until the text changes, and moves the cursor there. */
  mark(place: { from: number; to: number } | null): void;
}

interface EditorOptions {
  readonly parent: HTMLElement;
  readonly language: Language;
  readonly names: Names;
  readonly text: string;
  readonly onChange: () => void;
}

export function createEditor({ parent, language: first, names, text, onChange }: EditorOptions): Editor {
  const extensions = (language: Language): Extension[] => [
    lineNumbers(),
    highlightActiveLineGutter(),
    highlightSpecialChars(),
    history(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    highlightActiveLine(),
    autocompletion({ override: [language.completion(names)], icons: true, maxRenderedOptions: 60, activateOnTypingDelay: 80 }),
    keymap.of([
      { key: 'Tab', run: takeProposal },
      // The page runs the query at these keys.
      { key: 'Mod-Enter', run: () => true },
      { key: 'Mod-Shift-Enter', run: () => true },
      ...closeBracketsKeymap,
      ...defaultKeymap,
      ...historyKeymap,
      ...completionKeymap,
    ]),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ 'aria-label': `${language.name} query`, spellcheck: 'false', autocapitalize: 'off' }),
    placeholder(`Write ${language.name} here, or take an example`),
    language.highlighting(),
    marks,
    EditorView.updateListener.of((update) => {
      if (update.docChanged) onChange();
    }),
  ];
  const fresh = (language: Language, doc: string): EditorState => EditorState.create({ doc, extensions: extensions(language) });
  const others = new Map<LanguageId, EditorState>();
  let shown = first;
  const view = new EditorView({ parent, state: fresh(first, text) });
  return {
    view,
    text: () => view.state.doc.toString(),
    setText(next) {
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next }, selection: { anchor: 0 }, scrollIntoView: true });
    },
    setLanguage(next, draft) {
      if (next.id === shown.id) return;
      others.set(shown.id, view.state);
      shown = next;
      view.setState(others.get(next.id) ?? fresh(next, draft));
    },
    insert({ text: name, line, place }) {
      const { from, to } = view.state.selection.main;
      const at = Math.max(from, place);
      view.dispatch({
        changes: [...(line === '' ? [] : [{ from: place, insert: line }]), { from: at, to: Math.max(to, at), insert: name }],
        selection: { anchor: at + line.length + name.length },
        scrollIntoView: true,
      });
      view.focus();
    },
    mark(place) {
      view.dispatch({
        effects: setMark.of(place),
        ...(place === null ? {} : { selection: { anchor: place.from }, scrollIntoView: true }),
      });
    },
  };
}

/** While proposals are shown or loading, Tab never leaves the editor. */
function takeProposal(view: EditorView): boolean {
  return acceptCompletion(view) || completionStatus(view.state) === 'active';
}

const setMark = StateEffect.define<{ from: number; to: number } | null>();

const WRONG = Decoration.mark({ class: 'wrong', attributes: { 'aria-invalid': 'true' } });
const WRONG_LINE = Decoration.line({ class: 'wrong-line' });
const WRONG_END = Decoration.line({ class: 'wrong-line wrong-end' });

/** The mark of an error, removed by the first change. */
const marks = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(value, transaction) {
    let next = transaction.docChanged ? Decoration.none : value;
    for (const effect of transaction.effects) {
      if (!effect.is(setMark)) continue;
      const place = effect.value;
      if (place === null) {
        next = Decoration.none;
        continue;
      }
      const length = transaction.newDoc.length;
      const [from, to] = [Math.min(place.from, length), Math.min(place.to, length)];
      const line = transaction.newDoc.lineAt(from);
      next = Decoration.set([
        (from < to ? WRONG_LINE : WRONG_END).range(line.from),
        ...(from < to ? [WRONG.range(from, to)] : []),
      ]);
    }
    return next;
  },
  provide: (field) => EditorView.decorations.from(field),
});
