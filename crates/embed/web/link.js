// The WebSocket to the service: reconnects with back-off until the session has ended.

/**
 * @typedef {'login' | 'otp' | 'push' | 'security_question' | 'account_picker' | 'captcha' | 'consent' | 'custom_url'} Kind
 * @typedef {{ format: 'date' | 'dateTime' | 'plain' | null, currency: string | null }} ValueStyle
 * @typedef {{ kind: 'text' | 'number' | 'boolean', value: string }} Value
 * @typedef {{ kind: 'object' | 'list', columns: ({ label: string } & ValueStyle)[], rows: (Value | null)[][] }} Table
 * @typedef {{ label: string, attested: boolean } & ((Value & ValueStyle) | Table)} ShareItem
 * @typedef {{ number: number, kind: Kind, text: string, translated: boolean, left: number, share: ShareItem[], witnessed: boolean, unconfirmed: boolean }} Prompt
 * @typedef {{ text: string, code: string | null, at: string | null, shared: string[], attested: (boolean | null)[], missing: string[] }} Outcome
 * @typedef {{ code: string, text: string, left: number }} Failure
 * @typedef {{ t: 'state', status: string, progress: number, platform: string, place: number | null, waitMinutes: number | null, guest: number | null,
 *   prompt: Prompt | null, failure: Failure | null, outcome: Outcome | null }} State
 * @typedef {{ id: number, kind: 'alert' | 'confirm' | 'prompt' | 'leave', message: string }} Dialog
 * @typedef {{ t: 'scene', fields: import('./writer.js').Field[], focused: number | null,
 *   navigation: number, dialog: Dialog | null, refused: { what: 'upload' | 'download' | 'elsewhere', count: number } | null, pages: number, unreachable: boolean }} Scene
 * @typedef {{ x: number, y: number, jpeg: Uint8Array<ArrayBuffer> }} Tile
 * @typedef {{ seq: number, whole: boolean, page: [number, number], size: [number, number],
 *   origin: string, tiles: Tile[] }} Picture
 * @typedef {'wrong_code' | 'too_many_devices' | 'link_sent' | 'link_not_sent' | 'not_approved' | 'unavailable'} GuestAnswer
 * @typedef {{ t: 'guest', status: string, progress: number, platform: string, channel: boolean,
 *   asking: number | null, answer: GuestAnswer | null }} Guest
 * @typedef {{ size: number, path: string, code: string }} Code
 * @typedef {{ t: 'sight', status: string, progress: number, withheld: boolean, over: boolean }} Sight
 * @typedef {{ state?: (state: State) => void, scene?: (scene: Scene) => void, sight?: (sight: Sight) => void,
 *   outline?: (outline: import('./outline.js').Outline) => void, covered?: () => void, handover?: (code: Code) => void, guest?: (guest: Guest) => void, picture: (picture: Picture) => void, lost: () => void,
 *   ended: (why: 'replaced' | 'refused' | 'full') => void }} Listener
 */

const LONGEST_WAIT = 8000;
const SELF_REDIRECT_WAIT = 2000;
const MAX_SELF_REDIRECTS = 3;
const HEAD = 1;
const [WHOLE, COMPLETE] = [1, 2];
const END = new Uint8Array([0xff, 0xd9]);

export class Link {
  /** @type {WebSocket | null} */ #socket = null;
  #wait = 250;
  #over = false;
  /** How often in succession the page was redirected to its own URL. */
  #selfRedirects = 0;
  /** Whether the connection is closed in order to reconnect as one of the session's devices. */
  #admitted = false;
  /** The JPEG header of tiles, and the offset of the tile's size in it. */
  #head = new Uint8Array();
  #sizeAt = 0;

  /**
   * @param {string} url
   * @param {() => object} hello returns the first message
   * @param {Listener} listener
   */
  constructor(url, hello, listener) {
    this.url = url;
    this.hello = hello;
    this.listener = listener;
  }

  open() {
    const socket = new WebSocket(this.url);
    socket.binaryType = 'arraybuffer';
    this.#socket = socket;
    socket.onopen = () => socket.send(JSON.stringify(this.hello()));
    socket.onmessage = (event) => this.#take(event.data);
    socket.onclose = () => this.#closed();
  }

