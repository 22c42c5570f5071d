// Values as the applicant reads them, in the language of the page.

import { tag, words } from './words.js';

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const DATE_TIME = /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(Z|[+-]\d{2}:\d{2})?$/;
const MIDNIGHT = /^00:00(:00(\.0+)?)?$/;

/** @param {import('./link.js').Value & import('./link.js').ValueStyle} value */
export function readable({ kind, value, format, currency }) {
  if (kind === 'boolean') return value === 'true' ? words.yes : words.noValue;
  if (kind === 'number') return format === 'plain' ? value : number(value, currency);
  if (format === 'plain') return value;
  if (format === 'date') return date(value.slice(0, 10)) ?? value;
  return date(value) ?? dateTime(value) ?? value;
}

/** @param {string} value @param {string | null} currency */
function number(value, currency) {
  try {
    const style = currency ? { style: /** @type {const} */ ('currency'), currency } : { maximumFractionDigits: 20 };
    // Newer browsers format the digits as they are written; older ones convert them to a number.
    return new Intl.NumberFormat(tag, style).format(/** @type {any} */ (value));
  } catch {
    return currency ? `${value} ${currency}` : value;
  }
}

/** @param {string} value @returns {string | null} */
function date(value) {
  const parsed = DATE.test(value) ? new Date(`${value}T00:00:00Z`) : null;
  if (!parsed || Number.isNaN(parsed.getTime())) return null;
  return parsed.toLocaleDateString(tag, { dateStyle: 'long', timeZone: 'UTC' });
}

/** @param {string} value @returns {string | null} */
function dateTime(value) {
  const [, day, time, zone] = DATE_TIME.exec(value) ?? [];
  if (!day || !time) return null;
  // A date that a server writes as a time.
  if (MIDNIGHT.test(time) && (zone ?? 'Z') === 'Z') return date(day);
  const parsed = new Date(zone ? value : `${value}Z`);
  return Number.isNaN(parsed.getTime()) ? null : moment(parsed, zone ? undefined : 'UTC');
}

/** @param {Date} at @param {string} [timeZone] that of the applicant by default */
export function moment(at, timeZone) {
  return at.toLocaleString(tag, { dateStyle: 'long', timeStyle: 'short', timeZone });
}

/** A duration in whole minutes or seconds. @param {number} milliseconds */
export function duration(milliseconds) {
  const seconds = Math.max(1, Math.round(milliseconds / 1000));
  const [value, unit] = seconds >= 60 ? [Math.round(seconds / 60), 'minute'] : [seconds, 'second'];
  return new Intl.NumberFormat(tag, { style: 'unit', unit, unitDisplay: 'long' }).format(value);
}

/** A whole number, in the digits of the page's language. @param {number} number */
export function whole(number) {
  return new Intl.NumberFormat(tag).format(number);
}
