// The page except the frames: the site, instructions, the introduction, consent.

import { element, made, write } from './dom.js';
import { proof, showOutcome } from './outcome.js';
import { inStudio, named, session } from './partner.js';
import { touch } from './pointer.js';
import { shown } from './share.js';
import { duration, whole } from './values.js';
import { reason, words } from './words.js';

/**
 * @typedef {import('./link.js').State} State
 * @typedef {'intro' | 'note' | 'text' | 'down' | 'consent' | 'address' | 'guest' | 'failed' | 'outcome'} Card
 */

/** @type {Card[]} */
const CARDS = ['intro', 'note', 'text', 'down', 'consent', 'address', 'guest', 'failed', 'outcome'];
/** What is announced of a card: its title is read with the focus. @type {Partial<Record<Card, string>>} */
const SPOKEN = { note: 'note-text', down: 'down-text', address: 'address-text', failed: 'failed-text', outcome: 'outcome-text' };
/** The times before the deadline of a step at which the applicant is warned, in milliseconds. */
const WARNINGS = [60_000, 20_000];
/** A step that has less time than this beyond a warning starts without it. */
const SLACK = 30_000;

const WAITING = new Set(['CREATED', 'INITIALIZING', 'READY', 'CONNECTED', 'LOADING_TREE']);

/**
 * Says that the session waits for a browser, and for how long where that is known.
 * @param {number} place @param {number | null} minutes
 */
function queued(place, minutes) {
  const expected = minutes && words.expected.replace('{time}', duration(minutes * 60_000));
  return [words.full, words.place.replace('{number}', whole(place)), expected].filter(Boolean).join(' ');
}

export class View {
  screen = /** @type {HTMLCanvasElement} */ (element('screen'));
  writer = /** @type {HTMLInputElement} */ (element('writer'));
  picker = /** @type {HTMLInputElement} */ (element('picker'));
  #ask = /** @type {HTMLDialogElement} */ (element('ask'));
  /** What scrolls if its content is long. */
  #areas = /** @type {HTMLElement[]} */ ([...document.querySelectorAll('.stage, .text, .scroll, #prompt')]);
  #asked = 0;
  #refused = 0;
  #at = '';
  /** @type {State | null} */ #state = null;
  /** Whether the introduction waits for the applicant. */
  #introduces = false;
  #isBranded = element('brand').childNodes.length > 0;
  #isDown = false;
  /** Whether the remote page is shown as text where it would be shown as a picture. */
  #isText = false;
  /**
   * Called when the remote page begins or ends to be shown as text.
   * @type {(isShown: boolean) => void}
   */
  onText = () => undefined;
  #isLost = false;
  /** Whether no further state is expected. */
  #isOver = false;
  /** Whether the applicant has used the page: only then it takes the focus. */
  #isUsed = window.top === window;
  /** The fields that the applicant was asked to share last. @type {import('./link.js').ShareItem[]} */ #share = [];
  /** The number of the current prompt. */
  prompt = 0;

