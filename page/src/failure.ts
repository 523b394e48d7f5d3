// Parses the server's errors: `message (line 2, column 5)`, the line, a caret, a hint.

export interface Failure {
  /** The whole text, as sent by the server. */
  readonly text: string;
  readonly message: string;
  /** Both from 1; columns count characters (code points). */
  readonly line?: number;
  readonly column?: number;
  /** Characters that the caret underlines, at least 1. */
  readonly width: number;
  readonly hint?: string;
}

/** `body`: the text above, or JSON: `{"error": {"message": "…", "hint": "…"}}`. */
export function parseFailure(body: string): Failure {
  const text = asText(body);
  const lines = text.trimEnd().split('\n');
  const message = (lines[0] ?? '').replace(/^error: /, '');
  const place = /\(line (\d+), column (\d+)\)/.exec(text);
  const carets = lines.map((line) => /^\s*\|?\s*(\^+)\s*$/.exec(line)?.[1]).find((found) => found !== undefined);
  const hint = lines.find((line) => line.startsWith('hint: '))?.slice('hint: '.length);
  return {
    text: text.trimEnd().replace(/^error: /, ''),
    message: message === '' ? 'the server gave no reason' : message,
    width: carets?.length ?? 1,
    ...(place === null ? {} : { line: Number(place[1]), column: Number(place[2]) }),
    ...(hint === undefined ? {} : { hint }),
  };
}

function asText(body: string): string {
  if (!body.startsWith('{')) return body;
  try {
    const { error } = JSON.parse(body) as { error?: { message?: unknown; hint?: unknown } };
    if (typeof error?.message !== 'string') return body;
    return typeof error.hint === 'string' ? `${error.message.trimEnd()}\nhint: ${error.hint}` : error.message;
  } catch {
    return body;
  }
}

/** Offsets of a failure's position in `text`, in UTF-16 units; null if it has none. */
export function placeIn(text: string, failure: Failure): { from: number; to: number } | null {
  if (failure.line === undefined || failure.column === undefined) return null;
  const lines = text.split('\n');
  const line = lines[failure.line - 1];
  if (line === undefined) return null;
  const start = lines.slice(0, failure.line - 1).reduce((sum, before) => sum + before.length + 1, 0);
  const points = [...line];
  const before = points.slice(0, failure.column - 1).join('').length;
  const width = points.slice(failure.column - 1, failure.column - 1 + failure.width).join('').length;
  return { from: start + before, to: start + Math.min(line.length, before + Math.max(width, 1)) };
}
