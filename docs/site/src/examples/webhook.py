import base64
import hashlib
import hmac
import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = base64.b64decode(os.environ["AVOUCH_WEBHOOK_SECRET"].removeprefix("whsec_"))
seen = set()  # in production, a unique column of your database


def is_valid(headers, body):
    identifier = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    if not timestamp.isdigit() or abs(time.time() - int(timestamp)) > 300:
        return False
    signed = f"{identifier}.{timestamp}.".encode() + body
    digest = hmac.new(SECRET, signed, hashlib.sha256).digest()
    expected = "v1," + base64.b64encode(digest).decode()
    signatures = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(expected, given) for given in signatures)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if not is_valid(self.headers, body):  # the raw bytes: verify before you parse
            return self.answer(401)
        event = json.loads(body)
        if self.headers["webhook-id"] not in seen:
            seen.add(self.headers["webhook-id"])
            print(f"Verified: session {event['sessionId']} is {event['status']}", flush=True)
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()


ThreadingHTTPServer(("", int(os.environ.get("PORT", 4000))), Handler).serve_forever()
