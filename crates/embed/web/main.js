// Starts by itself in an iframe; opened as a page of its own it asks first, since mail scanners
// open links too.

import { Link } from './link.js';
import { Pointer, touch } from './pointer.js';
import { Screen } from './screen.js';
import { View } from './view.js';
import { Writer } from './writer.js';

const view = new View();
const token = new URLSearchParams(location.search).get('token') ?? '';
const url = `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}${location.pathname}/stream`;

const link = new Link(url, hello, {
  state: (state) => {
    view.show(state);
    if (state.outcome) screen.clear();
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
    view.note('Connection lost', 'Trying again …');
  },
  ended: (why) => {
    screen.clear();
    if (why === 'replaced') view.finish('Continued elsewhere', 'This session was opened in another place.');
    else view.finish('This link does not work', 'It may be incomplete. Please ask for a new one.');
  },
});
const send = (/** @type {object} */ message) => link.send(message);
const screen = new Screen(view.screen, send);
const writer = new Writer(view.writer, view.picker, screen, send);
new Pointer(screen, send, { down: () => writer.focus(), tap: (at) => writer.tap(at) });

function hello() {
  const stage = document.querySelector('main');
  return {
    t: 'hello',
    token,
    width: Math.round(stage?.clientWidth ?? innerWidth),
    height: Math.round(stage?.clientHeight ?? innerHeight),
    ratio: devicePixelRatio,
    touch,
    dark: matchMedia('(prefers-color-scheme: dark)').matches,
    still: matchMedia('(prefers-reduced-motion: reduce)').matches,
    language: navigator.language,
  };
}

/** @param {string} id @param {object} message */
function wire(id, message) {
  document.getElementById(id)?.addEventListener('click', () => link.send(message));
}

wire('cancel', { t: 'cancel' });
wire('close', { t: 'close' });
wire('approve', { t: 'share', share: true });
wire('decline', { t: 'share', share: false });

if (window.top === window) view.offerStart(() => link.open());
else link.open();
