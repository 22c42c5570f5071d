// The page except the frames: the origin, instructions, consent, the outcome.

import { touch } from './pointer.js';
import { reason, words } from './words.js';

/** @typedef {import('./link.js').State} State */

/** @param {string} id @returns {HTMLElement} */
function element(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element ${id}`);
  return found;
}

/** @type {Record<string, 'done' | 'partial' | 'failed' | 'cancelled' | 'ended'>} */
const TITLES = {
  COMPLETED: 'done',
  PARTIAL_COMPLETE: 'partial',
  ERROR: 'failed',
  CANCELLED: 'cancelled',
  TERMINATED: 'ended',
};
/** The time before the deadline of a step at which the applicant is warned. */
const WARNING = 60_000;

const WAITING = new Set(['CREATED', 'INITIALIZING', 'READY', 'CONNECTED', 'LOADING_TREE']);

export class View {
  host = element('host');
  screen = /** @type {HTMLCanvasElement} */ (element('screen'));
  writer = /** @type {HTMLInputElement} */ (element('writer'));
  picker = /** @type {HTMLInputElement} */ (element('picker'));
  #ask = /** @type {HTMLDialogElement} */ (element('ask'));
  #asked = 0;
  #refused = 0;
  #at = '';
  /** The number of the current prompt. */
  prompt = 0;

  /** @param {State} state */
  show(state) {
    this.screen.dataset.status = state.status;
    this.prompt = state.prompt?.number ?? 0;
    element('guest').hidden = true;
    element('progress').style.width = `${state.progress}%`;
    element('bar').setAttribute('aria-valuenow', String(state.progress));
    element('prompt').textContent = state.outcome ? '' : state.prompt?.text ?? words.moment;
    this.#warn(state.prompt?.left);
    element('cancel').hidden = Boolean(state.outcome);
    const consent = state.prompt?.kind === 'consent' ? state.prompt : null;
    const asked = Boolean(consent) && element('consent').hidden;
    element('consent').hidden = !consent;
    if (consent) this.#consent(consent);
    if (asked) element('consent').focus();
    element('outcome').hidden = !state.outcome;
    if (state.outcome) {
      this.#outcome(state);
    } else if (WAITING.has(state.status)) {
      this.note(state.platform, state.place === null ? words.starting : `${words.full} ${words.place.replace('{number}', String(state.place))}`);
    } else if (state.status === 'VERIFYING') {
      // Neither the remote page nor input is needed any more.
      this.screen.hidden = true;
      this.note(state.platform, words.certifying);
    } else {
      element('note').hidden = true;
      this.screen.hidden = false;
    }
    // A code that opens the page on a phone is useless on a phone.
    element('phone').hidden = touch || this.screen.hidden || Boolean(consent);
  }

  /** @type {ReturnType<typeof setTimeout> | undefined} */ #warning;

  /** Warns when little time is left for the current step. @param {number | undefined} left milliseconds */
  #warn(left) {
    clearTimeout(this.#warning);
    if (left === undefined) return;
    this.#warning = setTimeout(() => this.#say(words.minute), Math.max(0, left - WARNING));
  }

  /**
   * @param {import('./link.js').Scene} scene
   * @param {(message: object) => void} send
   */
  scene(scene, send) {
    element('close').hidden = scene.pages < 2;
    if (scene.refused && scene.refused.count > this.#refused) {
      this.#refused = scene.refused.count;
      this.#say(words[scene.refused.what]);
    }
    const { dialog } = scene;
    if (!dialog) {
      this.#ask.close();
    } else if (dialog.id !== this.#asked || !this.#ask.open) {
      this.#asked = dialog.id;
      this.#question(dialog, send);
    }
  }

  /**
   * @param {import('./link.js').Dialog} dialog
   * @param {(message: object) => void} send
   */
  #question(dialog, send) {
    element('ask-title').textContent = words.asks.replace('{host}', `\u2068${this.#at}\u2069`);
    element('ask-text').textContent = dialog.kind === 'leave' ? words.leave : dialog.message;
    const answer = /** @type {HTMLInputElement} */ (element('ask-answer'));
    answer.hidden = dialog.kind !== 'prompt';
    answer.value = '';
    element('ask-no').hidden = dialog.kind === 'alert';
    this.#ask.returnValue = '';
    this.#ask.onclose = () => {
      send({ t: 'answer', dialog: dialog.id, accept: this.#ask.returnValue === 'yes' || dialog.kind === 'alert', text: answer.value.slice(0, 1000) });
      answer.value = '';
      this.writer.focus({ preventScroll: true });
    };
    if (!this.#ask.open) this.#ask.showModal();
  }

  /** @type {ReturnType<typeof setTimeout> | undefined} */ #saying;

  /** @param {string} text */
  #say(text) {
    const said = element('said');
    said.textContent = text;
    clearTimeout(this.#saying);
    this.#saying = setTimeout(() => { said.textContent = ''; }, 8000);
  }

  /** @param {string} origin */
  at(origin) {
    // Only the host, with its end always visible, because that identifies the site.
    const host = origin.replace(/^https?:\/\//, '');
    this.#at = host;
    this.host.title = words.site;
    this.host.textContent = `\u2066${origin.startsWith('https:') ? '🔒 ' : ''}${host}\u2069`;
  }

  /** @param {string} title @param {string} text */
  note(title, text) {
    element('note-title').textContent = title;
    element('note-text').textContent = text;
    element('note').hidden = false;
  }

  /** @param {() => void} begin */
  offerStart(begin) {
    this.note(words.title, words.startText);
    this.#offer(words.start, begin);
  }

  /** @param {string} name @param {() => void} begin */
  #offer(name, begin) {
    const start = element('start');
    start.textContent = name;
    start.hidden = false;
    start.onclick = () => {
      start.hidden = true;
      begin();
    };
  }

  /** Another page took over; this one can take the session back. @param {() => void} again */
  replaced(again) {
    this.finish(words.replaced, words.replacedText);
    this.#offer(words.here, again);
  }

  /** The session is on another device. @param {import('./link.js').Guest} guest */
  elsewhere({ status, progress }) {
    this.screen.dataset.status = status;
    element('progress').style.width = `${progress}%`;
    element('bar').setAttribute('aria-valuenow', String(progress));
    element('note').hidden = true;
    this.screen.hidden = true;
    element('cancel').hidden = true;
    element('prompt').textContent = '';
  }

  /** @param {string} title @param {string} text */
  finish(title, text) {
    this.#quiet();
    this.screen.hidden = true;
    element('consent').hidden = true;
    element('cancel').hidden = true;
    element('prompt').textContent = '';
    this.note(title, text);
  }

  /** @param {import('./link.js').Prompt} prompt */
  #consent({ text, share, witnessed }) {
    element('consent-title').textContent = text;
    element('consent-fields').replaceChildren(...share.flatMap(([label, value]) => {
      const [term, detail] = [document.createElement('dt'), document.createElement('dd')];
      term.textContent = label;
      detail.textContent = value;
      return [term, detail];
    }));
    element('consent-witnessed').hidden = !witnessed;
  }

  /** @param {State} state */
  #outcome(state) {
    this.#quiet();
    this.screen.hidden = true;
    this.host.textContent = '';
    element('note').hidden = true;
    element('outcome-title').textContent = words[TITLES[state.status] ?? 'ended'];
    element('outcome-text').textContent = this.#why(state);
    element('outcome-shared').replaceChildren(...(state.outcome?.shared ?? []).map((label, at) => {
      const item = document.createElement('li');
      item.textContent = label;
      const attested = state.outcome?.attested[at] ?? null;
      if (attested !== null) item.append(' ', proof(attested));
      return item;
    }));
    element('outcome').focus();
  }

  /** @param {State} state */
  #why({ outcome }) {
    if (!outcome) return '';
    if (outcome.code) return reason(outcome.code, outcome.text);
    return outcome.shared.length ? words.doneText : words.endedText;
  }

  /** Closes all dialogs and cancels the warning. */
  #quiet() {
    clearTimeout(this.#warning);
    for (const name of ['ask', 'handover', 'admit']) /** @type {HTMLDialogElement} */ (element(name)).close();
    element('phone').hidden = true;
  }
}

/** Returns a label that shows whether a shared value is attested. @param {boolean} attested */
function proof(attested) {
  const mark = document.createElement('small');
  mark.className = attested ? 'attested' : 'unattested';
  mark.textContent = attested ? words.attested : words.unattested;
  return mark;
}
