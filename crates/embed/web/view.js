// All of the page but the picture: where it is, what is expected, consent, the outcome.

/** @typedef {import('./link.js').State} State */

/** @param {string} id @returns {HTMLElement} */
function element(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element ${id}`);
  return found;
}

const TITLES = /** @type {Record<string, string>} */ ({
  COMPLETED: 'Done',
  PARTIAL_COMPLETE: 'Done, with gaps',
  ERROR: 'It did not work',
  CANCELLED: 'Cancelled',
  TERMINATED: 'Ended',
});

const REFUSED = /** @type {Record<string, string>} */ ({
  upload: 'Files cannot be sent from here.',
  download: 'Files cannot be saved from here.',
  elsewhere: 'That page is not part of this sign-in.',
});

const WAITING = new Set(['CREATED', 'INITIALIZING', 'READY', 'CONNECTED', 'LOADING_TREE']);

export class View {
  host = element('host');
  screen = /** @type {HTMLCanvasElement} */ (element('screen'));
  writer = /** @type {HTMLInputElement} */ (element('writer'));
  picker = /** @type {HTMLInputElement} */ (element('picker'));
  #ask = /** @type {HTMLDialogElement} */ (element('ask'));
  #asked = 0;
  #refused = 0;

  /** @param {State} state */
  show(state) {
    this.screen.dataset.status = state.status;
    element('progress').style.width = `${state.progress}%`;
    element('prompt').textContent = state.outcome ? '' : state.prompt?.text ?? 'One moment …';
    element('cancel').hidden = Boolean(state.outcome);
    const consent = state.prompt?.kind === 'consent' ? state.prompt : null;
    element('consent').hidden = !consent;
    if (consent) this.#consent(consent.text, consent.share);
    element('outcome').hidden = !state.outcome;
    if (state.outcome) {
      this.#outcome(state);
    } else if (WAITING.has(state.status)) {
      this.note(state.platform, 'Starting a secure browser …');
    } else {
      element('note').hidden = true;
      this.screen.hidden = false;
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
      this.#say(REFUSED[scene.refused.what] ?? '');
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
    element('ask-text').textContent = dialog.kind === 'leave' ? 'Leave this page? What you entered may be lost.' : dialog.message;
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
    // The host alone, its end always in sight: that is what tells sites apart.
    const host = origin.replace(/^https?:\/\//, '');
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
    this.note('Verify your account', 'You will sign in on a secure page. Nothing is shared before you agree.');
    const start = element('start');
    start.hidden = false;
    start.onclick = () => {
      start.hidden = true;
      begin();
    };
  }

  /** @param {string} title @param {string} text */
  finish(title, text) {
    this.screen.hidden = true;
    element('consent').hidden = true;
    element('cancel').hidden = true;
    element('prompt').textContent = '';
    this.note(title, text);
  }

  /** @param {string} text @param {[string, string][]} share */
  #consent(text, share) {
    element('consent-title').textContent = text;
    element('consent-fields').replaceChildren(...share.flatMap(([label, value]) => {
      const [term, detail] = [document.createElement('dt'), document.createElement('dd')];
      term.textContent = label;
      detail.textContent = value;
      return [term, detail];
    }));
  }

  /** @param {State} state */
  #outcome(state) {
    this.screen.hidden = true;
    this.host.textContent = '';
    element('note').hidden = true;
    element('outcome-title').textContent = TITLES[state.status] ?? state.status;
    element('outcome-text').textContent = state.outcome?.text ?? '';
    element('outcome-shared').replaceChildren(...(state.outcome?.shared ?? []).map((label) => {
      const item = document.createElement('li');
      item.textContent = label;
      return item;
    }));
  }
}
