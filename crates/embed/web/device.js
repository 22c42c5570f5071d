// The secret by which the service knows this device again: random, one for each session, kept by
// the browser and sent to the service alone. Where a frame may keep nothing (storage is blocked),
// it lasts as long as the page.

const session = location.pathname.split('/').pop() ?? '';
const NAME = `avouch-device-${session}`;
const BYTES = 32;
const FORM = /^[A-Za-z0-9_-]{43}$/;
/** Longer than sessions live. */
const COOKIE_SECONDS = 86_400;

let secret = '';

/** @template T @param {() => T} action @returns {T | null} null where the browser does not allow it */
function allowed(action) {
  try {
    return action();
  } catch {
    return null;
  }
}

function kept() {
  const cookies = () => document.cookie.split('; ').find((cookie) => cookie.startsWith(`${NAME}=`))?.slice(NAME.length + 1);
  const places = [() => localStorage.getItem(NAME), cookies];
  return places.map((place) => allowed(place) ?? '').find((text) => FORM.test(text));
}

/** A cookie of the top-level site's partition (CHIPS), for browsers that keep no storage for frames. @param {string} value @param {number} seconds */
function cookie(value, seconds) {
  document.cookie = `${NAME}=${value}; Path=${location.pathname}; Max-Age=${seconds}; SameSite=None; Secure; Partitioned`;
}

/** This device's secret for the session; made at the first call. */
export function deviceSecret() {
  secret ||= kept() ?? '';
  if (!secret) {
    const bytes = crypto.getRandomValues(new Uint8Array(BYTES));
    secret = btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
    allowed(() => localStorage.setItem(NAME, secret));
    allowed(() => cookie(secret, COOKIE_SECONDS));
  }
  return secret;
}

/** Forgets the secret once the session is over. */
export function forgetDevice() {
  allowed(() => localStorage.removeItem(NAME));
  allowed(() => cookie('', 0));
}

/** Takes the code by which this device may join out of the address, so that it is in no history. */
export function joinCode() {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const code = fragment.get('code');
  if (code === null) return undefined;
  fragment.delete('code');
  const rest = fragment.toString();
  history.replaceState(null, '', location.pathname + location.search + (rest && `#${rest}`));
  return code;
}