  constructor() {
    addEventListener('pointerdown', () => { this.#isUsed = true; }, { capture: true });
    addEventListener('keydown', () => { this.#isUsed = true; }, { capture: true });
    // The team's name stands for its brand, where the site leaves room for it.
    if (!this.#isBranded) element('brand').textContent = session.partner;
    element('brand').title = session.partner;
    element('more').onclick = () => this.#expand(element('more').getAttribute('aria-expanded') !== 'true');
    new ResizeObserver(() => this.#measure()).observe(element('prompt'));
    const scrolling = new ResizeObserver(() => this.#scrolls());
    for (const area of [...this.#areas, this.screen]) scrolling.observe(area);
  }

  /**
   * Shows who asks, why, and what will happen.
   * @param {() => void} begin called once, when the applicant starts
   */
  introduce(begin) {
    this.#introduces = true;
    write('intro-title', named(words.introTitle));
    write('intro-purpose', session.purpose ?? '');
    write('intro-password', named(words.password));
    element('intro-fields').replaceChildren(...session.reads.map((label) => made('li', label)));
    element('intro-reads').hidden = session.reads.length === 0;
    const isLinked = session.privacyUrl?.toLowerCase().startsWith('https://');
    element('intro-privacy').hidden = !isLinked;
    if (isLinked) element('intro-privacy-link').setAttribute('href', session.privacyUrl ?? '');
    write('intro-privacy-link', named(words.privacy));
    const start = element('start');
    start.hidden = false;
    start.onclick = () => {
      if (!this.#introduces) return;
      this.#introduces = false;
      start.hidden = true;
      begin();
      this.#render();
      this.#focus();
    };
    this.#render();
  }

  /** @param {State} state */
  show(state) {
    this.#state = state;
    this.#isLost = false;
    this.screen.dataset.status = state.status;
    this.prompt = state.prompt?.number ?? 0;
    this.#progress(state.progress);
    this.#warn(state);
    const consent = state.prompt?.kind === 'consent' ? state.prompt : null;
    if (consent) this.#consent(consent);
    if (state.prompt?.kind === 'custom_url') this.#address();
    if (state.failure) {
      const { code, text, left } = state.failure;
      this.#quiet();
      write('failed-text', named(reason(code, text)));
      write('failed-left', words.attemptsLeft.replace('{number}', whole(left)));
    }
    if (state.outcome) {
      this.#quiet();
      this.#isOver = true;
      showOutcome(state, this.#share);
    } else if (WAITING.has(state.status)) {
      this.#note(state.platform, state.place === null ? words.starting : queued(state.place, state.waitMinutes));
    } else if (state.status === 'VERIFYING') {
      this.#note(words.attesting, words.certifying);
    }
    this.#render();
  }

  /** Shows the one card that fits the state, and what belongs to it. */
  #render() {
    const state = this.#state;
    const card = this.#card();
    const before = CARDS.find((name) => !element(name).hidden) ?? null;
    for (const name of CARDS) element(name).hidden = name !== card;
    // Neither the remote page nor input is needed while data is attested.
    const open = Boolean(state) && !this.#isOver && !state?.outcome && state?.status !== 'VERIFYING';
    this.screen.hidden = !open || WAITING.has(state?.status ?? '') || card === 'guest' || card === 'failed';
    const active = !this.screen.hidden && (card === null || card === 'text' || card === 'down');
    for (const name of ['back', 'reload']) element(name).hidden = !active;
    const isText = card === 'text';
    element('read').hidden = !active || card === 'down';
    element('read').setAttribute('aria-expanded', String(isText));
    // The list stands for the picture.
    this.screen.tabIndex = isText ? -1 : 0;
    this.screen.ariaHidden = isText ? 'true' : null;
    // A code that opens the page on a phone is useless on a phone.
    element('phone').hidden = touch || this.screen.hidden || card === 'consent' || card === 'address' || card === 'intro' || this.#isLost;
    // Nothing can be sent while the connection is lost.
    element('cancel').hidden = !open || card === 'guest' || card === 'failed' || this.#isLost;
    document.body.toggleAttribute('data-lost', this.#isLost);
    element('note').toggleAttribute('data-over', this.#isOver);
    this.#site();
    // For a link that is not valid there is no partner to name.
    if (card === 'address') {
      const isWrong = element('address-input').hasAttribute('aria-invalid');
      // Without a text of the platform's own, the title says the same.
      write('address-text', isWrong || this.#state?.prompt?.translated ? this.#instruction() : '');
    }
    const isTitled = card === 'intro' || card === 'failed' || card === 'address' || !session.partner;
    this.#instruct(isTitled ? words.title : open && card !== 'down' ? this.#instruction() : '');
    this.#scrolls();
    this.#announce(card);
    if (card === before) return;
    this.#focus(card);
    if (isText || before === 'text') this.onText(isText);
  }

  /** @returns {Card | null} */
  #card() {
    const state = this.#state;
    if (state?.outcome) return 'outcome';
    if (this.#isOver || this.#isLost) return 'note';
    if (this.#introduces) return 'intro';
    if (!state) return 'note';
    if (state.failure) return 'failed';
    if (state.prompt?.kind === 'consent') return 'consent';
    if (state.prompt?.kind === 'custom_url') return 'address';
    if (WAITING.has(state.status) || state.status === 'VERIFYING') return 'note';
    if (this.#isDown) return 'down';
    return this.#isText ? 'text' : null;
  }

  /** Shows the remote page as text, or as a picture again. */
  toggleText() {
    this.#isText = !this.#isText;
    this.#render();
  }

  #instruction() {
    const prompt = this.#state?.prompt;
    if (!prompt) return words.moment;
    return prompt.translated ? prompt.text : named(words.prompts[prompt.kind] ?? prompt.text);
  }

  /** Shows the site while its page is shown. */
  #site() {
    const shown = !this.screen.hidden && this.#at !== '';
    element('host').hidden = !shown;
    element('brand').hidden = shown && !this.#isBranded;
  }

  /** @param {string} text */
  #instruct(text) {
    const prompt = element('prompt');
    // Setting the same text again would announce it again.
    if (prompt.textContent !== text) {
      prompt.textContent = text;
      this.#expand(false);
    }
    this.#measure();
  }

  /** Offers the whole instruction where it is cut. */
  #measure() {
    const [prompt, more] = [element('prompt'), element('more')];
    if (more.getAttribute('aria-expanded') === 'true') return;
    more.hidden = prompt.scrollHeight <= prompt.clientHeight + 1;
  }

  /** @param {boolean} open */
  #expand(open) {
    element('more').setAttribute('aria-expanded', String(open));
    element('step').classList.toggle('open', open);
    this.#scrolls();
  }

  /** What scrolls can be scrolled by keyboard. A card takes the focus in any case. */
  #scrolls() {
    for (const area of this.#areas) {
      const isCut = area.scrollHeight > area.clientHeight + 1 && getComputedStyle(area).overflowY === 'auto';
      if (isCut) area.tabIndex = 0;
      else if (area.classList.contains('card')) area.tabIndex = -1;
      else area.removeAttribute('tabindex');
    }
  }

  /**
   * Moves the focus to what is new: a card, or else the remote page. A page that the applicant has not
   * used leaves the focus where it is in the partner's page.
   * @param {Card | null} [card]
   */
  #focus(card = CARDS.find((name) => !element(name).hidden) ?? null) {
    if (!this.#isUsed || !this.#state && this.#introduces) return;
    if (card) element(card).focus({ preventScroll: true });
    else if (!touch) this.screen.focus({ preventScroll: true });
  }

  #announced = '';

  /**
   * Tells a screen reader what a card says, with its title where that does not get the focus.
   * @param {Card | null} card
   */
  #announce(card) {
    const id = card ? SPOKEN[card] : undefined;
    const title = id && !this.#isUsed ? element(`${card}-title`).textContent : '';
    const text = id ? [title, element(id).textContent].filter(Boolean).join(' ') : '';
    if (text && text !== this.#announced) element('spoken').textContent = text;
    this.#announced = text;
  }

  /** @param {number} percent */
  #progress(percent) {
    element('progress').style.width = `${percent}%`;
    element('bar').setAttribute('aria-valuenow', String(percent));
  }

  /** @type {ReturnType<typeof setTimeout>[]} */ #warnings = [];
  #warned = { prompt: 0, from: Infinity };

  /** Warns when little time is left for the current step. @param {State} state */
  #warn({ prompt }) {
    this.#warnings.forEach(clearTimeout);
    this.#warnings = [];
    if (!prompt) return;
    const { number, left } = prompt;
    if (this.#warned.prompt !== number) {
      this.#warned = { prompt: number, from: left };
      // What was said was about the step before.
      element('said').textContent = '';
    }
    for (const warning of WARNINGS) {
      if (left < warning || this.#warned.from < warning + SLACK && warning !== Math.min(...WARNINGS)) continue;
      this.#warnings.push(setTimeout(() => this.#say(words.left.replace('{time}', duration(warning))), left - warning));
    }
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
    if (scene.unreachable !== this.#isDown) {
      this.#isDown = scene.unreachable;
      write('down-title', named(words.unreachable));
      this.#render();
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
    // No button of the form: that would be the one for Enter in the answer.
    element('ask-no').onclick = () => this.#ask.close();
    element('ask-no').hidden = dialog.kind === 'alert';
    this.#ask.returnValue = '';
    this.#ask.onclose = () => {
      send({ t: 'answer', dialog: dialog.id, accept: this.#ask.returnValue === 'yes' || dialog.kind === 'alert', text: answer.value.slice(0, 1000) });
      answer.value = '';
      if (element('text').hidden) this.writer.focus({ preventScroll: true });
      else this.#focus();
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
    if (host === this.#at) return;
    this.#at = host;
    element('host').title = words.site;
    element('lock').classList.toggle('absent', !origin.startsWith('https:'));
    element('site').textContent = `\u2066${host}\u2069`;
    this.#site();
  }

  /** @param {string} title @param {string} text */
  #note(title, text) {
    write('note-title', title);
    write('note-text', text);
  }

  /** The connection is lost, and will be tried again. */
  lost() {
    this.#isLost = true;
    this.#note(words.lost, words.again);
    this.#render();
  }

  /** Asks before the session is cancelled; by default it goes on. @param {() => void} cancel */
  confirmCancel(cancel) {
    const dialog = /** @type {HTMLDialogElement} */ (element('leave'));
    dialog.returnValue = '';
    dialog.onclose = () => {
      if (dialog.returnValue === 'yes') cancel();
      else this.#focus();
    };
    if (!dialog.open) dialog.showModal();
  }

  /** Another page took over; this one can take the session back. @param {() => void} again */
  replaced(again) {
    if (inStudio) this.finish(words.studioOpen, words.studioReplaced);
    else this.finish(words.replaced, words.replacedText);
    const start = element('start');
    element('note').append(start.parentElement ?? start);
    start.textContent = words.here;
    start.hidden = false;
    start.onclick = again;
  }

  /** The session is on another device. @param {import('./link.js').Guest} guest */
  elsewhere({ status, progress }) {
    this.screen.dataset.status = status;
    this.#isLost = false;
    this.#progress(progress);
    for (const name of CARDS) if (name !== 'guest') element(name).hidden = true;
    this.screen.hidden = true;
    for (const name of ['cancel', 'back', 'reload', 'read', 'phone', 'host']) element(name).hidden = true;
    this.#introduces = false;
    this.#isText = false;
    this.onText(false);
    this.#instruct('');
  }

  /** @param {string} title @param {string} text */
  finish(title, text) {
    this.#quiet();
    this.#isOver = true;
    this.#introduces = false;
    this.#note(title, text);
    this.#render();
  }

  /** @param {import('./link.js').Prompt} prompt */
  #consent({ share, witnessed, unconfirmed }) {
    this.#share = share;
    write('consent-title', named(words.consentTitle));
    element('consent-fields').replaceChildren(...share.flatMap((item) => {
      const value = shown(item);
      if (item.attested) {
        const mark = proof(true);
        mark.textContent = words.willAttest;
        mark.classList.add('planned');
        value.append(mark);
      }
      return [made('dt', item.label), value];
    }));
    element('consent-witnessed').hidden = !witnessed;
    element('consent-unconfirmed').hidden = !unconfirmed;
  }

  /** Shows what is wrong with the address that was sent. */
  #address() {
    write('address-title', named(words.prompts.custom_url));
    const [form, input] = [element('address-form'), element('address-input')];
    const isWrong = form.hasAttribute('data-sent');
    form.removeAttribute('data-sent');
    if (isWrong) input.setAttribute('aria-invalid', 'true');
    else input.removeAttribute('aria-invalid');
  }

  /** Closes all dialogs and cancels the warnings. */
  #quiet() {
    this.#warnings.forEach(clearTimeout);
    element('said').textContent = '';
    for (const name of ['ask', 'handover', 'admit', 'leave']) {
      const dialog = /** @type {HTMLDialogElement} */ (element(name));
      dialog.onclose = null;
      dialog.close();
    }
  }
}
