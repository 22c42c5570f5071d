import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const secret = Buffer.from(process.env.AVOUCH_WEBHOOK_SECRET.replace(/^whsec_/, ''), 'base64');
const seen = new Set(); // in production, a unique column of your database

function isValid(headers, body) {
  const id = headers['webhook-id'] ?? '';
  const timestamp = headers['webhook-timestamp'] ?? '';
  const age = Math.abs(Date.now() / 1000 - Number(timestamp));
  if (!timestamp || !(age <= 300)) return false;
  const expected = createHmac('sha256', secret).update(`${id}.${timestamp}.`).update(body).digest();
  return (headers['webhook-signature'] ?? '').split(' ').some((signature) => {
    const given = Buffer.from(signature.replace(/^v1,/, ''), 'base64');
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  const body = Buffer.concat(parts); // the raw bytes: verify before you parse
  if (!isValid(request.headers, body)) return response.writeHead(401).end();
  const event = JSON.parse(body);
  if (!seen.has(request.headers['webhook-id'])) {
    seen.add(request.headers['webhook-id']);
    console.log(`Verified: session ${event.sessionId} is ${event.status}`);
  }
  response.writeHead(204).end();
}).listen(Number(process.env.PORT ?? 4000));
