// The page as text: an outline of the remote page in place of its picture, for applicants who cannot
// see that. Every text is the remote page's, and is shown as text only.

import { element, made, write } from './dom.js';
import { words } from './words.js';

/**
 * @typedef {{ role: 'heading' | 'text' | 'link' | 'button' | 'field' | 'checkbox' | 'radio' | 'combobox' | 'image' | 'alert' | 'dialog' | 'list_item',
 *   name: string, level?: number, value?: string, node?: number, required?: true, invalid?: true, disabled?: true,
 *   checked?: boolean | 'mixed', expanded?: boolean, focused?: true, isPassword?: true }} Entry
 * @typedef {{ t: 'outline', entries: Entry[] | null, cut: boolean }} Outline
 */

/** Milliseconds between two requests: the service ignores earlier ones. */
const INTERVAL = 1100;
/** Milliseconds after an input at which its effects are looked for. */
const EFFECTS = [600, 2000];
/** Requests without an answer after which the applicant is told. */
const ATTEMPTS = 4;
/** Names of password fields that are remembered. */
const PASSWORDS = 100;
const KINDS = new Set(['activate', 'answer', 'back', 'close', 'fill', 'reload', 'text']);

export class OutlineView {
  #isOpen = false;
  #asked = 0;
  #failed = 0;
  #navigation = 0;
  #hasNavigated = false;
  /** What is shown, as it was received. */
  #shown = '';
  /** @type {{ key: string, item: HTMLLIElement }[]} */ #items = [];
  /** @type {string[]} */ #alerts = [];
  /** The names of the password fields of the remote page: its outline does not tell them apart. @type {Set<string>} */ #passwords = new Set();
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #waiting;