  /** @param {object} message */
  send(message) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  /** @param {string | ArrayBuffer} data */
  #take(data) {
    this.#wait = 250;
    if (typeof data !== 'string') {
      const kind = new DataView(data);
      if (kind.getUint8(0) === HEAD) {
        this.#head = new Uint8Array(data, 3);
        this.#sizeAt = this.#head.length - kind.getUint16(1, true) - 4;
      } else {
        this.listener.picture(this.#picture(new Reader(data)));
      }
      return;
    }
    const message = JSON.parse(data);
    if (message.t === 'state') {
      if (message.outcome) this.#over = true;
      this.#selfRedirects = 0;
      this.listener.state?.(message);
    } else if (message.t === 'scene') {
      this.listener.scene?.(message);
    } else if (message.t === 'outline') {
      this.listener.outline?.(message);
    } else if (message.t === 'sight') {
      this.#over = message.over;
      this.listener.sight?.(message);
    } else if (message.t === 'code') {
      this.listener.handover?.(message);
    } else if (message.t === 'guest') {
      this.listener.guest?.(message);
    } else if (message.t === 'admitted') {
      this.#admitted = true;
    } else if (message.t === 'elsewhere') {
      if (message.url !== location.origin + location.pathname + location.search) {
        this.#over = true;
        location.replace(message.url + location.hash);
        return;
      }
      // The session may no longer run where this connection was relayed to. It begins here instead, unless the processes are set up wrongly.
      this.#selfRedirects += 1;
      this.#wait = SELF_REDIRECT_WAIT;
      if (this.#selfRedirects <= MAX_SELF_REDIRECTS) return;
      this.#over = true;
      this.listener.ended('refused');
    } else if (message.t === 'covered') {
      this.listener.covered?.();
    } else {
      this.#over = true;
      this.listener.ended(message.t);
    }
  }

  /**
   * @param {Reader} from
   * @returns {Picture}
   */
  #picture(from) {
    const [flags, seq] = [from.u8(), from.u32()];
    const page = /** @type {[number, number]} */ ([from.u16(), from.u16()]);
    const size = /** @type {[number, number]} */ ([from.u16(), from.u16()]);
    const origin = new TextDecoder().decode(from.bytes(from.u8()));
    const tiles = [];
    while (from.more) {
      if (flags & COMPLETE) {
        tiles.push({ x: 0, y: 0, jpeg: from.bytes(from.u32()) });
        continue;
      }
      const [x, y, width, height] = [from.u16(), from.u16(), from.u16(), from.u16()];
      const [head, numbers] = [this.#head, from.bytes(from.u32())];
      const jpeg = new Uint8Array(head.length + numbers.length + END.length);
      jpeg.set(head);
      jpeg.set(numbers, head.length);
      jpeg.set(END, head.length + numbers.length);
      const at = new DataView(jpeg.buffer);
      at.setUint16(this.#sizeAt, height);
      at.setUint16(this.#sizeAt + 2, width);
      tiles.push({ x, y, jpeg });
    }
    return { seq, whole: (flags & WHOLE) !== 0, page, size, origin, tiles };
  }

  #closed() {
    this.#socket = null;
    if (this.#over) return;
    if (this.#admitted) {
      this.#admitted = false;
      this.open();
      return;
    }
    this.listener.lost();
    setTimeout(() => this.open(), this.#wait);
    this.#wait = Math.min(this.#wait * 2, LONGEST_WAIT);
  }
}

/** Reads numbers, little endian, one after another. */
class Reader {
  #at = 1;

  /** @param {ArrayBuffer} data */
  constructor(data) {
    this.data = data;
    this.view = new DataView(data);
  }

  get more() {
    return this.#at < this.data.byteLength;
  }

  u8() {
    return this.view.getUint8(this.#step(1));
  }

  u16() {
    return this.view.getUint16(this.#step(2), true);
  }

  u32() {
    return this.view.getUint32(this.#step(4), true);
  }

  /** @param {number} length */
  bytes(length) {
    return new Uint8Array(this.data, this.#step(length), length);
  }

  /** @param {number} by */
  #step(by) {
    this.#at += by;
    return this.#at - by;
  }
}
