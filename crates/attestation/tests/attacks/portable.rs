//! What a portable attestation shows to whom the applicant agreed to share the claims alone.

use attestation::{
    attest::{Disclosure, attest},
    commitment::Kind,
    descriptor::{Claim, Descriptor},
    full_reveal::Capture,
    portable::{BadPortable, Portable, Subject},
    signed::sign,
};
use ed25519_dalek::SigningKey;

use crate::{
    scene::{Scene, descriptor},
    signed::circumstances,
};

const EVIDENCE: &[u8] = b"the recording";
/// Of a log with one entry; that it is the attestation's is for the verifier to say.
const INCLUSION: &str = "c2sp.org/tlog-proof@v1\nindex 0\n\nlog.test\n1\n\
    CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n\u{2014} log.test Az3grlgtzPICa5OS8npVmf1Myq/5\
    IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n";

fn subject() -> Subject {
    Subject { session: [3; 16], partner: [4; 16], salt: [2; 32] }
}

/// The parts of an attestation of a response with this head and body, in which these are claimed.
fn parts(head: &str, body: &str, claims: &[&str]) -> (Vec<u8>, Disclosure) {
    let length = body.len();
    let response = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{head}\r\n{body}"
    );
    let session = Scene { response: response.into_bytes(), ..Scene::default() }.play();
    let claim = |pointer: &&str| Claim { field: (*pointer).into(), pointer: (*pointer).into() };
    let descriptor = Descriptor { claims: claims.iter().map(claim).collect(), ..descriptor() };
    let found = session.examine_as(&descriptor).unwrap();
    let capture = Capture { client: &session.client, server: &session.server };
    let (body, disclosure) = attest(&found, capture, &descriptor, circumstances(), || [9; 16]);
    (sign(&body, &SigningKey::from_bytes(&[7; 32])).unwrap(), disclosure)
}

fn portable(head: &str, body: &str, claims: &[&str]) -> Portable {
    let (attestation, disclosure) = parts(head, body, claims);
    let disclosure = disclosure.write().unwrap();
    Portable::of(subject(), attestation, &disclosure, Some(EVIDENCE.to_vec()), None).unwrap()
}

#[test]
fn evidence_that_shows_more_than_the_claims_is_left_out() {
    let table = [
        ("", r#"{"id":"4711"}"#, vec!["/id"], true),
        (
            "Date: now\r\nSERVER: any\r\n",
            r#"{"a":{"id":1},"n":[true]}"#,
            vec!["/a/id", "/n/0"],
            true,
        ),
        ("", r#"{"x/y~z":null}"#, vec!["/x~1y~0z"], true),
        ("", r#"{"id":"4711","email":"canary"}"#, vec!["/id"], false),
        ("", r#"{"id":"4711","canary":{}}"#, vec!["/id"], false),
        ("", r#"{"id":"4711","list":[]}"#, vec!["/id"], false),
        ("X-Account: canary\r\n", r#"{"id":"4711"}"#, vec!["/id"], false),
        ("ETag: canary\r\n", r#"{"id":"4711"}"#, vec!["/id"], false),
    ];
    for (head, body, claims, whole) in table {
        let portable = portable(head, body, &claims);
        let evidence = whole.then(|| EVIDENCE.to_vec());
        assert_eq!(portable.evidence, evidence, "{head}{body}");
        let bytes = portable.write().unwrap();
        let canary = b"canary";
        assert!(!bytes.windows(canary.len()).any(|window| window == canary), "{head}{body}");
    }
}

#[test]
fn the_disclosure_opens_the_claims_and_nothing_else() {
    let (_, whole) = parts("", r#"{"id":"4711"}"#, &["/id"]);
    assert!(whole.openings.iter().any(|opening| opening.kind == Kind::BodyPart));
    let portable = portable("", r#"{"id":"4711"}"#, &["/id"]);
    let disclosure = Disclosure::read(&portable.disclosure).unwrap();
    assert!(disclosure.openings.iter().all(|opening| opening.kind == Kind::Claim));
    assert_eq!(disclosure.claim(0), Some("\"4711\""));
    let (body, _) = attestation::signed::unverified(&portable.attestation).unwrap();
    disclosure.opens(&body).unwrap();
}

#[test]
fn a_response_that_is_not_opened_in_full_leaves_the_evidence_out() {
    let (attestation, disclosure) = parts("", r#"{"id":"4711"}"#, &["/id"]);
    for kind in [Kind::ResponseLine, Kind::BodyPart] {
        let mut some = disclosure.clone();
        let at = some.openings.iter().position(|opening| opening.kind == kind).unwrap();
        some.openings.remove(at);
        let some = some.write().unwrap();
        let made =
            Portable::of(subject(), attestation.clone(), &some, Some(EVIDENCE.to_vec()), None);
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
        assert!(Portable::is_meant_by(&bytes));
        assert_eq!(Portable::read(&bytes).unwrap(), other);
    }
    let bytes = portable.write().unwrap();
    assert!(Portable::is_meant_by(&bytes));
    assert!(!Portable::is_meant_by(&portable.attestation));
    assert_eq!(Portable::read(&bytes).unwrap(), portable);
    let longer = [bytes.as_slice(), &[0]].concat();
    assert!(matches!(Portable::read(&longer), Err(BadPortable::Form(_))));
    for end in 0..bytes.len() {
        assert!(Portable::read(&bytes[..end]).is_err(), "cut at {end}");
    }
    // Another version of the form, of the same length.
    let mut other = bytes.clone();
    let at = bytes.windows(2).position(|window| window == b"v1").unwrap();
    other[at + 1] = b'2';
    assert_eq!(Portable::read(&other), Err(BadPortable::Unknown));
    // Parts of two attestations do not make one.
    let (attestation, _) = parts("", r#"{"id":"4712"}"#, &["/id"]);
    let other = parts("", r#"{"id":"4711"}"#, &["/id"]).1.write().unwrap();
    let mixed = Portable::of(subject(), attestation, &other, None, None);
    assert!(matches!(mixed, Err(BadPortable::Disclosure(_))), "{mixed:?}");
    let (attestation, disclosure) = parts("", r#"{"id":"4711"}"#, &["/id"]);
    let disclosure = disclosure.write().unwrap();
    let with = |inclusion: &str| {
        let inclusion = Some(inclusion.as_bytes().to_vec());
        Portable::of(subject(), attestation.clone(), &disclosure, None, inclusion)
    };
    assert!(with(INCLUSION).is_ok());
    assert!(matches!(with("no proof"), Err(BadPortable::Inclusion(_))));
}
