// Proves and verifies so many bytes under ChaCha20 with Reclaim's own package, its `stwo` backend (the
// one whose circuit the package has in it), and prints what that took as JSON.
//
// node prove.mjs BYTES

import { createCipheriv, randomBytes } from 'node:crypto';
import { setCryptoImplementation } from '@reclaimprotocol/tls';
import { webcryptoCrypto } from '@reclaimprotocol/tls/webcrypto';
import { generateProof, verifyProof } from '@reclaimprotocol/zk-symmetric-crypto';
import { makeStwoZkOperator } from '@reclaimprotocol/zk-symmetric-crypto/stwo';

/** Bytes of one proof; more are several. */
const MOST = 128;

setCryptoImplementation(webcryptoCrypto);
const algorithm = 'chacha20';
const operator = makeStwoZkOperator({ algorithm });
const bytes = Number(process.argv[2]);
const total = { proveSeconds: 0, verifySeconds: 0, proofBytes: 0, proofs: 0 };

async function prove(length) {
  const [key, iv, offsetBytes] = [randomBytes(32), randomBytes(12), 0];
  const cipher = createCipheriv('chacha20-poly1305', key, iv);
  const ciphertext = Buffer.concat([cipher.update(randomBytes(length)), cipher.final()]);
  const publicInput = { ciphertext, iv, offsetBytes };
  const began = performance.now();
  const proof = await generateProof({ algorithm, privateInput: { key }, publicInput, operator });
  const proved = performance.now();
  await verifyProof({ proof, publicInput, operator });
  total.proveSeconds += (proved - began) / 1000;
  total.verifySeconds += (performance.now() - proved) / 1000;
  total.proofBytes += proof.proofData.length;
  total.proofs += 1;
}

// What the first call loads and compiles is not the proof's.
await prove(MOST);
Object.assign(total, { proveSeconds: 0, verifySeconds: 0, proofBytes: 0, proofs: 0 });
for (let at = 0; at < bytes; at += MOST) await prove(Math.min(MOST, bytes - at));
const memoryMiB = process.resourceUsage().maxRSS / 1024;
console.log(JSON.stringify({ ...total, memoryMiB }));
process.exit(0);
