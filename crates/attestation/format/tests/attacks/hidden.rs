//! Attacks on the hidden parts of the request and their proof.

use std::{ops::Range, sync::LazyLock};

use attestation::{
    CertificateTrust, ExaminationError,
    descriptor::{Descriptor, RevealMode},
    full_reveal::{Capture, Findings},
    http::request::RequestError,
    zk::{ProofError, ZkBackend as _, ZkError},
    zktls::{HidePolicy, Reveal, RevealedServerData, examine, reveal},
};
use rustls::pki_types::UnixTime;

use crate::{
    forge::Inner,
    lying_prover::{SPARTAN, TestAttestor, cover, not_proved, public_values, secret},
    setup::{HOST, Session, Setup, descriptor, request_with},
};

const COOKIE: &str = "sid=0123456789abcdefghijklmnopqrstuvwxyz";

/// A connection, and its prover's reveal.
pub(crate) static HONEST: LazyLock<(Session, Reveal)> = LazyLock::new(|| {
    let session = session();
    let revealed = reveal_with(&session, find(COOKIE)).unwrap();
    (session, revealed)
});

fn session() -> Session {
    let request = request_with(&format!("Accept: application/json\r\nCookie: {COOKIE}\r\n"));
    Setup { request, ..Setup::default() }.play()
}

pub(crate) fn hiding() -> Descriptor {
    Descriptor { modes: vec![RevealMode::ZktlsRequest], ..descriptor() }
}

fn one(range: Range<usize>) -> Vec<Range<usize>> {
    std::iter::once(range).collect()
}

/// Hides the first occurrence of this text.
fn find(text: &'static str) -> impl Fn(&[u8]) -> Vec<Range<usize>> {
    move |plaintext| {
        let at = plaintext.windows(text.len()).position(|part| part == text.as_bytes()).unwrap();
        one(at..at + text.len())
    }
}

fn reveal_with(
    session: &Session,
    hide: impl Fn(&[u8]) -> Vec<Range<usize>>,
) -> Result<Reveal, ExaminationError> {
    let hide = HidePolicy::unchecked(Box::new(move |plaintext| Ok(hide(plaintext))), None);
    let capture = Capture { client: &session.client, server: &session.server };
    let trust = CertificateTrust { roots: &session.roots, now: UnixTime::now() };
    reveal(capture, &secret(session), &hide, &*SPARTAN, HOST, &trust)
}

pub(crate) fn examined(session: &Session, revealed: &Reveal) -> Result<Findings, ExaminationError> {
    let capture = Capture { client: &session.client, server: &session.server };
    let trust = CertificateTrust { roots: &session.roots, now: UnixTime::now() };
    examine(capture, revealed, &*SPARTAN, &hiding(), &trust)
}

fn changed(change: impl FnOnce(&mut Reveal)) -> ExaminationError {
    let (session, revealed) = &*HONEST;
    let mut revealed = revealed.clone();
    change(&mut revealed);
    examined(session, &revealed).unwrap_err()
}

const OTHER: ExaminationError = not_proved(ProofError::PublicValues);

#[test]
fn the_witness_finds_everything_but_the_cookie() {
    let (session, revealed) = &*HONEST;
    let found = examined(session, revealed).unwrap();
    assert_eq!(found.claims[0], ("user_id".into(), "\"acct-829137\"".into()));
    assert_eq!(found.request.hidden.len(), 1);
    assert_eq!(found.request.hidden[0].header, "cookie");
    let plaintext = String::from_utf8(found.request_bytes.clone()).unwrap();
    assert!(plaintext.contains("Cookie: \0") && !plaintext.contains("sid="), "{plaintext}");
    let everything = [revealed.proof.as_slice(), &revealed.request_bytes].concat();
    assert!(!everything.windows(8).any(|part| COOKIE.as_bytes().windows(8).any(|w| w == part)));
    let full = Descriptor { modes: vec![RevealMode::FullReveal], ..descriptor() };
    let capture = Capture { client: &session.client, server: &session.server };
    let trust = CertificateTrust { roots: &session.roots, now: UnixTime::now() };
    assert_eq!(examine(capture, revealed, &*SPARTAN, &full, &trust), Err(ExaminationError::Mode));
}

