//! Attacks on a selectively disclosed and proved response.

use std::sync::LazyLock;

use attestation::{
    CertificateTrust, ExaminationError,
    descriptor::{ClaimDescriptor, Descriptor, RevealMode},
    full_reveal::{Capture, Findings},
    zktls::{HidePolicy, Reveal, examine, reveal},
};
use rustls::pki_types::UnixTime;

use crate::{
    forge::Inner,
    lying_prover::{SPARTAN, secret},
    setup::{HOST, Session, Setup, descriptor, request_with},
};

/// Texts that only prover and server may see.
const CANARIES: &[&str] = &[
    "sid=canary-cookie",
    "theme=canary-second",
    "rotated-canary",
    "canary@mail.test",
    "Канарейка",
    "7318209",
    "canary-name",
];
/// Some of them are in the declared values.
const BODY: &str = r#"{"user":{"id":"acct-829137","verified":true,"email":"canary@mail.test","name":"\u041a\"Канарейка\"\n"},"balance":7318209,"ok":false,"none":null,"list":[{"canary-name":"canary-name","n":[1,2.5e3,-7318209]},[],{}, "" ],"n":42}"#;

pub(crate) fn response() -> Vec<u8> {
    let length = BODY.len();
    format!(
        "HTTP/1.1 200 OK\r\nServer: x\r\nContent-Type: application/json\r\n\
         Set-Cookie: sid=rotated-canary; Secure\r\nX-Empty:\r\nX-Tab: rotated\t-canary\r\n\
         Content-Length: {length}\r\n\r\n{BODY}"
    )
    .into_bytes()
}

/// The same response in chunks of arbitrary boundaries.
fn chunked() -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
                Transfer-Encoding: chunked\r\nSet-Cookie: sid=rotated-canary\r\n\r\n";
    let mut bytes = head.as_bytes().to_vec();
    for chunk in BODY.as_bytes().chunks(37) {
        bytes.extend(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend(chunk);
        bytes.extend(b"\r\n");
    }
    bytes.extend(b"0\r\n\r\n");
    bytes
}

pub(crate) fn declaring() -> Descriptor {
    let claim = |field: &str, pointer: &str| ClaimDescriptor {
        field: field.into(),
        pointer: pointer.into(),
    };
    Descriptor {
        modes: vec![RevealMode::ZktlsFull],
        claims: vec![
            claim("user_id", "/user/id"),
            claim("verified", "/user/verified"),
            claim("n", "/n"),
        ],
        ..descriptor()
    }
}

pub(crate) fn session(response: Vec<u8>) -> Session {
    let cookies = "sid=canary-cookie; theme=canary-second";
    let request = request_with(&format!("Accept: application/json\r\nCookie: {cookies}\r\n"));
    Setup { request, response, ..Setup::default() }.play()
}

pub(crate) fn reveal_with(session: &Session) -> Result<Reveal, ExaminationError> {
    let descriptor = declaring();
    let capture = Capture { client: &session.client, server: &session.server };
    let trust = CertificateTrust { roots: &session.roots, now: UnixTime::now() };
    reveal(capture, &secret(session), &HidePolicy::of(&descriptor), &*SPARTAN, HOST, &trust)
}

pub(crate) fn examined(session: &Session, revealed: &Reveal) -> Result<Findings, ExaminationError> {
    let capture = Capture { client: &session.client, server: &session.server };
    let trust = CertificateTrust { roots: &session.roots, now: UnixTime::now() };
    examine(capture, revealed, &*SPARTAN, &declaring(), &trust)
}

/// Returns a ticket (RFC 8446, section 4.6.1) of the response's length, with the same bytes.
pub(crate) fn ticket(response: &[u8]) -> Vec<u8> {
    let length = u32::try_from(response.len() - 4).unwrap().to_be_bytes();
    [&[4], &length[1..], &response[4..]].concat()
}

/// The content of a ticket, which a prover would like to present as the response.
pub(crate) const FORGED: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 52\r\n\r\n\
    {\"user\":{\"id\":\"acct-000001\",\"verified\":true},\"n\":43}";

/// The same with a ticket first, and the response in two records with padding.
fn in_records(session: &Session) -> Session {
    session.with(|parts| {
        let data: Vec<_> = parts.server.drain(..).filter(|inner| inner.kind == 23).collect();
        let plaintext =
            data.iter().map(|inner| inner.content.as_slice()).collect::<Vec<_>>().concat();
        let (first, second) = plaintext.split_at(100);
        parts.server = vec![
            Inner::new(22, &ticket(FORGED)),
            Inner { padding: 3, ..Inner::new(23, first) },
            Inner { padding: 1, ..Inner::new(23, second) },
            Inner::new(21, &[1, 0]),
        ];
    })
}

/// A connection, and its prover's reveal.
pub(crate) static HONEST: LazyLock<(Session, Reveal)> = LazyLock::new(|| {
    let session = in_records(&session(response()));
    let revealed = reveal_with(&session).unwrap();
    (session, revealed)
});

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

#[test]
fn the_witness_finds_what_is_declared_and_nothing_else() {
    let (session, revealed) = &*HONEST;
    let found = examined(session, revealed).unwrap();
    let claims: Vec<_> =
        found.claims.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(claims, [("user_id", "\"acct-829137\""), ("verified", "true"), ("n", "42")]);
    assert_eq!(found.mode, RevealMode::ZktlsFull);
    let everything = attestation::signed::write(revealed).unwrap();
    let shown = [found.response.body.clone(), found.response.lines.concat()].concat();
    for canary in CANARIES {
        assert!(!has(&everything, canary), "{canary} is revealed");
        assert!(!has(&shown, canary), "{canary} is found");
    }
    assert_eq!(
        String::from_utf8(shown).unwrap().replace('\0', "."),
        r#"{"user":{"id":"acct-829137","verified":true,"email":"................","name":"\u....\"..................\"\n"},"balance":.......,"ok":.....,"none":....,"list":[{"...........":"...........",".":[.,.....,........]},[],{}, "" ],"n":42}HTTP/1.1 200 OKContent-Type: application/jsonContent-Length: LENGTH"#
            .replace("LENGTH", &BODY.len().to_string())
    );
}

#[test]
fn chunks_are_opened_with_their_sizes() {
    let session = session(chunked());
    let revealed = reveal_with(&session).unwrap();
    let found = examined(&session, &revealed).unwrap();
    assert_eq!(found.claims.len(), 3);
    let everything = attestation::signed::write(&revealed).unwrap();
    for canary in CANARIES {
        assert!(!has(&everything, canary), "{canary} is revealed");
    }
}
