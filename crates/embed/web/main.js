// Starts automatically in an iframe; as a top-level page it asks first, since mail scanners open
// links too.

import { deviceSecret, forgetDevice, joinCode } from './device.js';
import { askAbout, quiet, showCode, showGuest } from './devices.js';
import { Link } from './link.js';
import { Pointer, touch } from './pointer.js';
import { Screen } from './screen.js';
import { View } from './view.js';
import { languages, speak, words } from './words.js';
import { Writer } from './writer.js';

let [width, height, resizing] = [0, 0, 0];

const { style, dataset: { colour } } = document.documentElement;
if (colour) {
  style.setProperty('--brand', colour);
  style.setProperty('--on-brand', '#fff');
}
await speak();
const view = new View();
const token = new URLSearchParams(location.search).get('token') ?? '';
const code = joinCode();
const url = `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}${location.pathname}/stream`;

const link = new Link(url, hello, {
  state: (state) => {
    tell(state);
    view.show(state);
    askAbout(state.guest, send);
    if (state.outcome) {
      screen.clear();
      forgetDevice();
    }
  },
  scene: (scene) => {
    view.scene(scene, send);
    writer.show(scene.fields, scene.focused);
  },
  picture: (picture) => {
    view.at(picture.origin);
    screen.draw(picture);
  },
  lost: () => {
    view.note(words.lost, words.again);
  },
  ended: (why) => {
    screen.clear();
    quiet();
    if (why === 'replaced') view.replaced(() => location.reload());
    else view.finish(words.badLink, words.badLinkText);
  },
  handover: showCode,
  guest: (guest) => {
    view.elsewhere(guest);
    showGuest(guest, send);
  },
});
const send = (/** @type {object} */ message) => link.send(message);
const screen = new Screen(view.screen, send);
const writer = new Writer(view.writer, view.picker, screen, send);
new Pointer(screen, send, { down: () => writer.focus(), tap: (at) => writer.tap(at) });

/** The origin of the embedding page, as it states: a message to another origin is not delivered. */
const parent = origin(new URLSearchParams(location.hash.slice(1)).get('parent') ?? around());
const session = location.pathname.split('/').pop();
let told = '';

function around() {
  const [nearest] = location.ancestorOrigins ?? [];
  if (nearest) return nearest;
  return document.referrer;
}

/** Returns the origin of a URL; nothing for other values, such as `*` for any origin. @param {string} address */
function origin(address) {
  return URL.canParse(address) ? new URL(address).origin : '';
}

/** Notifies the embedding page of the state of the session, and of nothing else. @param {import('./link.js').State} state */
function tell({ status, progress, outcome }) {
  if (window.top === window || !parent.startsWith('http') || told === `${status} ${progress}`) return;
  told = `${status} ${progress}`;
  for (const type of outcome ? ['status', 'ended'] : ['status']) {
    window.parent.postMessage({ v: 1, type, sessionId: session, status, progress }, parent);
  }
}

/** Returns the size that is available for the remote page. */
function room() {
  const stage = document.querySelector('main');
  return [Math.round(stage?.clientWidth ?? innerWidth), Math.round(stage?.clientHeight ?? innerHeight)];
}

function hello() {
  [width, height] = room();
  return {
    t: 'hello',
    token,
    secret: deviceSecret(),
    code,
    width,
    height,
    ratio: devicePixelRatio,
    touch,
    dark: matchMedia('(prefers-color-scheme: dark)').matches,
    still: matchMedia('(prefers-reduced-motion: reduce)').matches,
    language: languages[0] ?? 'en',
  };
}

// Resizing a window fires many events, and another line in the header does not change the size.
new ResizeObserver(() => {
  clearTimeout(resizing);
  resizing = setTimeout(() => {
    const [wide, tall] = room();
    if (Math.abs(wide - width) < 16 && Math.abs(tall - height) < 80) return;
    [width, height] = [wide, tall];
    send({ t: 'size', width, height });
  }, 300);
}).observe(document.querySelector('main') ?? document.body);

/** @param {string} id @param {object} message */
function wire(id, message) {
  document.getElementById(id)?.addEventListener('click', () => link.send(message));
}

wire('cancel', { t: 'cancel' });
wire('phone', { t: 'handover' });
wire('close', { t: 'close' });
for (const [id, share] of /** @type {const} */ ([['approve', true], ['decline', false]])) {
  document.getElementById(id)?.addEventListener('click', () => send({ t: 'share', prompt: view.prompt, share }));
}

if (window.top === window) view.offerStart(() => link.open());
else link.open();
