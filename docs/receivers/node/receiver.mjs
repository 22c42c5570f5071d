// A receiver of Avouch's webhooks: checks the signature, keeps each notice once.
//
//   WEBHOOK_SECRET=whsec_… INBOX=./inbox PORT=8091 node receiver.mjs

import { randomUUID } from "node:crypto";
import { link, mkdir, open, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";

const { WEBHOOK_SECRET, INBOX = "./inbox", PORT = "8091" } = process.env;
const MOST = 1024 * 1024;

const webhook = new Webhook(WEBHOOK_SECRET);
await mkdir(INBOX, { recursive: true });

const server = createServer(async (request, response) => {
  const answer = (status) => response.writeHead(status).end();
  try {
    // The signature is over the bytes as they came: parse afterwards.
    const body = await read(request);
    if (body === null) return answer(413);
    let notice;
    try {
      notice = webhook.verify(body, request.headers);
    } catch {
      return answer(401);
    }
    if (await keep(request.headers["webhook-id"], body)) {
      console.log(`session ${notice.sessionId} is ${notice.status}`);
    }
    answer(204);
  } catch (error) {
    // Not kept: any answer but 2xx, and it is sent again.
    console.error(error);
    answer(500);
  }
});
server.listen(Number(PORT), "127.0.0.1");

/** The body; null where it is longer than a notice can be. */
async function read(request) {
  const parts = [];
  let length = 0;
  for await (const part of request) {
    length += part.length;
    if (length > MOST) return null;
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/**
 * Keeps a notice under its webhook-id, which is the same each time it is sent. Answers false where
 * it was kept before. Where you have a database, its unique key does this: insert the identifier in
 * the transaction that does what the notice is for.
 */
async function keep(id, body) {
  const draft = join(INBOX, `.${randomUUID()}`);
  const file = await open(draft, "wx");
  try {
    await file.writeFile(body);
    await file.sync();
    await link(draft, join(INBOX, `${id}.json`));
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  } finally {
    await file.close();
    await rm(draft);
  }
}
