// The end: what was shared, or why nothing was, and what can be done about it.

import { element, made, write } from './dom.js';
import { named, session, tell } from './partner.js';
import { inOneLine } from './share.js';
import { moment } from './values.js';
import { reason, words } from './words.js';

/**
 * @typedef {import('./link.js').State} State
 * @typedef {import('./link.js').ShareItem} ShareItem
 */

/** @type {Record<string, 'done' | 'partial' | 'failed' | 'cancelled' | 'ended'>} */
const TITLES = {
  COMPLETED: 'done',
  PARTIAL_COMPLETE: 'partial',
  ERROR: 'failed',
  CANCELLED: 'cancelled',
  TERMINATED: 'ended',
};
/** What can be done about an error; by default, a new session may succeed. @type {Record<string, keyof typeof words.remedies>} */
const REMEDIES = {
  ACCOUNT_LOCKED: 'account',
  ACCOUNT_ACTION_REQUIRED: 'account',
  ALREADY_LOGGED_IN_ELSEWHERE: 'account',
  NO_DATA: 'contact',
  REQUIREMENTS_NOT_MET: 'contact',
  UNSUPPORTED_AUTH_METHOD: 'contact',
  WORKFLOW_INVALID: 'contact',
  WORKFLOW_NOT_FOUND: 'contact',
  PLATFORM_UNAVAILABLE: 'later',
  PLATFORM_RATE_LIMITED: 'later',
  BOT_DETECTED: 'later',
};

/**
 * @param {State} state
 * @param {ShareItem[]} agreed what the applicant agreed to share on this page; the service does not repeat the values
 */
export function showOutcome({ status, outcome }, agreed) {
  if (!outcome) return;
  const { shared, attested, missing, code } = outcome;
  const expired = code === 'SESSION_EXPIRED';
  write('outcome-title', expired ? words.expired : words[TITLES[status] ?? 'ended']);
  write('outcome-text', expired ? '' : named(text(outcome)));
  const failed = status === 'ERROR' || status === 'CANCELLED';
  write('outcome-remedy', failed ? named(words.remedies[REMEDIES[code ?? ''] ?? 'again']) : '');
  element('outcome-shared').replaceChildren(...shared.map((label, at) => {
    const item = made('li', label);
    const given = agreed.find((one) => one.label === label);
    if (given) item.append(': ', made('b', inOneLine(given)));
    const proved = attested[at] ?? null;
    if (proved !== null) item.append(' ', proof(proved));
    return item;
  }));
  element('outcome-data').hidden = shared.length === 0;
  element('outcome-missing').replaceChildren(...missing.map((label) => made('li', label)));
  element('outcome-gaps').hidden = missing.length === 0;
  element('outcome-facts').replaceChildren(...facts(outcome).flatMap(([name, value]) => [made('dt', name), made('dd', value)]));
  const print = element('print');
  print.hidden = shared.length === 0;
  print.onclick = () => window.print();
  offerReturn();
}

/** Offers the way back to the partner, if there is one. */
export function offerReturn() {
  const back = /** @type {HTMLAnchorElement} */ (element('return'));
  if (!session.returnUrl?.toLowerCase().startsWith('https://')) return;
  back.href = session.returnUrl;
  back.textContent = named(words.returnTo);
  back.hidden = false;
  back.onclick = () => tell('exit', { code: 'RETURNED' });
}

/** @param {NonNullable<State['outcome']>} outcome */
function text({ code, text: english, shared }) {
  if (shared.length && code === 'DATA_INCOMPLETE') return words.partialText;
  if (code) return reason(code, english);
  return shared.length ? words.doneText : words.endedText;
}

/** @param {NonNullable<State['outcome']>} outcome @returns {[string, string][]} */
function facts({ shared, at }) {
  /** @type {[string, string][]} */ const all = [];
  if (shared.length && session.partner) all.push([words.sharedWith, session.partner]);
  if (at) all.push([words.when, moment(new Date(at))]);
  if (session.reference) all.push([words.reference, session.reference]);
  return all;
}

/** Returns a label that shows whether a shared value is attested. @param {boolean} attested */
export function proof(attested) {
  const mark = document.createElement('small');
  mark.className = attested ? 'attested' : 'unattested';
  mark.textContent = attested ? words.attested : words.unattested;
  return mark;
}
