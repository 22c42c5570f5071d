// The baseline of the browser benchmark: a plain viewer of a remote browser. Each connection starts a
// Chromium, captures a screencast of its page as JPEG of quality 75, and relays frames and input as JSON,
// as open-source live views do.
//
// node relay.mjs PORT FOLDER; then ws://127.0.0.1:PORT/?url=…&width=…&height=…

import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { WebSocketServer } from 'ws';

const [port, folder] = process.argv.slice(2);
const page = readFileSync(new URL('./viewer.html', import.meta.url));
const server = createServer((_, response) => response.setHeader('content-type', 'text/html').end(page));
let count = 0;

/** Starts a Chromium that is controlled over its pipe. */
function chromium(width, height) {
  const child = spawn('/usr/lib/chromium/chromium', [
    '--headless=new', '--no-sandbox', '--remote-debugging-pipe', '--disable-gpu', '--no-first-run', '--disable-quic',
    '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage',
    `--user-data-dir=${join(folder, String(count++))}`, `--window-size=${width},${height}`, 'about:blank',
  ], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
  const waiting = new Map();
  let [id, rest] = [0, ''];
  const browser = {
    onEvent: () => undefined,
    call(method, params = {}, sessionId = undefined) {
      id += 1;
      child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
      return new Promise((resolve) => waiting.set(id, resolve));
    },
    end: () => child.kill('SIGKILL'),
  };
  child.stdio[4].setEncoding('utf8').on('data', (text) => {
    const parts = (rest + text).split('\0');
    rest = parts.pop();
    for (const part of parts) {
      const message = JSON.parse(part);
      if (message.id) waiting.get(message.id)?.(message.result), waiting.delete(message.id);
      else browser.onEvent(message);
    }
  });
  child.stdio[3].on('error', () => undefined);
  return browser;
}

new WebSocketServer({ server }).on('connection', async (socket, request) => {
  const { searchParams } = new URL(request.url, 'http://relay');
  const [width, height] = ['width', 'height'].map((name) => Number(searchParams.get(name)));
  const browser = chromium(width, height);
  socket.on('close', () => browser.end());
  const { targetInfos } = await browser.call('Target.getTargets');
  const { targetId } = targetInfos.find(({ type }) => type === 'page');
  const { sessionId } = await browser.call('Target.attachToTarget', { targetId, flatten: true });
  const tell = (method, params) => browser.call(method, params, sessionId);
  browser.onEvent = ({ method, params }) => {
    if (method !== 'Page.screencastFrame') return;
    tell('Page.screencastFrameAck', { sessionId: params.sessionId });
    socket.send(JSON.stringify({ data: params.data, timestamp: params.metadata.timestamp }));
  };
  socket.on('message', (text) => {
    const { method, params } = JSON.parse(text);
    tell(method, params);
  });
  await tell('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false });
  await tell('Page.enable', {});
  await tell('Page.startScreencast', { format: 'jpeg', quality: 75, maxWidth: width, maxHeight: height });
  await tell('Page.navigate', { url: searchParams.get('url') });
});
server.listen(Number(port), '127.0.0.1');