/// Attacks 1 to 5.
#[test]
fn what_is_told_is_what_was_proved() {
    let byte = HONEST.1.request_bytes.windows(6).position(|part| part == b"Accept").unwrap();
    assert_eq!(changed(|revealed| revealed.request_bytes[byte] ^= 1), OTHER, "a revealed byte");
    let other =
        |revealed: &mut Reveal| revealed.server = RevealedServerData::TrafficSecret([1; 32]);
    assert_eq!(changed(other), ExaminationError::Tag(0));
    assert_eq!(changed(|revealed| revealed.client_iv[0] ^= 1), OTHER);
    assert_eq!(changed(|revealed| revealed.server_handshake[0] ^= 1), ExaminationError::Tag(0));
    assert_eq!(changed(|revealed| revealed.client_handshake[0] ^= 1), ExaminationError::Tag(0));
    assert_eq!(changed(|revealed| revealed.tag_keys[0][0] ^= 1), ExaminationError::Tag(0));
    assert_eq!(changed(|revealed| revealed.tag_keys.truncate(1)), ExaminationError::Reveal);
    assert_eq!(changed(|revealed| revealed.request_bytes.truncate(9)), ExaminationError::Reveal);
    assert_eq!(changed(|revealed| revealed.request_bytes.push(0)), ExaminationError::Reveal);
    assert_eq!(
        changed(|revealed| revealed.hidden.insert(0, 0..26)),
        OTHER,
        "the request line hidden"
    );
    assert_eq!(
        changed(|revealed| revealed.hidden.clear()),
        OTHER,
        "hidden bytes revealed as zeros"
    );
    assert_eq!(changed(|revealed| revealed.hidden[0].end -= 1), OTHER);
    assert_eq!(changed(|revealed| revealed.hidden[0].end = 9999), ExaminationError::Reveal);
    assert_eq!(
        changed(|revealed| revealed.hidden.push(revealed.hidden[0].clone())),
        ExaminationError::Reveal
    );
    let (session, revealed) = &*HONEST;
    let mut odd = revealed.clone();
    let place = odd.hidden[0].start;
    odd.request_bytes[place] = b'\r';
    let found = examined(session, &odd).unwrap();
    assert_eq!(found.request_bytes[place], 0, "revealed values of hidden bytes are ignored");
}

/// Attacks 6 and 25: hidden with its own proof.
#[test]
fn no_line_can_be_hidden_and_no_part_of_another() {
    let session = session();
    let with = |hide: fn(&[u8]) -> Vec<Range<usize>>| {
        reveal_with(&session, hide).and_then(|revealed| examined(&session, &revealed)).unwrap_err()
    };
    let lines = with(|plaintext| {
        let at = plaintext.windows(8).position(|part| part == b"\r\nCookie").unwrap();
        one(at..at + 20)
    });
    assert!(matches!(lines, ExaminationError::Zk(ZkError::Proof(_))), "{lines}");
    assert_eq!(
        with(|_| one(5..9)),
        ExaminationError::Request(RequestError::Prefix),
        "in the target"
    );
    let name = with(|plaintext| {
        let at = plaintext.windows(6).position(|part| part == b"Cookie").unwrap();
        one(at + 2..at + 20)
    });
    assert_eq!(name, ExaminationError::Request(RequestError::HiddenElsewhere));
    let letters = with(|plaintext| {
        let at = plaintext.windows(6).position(|part| part == b"Cookie").unwrap();
        one(at..at + 2)
    });
    assert_eq!(letters, ExaminationError::Request(RequestError::HiddenElsewhere));
}

/// Attack 22: the content type of a record is revealed, also if the next one starts with hidden
/// bytes.
#[test]
fn a_record_may_begin_with_what_is_hidden() {
    let session = session().with(|parts| {
        let whole = parts.client.remove(0).content;
        let at = find(COOKIE)(&whole)[0].start;
        let (before, after) = whole.split_at(at);
        parts.client.splice(0..0, [Inner::new(23, before), Inner::new(23, after)]);
    });
    let revealed = reveal_with(&session, find(COOKIE)).unwrap();
    assert_eq!(revealed.tag_keys.len(), 3);
    assert_eq!(examined(&session, &revealed).unwrap().request.hidden.len(), 1);
}

