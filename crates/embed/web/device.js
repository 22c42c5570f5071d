// The secret by which the service recognizes this device: random, one per session, stored by the
// browser and sent to the service only. If the frame has no storage (it is blocked), it lasts as long
// as the page.

const session = location.pathname.split('/').pop() ?? '';
const NAME = `avouch-device-${session}`;
const BYTES = 32;
const FORM = /^[A-Za-z0-9_-]{43}$/;
/** Longer than the lifetime of sessions. */
const COOKIE_SECONDS = 86_400;

let secret = '';

/** @template T @param {() => T} action @returns {T | null} null if the browser does not allow it */
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

/** A cookie of the top-level site's partition (CHIPS), for browsers without storage for frames. @param {string} value @param {number} seconds */
function cookie(value, seconds) {
  document.cookie = `${NAME}=${value}; Path=${location.pathname}; Max-Age=${seconds}; SameSite=None; Secure; Partitioned`;
}

/** Returns this device's secret for the session, created by the first call. */
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

/** Deletes the secret when the session is over. */
export function forgetDevice() {
  allowed(() => localStorage.removeItem(NAME));
  allowed(() => cookie('', 0));
}

/** Removes the join code of this device from the URL, so that it is not in the history. */
export function joinCode() {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const code = fragment.get('code');
  if (code === null) return undefined;
  fragment.delete('code');
  const rest = fragment.toString();
  history.replaceState(null, '', location.pathname + location.search + (rest && `#${rest}`));
  return code;
}
