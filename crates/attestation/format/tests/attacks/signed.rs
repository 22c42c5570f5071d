//! Attacks on signed attestations: other encodings, other keys, other openings.

use attestation::{
    attest::{
        AttestationContext, Disclosure, DisclosureError, attest, capture_hash, partner_hash,
        session_hash,
    },
    body::{AttestationTimes, AttestorBuild, Body, LogPosition},
    commitment::OpeningKind,
    full_reveal::Capture,
    signed::{
        AttestationError, Issuer, MAX_ISSUERS, RevokedKeys, decode_unverified, hex, key_id, sign,
        verify, verify_with,
    },
};
use ed25519_dalek::SigningKey;

use crate::setup::{Session, Setup, descriptor};

const NOON: u64 = 1_790_000_000_000;

fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

fn issuer() -> Issuer {
    Issuer {
        name: "test".into(),
        public_key: hex(key().verifying_key().as_bytes()),
        valid_from: NOON - 1000,
        valid_to: NOON + 1000,
        revoked_at: None,
    }
}

pub(crate) fn context() -> AttestationContext {
    AttestationContext {
        id: [1; 16],
        issuer: key_id(key().verifying_key().as_bytes()),
        session: session_hash(&[2; 32], &[3; 16]),
        partner: partner_hash(&[2; 32], &[4; 16]),
        attempt: 1,
        challenge: b"challenge".to_vec(),
        server_address: vec![192, 0, 2, 1],
        egress: 0,
        resolver: 0,
        roots_sha256: [4; 32],
        time: AttestationTimes { opened: NOON - 20, closed: NOON - 10, signed: NOON },
        attestor: AttestorBuild { version: "0.1.0".into(), sha256: [5; 32] },
        log: LogPosition { index: 9, previous_hash: [6; 32] },
        blinding: [8; 32],
    }
}

fn attested() -> (Body, Disclosure, Session) {
    let session = Setup::default().play();
    let found = session.examine().unwrap();
    let capture = Capture { client: &session.client, server: &session.server };
    let mut count = 0;
    let salt = || {
        count += 1;
        [count; 16]
    };
    let (body, disclosure) = attest(&found, capture, &descriptor(), context(), salt);
    (body, disclosure, session)
}

#[test]
fn an_attestation_is_verified_and_opened() {
    let (body, disclosure, session) = attested();
    let bytes = sign(&body, &key()).unwrap();
    let verified = verify(&bytes, &[issuer()]).unwrap();
    assert_eq!((verified.body, verified.proof_hash.len()), (body.clone(), 64));
    assert_eq!(Disclosure::read(&disclosure.write().unwrap()).unwrap(), disclosure);
    disclosure.verify(&body).unwrap();
    let claims = [0, 1, 2].map(|at| disclosure.claim(at));
    assert_eq!(claims, [Some("\"acct-829137\""), Some("true"), None]);
    let capture = Capture { client: &session.client, server: &session.server };
    assert_eq!(body.capture.sha256, capture_hash(&[1; 16], capture));
    let some = Disclosure { openings: disclosure.openings[..1].to_vec(), ..disclosure };
    some.verify(&body).unwrap();
    assert_eq!(some.claim(0), None);
}

/// Attack 35.
#[test]
fn an_attestation_has_one_form() {
    let (body, ..) = attested();
    let bytes = sign(&body, &key()).unwrap();
    let refused = |bytes: &[u8]| verify(bytes, &[issuer()]).unwrap_err();
    assert_eq!(refused(&[&bytes[..], &[0]].concat()), AttestationError::NotCanonical);
    // The array's head in two bytes instead of one, and with indefinite length.
    assert_eq!(refused(&[&[0x98, 2], &bytes[1..]].concat()), AttestationError::NotCanonical);
    let endless = refused(&[&[0x9f], &bytes[1..], &[0xff]].concat());
    assert_eq!(endless, AttestationError::NotCanonical);
    assert!(matches!(refused(&[]), AttestationError::Malformed(_)));
    assert!(matches!(refused(&[0xff; 40]), AttestationError::Malformed(_)));
    assert!(matches!(
        refused(&[0x9b, 255, 255, 255, 255, 255, 255, 255, 255]),
        AttestationError::Malformed(_)
    ));
    assert_eq!(refused(&vec![0; 300 * 1024]), AttestationError::TooLong);
    for bit in 0..8 * bytes.len() {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(verify(&changed, &[issuer()]).is_err(), "bit {bit} is free");
    }
    for version in [1, 3] {
        let unknown = Body { version, ..body.clone() };
        let refused_version = refused(&sign(&unknown, &key()).unwrap());
        assert_eq!(refused_version, AttestationError::UnsupportedVersion(version, 1));
    }
}

