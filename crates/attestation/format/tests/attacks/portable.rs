//! Tests of portable attestations when the applicant agreed to share only the claims.

use attestation::{
    CertificateTrust,
    attest::{Disclosure, attest},
    commitment::OpeningKind,
    descriptor::{ClaimDescriptor, Descriptor, RevealMode},
    evidence::Evidence,
    full_reveal::Capture,
    portable::{AttestationBundle, PortableError, Subject},
    signed::sign,
    zktls::{HidePolicy, RevealedServerData, examine, reveal},
};
use ed25519_dalek::SigningKey;
use rustls::pki_types::UnixTime;

use crate::{
    bounds::NoProof,
    setup::{HOST, Setup, descriptor, request_with},
    signed::context,
};

const ACCEPT: &str = "Accept: application/json\r\n";
const CANARY: &str = "canary";
/// A proof for a log with one entry; verifiers check whether the entry is the attestation's.
const INCLUSION: &str = "c2sp.org/tlog-proof@v1\nindex 0\n\nlog.test\n1\n\
    CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n\u{2014} log.test Az3grlgtzPICa5OS8npVmf1Myq/5\
    IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n";

fn subject() -> Subject {
    Subject { session: [3; 16], partner: [4; 16], salt: [2; 32] }
}

/// The connection of an attestation.
#[derive(Clone)]
struct Case<'a> {
    mode: RevealMode,
    /// Headers of the request.
    asked: &'a str,
    /// Headers of the response.
    head: &'a str,
    body: &'a str,
    claims: &'a [&'a str],
}

impl<'a> Case<'a> {
    const fn of(head: &'a str, body: &'a str, claims: &'a [&'a str]) -> Self {
        Self { mode: RevealMode::ZktlsRequest, asked: ACCEPT, head, body, claims }
    }

    /// Returns the parts of the attestation. No proof is computed or verified here.
    fn parts(&self) -> (Vec<u8>, Disclosure, Evidence) {
        let Self { mode, asked, head, body, claims } = self;
        let length = body.len();
        let response = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{head}\r\n{body}"
        );
        let request = request_with(&format!("{asked}Cookie: sid=canary\r\n"));
        let session = Setup { request, response: response.into_bytes(), ..Setup::default() }.play();
        let claim = |pointer: &&str| ClaimDescriptor {
            field: (*pointer).into(),
            pointer: (*pointer).into(),
        };
        let descriptor = Descriptor {
            modes: vec![*mode],
            values: [("accept".into(), "application/json".into())].into(),
            claims: claims.iter().map(claim).collect(),
            ..descriptor()
        };
        let capture = Capture { client: &session.client, server: &session.server };
        let trust = CertificateTrust { roots: &session.roots, now: UnixTime::now() };
        let secret = session.secret.as_slice().try_into().unwrap();
        let revealed =
            reveal(capture, secret, &HidePolicy::of(&descriptor), &NoProof, HOST, &trust).unwrap();
        let found = examine(capture, &revealed, &NoProof, &descriptor, &trust).unwrap();
        let (body, disclosure) = attest(&found, capture, &descriptor, context(), || [9; 16]);
        let descriptor = serde_json::to_string(&descriptor).unwrap();
        let evidence = Evidence {
            client: session.client.clone(),
            server: session.server.clone(),
            reveal: revealed,
            descriptor,
        };
        (sign(&body, &SigningKey::from_bytes(&[7; 32])).unwrap(), disclosure, evidence)
    }

    /// Returns whether the portable attestation contains the evidence, after a modification of it.
    fn carries(&self, change: impl FnOnce(&mut Evidence)) -> bool {
        let (attestation, disclosure, mut evidence) = self.parts();
        change(&mut evidence);
        let (disclosure, bytes) = (disclosure.write().unwrap(), evidence.write().unwrap());
        let portable = AttestationBundle::from_parts(
            subject(),
            attestation,
            &disclosure,
            Some(bytes.clone()),
            None,
        )
        .unwrap();
        let whole = portable.write().unwrap();
        let found = whole.windows(CANARY.len()).any(|window| window == CANARY.as_bytes());
        assert!(!found, "{}{}{}", self.asked, self.head, self.body);
        assert!(portable.evidence.as_ref().is_none_or(|carried| *carried == bytes));
        portable.evidence.is_some()
    }
}

