// Embeds an Avouch session in your page: import { mount } from '{PUBLIC_URL}/embed.js'.
// The types are in embed.d.ts in the same place.

const SHORTEST = 480;
const TALLEST = 900;

export function mount(target, embedUrl, { title = 'Verify your account', height } = {}) {
  const place = typeof target === 'string' ? document.querySelector(target) : target;
  if (!(place instanceof Element)) throw new TypeError('mount: there is no such element');
  const url = new URL(embedUrl);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw new TypeError('mount: no embedUrl');
  // The target origin of our messages; a page of another origin receives none.
  url.hash = new URLSearchParams({ parent: location.origin }).toString();
  const sessionId = url.pathname.split('/').pop();

  const frame = document.createElement('iframe');
  frame.title = title;
  frame.referrerPolicy = 'origin';
  frame.style.cssText = 'display:block;width:100%;border:0';
  const fit = () => {
    const free = place.clientWidth * 0.8;
    const most = Math.max(SHORTEST, innerHeight * 0.9);
    frame.style.height = `${Math.round(height ?? Math.min(Math.max(free, SHORTEST), TALLEST, most))}px`;
  };
  const sizes = new ResizeObserver(fit);
  sizes.observe(place);
  addEventListener('resize', fit);
  fit();

  const listeners = { status: new Set(), ended: new Set() };
  const take = ({ source, origin, data }) => {
    if (source !== frame.contentWindow || origin !== url.origin) return;
    if (data?.v !== 1 || data.sessionId !== sessionId || !listeners[data.type]) return;
    const news = Object.freeze({ sessionId, status: data.status, progress: data.progress });
    for (const listener of [...listeners[data.type]]) listener(news);
  };
  addEventListener('message', take);
  frame.src = url.href;
  place.append(frame);

  return Object.freeze({
    frame,
    on(type, listener) {
      if (!listeners[type]) throw new TypeError(`on: there is no ${type}`);
      listeners[type].add(listener);
      return () => listeners[type].delete(listener);
    },
    destroy() {
      removeEventListener('message', take);
      removeEventListener('resize', fit);
      sizes.disconnect();
      for (const type of Object.values(listeners)) type.clear();
      frame.remove();
    },
  });
}
