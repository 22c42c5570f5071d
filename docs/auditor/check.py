"""Reads evidence a second time, by other means: what avouch-verify says of a recording is computed
again with Python's cryptography and nothing of ours. It does not verify the zero-knowledge proof, and
says in its output what only that proof shows: the hidden bytes, and that the bytes that are told are
the encrypted ones (of the request always, of the response in zktls-full).

    avouch-verify attestation.cbor --keys issuers.json --evidence evidence.cbor --roots roots.pem \\
        --show-transcript > report.json
    python3 check.py evidence.cbor roots.pem report.json [attestation.cbor issuers.json [inclusion.tlog-proof]]

With the attestation and the issuers it also verifies the signature, the key and what the body says (version
2); with the inclusion proof, that the log has the attestation, by a checkpoint that its key signed.
"""

import base64
import datetime
import hashlib
import hmac
import ipaddress
import json
import re
import sys

from cryptography import x509
from cryptography.hazmat.primitives import hashes, poly1305, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.x509.verification import PolicyBuilder, Store


def cbor(data, at=0):
    """The value at a place, and the place behind it (RFC 8949; what evidence is made of)."""
    kind, info = data[at] >> 5, data[at] & 31
    at += 1
    if info >= 24:
        size = 1 << (info - 24)
        info, at = int.from_bytes(data[at : at + size], "big"), at + size
    if kind == 0:
        return info, at
    if kind in (2, 3):
        return data[at : at + info], at + info
    assert kind == 4, "neither a number, bytes, a text nor an array"
    values = []
    for _ in range(info):
        value, at = cbor(data, at)
        values.append(value)
    return values, at


def records(stream):
    """Type, header and body of each record (RFC 8446, section 5.1)."""
    while stream:
        length = int.from_bytes(stream[3:5], "big")
        yield stream[0], stream[:5], stream[5 : 5 + length]
        stream = stream[5 + length :]


def expand(secret, label, context, length):
    """HKDF-Expand-Label (RFC 8446, section 7.1) with SHA-256, for one block."""
    label = b"tls13 " + label
    info = length.to_bytes(2, "big") + bytes([len(label)]) + label + bytes([len(context)]) + context
    return hmac.digest(secret, info + b"\x01", "sha256")[:length]


def nonce(iv, sequence):
    return bytes(a ^ b for a, b in zip(iv, sequence.to_bytes(12, "big")))


def opened(secret, sealed):
    """What records hold under a traffic secret: type and content each."""
    cipher, iv = ChaCha20Poly1305(expand(secret, b"key", b"", 32)), expand(secret, b"iv", b"", 12)
    for sequence, (_, header, body) in enumerate(sealed):
        inner = cipher.decrypt(nonce(iv, sequence), body, header).rstrip(b"\0")
        yield inner[-1], inner[:-1]


def finished(secret, transcript):
    return hmac.digest(expand(secret, b"finished", b"", 32), transcript, "sha256")


def messages(stream):
    while stream:
        length = 4 + int.from_bytes(stream[1:4], "big")
        yield stream[:length]
        stream = stream[length:]


def flight(secret, sealed):
    """The server's messages up to its Finished, and how many records they took."""
    stream, taken = b"", 0
    for kind, content in opened(secret, sealed):
        assert kind == 22, "something else than the handshake"
        stream, taken = stream + content, taken + 1
        said = list(messages(stream))
        if said[-1][0] == 20:
            return said, taken
    raise AssertionError("the flight has no end")


def certificates(message):
    body = message[4:]
    assert body[0] == 0, "a context where there is none"
    rest, chain = body[4:], []
    while rest:
        length = int.from_bytes(rest[:3], "big")
        chain.append(rest[3 : 3 + length])
        rest = rest[3 + length :]
        rest = rest[2 + int.from_bytes(rest[:2], "big") :]
    return chain