/// The body of an earlier version has other fields: it is distinguished from a malformed one.
#[test]
fn a_body_of_another_version_is_named_by_its_version() {
    // An array of a version, an identifier, a key, an algorithm, and another value.
    let body = [&[0x85, 1, 0x50][..], &[1; 16], &[0x58, 32], &[2; 32], &[1, 0xf6]].concat();
    let envelope = [&[0x82, 0x58, 55][..], &body, &[0x58, 64], &[0; 64]].concat();
    assert_eq!(body.len(), 55);
    assert_eq!(decode_unverified(&envelope), Err(AttestationError::UnsupportedVersion(1, 1)));
    assert_eq!(verify(&envelope, &[issuer()]), Err(AttestationError::UnsupportedVersion(1, 1)));
    let broken = [&[0x82, 0x58, 54][..], &body[..54], &[0x58, 64], &[0; 64]].concat();
    assert_eq!(decode_unverified(&broken), Err(AttestationError::UnsupportedVersion(1, 1)));
    let ours = [&envelope[..4], &[2], &envelope[5..]].concat();
    assert!(matches!(decode_unverified(&ours), Err(AttestationError::Malformed(_))));
    for body in [&[][..], &[0x85], &[0x85, 0x41, 1], &[0xf6]] {
        let length = u8::try_from(body.len()).unwrap();
        let broken = [&[0x82, 0x40 | length][..], body, &[0x58, 64], &[0; 64]].concat();
        assert!(
            matches!(decode_unverified(&broken), Err(AttestationError::Malformed(_))),
            "{body:?}"
        );
    }
}

/// Attack 35: a key of small order, for which one signature is valid for every message.
#[test]
fn a_key_of_small_order_signs_nothing() {
    let (body, ..) = attested();
    let mut small = [0; 32];
    small[0] = 1;
    let body = Body { issuer: key_id(&small), ..body };
    let honest = sign(&body, &key()).unwrap();
    // The neutral element as R, and zero as S: a verification that is not strict accepts it.
    let mut forged = honest.clone();
    let at = forged.len() - 64;
    forged[at..].fill(0);
    forged[at] = 1;
    let issuer = Issuer { public_key: hex(&small), ..issuer() };
    assert_eq!(verify(&forged, &[issuer]), Err(AttestationError::Signature));
}

/// Attack 38.
#[test]
fn keys_that_are_not_believed_are_refused() {
    let (body, ..) = attested();
    let bytes = sign(&body, &key()).unwrap();
    let refused = |issuer: Issuer| verify(&bytes, &[issuer]).unwrap_err();
    assert_eq!(verify(&bytes, &[]), Err(AttestationError::Issuer));
    let late = Issuer { valid_from: NOON + 1, ..issuer() };
    assert_eq!(refused(late), AttestationError::NotValid);
    let early = Issuer { valid_to: NOON, ..issuer() };
    assert_eq!(refused(early), AttestationError::NotValid);
    let revoked = Issuer { revoked_at: Some(NOON + 5), ..issuer() };
    assert_eq!(refused(revoked), AttestationError::Revoked);
    for public_key in ["", "zz", &hex(&[1; 31]), &issuer().public_key.to_ascii_uppercase()] {
        let odd = Issuer { public_key: public_key.into(), ..issuer() };
        assert_eq!(refused(odd), AttestationError::Issuer);
    }
    let other = SigningKey::from_bytes(&[9; 32]);
    let forged = sign(&body, &other).unwrap();
    assert_eq!(verify(&forged, &[issuer()]), Err(AttestationError::Signature));
}

