// Embeds an Avouch session in your page: import { mount, open } from '{PUBLIC_URL}/embed.js'.
// The types are in embed.d.ts in the same place.

const SHORTEST = 480;
const TALLEST = 1000;
const TYPES = ['open', 'status', 'step', 'awaiting', 'retry', 'exit', 'error', 'ended'];

/** Shows the session in an element of your page. */
export function mount(target, embedUrl, { title = 'Verify your account', height } = {}) {
  const place = typeof target === 'string' ? document.querySelector(target) : target;
  if (!(place instanceof Element)) throw new TypeError('mount: there is no such element');
  const { frame, api, end } = embed('mount', embedUrl, title);
  // The space below the frame's top in the window; a frame further down fits the whole window.
  const fit = () => {
    const top = Math.max(0, frame.getBoundingClientRect().top + scrollY);
    const room = innerHeight - (top < innerHeight / 2 ? top : 0);
    frame.style.height = `${Math.round(height ?? Math.min(Math.max(room, SHORTEST), TALLEST))}px`;
  };
  place.append(frame);
  const sizes = new ResizeObserver(fit);
  sizes.observe(place);
  addEventListener('resize', fit);
  fit();
  return api(() => {
    removeEventListener('resize', fit);
    sizes.disconnect();
    end();
  });
}

/** Shows the session in a dialog over your page. */
export function open(embedUrl, { title = 'Verify your account', closeLabel = 'Close' } = {}) {
  const { frame, api, end, emit } = embed('open', embedUrl, title);
  const dialog = document.createElement('dialog');
  dialog.setAttribute('aria-label', title);
  dialog.style.cssText = 'box-sizing:border-box;width:min(960px,100vw);height:min(900px,100dvh);max-width:none;max-height:none;'
    + 'padding:0;border:0;border-radius:min(14px,(100vw - 960px)*99);overflow:hidden;background:Canvas';
  const close = document.createElement('button');
  close.type = 'button';
  close.setAttribute('aria-label', closeLabel);
  close.textContent = '\u00d7';
  close.style.cssText = 'display:block;box-sizing:border-box;width:40px;height:40px;margin-inline-start:auto;border:0;'
    + 'background:none;color:CanvasText;font:24px/1 system-ui;cursor:pointer';
  frame.style.height = 'calc(100% - 40px)';
  close.onclick = () => dialog.close();
  dialog.append(close, frame);
  // Closing the dialog does not end the session: opening the same link again continues it.
  dialog.onclose = () => emit('exit', { code: 'CLOSED' });
  document.body.append(dialog);
  dialog.showModal();
  return api(() => {
    dialog.onclose = null;
    end();
    dialog.remove();
  });
}

function embed(name, embedUrl, title) {
  const url = new URL(embedUrl);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw new TypeError(`${name}: no embedUrl`);
  // The target origin of our messages; a page of another origin receives none.
  url.hash = new URLSearchParams({ parent: location.origin }).toString();
  const sessionId = url.pathname.split('/').pop();
  const frame = document.createElement('iframe');
  frame.title = title;
  frame.referrerPolicy = 'origin';
  frame.style.cssText = 'display:block;width:100%;border:0';

  const listeners = Object.fromEntries(TYPES.map((type) => [type, new Set()]));
  let last = { status: 'CREATED', progress: 0 };
  const emit = (type, more) => {
    const news = Object.freeze({ sessionId, ...last, ...more });
    for (const listener of [...listeners[type]]) listener(news);
  };
  const take = ({ source, origin, data }) => {
    if (source !== frame.contentWindow || origin !== url.origin) return;
    if (data?.v !== 1 || data.sessionId !== sessionId || !TYPES.includes(data.type)) return;
    last = { status: data.status, progress: data.progress };
    const { step, kind, code } = data;
    emit(data.type, JSON.parse(JSON.stringify({ step, kind, code })));
  };
  addEventListener('message', take);
  frame.src = url.href;

  const end = () => {
    removeEventListener('message', take);
    for (const type of Object.values(listeners)) type.clear();
    frame.remove();
  };
  const api = (destroy) => Object.freeze({
    frame,
    on(type, listener) {
      if (!TYPES.includes(type)) throw new TypeError(`on: there is no ${type}`);
      listeners[type].add(listener);
      return () => listeners[type].delete(listener);
    },
    destroy,
  });
  return { frame, api, end, emit };
}