def signed(key, message, transcript):
    """CertificateVerify (RFC 8446, section 4.4.3); the number of its scheme."""
    scheme, signature = int.from_bytes(message[4:6], "big"), message[8:]
    content = b" " * 64 + b"TLS 1.3, server CertificateVerify\0" + transcript
    algorithm = {0x0403: hashes.SHA256, 0x0503: hashes.SHA384, 0x0804: hashes.SHA256,
                 0x0805: hashes.SHA384, 0x0806: hashes.SHA512}[scheme]()
    if isinstance(key, ec.EllipticCurvePublicKey):
        key.verify(signature, content, ec.ECDSA(algorithm))
    else:
        pss = padding.PSS(padding.MGF1(algorithm), algorithm.digest_size)
        key.verify(signature, content, pss, algorithm)
    return scheme


def tagged(record, key):
    """The length of a record's content; its tag is verified with the key that is told for it."""
    _, header, body = record
    body, tag = body[:-16], body[-16:]
    pad = lambda part: part + bytes(-len(part) % 16)
    lengths = len(header).to_bytes(8, "little") + len(body).to_bytes(8, "little")
    poly1305.Poly1305.verify_tag(bytes(key), pad(header) + pad(body) + lengths, tag)
    return len(body)


def blanked(said, hidden):
    """What is told, with zeros in the place of what is hidden: what is told there is not looked at."""
    said, before = bytearray(said), 0
    for start, end in hidden:
        assert before <= start < end <= len(said), "hidden ranges that are out of order, or touch"
        said[start:end], before = bytes(end - start), end + 1
    return bytes(said)


def told_response(told, sealed):
    """The response of zktls-full, as it is told, and whether it ends with close_notify. The tags are
    verified; that the bytes are those that were encrypted is for the proof to show."""
    _, inner, said, hidden = told
    length, closed = 0, False
    for record, (kind, padding, key) in zip(sealed, inner, strict=True):
        assert not closed, "a record after close_notify"
        content = tagged(record, key) - 1 - padding
        assert kind in (21, 22, 23) and content >= 0, "a record of another type"
        length += content if kind == 23 else 0
        closed = kind == 21
        assert not closed or content == 2, "an alert of another length"
    assert length == len(said), "what is told is longer or shorter than what the records hold"
    return blanked(said, hidden), closed


def seen_lines(lines):
    """Those that zktls-full shows whole: the others' values are hidden."""
    needed = (b"content-encoding", b"content-length", b"content-type", b"transfer-encoding")
    return lines[:1] + [line for line in lines[1:] if line.split(b":")[0].lower() in needed]


def readable(body):
    """A body that can be read as JSON where parts are hidden: null in the place of a value, digits
    within a string. The hidden ones are not compared with anything."""
    one = lambda found: b"null" if found[0][:1] == b"\0" else found[0].replace(b"\0", b"0")
    return re.sub(rb'"(?:[^"\\]|\\.)*"|\0+', one, body, flags=re.DOTALL)


def exact(text):
    """JSON whose numbers stay what is written."""
    number = lambda written: ("number", written)
    return json.loads(text, parse_int=number, parse_float=number)


def response(stream):
    head, body = stream.split(b"\r\n\r\n", 1)
    lines = head.split(b"\r\n")
    if any(line.lower() == b"transfer-encoding: chunked" for line in lines):
        whole = b""
        while True:
            size, body = body.split(b"\r\n", 1)
            if int(size, 16) == 0:
                return lines, whole
            whole, body = whole + body[: int(size, 16)], body[int(size, 16) + 2 :]
    return lines, body


