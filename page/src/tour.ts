// Saved queries of the server in their order: a tour of its data, or common queries.
import type { Language, LanguageId } from './language';
import type { ViewName } from './view/result';

/** How a step shows its result; `profile`: the plan with measured rows and times. */
export type StepView = ViewName | 'profile';

export interface Step {
  readonly name: string;
  readonly text: string;
  readonly language: LanguageId;
  /** A sentence about the query; empty if there is none. */
  readonly note: string;
  /** Null: the usual view. */
  readonly view: StepView | null;
  /** Whether a click runs it; null: unless it changes the data. */
  readonly run: boolean | null;
}

export interface Tour {
  readonly title: string;
  readonly about: string;
  readonly steps: readonly Step[];
}

const TITLE = 'Queries of this server';
const VIEWS: readonly string[] = ['table', 'picture', 'text', 'plan', 'profile'];

/** The steps in the server's answer. Null if there are none; steps that this page does not know are skipped. */
export function tourIn(answer: unknown): Tour | null {
  const { title, about, queries } = fields(answer);
  if (!Array.isArray(queries)) return null;
  const steps = queries.flatMap((query: unknown): Step[] => {
    const { name, text, language = 'sparql', note, view, run } = fields(query);
    if (typeof name !== 'string' || typeof text !== 'string') return [];
    if (language !== 'sparql' && language !== 'gremlin') return [];
    const known = typeof view === 'string' && VIEWS.includes(view) ? (view as StepView) : null;
    return [{ name, text, language, note: typeof note === 'string' ? unbroken(note) : '', view: known, run: typeof run === 'boolean' ? run : null }];
  });
  if (steps.length === 0) return null;
  return { title: typeof title === 'string' ? title : TITLE, about: typeof about === 'string' ? about : '', steps };
}

/** A text whose lines do not break inside of a variable: behind its question mark browsers may break. */
function unbroken(text: string): string {
  return text.replace(/(?<![\p{L}\p{N}])\?(?=[\p{L}_])/gu, '?\u2060');
}

/** Whether a click on the step runs it. */
export function runsAtOnce(step: Step, language: Pick<Language, 'writes'>): boolean {
  return step.run ?? !language.writes(step.text);
}

function fields(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
