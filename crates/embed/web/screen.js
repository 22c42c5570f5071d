// The canvas: draws the remote page, and converts coordinates.

/** @typedef {import('./link.js').Picture} Picture */
/** @typedef {ImageBitmap | VideoFrame} Image */

const type = 'image/jpeg';

/**
 * Decodes a JPEG. A Blob is read through the browser's main process, which takes as long as decoding;
 * `ImageDecoder` avoids that but exists only in secure contexts of newer browsers.
 * @type {(data: Uint8Array<ArrayBuffer>) => Promise<Image>}
 */
const decode = 'ImageDecoder' in globalThis
  ? async (data) => {
    const decoder = new ImageDecoder({ data, type });
    try {
      return (await decoder.decode()).image;
    } finally {
      decoder.close();
    }
  }
  : (data) => createImageBitmap(new Blob([data], { type }));

export class Screen {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {(message: object) => void} send
   */
  constructor(canvas, send) {
    this.canvas = canvas;
    this.stage = canvas.parentElement ?? canvas;
    this.send = send;
    const context = canvas.getContext('2d', { alpha: false, desynchronized: true });
    if (!context) throw new Error('no canvas');
    this.context = context;
    this.over = false;
    this.drawn = Promise.resolve();
  }

  /**
   * Draws a frame. Frames are decoded in parallel and drawn in order, because each builds on the
   * previous one.
   * @param {Picture} picture
   */
  draw(picture) {
    const decoded = Promise.all(picture.tiles.map((tile) => decode(tile.jpeg)));
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

  /** Clears the canvas for good: a frame that is still being decoded is not drawn. */
  clear() {
    this.over = true;
    this.context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.canvas.width = this.canvas.width;
  }

  /** The size of the remote page in CSS pixels. */
  get page() {
    const { canvas } = this;
    return {
      width: Number(canvas.dataset.width ?? canvas.width),
      height: Number(canvas.dataset.height ?? canvas.height),
    };
  }

  /**
   * Scrolls the stage, where that is smaller than the remote page.
   * @param {number} down in pixels
   * @returns what is left of the distance at the end of the stage
   */
  scroll(down) {
    const before = this.stage.scrollTop;
    this.stage.scrollTop += down;
    return down - (this.stage.scrollTop - before);
  }

  #navigation = 0;

  /** Shows another page from its top. @param {number} navigation */
  at(navigation) {
    if (navigation !== this.#navigation) this.stage.scrollTop = 0;
    this.#navigation = navigation;
  }

  /**
   * Scrolls the stage until a rectangle of the remote page is in its middle, unless it is in sight.
   * @param {[number, number, number, number]} place
   */
  reveal(place) {
    const { top, height } = this.box(place);
    const seen = this.stage.getBoundingClientRect();
    // A field inside an iframe has no position.
    if (height && (top < seen.top || top + height > seen.bottom)) this.scroll(top + height / 2 - (seen.top + seen.bottom) / 2);
  }

  /**
   * Returns the position of an event on the remote page.
   * @param {{ clientX: number, clientY: number }} event
   */
  place(event) {
    const box = this.canvas.getBoundingClientRect();
    const { width, height } = this.page;
    return {
      x: clamp((event.clientX - box.left) / box.width * width, width),
      y: clamp((event.clientY - box.top) / box.height * height, height),
    };
  }

  /**
   * Returns the position of a rectangle of the remote page in our own page.
   * @param {[number, number, number, number]} place
   */
  box([x, y, width, height]) {
    const box = this.canvas.getBoundingClientRect();
    const page = this.page;
    const [across, down] = [box.width / page.width, box.height / page.height];
    return { left: box.left + x * across, top: box.top + y * down, width: width * across, height: height * down };
  }

  /**
   * @param {Picture} picture
   * @param {Image[]} images
   */
  #paint(picture, images) {
    const { canvas } = this;
    if (this.over) return images.forEach((image) => image.close());
    const [width, height] = picture.size[0] ? picture.size : sizeOf(images[0]);
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    // Frames of scale 2 look sharp only at half their size.
    canvas.style.setProperty('--width', `${picture.page[0]}px`);
    canvas.style.setProperty('--ratio', String(picture.page[0] / picture.page[1]));
    canvas.dataset.width = String(picture.page[0]);
    canvas.dataset.height = String(picture.page[1]);
    canvas.dataset.pictures = String(Number(canvas.dataset.pictures ?? 0) + 1);
    images.forEach((image, at) => {
      const tile = picture.tiles[at];
      if (tile) this.context.drawImage(image, tile.x, tile.y);
      image.close();
    });
  }
}

/** @param {Image | undefined} image */
function sizeOf(image) {
  if (!image) return [0, 0];
  return 'displayWidth' in image ? [image.displayWidth, image.displayHeight] : [image.width, image.height];
}

/** @param {number} value @param {number} most */
function clamp(value, most) {
  return Math.min(Math.max(value, 0), most);
}
