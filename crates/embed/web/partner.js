// The partner: what the page knows of it, and what it tells the embedding page.

import { words } from './words.js';

/**
 * @typedef {import('./link.js').State} State
 * @typedef {{ partner: string, platform: string, purpose: string | null, reads: string[], returnUrl: string | null, privacyUrl: string | null, reference: string }} Introduction
 */

/** Whether the page is in a frame. */
export const framed = window.top !== window;

/** Whether the page is the browser of an author's studio. */
export const inStudio = document.documentElement.dataset.studio !== undefined;

/** What the service tells about the session; empty for a link that is not valid. @type {Introduction} */
export const session = {
  partner: '', platform: '', purpose: null, reads: [], returnUrl: null, privacyUrl: null, reference: '',
  ...JSON.parse(document.documentElement.dataset.introduction ?? '{}'),
};

/**
 * Inserts the names of the partner and of the platform. Each is isolated, so that a name of another
 * direction does not change the order of the text around it.
 * @param {string} text
 */
export function named(text) {
  const isolated = (/** @type {string} */ name) => `\u2068${name}\u2069`;
  return text.replace('{partner}', () => isolated(session.partner || words.partner)).replace('{platform}', () => isolated(session.platform || words.platform));
}

/** The origin of the embedding page, as it states: a message to another origin is not delivered. */
const parent = origin(new URLSearchParams(location.hash.slice(1)).get('parent') ?? around());
const sessionId = location.pathname.split('/').pop();

function around() {
  const [nearest] = location.ancestorOrigins ?? [];
  if (nearest) return nearest;
  return document.referrer;
}

/** Returns the origin of a URL; nothing for other values, such as `*` for any origin. @param {string} address */
function origin(address) {
  return URL.canParse(address) ? new URL(address).origin : '';
}

let [status, progress] = ['CREATED', 0];
const told = { status: '', step: '', prompt: 0, isOpen: false, failure: '' };

/** @type {Record<string, string>} by the kind of the prompt */
const STEPS = { login: 'sign_in', account_picker: 'sign_in', captcha: 'sign_in', otp: 'second_factor', push: 'second_factor', security_question: 'second_factor', consent: 'consent' };
/** @type {Record<string, string>} by the status of the session */
const PHASES = { CREATED: 'starting', INITIALIZING: 'starting', READY: 'starting', CONNECTED: 'starting', LOADING_TREE: 'starting', COLLECTING_DATA: 'reading', VERIFYING: 'attesting' };

/**
 * Sends a message to the embedding page. It never has anything that the applicant entered or that was read.
 * @param {string} type
 * @param {object} [more]
 */
export function tell(type, more) {
  if (!framed || !parent.startsWith('http')) return;
  window.parent.postMessage({ v: 1, type, sessionId, status, progress, ...more }, parent);
}

/** The page is connected to the session. */
export function tellOpen() {
  if (!told.isOpen) tell('open');
  told.isOpen = true;
}

/** Tells what has changed. @param {State} state */
export function tellState({ status: now, progress: done, prompt, failure, outcome }) {
  [status, progress] = [now, done];
  tellOpen();
  if (told.status !== `${now} ${done}`) {
    told.status = `${now} ${done}`;
    tell('status');
  }
  const step = outcome ? 'done' : prompt ? STEPS[prompt.kind] : PHASES[now];
  if (step && step !== told.step) {
    told.step = step;
    tell('step', { step });
  }
  if (prompt && prompt.number !== told.prompt) {
    told.prompt = prompt.number;
    tell('awaiting', { kind: prompt.kind });
  }
  if (failure && !told.failure) tell('awaiting', { kind: 'retry', code: failure.code });
  else if (!failure && !outcome && told.failure) tell('retry', { code: told.failure });
  told.failure = failure?.code ?? '';
  if (!outcome) return;
  const { code } = outcome;
  if (now === 'CANCELLED') tell('exit', { code });
  else if (now === 'ERROR') tell('error', { code });
  tell('ended', { code });
}
