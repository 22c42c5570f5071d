// Runs one request with a cookie under TLSNotary's own package, prover and verifier in a Chromium each, and
// prints the cost as JSON. The package trusts the roots of the public web only and accepts no other, so that
// in the copy that is served the key of one of them is replaced by ours.
//
// node prove.mjs CHROMIUM COOKIE-BYTES RESPONSE-BYTES

import { execFileSync, spawn } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tls from 'node:tls';
import { fileURLToPath } from 'node:url';
import { WebSocketServer, createWebSocketStream } from 'ws';

const [chromium, cookieBytes, responseBytes] = process.argv.slice(2);
const here = fileURLToPath(new URL('.', import.meta.url));
const work = mkdtempSync(join(tmpdir(), 'avouch-tlsnotary-'));
const openssl = (...args) => execFileSync('openssl', args, { cwd: work, stdio: ['ignore', 'pipe', 'ignore'] });

/** A P-256 root of the public web; the package contains its name and its key. */
const ROOT = tls.rootCertificates
  .map(pem => new X509Certificate(pem))
  .find(root => root.subject.includes('CN=Amazon Root CA 3'));

/** Issues a certificate for bench.test under a root of the same name, and puts our key into the package. */
function authority() {
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  const name = `/${ROOT.subject.split('\n').join('/')}`;
  // The name consists of PrintableStrings, and names are compared byte by byte.
  writeFileSync(join(work, 'root.cnf'), '[req]\nstring_mask = nombstr\ndistinguished_name = name\n'
    + 'x509_extensions = root\n[name]\n[root]\nbasicConstraints = critical,CA:TRUE\n');
  openssl('req', '-x509', '-config', 'root.cnf', ...curve, '-subj', name, '-keyout', 'root.key', '-out', 'root.pem');
  openssl('req', ...curve.slice(0, -2), '-subj', '/CN=bench.test', '-keyout', 'leaf.key', '-out', 'leaf.csr');
  writeFileSync(join(work, 'leaf.ext'), 'subjectAltName=DNS:bench.test\n');
  openssl('x509', '-req', '-in', 'leaf.csr', '-CA', 'root.pem', '-CAkey', 'root.key', '-days', '2',
    '-CAcreateserial', '-extfile', 'leaf.ext', '-out', 'leaf.pem');
  const key = certificate => certificate.publicKey.export({ type: 'spki', format: 'der' });
  const wasm = readFileSync(join(here, 'node_modules/tlsn-wasm/tlsn_wasm_bg.wasm'));
  // The package leaves out two bytes of the outer SEQUENCE.
  const at = wasm.indexOf(key(ROOT).subarray(2));
  if (at < 0) throw new Error('the package has no such root');
  key(new X509Certificate(readFileSync(join(work, 'root.pem')))).copy(wasm, at, 2);
  return wasm;
}

const wasm = authority();
const file = name => readFileSync(join(work, name));

// The platform's server: TLS 1.2, which is the version that TLSNotary supports.
const body = 'x'.repeat(Number(responseBytes));
const server = tls.createServer({
  key: file('leaf.key'),
  cert: Buffer.concat([file('leaf.pem'), file('root.pem')]),
  maxVersion: 'TLSv1.2',
}, socket => {
  socket.on('error', () => {});
  socket.once('data', () => socket.end(
    `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`));
});
await new Promise(listening => server.listen(0, '127.0.0.1', listening));

const said = {};
let told;
const both = new Promise(ready => { told = ready; });
const pages = http.createServer((request, response) => {
  const { pathname } = new URL(request.url, 'http://host');
  // A page has shared memory for threads only if it is cross-origin isolated.
  response.setHeader('Cross-Origin-Opener-Policy', 'same-origin');
  response.setHeader('Cross-Origin-Embedder-Policy', 'require-corp');
  if (request.method === 'POST') {
    let text = '';
    request.on('data', part => { text += part; }).on('end', () => {
      said[pathname.slice('/said/'.length)] = JSON.parse(text);
      response.end();
      if (Object.values(said).some(each => each.error) || Object.keys(said).length === 2) told();
    });
    return;
  }
  const path = pathname === '/' ? 'party.html' : pathname.slice(1).replace(/^wasm\//, 'node_modules/tlsn-wasm/');
  const type = { html: 'text/html', js: 'text/javascript', wasm: 'application/wasm' }[path.split('.').pop()];
  try {
    const content = path.endsWith('.wasm') ? wasm : readFileSync(join(here, path));
    response.setHeader('Content-Type', type).end(content);
  } catch {
    response.writeHead(404).end();
  }
});

// The bytes between the parties are counted; TLS bytes are relayed to the server unchanged.
let wireBytes = 0;
let waiting;
new WebSocketServer({ server: pages }).on('connection', (socket, request) => {
  if (request.url === '/server') {
    const stream = createWebSocketStream(socket);
    const platform = net.connect(server.address().port, '127.0.0.1');
    stream.pipe(platform).pipe(stream);
    for (const end of [stream, platform]) end.on('error', () => {});
    return;
  }
  socket.pause();
  if (!waiting) {
    waiting = socket;
    return;
  }
  for (const [from, to] of [[socket, waiting], [waiting, socket]]) {
    from.on('message', data => { wireBytes += data.length; to.send(data); });
    from.on('close', () => to.close());
    from.resume();
  }
});
await new Promise(listening => pages.listen(0, '127.0.0.1', listening));

const limits = { cookie: cookieBytes, sent: Number(cookieBytes) + 256, received: Number(responseBytes) + 512 };
const browsers = ['verifier', 'prover'].map(role => spawn(chromium, [
  '--headless=new', '--no-sandbox', '--disable-gpu', '--no-first-run', `--user-data-dir=${join(work, role)}`,
  `http://127.0.0.1:${pages.address().port}/?${new URLSearchParams({ role, ...limits })}`,
], { stdio: 'ignore', detached: true }));

/** MiB in use by a party's process and its children, shared pages counted proportionally. */
function memory({ pid }) {
  const parents = readdirSync('/proc').filter(name => /^\d+$/.test(name)).flatMap(name => {
    try {
      return [[Number(name), Number(readFileSync(`/proc/${name}/stat`, 'utf8').split(') ')[1].split(' ')[1])]];
    } catch {
      return [];
    }
  });
  const tree = new Set([pid]);
  for (let size = 0; size !== tree.size;) {
    size = tree.size;
    for (const [child, parent] of parents) if (tree.has(parent)) tree.add(child);
  }
  let kib = 0;
  for (const each of tree) {
    try {
      kib += Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${each}/smaps_rollup`, 'utf8'))[1]);
    } catch { /* It has ended. */ }
  }
  return kib / 1024;
}

let memoryMiB = 0;
const watch = setInterval(() => { memoryMiB = Math.max(memoryMiB, memory(browsers[1])); }, 200);
const late = setTimeout(() => { said.prover ??= { error: 'nothing for five minutes' }; told(); }, 300_000);
await both;
clearInterval(watch);
clearTimeout(late);
for (const { pid } of browsers) process.kill(-pid, 'SIGKILL');
await new Promise(gone => setTimeout(gone, 500));
rmSync(work, { recursive: true, force: true, maxRetries: 5 });
console.log(JSON.stringify({ ...said.prover, wireBytes, memoryMiB, verifier: said.verifier }));
process.exit(said.prover?.error || said.verifier?.error ? 1 : 0);
