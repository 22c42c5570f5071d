// The WebSocket to the service: reconnects with back-off until there is nothing more to come.

/**
 * @typedef {{ kind: string, text: string, deadline: string, share: [string, string][] }} Prompt
 * @typedef {{ text: string, shared: string[] }} Outcome
 * @typedef {{ t: 'state', status: string, progress: number, platform: string,
 *   prompt: Prompt | null, outcome: Outcome | null }} State
 * @typedef {{ seq: number, width: number, height: number, origin: string, jpeg: Blob }} Picture
 * @typedef {{ state: (state: State) => void, picture: (picture: Picture) => void,
 *   lost: () => void, ended: (why: 'replaced' | 'refused') => void }} Listener
 */

const LONGEST_WAIT = 8000;

export class Link {
  /** @type {WebSocket | null} */ #socket = null;
  #wait = 250;
  #over = false;

  /**
   * @param {string} url
   * @param {() => object} hello what to say first
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
      this.listener.picture(readPicture(data));
      return;
    }
    const message = JSON.parse(data);
    if (message.t === 'state') {
      if (message.outcome) this.#over = true;
      this.listener.state(message);
    } else {
      this.#over = true;
      this.listener.ended(message.t);
    }
  }

  #closed() {
    this.#socket = null;
    if (this.#over) return;
    this.listener.lost();
    setTimeout(() => this.open(), this.#wait);
    this.#wait = Math.min(this.#wait * 2, LONGEST_WAIT);
  }
}

/**
 * @param {ArrayBuffer} data
 * @returns {Picture}
 */
function readPicture(data) {
  const view = new DataView(data);
  const length = view.getUint8(8);
  return {
    seq: view.getUint32(0, true),
    width: view.getUint16(4, true),
    height: view.getUint16(6, true),
    origin: new TextDecoder().decode(new Uint8Array(data, 9, length)),
    jpeg: new Blob([new Uint8Array(data, 9 + length)], { type: 'image/jpeg' }),
  };
}
