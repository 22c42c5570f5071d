// Shows a session to an observer.

import { Link } from './link.js';
import { Screen } from './screen.js';

/** @param {string} id @returns {HTMLElement} */
function element(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element ${id}`);
  return found;
}

const canvas = /** @type {HTMLCanvasElement} */ (element('screen'));
const url = `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}${location.pathname}/stream`;
const pass = new URLSearchParams(location.search).get('pass') ?? '';

/** @param {string} text */
function note(text) {
  element('note-text').textContent = text;
  element('note').hidden = text === '';
  canvas.hidden = text !== '';
}

const link = new Link(url, () => ({ pass }), {
  sight: ({ status, progress, withheld, over }) => {
    canvas.dataset.status = status;
    element('status').textContent = status;
    element('progress').style.width = `${progress}%`;
    if (over) screen.clear();
    if (withheld || over) note(over ? 'The session has ended.' : 'The applicant is signing in. Nothing is shown meanwhile.');
    else if (!canvas.dataset.pictures) note('One moment…');
  },
  covered: () => note('Nothing is shown at this moment.'),
  picture: (picture) => {
    element('host').textContent = picture.origin.replace(/^https?:\/\//, '');
    note('');
    screen.draw(picture);
  },
  lost: () => note('Connection lost. Trying again…'),
  ended: (why) => {
    screen.clear();
    note(why === 'full' ? 'Too many are watching this session.' : 'This link has run out. Ask for a new one.');
  },
});
const screen = new Screen(canvas, (message) => link.send(message));
link.open();
