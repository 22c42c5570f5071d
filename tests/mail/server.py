"""A mail server for tests: accepts mails over STARTTLS from authenticated clients, and stores each as a file.

The local part of the recipient decides the response: `grey` is deferred once, `nobody` and `full` are
refused permanently, `slow` is accepted after 8 s; all others are accepted at once.
"""

import asyncio
import email
import email.policy
import json
import os
import ssl
import sys
import uuid

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

port, inbox, certificate, key = int(sys.argv[1]), *sys.argv[2:5]
seen = set()


def signed_in(server, session, envelope, mechanism, data):
    wanted = LoginPassword(b"avouch", b"secret p@ss")
    return AuthResult(success=isinstance(data, LoginPassword) and data == wanted)


def keep(mail):
    """Writes a mail to a file of its own, atomically."""
    name = os.path.join(inbox, uuid.uuid4().hex)
    with open(name, "w") as file:
        json.dump(mail, file)
    os.rename(name, name + ".json")


class Inbox:
    async def handle_RCPT(self, server, session, envelope, address, options):
        name = address.split("@")[0].split("+")[0]
        if name == "nobody":
            return f"550 5.1.1 <{address}>: there is no such mailbox"
        if name == "full":
            return f"552 5.2.2 <{address}>: the mailbox is full"
        if name == "grey" and address not in seen:
            seen.add(address)
            return "451 4.7.1 greylisted, come again"
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 fine"

    async def handle_DATA(self, server, session, envelope):
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        body = lambda kind: mail.get_body(preferencelist=(kind,))
        if envelope.rcpt_tos[0].startswith("slow"):
            await asyncio.sleep(8)
        keep({
            "to": envelope.rcpt_tos,
            "sender": envelope.mail_from,
            "tls": session.ssl is not None,
            "authenticated": session.authenticated,
            "headers": {name.lower(): str(value) for name, value in mail.items()},
            "parts": [part.get_content_type() for part in mail.walk()],
            "text": body("plain").get_content(),
            "html": body("html").get_content(),
        })
        return "250 2.0.0 kept"


context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain(certificate, key)
server = Controller(
    Inbox(), hostname="127.0.0.1", port=port, tls_context=context, require_starttls=True,
    auth_required=True, authenticator=signed_in,
)
server.start()
print("ready", flush=True)
asyncio.new_event_loop().run_forever()
