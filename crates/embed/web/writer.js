// A local input field over the focused remote one, so that the phone's keyboard, input methods, paste
// and codes from messages work. Its text is sent on immediately and never kept.

import { element } from './dom.js';
import { mac, modifiers, touch } from './pointer.js';
import { words } from './words.js';

/**
 * @typedef {import('./screen.js').Screen} Screen
 * @typedef {[place: [number, number, number, number], kind: string, mode: string, complete: string, label: string, error: string]} Field
 */

/** Characters of one paste. */
const LONGEST = 10_000;
/** A character to delete, so that a phone's keyboard reports deletions. */
const NOTHING = '\u200b';
const PICKED = new Set(['date', 'time', 'datetime-local', 'month', 'week']);
const TYPES = new Set(['email', 'number', 'password', 'search', 'tel', 'text', 'url']);
const KEYS = /** @type {Record<string, [key: string, code: number]>} */ ({
  deleteContentBackward: ['Backspace', 8],
  deleteWordBackward: ['Backspace', 8],
  deleteContentForward: ['Delete', 46],
  insertLineBreak: ['Enter', 13],
  insertParagraph: ['Enter', 13],
});

export class Writer {
  /** @type {Field[]} */ #fields = [];
  /** @type {Field | null} */ #focused = null;
  #composing = false;
  /** The keys whose press was sent. @type {Set<string>} */ #pressed = new Set();

  /**
   * @param {HTMLInputElement} field
   * @param {HTMLInputElement} picker
   * @param {Screen} screen
   * @param {(message: object) => void} send
   */
  constructor(field, picker, screen, send) {
    this.field = field;
    this.picker = picker;
    this.screen = screen;
    this.send = send;
    this.#listen();
    this.#empty();
    new ResizeObserver(() => this.#place()).observe(screen.canvas);
    visualViewport?.addEventListener('resize', () => this.#uncover());
  }

  /** Focuses the local field. */
  focus() {
    this.field.focus({ preventScroll: true });
  }

  /**
   * Updates the editable fields of the remote page, and the focused one.
   * @param {Field[]} fields
   * @param {number | null} focused
   */
  show(fields, focused) {
    this.#fields = fields;
    this.screen.canvas.dataset.fields = String(fields.length);
    this.#focused = fields[focused ?? -1] ?? null;
    this.#become(this.#focused);
    this.#announce(this.#focused);
    this.#reveal(this.#focused);
    if (!touch) return;
    if (this.#focused) this.focus();
    else if (document.activeElement === this.field) this.field.blur();
  }

  /** Handles the end of a touch. @param {{ x: number, y: number }} at */
  tap({ x, y }) {
    const hit = this.#fields.find(([[left, top, width, height]]) => x >= left && y >= top && x <= left + width && y <= top + height);
    if (!hit) return;
    this.#become(hit);
    this.focus();
  }

  #announced = '';

  /**
   * Tells a screen reader which remote field has the focus: the local field stays the same one, so
   * that a change of its name is not announced.
   * @param {Field | null} field
   */
  #announce(field) {
    const [, kind, , , label, error] = field ?? [null, '', '', '', '', ''];
    const type = words.fieldTypes[/** @type {keyof typeof words.fieldTypes} */ (kind)] ?? words.fieldTypes.text;
    const text = field ? [label, type, error].filter(Boolean).join(', ') : '';
    if (text === this.#announced) return;
    this.#announced = text;
    if (text) element('spoken').textContent = text;
  }

  #revealed = '';

  /**
   * Scrolls the stage to the focused field, once: the applicant may scroll on.
   * @param {Field | null} field
   */
  #reveal(field) {
    const [place, kind, , , label] = field ?? [];
    // Only a field that is scrolled keeps its distance from the left.
    const name = [place?.[0], kind, label].join();
    if (place && name !== this.#revealed) this.screen.reveal(place);
    this.#revealed = name;
  }

  /** @param {Field | null} field */
  #become(field) {
    const [, kind, mode, complete, label, error] = field ?? [[0, 0, 0, 0], 'text', 'none', 'off', '', ''];
    for (const target of [this.field, this.picker]) target.setAttribute('aria-label', label || words.screen);
    this.field.setAttribute('aria-invalid', String(error !== ''));
    const type = TYPES.has(kind) ? kind : 'text';
    // A numeric field would not accept an incomplete number.
    this.field.type = type === 'number' ? 'text' : type;
    this.field.inputMode = field ? mode || (type === 'number' ? 'decimal' : '') : touch ? 'none' : '';
    this.field.autocomplete = complete === 'one-time-code' ? complete : 'off';
    this.field.enterKeyHint = kind === 'search' ? 'search' : 'go';
    this.picker.hidden = !PICKED.has(kind);
    if (!this.picker.hidden) this.picker.type = kind;
    this.#place();
  }

  #place() {
    const place = this.#focused?.[0] ?? [0, 0, 0, 0];
    const box = this.screen.box(place);
    const { stage } = this.screen;
    const around = stage.getBoundingClientRect();
    // What is below the picture would be scrolled to.
    const bottom = this.screen.canvas.getBoundingClientRect().bottom;
    for (const over of [this.field, this.picker]) {
      over.style.left = `${box.left - around.left}px`;
      over.style.top = `${box.top - around.top + stage.scrollTop}px`;
      over.style.width = `${Math.max(1, box.width)}px`;
      over.style.height = `${Math.max(1, Math.min(box.height, bottom - box.top))}px`;
    }
  }

  /** Moves the page up if the phone's keyboard covers the field. */
  #uncover() {
    const { stage } = this.screen;
    const seen = visualViewport;
    if (!seen) return;
    stage.style.transform = '';
    if (!this.#focused) return;
    const { top, height } = this.screen.box(this.#focused[0]);
    const hidden = top + height + 12 - (seen.offsetTop + seen.height);
    if (hidden > 0) stage.style.transform = `translateY(${-hidden}px)`;
  }

  #empty() {
    this.field.value = NOTHING;
  }

  /** @param {string} text */
  #text(text) {
    const letters = [...text.replaceAll(NOTHING, '')].slice(0, LONGEST).join('');
    if (letters) this.send({ t: 'text', text: letters });
  }

