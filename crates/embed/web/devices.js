// Several devices: the code to continue on another one, a guest's request to join, and the guest's side.

import { element, made, write } from './dom.js';
import { inStudio } from './partner.js';
import { whole } from './values.js';
import { words } from './words.js';

/** @typedef {import('./link.js').Guest} Guest */
/** @typedef {(message: object) => void} Send */

const handover = /** @type {HTMLDialogElement} */ (element('handover'));
const admit = /** @type {HTMLDialogElement} */ (element('admit'));

/** Shows a code that opens the session on another device. @param {import('./link.js').Code} code */
export function showCode({ size, path, code }) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', `-4 -4 ${size + 8} ${size + 8}`);
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', words.phone);
  const modules = document.createElementNS(svg.namespaceURI, 'path');
  modules.setAttribute('d', path);
  svg.append(modules);
  element('code').replaceChildren(svg);
  element('typed-code').textContent = `\u2066${code.slice(0, 4)} ${code.slice(4)}\u2069`;
  if (!handover.open) handover.showModal();
}

/** The guest whose request is shown. @type {number | null} */
let asking = null;

/** Asks whether a guest may join. @param {number | null} guest @param {Send} send */
export function askAbout(guest, send) {
  if (guest === asking) return;
  asking = guest;
  admit.onclose = null;
  admit.close();
  if (guest === null) return;
  element('admit-text').replaceChildren(...withNumber(words.admitText, guest));
  admit.returnValue = '';
  admit.onclose = () => send({ t: 'admit', number: guest, allow: admit.returnValue === 'yes' });
  admit.showModal();
}

/** Inserts a number that people compare. @param {string} text @param {number} number */
function withNumber(text, number) {
  const [before = '', after = ''] = text.split('{number}');
  return [before, made('b', whole(number)), after];
}

/** Closes the dialogs of this module. */
export function quiet() {
  admit.onclose = null;
  for (const dialog of [admit, handover]) dialog.close();
  element('guest').hidden = true;
}

/** Shows a guest how to join. @param {Guest} guest @param {Send} send */
export function showGuest(guest, send) {
  const card = element('guest');
  element('guest-send').hidden = !guest.channel;
  element('guest-ask').onclick = () => send({ t: 'ask' });
  element('guest-send').onclick = () => send({ t: 'send' });
  const code = /** @type {HTMLInputElement} */ (element('guest-code'));
  element('guest-form').onsubmit = (event) => {
    event.preventDefault();
    send({ t: 'code', code: code.value.trim().slice(0, 64) });
    code.value = '';
  };
  code.setAttribute('aria-invalid', String(guest.answer === 'wrong_code' && guest.asking === null));
  const answer = guest.answer === null ? '' : words.guestAnswers[guest.answer];
  element('guest-answer').replaceChildren(...guest.asking === null ? [answer] : withNumber(words.guestAsking, guest.asking));
  if (!card.hidden) return;
  if (inStudio) {
    write('guest-title', words.studioOpen);
    write('guest-text', words.studioGuest);
  }
  card.hidden = false;
  card.focus();
}
