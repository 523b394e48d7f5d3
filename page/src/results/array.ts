// Incremental splitter of a JSON array: finds the ends of its items while the array still arrives.
//
// The scan tracks bracket depth and skips strings; each chunk's complete items are parsed in one call.

export class ArrayScan {
  readonly #parse: (json: string) => unknown[];
  /** Text since the end of the last complete item, and the position of the scan in it. */
  #text = '';
  #at = 0;
  #depth = 0;
  #inString = false;
  #ended = false;

  constructor(parse: (json: string) => unknown[] = (json) => JSON.parse(json) as unknown[]) {
    this.#parse = parse;
  }

  /** Whether the array's closing bracket has arrived. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Takes chunks of the text after the array's opening bracket; returns the items that are now complete. */
  push(piece: string): unknown[] {
    if (this.#ended) return [];
    this.#text += piece;
    const text = this.#text;
    let end = -1;
    let i = this.#at;
    for (; i < text.length; i += 1) {
      const code = text.charCodeAt(i);
      if (this.#inString) {
        if (code === 92) i += 1;
        else if (code === 34) this.#inString = false;
      } else if (code === 34) this.#inString = true;
      else if (code === 123 || code === 91) this.#depth += 1;
      else if (code === 125 || code === 93) {
        if (this.#depth === 0) {
          this.#ended = true;
          end = i;
          break;
        }
        this.#depth -= 1;
      } else if (code === 44 && this.#depth === 0) end = i;
    }
    // After an escape split by the end of a chunk, this is beyond the end: the next chunk is read from there.
    this.#at = i;
    if (end < 0) return [];
    const items = text.slice(0, end);
    this.#text = text.slice(end + 1);
    this.#at -= end + 1;
    return items.trim() === '' ? [] : this.#parse(`[${items}]`);
  }
}
