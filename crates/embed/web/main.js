// In an iframe the session starts with the page, behind the introduction. A top-level page waits for
// the applicant, since mail scanners open links too.

import { Activity } from './activity.js';
import { deviceSecret, forgetDevice, joinCode } from './device.js';
import { askAbout, quiet, showCode, showGuest } from './devices.js';
import { element } from './dom.js';
import { Link } from './link.js';
import { OutlineView } from './outline.js';
import { framed, tell, tellOpen, tellState } from './partner.js';
import { Pointer, touch } from './pointer.js';
import { Screen } from './screen.js';
import { View } from './view.js';
import { speak, tag, words } from './words.js';
import { Writer } from './writer.js';

/** Milliseconds between two messages that the applicant is at the page. */
const PRESENT_INTERVAL = 10_000;

let [width, height, resizing] = [0, 0, 0];
/** Whether another attempt is offered, and when the service was last told that the applicant is here. */
let [offered, present] = [false, 0];

const { style, dataset } = document.documentElement;
if (dataset.colour) {
  style.setProperty('--brand', dataset.colour);
  style.setProperty('--on-brand', '#fff');
}
await speak();
const view = new View();
const token = new URLSearchParams(location.search).get('token') ?? '';
const code = joinCode();
const url = `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}${location.pathname}/stream`;
const activity = new Activity(element('bar'));

const link = new Link(url, hello, {
  state: (state) => {
    activity.received();
    offered = state.failure !== null;
    tellState(state);
    view.show(state);
    askAbout(state.guest, send);
    if (state.outcome) {
      screen.clear();
      forgetDevice();
    }
  },
  scene: (scene) => {
    activity.received();
    view.scene(scene, send);
    screen.at(scene.navigation);
    writer.show(scene.fields, scene.focused);
    outline.changed(scene.navigation, scene.fields);
  },
  picture: (picture) => {
    activity.received();
    view.at(picture.origin);
    screen.draw(picture);
  },
  lost: () => {
    activity.received();
    view.lost();
  },
  ended: (why) => {
    screen.clear();
    quiet();
    if (why === 'replaced') {
      view.replaced(() => location.reload());
    } else {
      view.finish(words.badLink, words.badLinkText);
      tell('error', { code: 'LINK_INVALID' });
    }
  },
  outline: (page) => outline.received(page),
  handover: showCode,
  guest: (guest) => {
    tellOpen();
    view.elsewhere(guest);
    showGuest(guest, send);
  },
});
const send = (/** @type {object} */ message) => {
  const sent = /** @type {Record<string, unknown>} */ (message);
  activity.sent(sent);
  outline.sent(sent);
  link.send(message);
};
const screen = new Screen(view.screen, send);
const writer = new Writer(view.writer, view.picker, screen, send);
const outline = new OutlineView(send, () => writer.focus());
view.onText = (/** @type {boolean} */ isOpen) => outline.open(isOpen);
new Pointer(screen, send, { down: () => writer.focus(), tap: (at) => writer.tap(at) });

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
    language: tag,
  };
}

// Resizing a window fires many events.
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
  element(id).addEventListener('click', () => send(message));
}

element('read').addEventListener('click', () => view.toggleText());
element('text-close').addEventListener('click', () => view.toggleText());
element('text').addEventListener('keydown', (event) => { if (event.key === 'Escape') view.toggleText(); });

wire('phone', { t: 'handover' });
wire('close', { t: 'close' });
wire('back', { t: 'back' });
wire('reload', { t: 'reload' });
wire('down-reload', { t: 'reload' });
wire('retry', { t: 'retry' });
wire('end-retry', { t: 'decline' });
element('cancel').addEventListener('click', () => view.confirmCancel(() => send({ t: 'cancel' })));
for (const [id, share] of /** @type {const} */ ([['approve', true], ['decline', false]])) {
  element(id).addEventListener('click', () => send({ t: 'share', prompt: view.prompt, share }));
}

element('address-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const input = /** @type {HTMLInputElement} */ (element('address-input'));
  element('address-form').toggleAttribute('data-sent', true);
  send({ t: 'custom_url', prompt: view.prompt, url: input.value.trim().slice(0, 2048) });
});

// Another attempt is offered for as long as the applicant uses the page.
for (const type of ['pointermove', 'pointerdown', 'keydown', 'wheel', 'focusin']) {
  addEventListener(type, () => {
    if (!offered || performance.now() - present < PRESENT_INTERVAL) return;
    present = performance.now();
    send({ t: 'present' });
  }, { capture: true, passive: true });
}

const isNew = dataset.link === 'new';
if (isNew) view.introduce(() => { if (!framed) link.open(); });
// A session that has begun is continued at once; of one that is over, the outcome is shown.
if (!isNew || framed) link.open();
