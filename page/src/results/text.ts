// Reader of text responses, such as those of updates.
import type { Content, Reader } from './result';

export class TextReader implements Reader {
  readonly count = 0;
  #text = '';

  push(text: string): boolean {
    this.#text += text;
    return true;
  }

  finish(): { content: Content; complete: boolean } {
    return { content: { kind: 'update', message: this.#text.trim() }, complete: true };
  }
}