def logged(inclusion, proof_hash, index, public):
    """Whether a log has the attestation where it says (C2SP tlog-proof, RFC 6962), by a checkpoint that
    the attestation's key signed."""
    with open(inclusion, encoding="utf-8") as file:
        head, note = file.read().split("\n\n", 1)
    first, told, *path = head.split("\n")
    assert first == "c2sp.org/tlog-proof@v1" and told == f"index {index}", "of another place in the log"
    path = [base64.b64decode(line, validate=True) for line in path]
    text, signatures = note.rsplit("\n\n", 1)
    origin, size, root = (text + "\n").split("\n")[:3]
    raw = public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    name = hashlib.sha256(origin.encode() + b"\n\x01" + raw).digest()[:4]
    ours = []
    for line in signatures.splitlines():
        _, by, signature = line.split(" ")
        signature = base64.b64decode(signature, validate=True)
        if by == origin and signature[:4] == name:
            ours.append(signature[4:])
    assert ours, "the checkpoint is not signed with the attestation's key"
    for signature in ours:
        public.verify(signature, (text + "\n").encode())
    node = hashlib.sha256(b"\0avouch/attestation-log-entry/v1\0" + proof_hash).digest()
    at, last = index, int(size) - 1
    assert at <= last, "behind the end of the log"
    for sibling in path:
        assert last, "more hashes than the path has"
        if at & 1 or at == last:
            node = hashlib.sha256(b"\1" + sibling + node).digest()
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            node = hashlib.sha256(b"\1" + node + sibling).digest()
        at, last = at >> 1, last >> 1
    assert not last and node == base64.b64decode(root), "not in the tree of the checkpoint"
    print(f"entry {index} of {size} in the log {origin}")


def attested(attestation, issuers, inclusion, report):
    """The body's fields that the evidence does not show, held against the report; the key's state."""
    with open(attestation, "rb") as file:
        whole = file.read()
    ((body, signature), end) = cbor(whole)
    assert end == len(whole), "something follows the attestation"
    (version, _, key_id, algorithm, mode, session, partner, attempt, challenge, descriptor, server,
     *rest), end = cbor(body)
    assert end == len(body), "something follows the body"
    assert (version, algorithm) == (2, 1), "of another version than 2, or not Ed25519"
    with open(issuers) as file:
        listed = json.load(file)["issuers"]
    name = lambda one: hashlib.sha256(b"avouch/attestation-key/v1\0" + bytes.fromhex(one["publicKey"]))
    listings = [one for one in listed if name(one).digest() == key_id]
    assert listings, "its key is not listed"
    message = b"avouch/zktls-attestation/v1\0" + body
    public = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(listings[0]["publicKey"]))
    public.verify(signature, message)
    descriptor_hash, (host, port, address, *_) = descriptor[2], server
    for place, computed in {
        ("proofHash",): hashlib.sha256(message).hexdigest(),
        ("attestationType",): {0: "full-reveal", 1: "zktls-request", 2: "zktls-full"}.get(mode, "unknown"),
        ("session",): session.hex(),
        ("partner",): partner.hex(),
        ("attempt",): attempt,
        ("challenge",): base64.urlsafe_b64encode(challenge).decode().rstrip("=") or None,
        ("issuer", "keyId"): key_id.hex(),
        ("descriptor", "sha256"): descriptor_hash.hex(),
        ("server", "name"): host.decode(),
        ("server", "port"): port,
        ("server", "address"): str(ipaddress.ip_address(address)),
    }.items():
        told = report
        for step in place:
            told = told[step]
        assert told == computed, f"{'.'.join(place)}: {told} was told, {computed} computed"
    print(f"signature, key {key_id.hex()}, session, partner, attempt {attempt}, challenge and server are as told")
    log_index = rest[-2][0]
    if inclusion:
        logged(inclusion, hashlib.sha256(message).digest(), log_index, public)
    revoked = [one["revokedAt"] for one in listings if one.get("revokedAt") is not None]
    assert not revoked, f"its key was revoked, at {min(revoked)} ms since 1970"


