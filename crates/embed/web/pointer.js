// Mouse, pen, wheel and touch input on the screen.

/** @typedef {import('./screen.js').Screen} Screen */

/** Whether touch is the primary input of this device. */
export const touch = matchMedia('(pointer: coarse)').matches;

/** Pixels from which on a touch is no tap. */
const SLOP = 8;

export class Pointer {
  /** @type {{ x: number, y: number, buttons: number, modifiers: number } | null} */ #move = null;
  /** @type {Map<number, { id: number, x: number, y: number }>} */ #fingers = new Map();
  /** The finger that may scroll the stage. @type {{ id: number, y: number } | null} */ #drag = null;
  #due = false;
  #turned = { dx: 0, dy: 0 };

  /**
   * @param {Screen} screen
   * @param {(message: object) => void} send
   * @param {{ down: () => void, tap: (at: { x: number, y: number }) => void }} listener
   */
  constructor(screen, send, listener) {
    this.screen = screen;
    this.send = send;
    const { canvas } = screen;
    const isTouch = (/** @type {PointerEvent} */ event) => touch && event.pointerType === 'touch';
    canvas.addEventListener('pointerdown', (event) => {
      event.preventDefault();
      canvas.setPointerCapture(event.pointerId);
      if (isTouch(event)) {
        this.#drag = this.#fingers.size ? null : { id: event.pointerId, y: event.clientY };
        this.#finger(event);
        this.#touch('start', event);
      } else {
        listener.down();
        this.#mouse('down', event);
      }
    });
    canvas.addEventListener('pointermove', (event) => {
      if (!isTouch(event)) this.#move = { ...screen.place(event), buttons: event.buttons, modifiers: modifiers(event) };
      else if (!this.#scrolls(event) && this.#fingers.has(event.pointerId)) this.#finger(event);
      else return;
      this.#soon(event);
    });
    canvas.addEventListener('pointerup', (event) => {
      if (!isTouch(event)) {
        this.#mouse('up', event);
        return;
      }
      if (!this.#fingers.has(event.pointerId)) return;
      const place = screen.place(event);
      this.#lift(event, 'end');
      // Within the user's gesture: only then does a phone show its keyboard.
      listener.tap(place);
    });
    canvas.addEventListener('pointercancel', (event) => {
      if (isTouch(event) && this.#fingers.has(event.pointerId)) this.#lift(event, 'cancel');
    });
    canvas.addEventListener('contextmenu', (event) => event.preventDefault());
    canvas.addEventListener('wheel', (event) => this.#wheel(event), { passive: false });
  }

  /** @param {PointerEvent} event */
  #finger(event) {
    // Touch identifiers are small numbers in the remote browser.
    const taken = new Set([...this.#fingers.values()].map((finger) => finger.id));
    const free = [0, 1, 2, 3, 4].find((id) => !taken.has(id)) ?? 4;
    const id = this.#fingers.get(event.pointerId)?.id ?? free;
    this.#fingers.set(event.pointerId, { id, ...this.screen.place(event) });
  }

  /**
   * Scrolls the stage by a finger, where the remote page is larger; the remote page loses the touch then.
   * @param {PointerEvent} event
   * @returns whether the stage has the touch
   */
  #scrolls(event) {
    if (this.#drag?.id !== event.pointerId) return false;
    const down = this.#drag.y - event.clientY;
    const isRemote = this.#fingers.has(event.pointerId);
    if (isRemote && Math.abs(down) < SLOP) return false;
    if (this.screen.scroll(down) === down && isRemote) {
      this.#drag = null;
      return false;
    }
    if (isRemote) this.#lift(event, 'cancel');
    this.#drag.y = event.clientY;
    return true;
  }

  /** @param {PointerEvent} event @param {'end' | 'cancel'} k */
  #lift(event, k) {
    this.#flush(event);
    this.#fingers.delete(event.pointerId);
    this.#touch(this.#fingers.size ? 'move' : k, event);
  }

  /** @param {'start' | 'move' | 'end' | 'cancel'} k @param {PointerEvent} event */
  #touch(k, event) {
    this.send({ t: 'touch', k, points: [...this.#fingers.values()], modifiers: modifiers(event) });
  }

  /** Movements are sent once per animation frame. @param {PointerEvent | WheelEvent} event */
  #soon(event) {
    if (this.#due) return;
    this.#due = true;
    requestAnimationFrame(() => this.#flush(event));
  }

  /** @param {PointerEvent | WheelEvent} event */
  #flush(event) {
    if (!this.#due) return;
    this.#due = false;
    if (this.#move) this.send({ t: 'mouse', k: 'move', ...this.#move, button: 0, clicks: 0 });
    else if (this.#fingers.size) this.#touch('move', /** @type {PointerEvent} */ (event));
    const { dx, dy } = this.#turned;
    if (dx || dy) this.send({ t: 'wheel', ...this.screen.place(event), dx, dy, modifiers: modifiers(event) });
    this.#move = null;
    this.#turned = { dx: 0, dy: 0 };
  }

  /** @param {'down' | 'up'} k @param {PointerEvent} event */
  #mouse(k, event) {
    event.preventDefault();
    this.#flush(event);
    if (event.button > 2) return;
    this.send({ t: 'mouse', k, ...this.screen.place(event), button: event.button, buttons: event.buttons, clicks: this.#clicks(k, event), modifiers: modifiers(event) });
  }

  #last = { at: 0, x: 0, y: 0, count: 0 };

  /** Pointer events do not count clicks. @param {'down' | 'up'} k @param {PointerEvent} event */
  #clicks(k, event) {
    if (k === 'up') return this.#last.count;
    const { at, x, y, count } = this.#last;
    const again = event.timeStamp - at < 500 && Math.hypot(event.clientX - x, event.clientY - y) < 5;
    this.#last = { at: event.timeStamp, x: event.clientX, y: event.clientY, count: again ? count % 3 + 1 : 1 };
    return this.#last.count;
  }

  /** @param {WheelEvent} event */
  #wheel(event) {
    event.preventDefault();
    // Control and the wheel would zoom our own page.
    if (event.ctrlKey) return;
    const scale = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : event.deltaMode === WheelEvent.DOM_DELTA_PAGE ? this.screen.page.height : 1;
    this.#turned.dx += event.deltaX * scale;
    this.#turned.dy += this.screen.scroll(event.deltaY * scale);
    this.#soon(event);
  }
}

/** @param {MouseEvent | KeyboardEvent} event */
export function modifiers(event) {
  // Windows reports AltGr as Control and Alt, but the characters it writes are not commands.
  if (event.getModifierState('AltGraph')) return event.shiftKey ? 8 : 0;
  // Command on a Mac corresponds to Control in the remote browser.
  const control = mac ? event.metaKey || event.ctrlKey : event.ctrlKey;
  return (event.altKey ? 1 : 0) | (control ? 2 : 0) | (!mac && event.metaKey ? 4 : 0) | (event.shiftKey ? 8 : 0);
}

export const mac = /^(Mac|iP)/.test(navigator.platform);
