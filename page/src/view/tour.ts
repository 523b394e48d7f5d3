// The steps of a tour: a list at the start, and a bar with the current step.
import { button, h } from '../dom';
import type { Language, LanguageId } from '../language';
import type { Tour } from '../tour';

interface TourBarOptions {
  readonly languages: readonly Language[];
  readonly onStep: (index: number) => void;
  readonly onList: () => void;
  readonly onClose: () => void;
}

/** The current step, with buttons to the previous and the next one. Hidden until a step is chosen. */
export class TourBar {
  readonly element: HTMLElement;
  readonly #options: TourBarOptions;
  readonly #position = h('p', { class: 'position' });
  readonly #about = h('div', { class: 'step-about', 'aria-live': 'polite' });
  readonly #previous: HTMLButtonElement;
  readonly #next: HTMLButtonElement;
  #at = 0;
  #count = 0;

  constructor(options: TourBarOptions) {
    this.#options = options;
    this.#previous = button({ icon: 'left', label: 'Previous step', class: 'plain', onClick: () => this.#go(-1) });
    this.#next = button({ icon: 'right', text: 'Next', label: 'Next step', class: 'plain next-step', onClick: () => this.#go(1) });
    this.element = h(
      'section',
      { class: 'tour', 'aria-label': 'Tour', hidden: true },
      this.#position,
      this.#about,
      h(
        'div',
        { class: 'step-actions' },
        this.#previous,
        this.#next,
        button({ icon: 'list', label: 'All steps', onClick: options.onList }),
        button({ icon: 'close', label: 'Close the tour', onClick: () => this.#close() }),
      ),
    );
  }

  /** Shows the step, and puts the focus on its button *Next*. */
  show(tour: Tour, at: number): void {
    const step = tour.steps[at];
    if (step === undefined) return;
    [this.#at, this.#count] = [at, tour.steps.length];
    this.element.hidden = false;
    this.element.setAttribute('aria-label', tour.title);
    this.#position.textContent = `${at + 1} of ${this.#count}`;
    this.#about.replaceChildren(h('h2', {}, step.name, languageTag(step, this.#options.languages)), h('p', {}, step.note));
    // A disabled button would lose the focus.
    this.#previous.setAttribute('aria-disabled', String(at === 0));
    this.#next.setAttribute('aria-disabled', String(at + 1 === this.#count));
    if (!this.element.contains(document.activeElement)) this.#next.focus();
  }

  #go(by: number): void {
    const next = this.#at + by;
    if (next >= 0 && next < this.#count) this.#options.onStep(next);
  }

  #close(): void {
    this.element.hidden = true;
    this.#options.onClose();
  }
}

/** The steps as an ordered list of buttons, for the page without a result. */
export function stepList(tour: Tour, languages: readonly Language[], onStep: (index: number) => void): HTMLElement {
  return h(
    'ol',
    { class: 'steps', 'aria-label': tour.title },
    ...tour.steps.map((step, i) =>
      h(
        'li',
        {},
        h(
          'button',
          { type: 'button', class: 'example', onclick: () => onStep(i) },
          h('strong', {}, h('span', { class: 'number' }, `${i + 1} `), step.name),
          h('span', {}, step.note),
          h('span', { class: 'tags' }, languageTag(step, languages), step.view !== null && h('span', { class: 'tag' }, step.view)),
        ),
      ),
    ),
  );
}

function languageTag({ language }: { readonly language: LanguageId }, languages: readonly Language[]): HTMLElement {
  return h('span', { class: 'tag' }, languages.find(({ id }) => id === language)?.name ?? language);
}
