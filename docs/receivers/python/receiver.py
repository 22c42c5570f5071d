"""A receiver of Avouch's webhooks: checks the signature, keeps each notice once.

    WEBHOOK_SECRET=whsec_… INBOX=./inbox PORT=8091 python receiver.py
"""

import os
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from standardwebhooks import Webhook, WebhookVerificationError

INBOX = Path(os.environ.get("INBOX", "./inbox"))
WEBHOOK = Webhook(os.environ["WEBHOOK_SECRET"])
MOST = 1024 * 1024


def keep(identifier: str, body: bytes) -> bool:
    """Keeps a notice under its webhook-id, which is the same each time it is sent.

    Answers False where it was kept before. Where you have a database, its unique key does this:
    insert the identifier in the transaction that does what the notice is for.
    """
    with tempfile.NamedTemporaryFile(dir=INBOX, prefix=".") as draft:
        draft.write(body)
        draft.flush()
        os.fsync(draft.fileno())
        try:
            os.link(draft.name, INBOX / f"{identifier}.json")
        except FileExistsError:
            return False
    return True


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_POST(self) -> None:
        try:
            length = int(self.headers.get("content-length", "-1"))
        except ValueError:
            length = -1
        if not 0 <= length <= MOST:
            self.close_connection = True
            return self.answer(413)
        # The signature is over the bytes as they came: parse afterwards.
        body = self.rfile.read(length)
        try:
            notice = WEBHOOK.verify(body, dict(self.headers))
        except (WebhookVerificationError, ValueError):
            return self.answer(401)
        try:
            if keep(self.headers["webhook-id"], body):
                print(f"session {notice['sessionId']} is {notice['status']}", flush=True)
        except OSError:
            # Not kept: any answer but 2xx, and it is sent again.
            return self.answer(500)
        return self.answer(204)

    def answer(self, status: int) -> None:
        self.send_response(status)
        if status != 204:
            self.send_header("content-length", "0")
        self.end_headers()


if __name__ == "__main__":
    INBOX.mkdir(parents=True, exist_ok=True)
    address = ("127.0.0.1", int(os.environ.get("PORT", "8091")))
    ThreadingHTTPServer(address, Receiver).serve_forever()