def main(evidence, roots, report, attestation=None, issuers=None, inclusion=None):
    with open(evidence, "rb") as file:
        (client, server, reveal, *_), _ = cbor(file.read())
    with open(report) as file:
        report = file.read()
    report, claims = json.loads(report), exact(report)["claims"]
    if attestation:
        attested(attestation, issuers, inclusion, report)
    told, host = report["evidence"], report["server"]["name"]
    server_handshake, client_handshake, (kind, (server_data,)), _, tag_keys, said, hidden, _ = reveal
    is_full, said = kind == 1, blanked(said, hidden)
    of_client, of_server = list(records(client)), list(records(server))
    client_hello, server_hello = of_client[0][2], of_server[0][2]
    sealed_client = [record for record in of_client if record[0] == 23]
    sealed_server = [record for record in of_server if record[0] == 23]

    handshake, taken = flight(server_handshake, sealed_server)
    before = client_hello + server_hello

    def transcript(count):
        return hashlib.sha256(before + b"".join(handshake[:count])).digest()

    chain = certificates(handshake[1])
    leaf, *between = [x509.load_der_x509_certificate(certificate) for certificate in chain]
    with open(roots, "rb") as file:
        store = Store(x509.load_pem_x509_certificates(file.read()))
    moment = datetime.datetime.fromisoformat(report["times"]["opened"]).replace(tzinfo=None)
    verifier = PolicyBuilder().store(store).time(moment)
    verifier.build_server_verifier(x509.DNSName(host)).verify(leaf, between)
    scheme = signed(leaf.public_key(), handshake[2], transcript(2))
    assert handshake[3][4:] == finished(server_handshake, transcript(3)), "the server's Finished"

    (kind, ours), *_ = opened(client_handshake, sealed_client[:1])
    assert kind == 22 and ours[4:] == finished(client_handshake, transcript(4)), "the client's"
    for record, key in zip(sealed_client[1:], tag_keys, strict=True):
        tagged(record, key)

    if is_full:
        stream, closed = told_response(server_data, sealed_server[taken:])
    else:
        answered = list(opened(server_data, sealed_server[taken:]))
        stream = b"".join(content for kind, content in answered if kind == 23)
        closed = answered[-1] == (21, b"\x01\0")
    lines, body = response(stream)
    if not closed:
        lengths = [line for line in lines if line.lower().startswith(b"content-length:")]
        ends = lengths and int(lengths[0].split(b":")[1]) == len(body)
        assert ends or not lengths and b"transfer-encoding: chunked" in b"\n".join(lines).lower(), "the end is missing"

    spki = leaf.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    lengthened = b"".join(len(each).to_bytes(4, "big") + each for each in chain)
    for name, computed in {
        "signatureScheme": f"{scheme:#06x}",
        "leafKeySha256": hashlib.sha256(spki).hexdigest(),
        "certificateChainSha256": hashlib.sha256(lengthened).hexdigest(),
        "transcript": transcript(4).hex(),
    }.items():
        assert told[name] == computed, f"{name}: {told[name]} was told, {computed} computed"
    shown = {
        "request": said.hex(),
        "responseHead": [line.hex() for line in (seen_lines(lines) if is_full else lines)],
        "responseBody": body.hex(),
    }
    for name, computed in shown.items():
        assert told.get(name, computed) == computed, f"{name}: {told[name]} was told, {computed} computed"
    document = exact(readable(body) if is_full else body)
    for claim in claims:
        value = document
        for step in claim["pointer"].split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            value = value[int(step)] if isinstance(value, list) else value[step]
        assert value == claim["value"], claim["field"]
    print("chain, CertificateVerify, both Finished, tags, records and claims are as told")
    if not all(name in told for name in shown):
        print("NOT COMPARED: the request and the response (avouch-verify was run without --show-transcript)")
    what = "the request and of the response" if is_full else "the request"
    print(
        f"NOT CHECKED: the zero-knowledge proof. Only that shows that the bytes of {what} that are told are "
        "those that were encrypted, and what the hidden ones can be; avouch-verify checks it"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
