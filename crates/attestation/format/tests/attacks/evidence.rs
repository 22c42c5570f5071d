//! Tests of evidence that does not support the signed body.

use attestation::{
    attest::{Disclosure, DisclosureError, attest},
    body::Body,
    evidence::{Evidence, EvidenceError, MAX_EVIDENCE_BYTES},
    full_reveal::Capture,
    signed::AttestationError,
};

use crate::{
    hidden::{HONEST, examined, hiding},
    lying_prover::SPARTAN,
    signed::context,
};

fn honest() -> (Body, Disclosure, Evidence) {
    let (session, revealed) = &*HONEST;
    let found = examined(session, revealed).unwrap();
    let capture = Capture { client: &session.client, server: &session.server };
    let mut count = 0;
    let salt = || {
        count += 1;
        [count; 16]
    };
    let (body, disclosure) = attest(&found, capture, &hiding(), context(), salt);
    let evidence = Evidence {
        client: session.client.clone(),
        server: session.server.clone(),
        reveal: revealed.clone(),
        descriptor: serde_json::to_string(&hiding()).unwrap(),
    };
    (body, disclosure, evidence)
}

fn borne_out(
    body: &Body,
    disclosure: Option<&Disclosure>,
    evidence: &Evidence,
) -> Result<(), EvidenceError> {
    let root = HONEST.0.root.as_slice().into();
    let roots = [webpki::anchor_from_trusted_cert(&root).unwrap()];
    evidence.verify(body, disclosure, &*SPARTAN, &roots).map(drop)
}

#[test]
fn evidence_bears_out_what_was_signed_and_nothing_else() {
    let (body, disclosure, evidence) = honest();
    assert_eq!(Evidence::read(&evidence.write().unwrap()), Ok(evidence.clone()));
    assert_eq!(borne_out(&body, Some(&disclosure), &evidence), Ok(()));
    assert_eq!(borne_out(&body, None, &evidence), Ok(()));
    let changed = |change: fn(&mut Body)| {
        let mut body = body.clone();
        change(&mut body);
        borne_out(&body, None, &evidence).unwrap_err()
    };
    assert_eq!(changed(|body| body.mode = 0), EvidenceError::Mismatch);
    assert_eq!(changed(|body| body.tls.suite = 0x1301), EvidenceError::Mismatch);
    assert_eq!(changed(|body| body.capture.sha256[0] ^= 1), EvidenceError::Mismatch);
    assert_eq!(
        changed(|body| body.id[0] ^= 1),
        EvidenceError::Mismatch,
        "it is part of the capture hash"
    );
    assert_eq!(changed(|body| body.proof.sha256[0] ^= 1), EvidenceError::Mismatch);
    assert_eq!(changed(|body| body.request.hidden.clear()), EvidenceError::Mismatch);
    assert_eq!(changed(|body| body.response.body_length += 1), EvidenceError::Mismatch);
    assert_eq!(changed(|body| body.claims[0].pointer.push('x')), EvidenceError::Mismatch);
    assert_eq!(changed(|body| body.descriptor.version += 1), EvidenceError::Descriptor);
    // A time at which its certificate was not valid.
    assert!(matches!(changed(|body| body.time.opened = 1), EvidenceError::Refused(_)));
    let mut other = evidence.clone();
    other.descriptor = other.descriptor.replace("/api/v1/me", "/api/v1/you");
    assert_eq!(borne_out(&body, None, &other), Err(EvidenceError::Descriptor));
    let mut lied = disclosure.clone();
    lied.openings.last_mut().unwrap().value = b"false".to_vec();
    assert_eq!(borne_out(&body, Some(&lied), &evidence), Err(EvidenceError::Disclosure));
    assert!(matches!(lied.verify(&body), Err(DisclosureError::Opening(..))));
}

#[test]
fn evidence_has_one_form_and_a_bound() {
    let (.., evidence) = honest();
    let bytes = evidence.write().unwrap();
    let trailing = Evidence::read(&[bytes.as_slice(), &[0]].concat());
    assert_eq!(trailing, Err(EvidenceError::Malformed(AttestationError::NotCanonical)));
    assert!(matches!(Evidence::read(&bytes[..bytes.len() - 1]), Err(EvidenceError::Malformed(_))));
    assert_eq!(Evidence::read(&vec![0; MAX_EVIDENCE_BYTES + 1]), Err(EvidenceError::TooLong));
}