fn parts(head: &str, body: &str, claims: &[&str]) -> (Vec<u8>, Disclosure) {
    let (attestation, disclosure, _) = Case::of(head, body, claims).parts();
    (attestation, disclosure)
}

fn portable(head: &str, body: &str, claims: &[&str]) -> AttestationBundle {
    let (attestation, disclosure, evidence) = Case::of(head, body, claims).parts();
    let (disclosure, evidence) = (disclosure.write().unwrap(), evidence.write().unwrap());
    AttestationBundle::from_parts(subject(), attestation, &disclosure, Some(evidence), None)
        .unwrap()
}

#[test]
fn evidence_that_shows_more_than_the_claims_is_left_out() {
    for (head, body, claims, whole) in [
        ("", r#"{"id":"4711"}"#, &["/id"][..], true),
        ("Date: now\r\nSERVER: any\r\n", r#"{"a":{"id":1},"n":[true]}"#, &["/a/id", "/n/0"], true),
        ("", r#"{"x/y~z":null}"#, &["/x~1y~0z"], true),
        ("", r#"{"id":"4711","email":"canary"}"#, &["/id"], false),
        ("", r#"{"id":"4711","canary":{}}"#, &["/id"], false),
        ("", r#"{"id":"4711","list":[]}"#, &["/id"], false),
        ("X-Account: canary\r\n", r#"{"id":"4711"}"#, &["/id"], false),
        ("ETag: canary\r\n", r#"{"id":"4711"}"#, &["/id"], false),
    ] {
        assert_eq!(Case::of(head, body, claims).carries(|_| ()), whole, "{head}{body}");
    }
}

/// Evidence of a selectively disclosed response reveals no value except the claims.
#[test]
fn evidence_that_hides_what_is_not_claimed_is_carried() {
    for (head, body) in [
        ("", r#"{"id":"4711","email":"canary"}"#),
        (
            "X-Account: canary\r\nSet-Cookie: sid=canary\r\n",
            r#"{"id":"4711","a":{"canary":["canary"]}}"#,
        ),
    ] {
        let case = Case { mode: RevealMode::ZktlsFull, ..Case::of(head, body, &["/id"]) };
        assert!(case.carries(|_| ()), "{head}{body}");
    }
}

/// Evidence contains visible headers of the prover, such as the applicant's browser.
#[test]
fn evidence_with_headers_that_the_descriptor_does_not_fix_is_left_out() {
    let asked = format!("{ACCEPT}User-Agent: canary\r\n");
    for mode in [RevealMode::ZktlsRequest, RevealMode::ZktlsFull] {
        let case = Case { mode, ..Case::of("", r#"{"id":"4711"}"#, &["/id"]) };
        assert!(case.carries(|_| ()));
        assert!(!Case { asked: &asked, ..case }.carries(|_| ()), "{mode:?}");
    }
}

/// An examination of evidence ignores the values of hidden bytes.
#[test]
fn evidence_that_tells_something_in_the_place_of_what_is_hidden_is_left_out() {
    let body = r#"{"id":"4711","email":"somebody"}"#;
    let case = Case { mode: RevealMode::ZktlsFull, ..Case::of("", body, &["/id"]) };
    let write = |bytes: &mut Vec<u8>, at: usize| {
        bytes[at..at + CANARY.len()].copy_from_slice(CANARY.as_bytes());
    };
    assert!(!case.carries(|evidence| {
        let at = evidence.reveal.hidden[0].start;
        write(&mut evidence.reveal.request_bytes, at);
    }));
    assert!(!case.carries(|evidence| {
        let RevealedServerData::Proved(revealed) = &mut evidence.reveal.server else { return };
        let at = revealed.hidden[0].start;
        write(&mut revealed.response_bytes, at);
    }));
    // For another request or another mode, or malformed.
    assert!(!case.carries(|evidence| {
        evidence.descriptor = evidence.descriptor.replace("/api/v1/me", "/api/v1/you");
    }));
    assert!(!case.carries(|evidence| evidence.reveal.server = RevealedServerData::TrafficSecret([0; 32])));
    let (attestation, disclosure, _) = case.parts();
    let (disclosure, none) = (disclosure.write().unwrap(), Some(b"canary".to_vec()));
    let portable =
        AttestationBundle::from_parts(subject(), attestation, &disclosure, none, None).unwrap();
    assert_eq!(portable.evidence, None);
}

#[test]
fn the_disclosure_opens_the_claims_and_nothing_else() {
    let (_, whole) = parts("", r#"{"id":"4711"}"#, &["/id"]);
    assert!(whole.openings.iter().any(|opening| opening.kind == OpeningKind::BodyPart));
    let portable = portable("", r#"{"id":"4711"}"#, &["/id"]);
    let disclosure = Disclosure::read(&portable.disclosure).unwrap();
    assert!(disclosure.openings.iter().all(|opening| opening.kind == OpeningKind::Claim));
    assert_eq!(disclosure.claim(0), Some("\"4711\""));
    let (body, _) = attestation::signed::decode_unverified(&portable.attestation).unwrap();
    disclosure.verify(&body).unwrap();
}

#[test]
fn a_response_that_is_not_opened_in_full_leaves_the_evidence_out() {
    let (attestation, disclosure, evidence) = Case::of("", r#"{"id":"4711"}"#, &["/id"]).parts();
    let evidence = evidence.write().unwrap();
    for kind in [OpeningKind::ResponseLine, OpeningKind::BodyPart] {
        let mut some = disclosure.clone();
        let at = some.openings.iter().position(|opening| opening.kind == kind).unwrap();
        some.openings.remove(at);
        let some = some.write().unwrap();
        let made = AttestationBundle::from_parts(
            subject(),
            attestation.clone(),
            &some,
            Some(evidence.clone()),
            None,
        );
        assert_eq!(made.unwrap().evidence, None, "{kind:?}");
    }
}

#[test]
fn a_portable_attestation_has_one_form() {
    let portable = portable("", r#"{"id":"4711"}"#, &["/id"]);
    let inclusion = Some(INCLUSION.as_bytes().to_vec());
    let evidence = portable.evidence.clone();
    for (evidence, inclusion) in [(evidence, inclusion.clone()), (None, inclusion), (None, None)] {
        let mut other = portable.clone();
        (other.evidence, other.inclusion) = (evidence, inclusion);
        let bytes = other.write().unwrap();
        assert!(AttestationBundle::has_format_prefix(&bytes));
        assert_eq!(AttestationBundle::read(&bytes).unwrap(), other);
    }
    let bytes = portable.write().unwrap();
    assert!(AttestationBundle::has_format_prefix(&bytes));
    assert!(!AttestationBundle::has_format_prefix(&portable.attestation));
    assert_eq!(AttestationBundle::read(&bytes).unwrap(), portable);
    let longer = [bytes.as_slice(), &[0]].concat();
    assert!(matches!(AttestationBundle::read(&longer), Err(PortableError::Malformed(_))));
    for end in 0..bytes.len() {
        assert!(AttestationBundle::read(&bytes[..end]).is_err(), "cut at {end}");
    }
    // Another version of the format, of the same length.
    let mut other = bytes.clone();
    let at = bytes.windows(2).position(|window| window == b"v1").unwrap();
    other[at + 1] = b'2';
    assert_eq!(AttestationBundle::read(&other), Err(PortableError::UnknownFormat));
    // Parts of two attestations do not belong together.
    let (attestation, _) = parts("", r#"{"id":"4712"}"#, &["/id"]);
    let other = parts("", r#"{"id":"4711"}"#, &["/id"]).1.write().unwrap();
    let mixed = AttestationBundle::from_parts(subject(), attestation, &other, None, None);
    assert!(matches!(mixed, Err(PortableError::Disclosure(_))), "{mixed:?}");
    let (attestation, disclosure) = parts("", r#"{"id":"4711"}"#, &["/id"]);
    let disclosure = disclosure.write().unwrap();
    let with = |inclusion: &str| {
        let inclusion = Some(inclusion.as_bytes().to_vec());
        AttestationBundle::from_parts(subject(), attestation.clone(), &disclosure, None, inclusion)
    };
    assert!(with(INCLUSION).is_ok());
    assert!(matches!(with("no proof"), Err(PortableError::Inclusion(_))));
}
