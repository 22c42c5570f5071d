// Proves and verifies this many bytes under ChaCha20 with Reclaim's own package and its `stwo` backend (the
// one whose circuit the package contains), and prints the cost as JSON.
//
// node prove.mjs BYTES

import { createCipheriv, randomBytes } from 'node:crypto';
import { setCryptoImplementation } from '@reclaimprotocol/tls';
import { webcryptoCrypto } from '@reclaimprotocol/tls/webcrypto';
import { generateProof, verifyProof } from '@reclaimprotocol/zk-symmetric-crypto';
import { makeStwoZkOperator } from '@reclaimprotocol/zk-symmetric-crypto/stwo';

/** Bytes of one proof; more bytes take several proofs. */
const MAX_BYTES = 128;

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

// The first call loads and compiles code, which is not part of a proof's cost.
await prove(MAX_BYTES);
Object.assign(total, { proveSeconds: 0, verifySeconds: 0, proofBytes: 0, proofs: 0 });
for (let at = 0; at < bytes; at += MAX_BYTES) await prove(Math.min(MAX_BYTES, bytes - at));
const memoryMiB = process.resourceUsage().maxRSS / 1024;
console.log(JSON.stringify({ ...total, memoryMiB }));
process.exit(0);
