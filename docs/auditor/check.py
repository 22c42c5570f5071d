"""Reads evidence a second time, by other means: what avouch-verify says of a recording is computed
again with Python's cryptography and nothing of ours, but for the zero-knowledge proof.

    avouch-verify attestation.cbor --keys issuers.json --evidence evidence.cbor --roots roots.pem > report.json
    python3 check.py evidence.cbor roots.pem report.json
"""

import datetime
import hashlib
import hmac
import json
import sys

from cryptography import x509
from cryptography.hazmat.primitives import hashes, poly1305, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding
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


def main(evidence, roots, report):
    with open(evidence, "rb") as file:
        (client, server, reveal, _), _ = cbor(file.read())
    with open(report) as file:
        report = json.load(file)
    told, host = report["evidence"], report["server"]["name"]
    server_handshake, client_handshake, server_data, client_iv, tag_keys, said, _, _ = reveal
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
    for (_, header, body), key in zip(sealed_client[1:], tag_keys, strict=True):
        body, tag = body[:-16], body[-16:]
        pad = lambda part: part + bytes(-len(part) % 16)
        lengths = len(header).to_bytes(8, "little") + len(body).to_bytes(8, "little")
        poly1305.Poly1305.verify_tag(bytes(key), pad(header) + pad(body) + lengths, tag)

    answered = list(opened(server_data, sealed_server[taken:]))
    assert answered[-1] == (21, b"\x01\0"), "the end is missing"
    lines, body = response(b"".join(content for kind, content in answered if kind == 23))

    spki = leaf.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    lengthened = b"".join(len(each).to_bytes(4, "big") + each for each in chain)
    for name, computed in {
        "signatureScheme": f"{scheme:#06x}",
        "leafKeySha256": hashlib.sha256(spki).hexdigest(),
        "certificateChainSha256": hashlib.sha256(lengthened).hexdigest(),
        "transcript": transcript(4).hex(),
        "request": said.hex(),
        "responseHead": [line.hex() for line in lines],
        "responseBody": body.hex(),
    }.items():
        assert told[name] == computed, f"{name}: {told[name]} was told, {computed} computed"
    document = json.loads(body)
    for claim in report["claims"]:
        value = document
        for step in claim["pointer"].split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            value = value[int(step)] if isinstance(value, list) else value[step]
        assert value == claim["value"], claim["field"]
    print("chain, CertificateVerify, both Finished, tags, records and claims are as told")


if __name__ == "__main__":
    main(*sys.argv[1:])
