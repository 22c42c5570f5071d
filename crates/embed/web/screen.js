// The canvas: draws the remote page and sends what the applicant does on it.

/** @typedef {import('./link.js').Picture} Picture */

export class Screen {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {(message: object) => void} send
   */
  constructor(canvas, send) {
    this.canvas = canvas;
    this.send = send;
    const context = canvas.getContext('2d', { alpha: false, desynchronized: true });
    if (!context) throw new Error('no canvas');
    this.context = context;
    this.over = false;
    this.drawn = Promise.resolve();
    /** @type {{ type: string, x: number, y: number, buttons: number, modifiers: number } | null} */
    this.move = null;
    this.#listen();
  }

  /**
   * Pictures are decoded side by side and drawn one after another: each builds on the one before.
   * @param {Picture} picture
   */
  draw(picture) {
    const decoded = Promise.all(picture.tiles.map((tile) => createImageBitmap(tile.jpeg)));
    decoded.catch(() => undefined);
    this.drawn = this.drawn.then(async () => {
      try {
        this.#paint(picture, await decoded);
      } catch {
        this.send({ t: 'refresh' });
      }
      this.send({ t: 'ack', seq: picture.seq });
    });
  }

  /**
   * @param {Picture} picture
   * @param {ImageBitmap[]} bitmaps
   */
  #paint(picture, bitmaps) {
    const { canvas } = this;
    if (this.over) return;
    const [first] = bitmaps;
    const [width, height] = picture.size[0] ? picture.size : [first?.width ?? 0, first?.height ?? 0];
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    canvas.dataset.width = String(picture.page[0]);
    canvas.dataset.height = String(picture.page[1]);
    canvas.dataset.pictures = String(Number(canvas.dataset.pictures ?? 0) + 1);
    bitmaps.forEach((bitmap, at) => {
      const tile = picture.tiles[at];
      if (tile) this.context.drawImage(bitmap, tile.x, tile.y);
      bitmap.close();
    });
  }

  /** Takes the picture away for good: one that is still being decoded does not come back. */
  clear() {
    this.over = true;
    this.context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.canvas.width = this.canvas.width;
  }

  #listen() {
    const { canvas } = this;
    canvas.addEventListener('pointermove', (event) => {
      const first = !this.move;
      this.move = { type: 'move', ...this.#place(event), buttons: event.buttons, modifiers: modifiers(event) };
      if (first) requestAnimationFrame(() => this.#flushMove());
    });
    canvas.addEventListener('pointerdown', (event) => {
      canvas.focus();
      canvas.setPointerCapture(event.pointerId);
      this.#mouse('down', event);
    });
    canvas.addEventListener('pointerup', (event) => this.#mouse('up', event));
    canvas.addEventListener('contextmenu', (event) => event.preventDefault());
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      const scale = event.deltaMode === 1 ? 16 : 1;
      this.send({ t: 'wheel', ...this.#place(event), dx: event.deltaX * scale, dy: event.deltaY * scale, modifiers: modifiers(event) });
    }, { passive: false });
    canvas.addEventListener('keydown', (event) => this.#key(true, event));
    canvas.addEventListener('keyup', (event) => this.#key(false, event));
    document.addEventListener('paste', (event) => {
      const text = event.clipboardData?.getData('text/plain').slice(0, 4096);
      if (text && document.activeElement === canvas) {
        event.preventDefault();
        this.send({ t: 'text', text });
      }
    });
  }

  #flushMove() {
    if (!this.move) return;
    const { x, y, buttons, modifiers } = this.move;
    this.move = null;
    this.send({ t: 'mouse', k: 'move', x, y, button: 0, buttons, clicks: 0, modifiers });
  }

  /**
   * @param {'down' | 'up'} k
   * @param {PointerEvent} event
   */
  #mouse(k, event) {
    event.preventDefault();
    this.#flushMove();
    this.send({ t: 'mouse', k, ...this.#place(event), button: event.button, buttons: event.buttons, clicks: Math.max(1, event.detail || 1), modifiers: modifiers(event) });
  }

  /**
   * @param {boolean} down
   * @param {KeyboardEvent} event
   */
  #key(down, event) {
    // The browser's own paste brings the text; the composed text comes as text.
    const paste = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'v';
    if (paste || event.isComposing || event.key === 'Unidentified' || event.key === 'Dead') return;
    event.preventDefault();
    this.send({ t: 'key', down, key: event.key, code: event.code, keyCode: event.keyCode, repeat: event.repeat, modifiers: modifiers(event) });
  }

  /** @param {MouseEvent} event */
  #place(event) {
    const box = this.canvas.getBoundingClientRect();
    const width = Number(this.canvas.dataset.width ?? this.canvas.width);
    const height = Number(this.canvas.dataset.height ?? this.canvas.height);
    return {
      x: clamp((event.clientX - box.left) / box.width * width, width),
      y: clamp((event.clientY - box.top) / box.height * height, height),
    };
  }
}

/** @param {number} value @param {number} most */
function clamp(value, most) {
  return Math.min(Math.max(value, 0), most);
}

/** @param {MouseEvent | KeyboardEvent} event */
function modifiers(event) {
  return (event.altKey ? 1 : 0) | (event.ctrlKey ? 2 : 0) | (event.metaKey ? 4 : 0) | (event.shiftKey ? 8 : 0);
}
