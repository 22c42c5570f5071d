// Shows that the remote page has not responded to an input yet.

/** Milliseconds without a response after which the indicator appears. */
const DELAY = 400;
/** Milliseconds after which it disappears: not every input has a visible effect. */
const LONGEST = 8000;
const KINDS = new Set(['activate', 'text', 'fill', 'answer', 'reload', 'back', 'close']);

export class Activity {
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #timer;

  /** @param {HTMLElement} indicator */
  constructor(indicator) {
    this.indicator = indicator;
  }

  /** @param {Record<string, unknown>} message */
  sent({ t, k, down }) {
    const expects = KINDS.has(String(t)) || (t === 'mouse' && k === 'up') || (t === 'touch' && k === 'end') || (t === 'key' && down === true);
    if (!expects || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.indicator.classList.add('busy');
      this.#timer = setTimeout(() => this.received(), LONGEST);
    }, DELAY);
  }

  /** The remote page has responded. */
  received() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.indicator.classList.remove('busy');
  }
}
