// The texts of the page, in the applicant's language if it is available, or else in English.

import english from './words/en.js';

/** @typedef {import('./words/en.js').Words} Words */

const KNOWN = new Set(['ar', 'de', 'es', 'fr', 'it', 'nl', 'pl', 'pt', 'tr']);
const RIGHT_TO_LEFT = new Set(['ar']);

/** @type {Words} */
export let words = english;

/** The applicant's languages: that of the notification, and those of the browser. */
const languages = [document.documentElement.dataset.language ?? [], ...navigator.languages].flat();

/** The language tag of the page, with a region where the applicant's language has one. */
export let tag = 'en';

/** Selects the first available language, and applies it to the page. */
export async function speak() {
  const primary = (/** @type {string} */ full) => full.toLowerCase().split('-')[0] ?? '';
  const wanted = languages.find((full) => primary(full) === 'en' || KNOWN.has(primary(full))) ?? 'en';
  const language = primary(wanted);
  if (language !== 'en') {
    try {
      words = (await import(`./words/${language}.js`)).default;
    } catch {
      return;
    }
  }
  tag = wanted;
  const { documentElement: root } = document;
  root.lang = language;
  root.dir = RIGHT_TO_LEFT.has(language) ? 'rtl' : 'ltr';
  document.title = words.title;
  for (const element of document.querySelectorAll('[data-word]')) element.textContent = word(element, 'word');
  for (const element of document.querySelectorAll('[data-label]')) element.setAttribute('aria-label', word(element, 'label'));
}

/** @param {Element} element @param {'word' | 'label'} kind */
function word(element, kind) {
  const name = /** @type {HTMLElement} */ (element).dataset[kind] ?? '';
  return String(words[/** @type {keyof Words} */ (name)] ?? '');
}

/** Codes with the same text as another one. */
const ALIKE = /** @type {Record<string, string>} */ ({
  CAPTCHA_TIMEOUT: 'USER_INPUT_TIMEOUT',
  PLATFORM_RATE_LIMITED: 'PLATFORM_UNAVAILABLE',
  BOT_DETECTED: 'PLATFORM_UNAVAILABLE',
  BROWSER_LOST: 'BROWSER_UNAVAILABLE',
  PROXY_UNAVAILABLE: 'BROWSER_UNAVAILABLE',
  GEO_MISMATCH: 'BROWSER_UNAVAILABLE',
  EXTRACTION_FAILED: 'DATA_INCOMPLETE',
});

/**
 * Returns the reason for the end, in the applicant's language.
 * @param {string} code
 * @param {string} english
 */
export function reason(code, english) {
  const own = words.codes[code];
  if (own || document.documentElement.lang === 'en') return own ?? english;
  return words.codes[ALIKE[code] ?? 'OTHER'] ?? english;
}