/// A list with two entries of a key is as strict as both together: a revocation must not depend on
/// the order in which lists are joined.
#[test]
fn every_listing_of_a_key_counts() {
    let (body, ..) = attested();
    let bytes = sign(&body, &key()).unwrap();
    let revoked = Issuer { revoked_at: Some(NOON + 5), ..issuer() };
    let ended = Issuer { valid_to: NOON, ..issuer() };
    let later = Issuer { valid_from: NOON + 1, ..issuer() };
    for (other, why) in [
        (revoked, AttestationError::Revoked),
        (ended, AttestationError::NotValid),
        (later, AttestationError::NotValid),
    ] {
        assert_eq!(verify(&bytes, &[other.clone(), issuer()]), Err(why.clone()));
        assert_eq!(verify(&bytes, &[issuer(), other]), Err(why));
    }
    assert!(verify(&bytes, &[issuer(), issuer()]).is_ok());
}

/// A revocation after the last entry that is read would be missed.
#[test]
fn a_list_of_too_many_keys_is_refused_as_a_whole() {
    let (body, ..) = attested();
    let bytes = sign(&body, &key()).unwrap();
    let mut many = vec![issuer(); MAX_ISSUERS];
    assert!(verify(&bytes, &many).is_ok());
    many.push(Issuer { revoked_at: Some(NOON + 5), ..issuer() });
    assert_eq!(verify(&bytes, &many), Err(AttestationError::TooManyIssuers));
}

#[test]
fn what_was_signed_before_a_revocation_is_accepted_only_on_request() {
    let (body, ..) = attested();
    let bytes = sign(&body, &key()).unwrap();
    let revoked = |at| [Issuer { revoked_at: Some(at), ..issuer() }];
    let lenient = |at| verify_with(&bytes, &revoked(at), RevokedKeys::AcceptSignedBefore);
    assert!(lenient(NOON + 1).is_ok(), "signed a millisecond before");
    assert_eq!(lenient(NOON), Err(AttestationError::Revoked), "at that time");
    assert_eq!(lenient(NOON - 1), Err(AttestationError::Revoked));
    assert_eq!(
        verify_with(&bytes, &revoked(NOON + 1), RevokedKeys::Refuse),
        Err(AttestationError::Revoked)
    );
    // The earlier one of two revocations counts.
    let twice = [revoked(NOON + 1), revoked(NOON - 1)].concat();
    let found = verify_with(&bytes, &twice, RevokedKeys::AcceptSignedBefore);
    assert_eq!(found, Err(AttestationError::Revoked));
}

/// Attacks 36 and 37.
#[test]
fn openings_stand_for_nothing_else() {
    let (body, disclosure, _) = attested();
    let claim = disclosure.openings.iter().position(|one| one.kind == OpeningKind::Claim).unwrap();
    let changed = |change: &dyn Fn(&mut Disclosure)| {
        let mut changed = disclosure.clone();
        change(&mut changed);
        changed.verify(&body).unwrap_err()
    };
    let wrong = |index| DisclosureError::Opening(OpeningKind::Claim, index);
    assert_eq!(changed(&|all| all.openings[claim].value = b"\"evil\"".to_vec()), wrong(0));
    assert_eq!(changed(&|all| all.openings[claim].salt[0] ^= 1), wrong(0));
    assert_eq!(changed(&|all| all.openings[claim].index = 1), wrong(1));
    assert_eq!(changed(&|all| all.openings[claim].index = 77), wrong(77));
    let as_line = changed(&|all| all.openings[claim].kind = OpeningKind::RequestLine);
    assert_eq!(as_line, DisclosureError::Opening(OpeningKind::RequestLine, 0));
    assert_eq!(changed(&|all| all.request[0].0[0] ^= 1), DisclosureError::Root);
    assert_eq!(changed(&|all| all.response.swap(0, 1)), DisclosureError::Root);
    assert_eq!(changed(&|all| all.response.truncate(1)), DisclosureError::Root);
    let (other, ..) = attested();
    assert_ne!(sign(&other, &key()).unwrap(), sign(&body, &key()).unwrap(), "another connection");
    assert!(matches!(Disclosure::read(&vec![0; 9 << 20]), Err(DisclosureError::TooLong)));
    assert!(matches!(Disclosure::read(&[1, 2, 3]), Err(DisclosureError::Malformed(_))));
}