  #listen() {
    const { field, picker } = this;
    // Scripts send keys to the screen itself, which partners know as the input element.
    for (const target of /** @type {HTMLElement[]} */ ([field, this.screen.canvas])) {
      target.addEventListener('keydown', (event) => this.#key(true, event));
      target.addEventListener('keyup', (event) => this.#key(false, event));
    }
    field.addEventListener('beforeinput', (event) => this.#before(event));
    field.addEventListener('input', (event) => {
      // Filled in by the device, such as a code from a message.
      if (this.#composing || /** @type {InputEvent} */ (event).isComposing) return;
      this.#text(field.value);
      this.#empty();
    });
    field.addEventListener('compositionstart', () => { this.#composing = true; });
    field.addEventListener('compositionupdate', (event) => {
      this.send({ t: 'compose', text: event.data.replaceAll(NOTHING, '').slice(0, 500) });
    });
    field.addEventListener('compositionend', (event) => {
      this.#composing = false;
      if (event.data) this.#text(event.data);
      else this.send({ t: 'compose', text: '' });
      // The keyboard is still handling the event: changing the field now would confuse it.
      setTimeout(() => { if (!this.#composing) this.#empty(); });
    });
    field.addEventListener('paste', (event) => {
      event.preventDefault();
      this.#text(event.clipboardData?.getData('text/plain') ?? '');
    });
    for (const type of /** @type {const} */ (['copy', 'cut', 'drop', 'dragover'])) field.addEventListener(type, (event) => event.preventDefault());
    picker.addEventListener('click', () => picker.showPicker?.());
    picker.addEventListener('change', () => {
      this.send({ t: 'fill', value: picker.value });
      picker.value = '';
      this.focus();
    });
    // Focus by the Tab key enables writing as well.
    this.screen.canvas.addEventListener('focus', () => this.focus());
  }

  /** @param {InputEvent} event */
  #before(event) {
    if (event.inputType === 'insertCompositionText' || event.isComposing) return;
    const [key, code] = KEYS[event.inputType] ?? [];
    if (key && code) {
      event.preventDefault();
      this.#press(key, code);
    } else if (event.inputType === 'insertText' && event.data) {
      event.preventDefault();
      this.#text(event.data);
    }
  }

  /** @param {string} key @param {number} keyCode */
  #press(key, keyCode) {
    for (const down of [true, false]) this.send({ t: 'key', down, key, code: key, keyCode, repeat: false, modifiers: 0 });
  }

  /**
   * Handles the keys by which browsers reload a page and go back: they are for the remote page.
   * @param {boolean} down
   * @param {KeyboardEvent} event
   */
  #browses(down, event) {
    const command = mac ? event.metaKey : event.ctrlKey && !event.getModifierState('AltGraph');
    const reloads = event.key === 'F5' || (command && event.key.toLowerCase() === 'r');
    const leaves = mac ? event.metaKey && event.key === '[' : event.altKey && event.key === 'ArrowLeft';
    if (!reloads && !leaves) return false;
    event.preventDefault();
    if (down && !event.repeat) this.send({ t: reloads ? 'reload' : 'back' });
    return true;
  }

  /**
   * @param {boolean} down
   * @param {KeyboardEvent} event
   */
  #key(down, event) {
    const { key } = event;
    // Tab and Escape go to the remote page; this key moves the focus out (WCAG 2.2, 2.1.2).
    if (key === 'F6') {
      event.preventDefault();
      const list = element('text');
      if (down) (list.hidden ? element('cancel') : /** @type {HTMLElement} */ (list.querySelector('[aria-current=true]') ?? list)).focus();
      return;
    }
    if (this.#browses(down, event)) return;
    const command = mac ? event.metaKey : event.ctrlKey && !event.getModifierState('AltGraph');
    // The device's own paste event has the text. Composed text arrives as text, and so does that of a
    // phone's keyboard, which sends no keys.
    const ours = (command && key.toLowerCase() === 'v') || event.isComposing || event.keyCode === 229
      || key === 'Unidentified' || key === 'Dead' || key === 'Process';
    if (ours) return;
    event.preventDefault();
    // A key that was pressed elsewhere, such as Enter on a button that moves the focus here.
    if (!down && !this.#pressed.has(event.code)) return;
    if (down) this.#pressed.add(event.code);
    else this.#pressed.delete(event.code);
    // Text that is copied in the remote browser stays there.
    this.send({ t: 'key', down, key: key.slice(0, 32), code: event.code.slice(0, 32), keyCode: event.keyCode, repeat: event.repeat, modifiers: modifiers(event) });
  }
}
