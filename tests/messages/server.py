"""The providers of SMS and WhatsApp messages, for tests: compares each request with the one that the
provider's client library makes of the same message, and stores accepted messages in a folder.

The last digits of the recipient's number decide the response: 0001 has no account, 0002 refuses
messages, 0003 is deferred once, 0004 is answered late, 0005 gets an error about the sender's account;
all others are accepted at once.
"""

import base64
import json
import os
import sys
import time
import urllib.parse
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pywa import WhatsApp
from pywa.types.templates import BodyText, TemplateLanguage
from twilio.http import HttpClient
from twilio.http.response import Response
from twilio.rest import Client

port, inbox = int(sys.argv[1]), sys.argv[2]
ACCOUNT, USER, PASSWORD, FROM = "AC" + "0" * 32, "SK" + "1" * 32, "twilio-secret", "+15005550006"
NUMBER, TOKEN, TEMPLATE = "106540352242922", "EAAmeta-secret", "account_link"
put_off = set()


class Recorder(HttpClient):
    """Records the library's request instead of sending it."""

    def __init__(self):
        super().__init__(None, False, None)

    def request(self, method, url, params=None, data=None, headers=None, auth=None, **_):
        self.seen = method, urllib.parse.urlparse(url).path, data, auth
        return Response(201, json.dumps({"sid": "SM0"}))


def by_twilio(to, body):
    recorder = Recorder()
    client = Client(USER, PASSWORD, ACCOUNT, http_client=recorder)
    client.messages.create(to=to, from_=FROM, body=body)
    return recorder.seen


def by_pywa(to, language, gaps, tracker):
    client, seen = WhatsApp(phone_id=NUMBER, token=TOKEN), {}

    def request(method, endpoint, **rest):
        seen.update(method=method, endpoint=endpoint, json=rest["json"])
        return {"messages": [{"id": "wamid.0"}], "contacts": [{"wa_id": to, "input": to}]}

    client.api._request = request
    client.send_template(
        to=to, name=TEMPLATE, language=TemplateLanguage(language),
        params=[BodyText.params(*gaps)], tracker=tracker,
    )
    # Through JSON, which has no enumerations.
    return json.loads(json.dumps(seen))


def keep(message):
    """Writes a message to a file of its own, atomically."""
    name = os.path.join(inbox, uuid.uuid4().hex)
    with open(name, "w") as file:
        json.dump(message, file)
    os.rename(name, name + ".json")


class Providers(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        try:
            status, answer = self.sms(body) if "/2010-04-01/" in self.path else self.whatsapp(body)
        except (AssertionError, KeyError, ValueError) as error:
            keep({"wrong": repr(error), "path": self.path, "body": body})
            status, answer = 400, {"code": 0, "error": {"code": 100}}
        answer = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def sms(self, body):
        assert self.headers["content-type"] == "application/x-www-form-urlencoded"
        pairs = urllib.parse.parse_qsl(body, strict_parsing=True)
        form = dict(pairs)
        assert len(pairs) == len(form), "a parameter twice"
        method, path, data, auth = by_twilio(form["To"], form["Body"])
        sent = {name: value for name, value in data.items() if value is not None}
        assert (method, path, sent) == ("POST", self.path, form), sent
        kind, credentials = self.headers["authorization"].split(" ")
        assert kind == "Basic" and base64.b64decode(credentials).decode() == ":".join(auth)
        codes = {"0001": (400, 21211), "0002": (400, 21610), "0003": (429, 20429),
                 "0005": (401, 20003)}
        status, code = self.outcome(form["To"], codes)
        if code:
            return status, {"code": code, "message": f"not to {form['To']}", "status": status}
        keep({"channel": "sms", "to": form["To"], "text": form["Body"]})
        return 201, {"sid": "SM" + uuid.uuid4().hex, "status": "queued", "error_code": None}

    def whatsapp(self, body):
        assert self.headers["content-type"] == "application/json"
        assert self.headers["authorization"] == f"Bearer {TOKEN}"
        message = json.loads(body)
        to, template = message["to"], message["template"]
        gaps = [gap["text"] for gap in template["components"][0]["parameters"]]
        assert not any(c in gap for gap in gaps for c in "\n\t") and all(gaps)
        language, tracker = template["language"]["code"], message["biz_opaque_callback_data"]
        seen = by_pywa(to, language, gaps, tracker)
        given = seen["json"]
        assert self.path == "/v23.0" + seen["endpoint"], seen
        # The library leaves out two members for which the interface has defaults.
        for shape in (given, message):
            for component in shape["template"]["components"]:
                component["type"] = component["type"].lower()
        assert given == message, given
        codes = {"0001": (400, 131026), "0002": (400, 131030), "0003": (429, 130429),
                 "0005": (401, 190)}
        status, code = self.outcome(to, codes)
        if code:
            return status, {"error": {"code": code, "message": f"not to {to}", "type": "x"}}
        keep({"channel": "whatsapp", "to": to, "gaps": gaps, "language": language, "id": tracker})
        return 200, {
            "messaging_product": "whatsapp",
            "contacts": [{"input": to, "wa_id": to.lstrip("+")}],
            "messages": [{"id": "wamid." + uuid.uuid4().hex}],
        }

    def outcome(self, to, codes):
        if to.endswith("0003") and to in put_off:
            return 200, None
        put_off.add(to)
        if to.endswith("0004"):
            time.sleep(8)
        return codes.get(to[-4:], (200, None))

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", port), Providers).serve_forever()