/// Attack 7: a prover with another secret.
#[test]
fn another_secret_proves_nothing() {
    let (session, revealed) = &*HONEST;
    let attestor = TestAttestor { session, descriptor: &hiding() };
    let statement = attestor.asks(revealed);
    let mut other = secret(session);
    other[5] ^= 1;
    // Such a proof can be computed; the attestor refuses it.
    let mut revealed =
        Reveal { proof: SPARTAN.prove(&statement, &other).unwrap(), ..revealed.clone() };
    let (own, honest) = (public_values(&revealed.proof), public_values(&HONEST.1.proof));
    assert_ne!(revealed.proof[own.clone()], HONEST.1.proof[honest.clone()]);
    assert_eq!(attestor.refuses(&revealed), OTHER);
    cover(&mut revealed.proof, &statement);
    assert_eq!(revealed.proof[own], HONEST.1.proof[honest]);
    assert_eq!(attestor.refuses(&revealed), not_proved(ProofError::ChecksPublicValues));
}

/// Attacks 31 and 32.
#[test]
fn a_proof_is_good_for_its_own_connection_alone() {
    let other = session();
    let mut theirs = reveal_with(&other, find(COOKIE)).unwrap();
    assert!(examined(&HONEST.0, &theirs).is_err());
    let mut ours = HONEST.1.clone();
    std::mem::swap(&mut ours.proof, &mut theirs.proof);
    assert_eq!(examined(&HONEST.0, &ours), Err(OTHER));
    assert_eq!(examined(&other, &theirs), Err(OTHER));
}

/// Attack 8, and malformed proofs. Unit tests of the verifier and its fuzz target cover structural
/// changes of a proof.
#[test]
fn no_bit_of_a_proof_can_be_changed() {
    let (session, revealed) = &*HONEST;
    let mut revealed = revealed.clone();
    let bits = 8 * revealed.proof.len();
    // Each takes as long as a verification: 5,000 were tried once, ATTACK_FLIPS=5000.
    let flips = std::env::var("ATTACK_FLIPS").map_or(60, |flips| flips.parse().unwrap());
    for step in 0..flips {
        let bit = step * (bits / flips) + step * 7 % 8;
        revealed.proof[bit / 8] ^= 1 << (bit % 8);
        let refused = examined(session, &revealed);
        assert!(
            matches!(refused, Err(ExaminationError::Zk(ZkError::Proof(_)))),
            "bit {bit}: {refused:?}"
        );
        revealed.proof[bit / 8] ^= 1 << (bit % 8);
    }
    let size = not_proved(ProofError::Size);
    for proof in [vec![], vec![0; 1000], vec![0xff; 1000], vec![1; 600 * 1024]] {
        assert_eq!(changed(|revealed| revealed.proof = proof), size);
    }
    assert_eq!(changed(|revealed| revealed.proof.push(0)), size);
    assert_eq!(changed(|revealed| revealed.proof.fill(1)), not_proved(ProofError::Option));
    assert_eq!(changed(|revealed| revealed.proof[2..10].fill(0xff)), not_proved(ProofError::Count));
}

/// Secret, root certificate and both directions of a connection, for unit tests that forge a proof
/// of it; each preceded by its length.
#[test]
#[ignore = "writes the input of the verifier's tests"]
fn a_connection_is_recorded_for_the_tests_of_the_verifier() {
    let Session { client, server, secret, root, .. } = session();
    let part = |part: Vec<u8>| {
        [&u32::try_from(part.len()).unwrap().to_be_bytes(), part.as_slice()].concat()
    };
    let all: Vec<_> = [secret, root, client, server].into_iter().flat_map(part).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/zk/spartan/tests/recorded.bin");
    std::fs::write(path, all).unwrap();
}
