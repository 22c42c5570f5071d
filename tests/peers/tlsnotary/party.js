// The prover or the verifier of TLSNotary, as the address says. It runs in a worker, since the package blocks
// its thread, which a page must not do.

import open, { Prover, Verifier, initialize } from '/wasm/tlsn_wasm.js';

const ask = new URLSearchParams(location.search);
const [role, most, received] = [ask.get('role'), Number(ask.get('sent')), Number(ask.get('received'))];
const socket = path => `ws://${location.host}/${path}`;

async function prove() {
  const cookie = 'session=' + 'c'.repeat(Number(ask.get('cookie')) - 8);
  const headers = new Map(
    Object.entries({ Host: 'bench.test', Connection: 'close', Cookie: cookie })
      .map(([name, value]) => [name, [...new TextEncoder().encode(value)]]),
  );
  const began = performance.now();
  const prover = new Prover({
    server_name: 'bench.test',
    max_sent_data: most,
    max_recv_data: received,
    network: 'Bandwidth',
  });
  await prover.setup(socket('between'));
  const ready = performance.now();
  await prover.send_request(socket('server'), { uri: 'https://bench.test/', method: 'GET', headers });
  const answered = performance.now();
  const { sent, recv } = prover.transcript();
  const at = new TextDecoder().decode(new Uint8Array(sent)).indexOf(cookie);
  await prover.reveal({
    sent: [{ start: 0, end: at }, { start: at + cookie.length, end: sent.length }],
    recv: [{ start: 0, end: recv.length }],
    server_identity: true,
  });
  const ended = performance.now();
  return {
    setupSeconds: (ready - began) / 1000,
    requestSeconds: (answered - ready) / 1000,
    revealSeconds: (ended - answered) / 1000,
  };
}

async function verify() {
  const verifier = new Verifier({ max_sent_data: most, max_recv_data: received });
  await verifier.connect(socket('between'));
  const { server_name, transcript } = await verifier.verify();
  const shown = ranges => ranges.reduce((sum, { start, end }) => sum + end - start, 0);
  return {
    server: server_name,
    sentBytes: transcript.sent.length,
    sentShown: shown(transcript.sent_authed),
    receivedShown: shown(transcript.recv_authed),
  };
}

let said;
try {
  await open();
  await initialize(null, navigator.hardwareConcurrency);
  said = await (role === 'prover' ? prove() : verify());
} catch (error) {
  said = { error: String(error?.message ?? error) };
}
await fetch(`/said/${role}`, { method: 'POST', body: JSON.stringify(said) });