  /**
   * @param {(message: object) => void} send
   * @param {() => void} write called when a field is chosen: what is typed goes to the remote page
   */
  constructor(send, write) {
    this.send = send;
    this.write = write;
    element('text-refresh').addEventListener('click', () => this.#request());
  }

  /** The outline is shown, or is not shown any more. @param {boolean} isOpen */
  open(isOpen) {
    this.#isOpen = isOpen;
    this.#clear();
    if (!isOpen) return;
    this.#failed = 0;
    this.#note(words.moment);
    this.#request();
  }

  /**
   * The remote page may have changed.
   * @param {number} navigation
   * @param {import('./writer.js').Field[]} fields those in sight
   */
  changed(navigation, fields) {
    if (navigation !== this.#navigation) {
      this.#hasNavigated = true;
      this.#passwords.clear();
    }
    this.#navigation = navigation;
    for (const [, kind, , , label] of fields) {
      if (kind !== 'password') this.#passwords.delete(label);
      else if (label && this.#passwords.size < PASSWORDS) this.#passwords.add(label);
    }
    this.#request();
  }

  /** An input was sent to the remote page. @param {Record<string, unknown>} message */
  sent({ t, down, key }) {
    if (!this.#isOpen || !(KINDS.has(String(t)) || down === true && key === 'Enter')) return;
    for (const delay of EFFECTS) setTimeout(() => this.#request(), delay);
  }

  /** @param {Outline} outline */
  received({ entries, cut }) {
    if (!this.#isOpen) return;
    if (!entries) {
      this.#failed += 1;
      if (this.#failed < ATTEMPTS) this.#request();
      else this.#note(words.asTextFailed);
      return;
    }
    this.#failed = 0;
    const received = JSON.stringify([entries, cut, ...this.#passwords]);
    if (received === this.#shown) return;
    this.#show(entries, cut);
    this.#shown = received;
  }

  #request() {
    if (!this.#isOpen || this.#waiting !== undefined) return;
    const early = this.#asked + INTERVAL - performance.now();
    if (this.#asked && early > 0) {
      this.#waiting = setTimeout(() => {
        this.#waiting = undefined;
        this.#request();
      }, early);
      return;
    }
    this.#asked = performance.now();
    this.send({ t: 'outline' });
  }

  /** @param {Entry[]} entries @param {boolean} cut */
  #show(entries, cut) {
    const list = element('text-list');
    const focused = document.activeElement instanceof HTMLElement && list.contains(document.activeElement) ? document.activeElement : null;
    let level = 2;
    const items = entries.map(({ focused: _, ...entry }) => {
      // A level is never skipped: the levels of the remote page start anywhere.
      if (entry.role === 'heading') entry.level = level = Math.min((entry.level ?? 1) + 2, level + 1, 6);
      if (entry.role === 'field' && this.#passwords.has(entry.name)) entry.isPassword = true;
      return { key: JSON.stringify(entry), entry };
    });
    this.#replace(list, items);
    for (const [at, { item }] of this.#items.entries()) {
      item.querySelector('button')?.setAttribute('aria-current', String(entries[at]?.focused ?? false));
    }
    write('text-cut', cut ? words.asTextCut : entries.length ? '' : words.asTextFailed);
    this.#announce(entries);
    if (!focused || focused.isConnected) return;
    const same = /** @type {HTMLElement | null} */ (list.querySelector(`[data-node="${focused.dataset.node}"]`));
    (same ?? element('text')).focus({ preventScroll: true });
  }

  /**
   * Replaces what differs between the first and the last difference: a screen reader loses its place in
   * what is replaced.
   * @param {HTMLElement} list
   * @param {{ key: string, entry: Entry }[]} items
   */
  #replace(list, items) {
    const old = this.#items;
    let [start, end] = [0, 0];
    while (start < Math.min(old.length, items.length) && old[start]?.key === items[start]?.key) start += 1;
    while (end < Math.min(old.length, items.length) - start && old.at(-1 - end)?.key === items.at(-1 - end)?.key) end += 1;
    const fresh = items.slice(start, items.length - end).map(({ key, entry }) => ({ key, item: this.#item(entry) }));
    const after = old[old.length - end]?.item ?? null;
    for (const { item } of old.splice(start, old.length - end - start, ...fresh)) item.remove();
    for (const { item } of fresh) list.insertBefore(item, after);
  }

  /** @param {Entry} entry */
  #item(entry) {
    const item = document.createElement('li');
    if (entry.role === 'heading') {
      const heading = made('div', entry.name);
      heading.setAttribute('role', 'heading');
      heading.setAttribute('aria-level', String(entry.level));
      item.append(heading);
    } else {
      item.append(entry.node === undefined ? text(entry) : this.#control(entry, entry.node));
    }
    return item;
  }

  /** Tells that another page is shown, and what it reports. @param {Entry[]} entries */
  #announce(entries) {
    const alerts = entries.filter(({ role }) => role === 'alert').map(({ name }) => `\u2068${name}\u2069`);
    const fresh = alerts.filter((alert) => !this.#alerts.includes(alert));
    const told = this.#shown === '' ? [] : [this.#hasNavigated ? words.asTextChanged : '', ...fresh];
    this.#note(told.filter(Boolean).join(' '));
    this.#alerts = alerts;
    this.#hasNavigated = false;
  }

  /** @param {Entry} entry @param {number} node */
  #control(entry, node) {
    const { role, name, value, checked, expanded, disabled } = entry;
    const control = made('button', name || words.unnamed);
    control.setAttribute('type', 'button');
    control.dataset.node = String(node);
    if (value) control.append(': ', isolated(value));
    const kind = entry.isPassword ? 'password' : role;
    const notes = [kind === 'field' || kind === 'password' || kind === 'combobox' ? words.kinds[kind] : '',
      entry.required ? words.required : '', entry.invalid ? words.notAccepted : ''].filter(Boolean);
    if (notes.length) control.append(' ', made('small', notes.join(document.dir === 'rtl' ? '، ' : ', ')));
    if (role === 'link' || role === 'checkbox' || role === 'radio') control.setAttribute('role', role);
    if (checked !== undefined) control.setAttribute(role === 'list_item' ? 'aria-pressed' : 'aria-checked', String(role === 'radio' ? checked === true : checked));
    if (expanded !== undefined && role !== 'radio') control.setAttribute('aria-expanded', String(expanded));
    if (disabled) control.setAttribute('aria-disabled', 'true');
    else control.onclick = () => this.#activate(entry, node);
    return control;
  }

  /** @param {Entry} entry @param {number} node */
  #activate({ role }, node) {
    this.send({ t: 'activate', node });
    if (role !== 'field') return;
    for (const control of element('text-list').querySelectorAll('button')) {
      control.setAttribute('aria-current', String(control.dataset.node === String(node)));
    }
    this.write();
  }

  /** @param {string} text */
  #note(text) {
    element('text-note').textContent = text;
  }

  #clear() {
    clearTimeout(this.#waiting);
    this.#waiting = undefined;
    this.#shown = '';
    this.#alerts = [];
    this.#hasNavigated = false;
    this.#items = [];
    element('text-list').replaceChildren();
    write('text-cut', '');
    this.#note('');
  }
}

/** Returns an entry that is only read. @param {Entry} entry */
function text({ role, name }) {
  const shown = made('p', name);
  shown.dataset.role = role;
  const kind = role === 'image' || role === 'alert' || role === 'dialog' ? words.kinds[role] : '';
  if (kind) shown.prepend(made('small', kind), ' ');
  return shown;
}

/** @param {string} text */
function isolated(text) {
  const shown = document.createElement('bdi');
  shown.textContent = text;
  return shown;
}
