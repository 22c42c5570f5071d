//! Tests of the required verification level.

use attestation::attest::{partner_hash, session_hash};

use super::*;

/// Finding 7: the attestor's statement about data that it saw in full is not a proof, and was
/// accepted as one.
#[test]
fn the_signature_alone_is_accepted_only_on_request() {
    let files = Files::new();
    let is = |more: &[&str], expected: i32| {
        let (code, text) = files.verify(more);
        assert_eq!(code, expected, "{more:?}: {text}");
    };
    is(&[], 13);
    is(&["--disclosure", "disclosure.cbor"], 13);
    is(&["--mode", "zktls-request"], 13);
    is(&["--level", "evidence"], 13);
    is(FULL, 0);
    is(&["--level", "signature"], 0);
    is(&["--level", "disclosure"], 14);
    is(&["--level", "disclosure", "--disclosure", "disclosure.cbor"], 0);
    is(&["--mode", "full-reveal", "--level", "evidence"], 14);
    // The other mode has evidence, which the signature does not replace.
    let (mut body, _) = attested();
    body.mode = 1;
    files.write("attestation.cbor", &sign(&body, &key()).unwrap());
    is(&[], 0);
    is(&["--disclosure", "disclosure.cbor"], 0);
    is(&["--level", "evidence"], 14);
    is(&["--mode", "zktls-request", "--level", "evidence"], 14);
    is(FULL, 13);
    is(&["--level", "signature"], 0);
    is(&["--level", "signature", "--mode", "full-reveal"], 13);
    body.mode = 9;
    files.write("attestation.cbor", &sign(&body, &key()).unwrap());
    is(&["--level", "signature"], 13);
}

/// Returns an attestation of the other mode, for all possible expectations.
fn expecting() -> Files {
    let files = Files::new();
    let (mut body, _) = attested();
    body.mode = 1;
    body.challenge = b"4711".to_vec();
    body.session = session_hash(&[2; 32], &[3; 16]);
    body.partner = partner_hash(&[2; 32], &[4; 16]);
    files.write("attestation.cbor", &sign(&body, &key()).unwrap());
    let session = json!({
        "sessionId": "03030303-0303-0303-0303-030303030303", "salt": hex(&[2; 32]),
    });
    files.write("session.json", session.to_string().as_bytes());
    files
}

/// The holder of a file can remove the evidence, which must not lower the required level.
#[test]
fn expectations_require_evidence_by_default() {
    let files = expecting();
    let code = |options: &[&str]| files.verify(options).0;
    let hash = hex(&[3; 32]);
    let team = "04040404-0404-0404-0404-040404040404";
    for options in [
        &["--roots", "roots.pem"][..],
        &["--host", "platform.test"],
        &["--platform", "1"],
        &["--descriptor", &hash],
        &["--mode", "zktls-request"],
        &["--challenge", "NDcxMQ"],
        &["--session", "session.json"],
        &["--session", "session.json", "--partner", team],
        &["--require-field", "user_id"],
        &["--max-attempt", "1"],
        &["--max-age", "100000d"],
    ] {
        assert_eq!(code(options), 14, "{options:?}");
        let disclosed = [options, &["--disclosure", "disclosure.cbor"]].concat();
        assert_eq!(code(&disclosed), 14, "{options:?}");
        assert_eq!(code(&[options, &["--level", "signature"]].concat()), 0, "{options:?}");
        let both = [&disclosed[..], &["--level", "disclosure"]].concat();
        assert_eq!(code(&both), 0, "{options:?}");
    }
    // The expectation of the contract, and options without an expectation.
    let named = files.report(&[])["proofHash"].as_str().unwrap().to_owned();
    for options in [
        &["--expect-proof-hash", &named][..],
        &["--disclosure", "disclosure.cbor"],
        &["--disclosure", "disclosure.cbor", "--expect-proof-hash", &named],
        &["--json", "--show-transcript"],
        &["--accept-signed-before-revocation"],
    ] {
        let report = files.report(options);
        assert_ne!(report["level"], "evidence");
    }
}

/// There is no evidence in `full-reveal`, and naming this mode accepts the attestor's statement,
/// but not a required field without a value.
#[test]
fn a_required_field_has_a_value_unless_only_the_signature_is_required() {
    let files = Files::new();
    let field = ["--require-field", "user_id"];
    let code = |options: &[&str]| files.verify(&[&field, options].concat()).0;
    assert_eq!(code(FULL), 17);
    assert_eq!(code(&[FULL, &["--disclosure", "disclosure.cbor"]].concat()), 0);
    assert_eq!(code(&[FULL, &["--level", "signature"]].concat()), 0);
    assert_eq!(code(&["--level", "signature"]), 0);
    assert_eq!(
        code(&[FULL, &["--roots", "roots.pem", "--disclosure", "disclosure.cbor"]].concat()),
        0
    );
}
