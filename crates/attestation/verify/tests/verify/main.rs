//! Tests of the program as an auditor runs it: files as input, JSON or one line and an exit code as
//! output.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests panic to fail")]

mod log;
mod numbers;
mod required_level;
mod usage;

use std::{fs, path::Path, process::Command};

use attestation::{
    attest::{Disclosure, Leaf},
    body::{
        AttestationTimes, AttestedClaim, AttestedRequest, AttestedResponse, AttestedServer,
        AttestedTls, AttestorBuild, Body, CaptureHash, DescriptorReference, ED25519, LogPosition,
        ProofSummary, VERSION,
    },
    commitment::{Opening, OpeningKind, merkle_root},
    signed::{hex, key_id, sign},
};
use ed25519_dalek::SigningKey;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Accepts the mode of the attestation below.
const FULL: &[&str] = &["--mode", "full-reveal"];
const NOON: u64 = 1_790_000_000_000;

/// A folder with an attestation, its disclosure, and the trusted keys.
struct Files {
    folder: TempDir,
}

impl Files {
    fn new() -> Self {
        let (body, disclosure) = attested();
        let files = Self { folder: tempfile::tempdir().unwrap() };
        files.write("attestation.cbor", &sign(&body, &key()).unwrap());
        files.write("disclosure.cbor", &disclosure.write().unwrap());
        files.issue(&json!({}));
        files
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.folder.path().join(name), bytes).unwrap();
    }

    /// Writes the list of keys, with changes to its only entry.
    fn issue(&self, changes: &Value) {
        let mut issuer = json!({
            "name": "the test's", "publicKey": hex(key().verifying_key().as_bytes()),
            "validFrom": NOON - 1, "validTo": NOON + 1,
        });
        for (name, value) in changes.as_object().unwrap() {
            issuer[name] = value.clone();
        }
        self.write("keys.json", json!({ "issuers": [issuer] }).to_string().as_bytes());
    }

    /// Runs the program in the folder. Returns its exit code and its output.
    fn verify(&self, more: &[&str]) -> (i32, String) {
        let program = Path::new(env!("CARGO_BIN_EXE_avouch-verify"));
        let order = [&["attestation.cbor", "--keys", "keys.json"], more].concat();
        let output = Command::new(program).args(order).current_dir(&self.folder).output().unwrap();
        let (said, complained) = (output.stdout, output.stderr);
        let text = String::from_utf8([said, complained].concat()).unwrap();
        (output.status.code().unwrap(), text)
    }

    fn report(&self, more: &[&str]) -> Value {
        let (code, text) = self.verify(more);
        assert_eq!(code, 0, "{text}");
        serde_json::from_str(&text).unwrap()
    }
}

fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

fn attested() -> (Body, Disclosure) {
    let opening = |kind, index, value: &str| Opening {
        kind,
        index,
        salt: [9; 16],
        value: value.as_bytes().to_vec(),
    };
    let line = opening(OpeningKind::RequestLine, 0, "GET /me HTTP/1.1");
    let part = opening(OpeningKind::BodyPart, 0, "{\"id\":\"a\"}");
    let claim = opening(OpeningKind::Claim, 0, "\"a\"");
    let body = Body {
        version: VERSION,
        id: [1; 16],
        issuer: key_id(key().verifying_key().as_bytes()),
        algorithm: ED25519,
        mode: 0,
        session: [2; 32],
        partner: [10; 32],
        attempt: 1,
        challenge: vec![],
        descriptor: DescriptorReference { platform: 1, version: 2, sha256: [3; 32] },
        server: AttestedServer {
            name: "platform.test".into(),
            port: 443,
            address: vec![192, 0, 2, 1],
            egress: 0,
            resolver: 0,
        },
        tls: tls(),
        time: AttestationTimes { opened: NOON - 20, closed: NOON - 10, signed: NOON },
        capture: CaptureHash { client_length: 1, server_length: 2, sha256: [8; 32] },
        request: AttestedRequest {
            method: "GET".into(),
            target: "/me".into(),
            length: 100,
            hidden: vec![],
            root: merkle_root(&[line.commitment()]),
        },
        response: AttestedResponse {
            status: 200,
            content_type: "application/json".into(),
            head_length: 50,
            body_length: 10,
            root: merkle_root(&[part.commitment()]),
            hidden: 0,
        },
        claims: vec![AttestedClaim {
            field: "user_id".into(),
            pointer: "/id".into(),
            commitment: claim.commitment(),
        }],
        proof: ProofSummary::default(),
        attestor: AttestorBuild { version: "0.1.0".into(), sha256: [9; 32] },
        log: LogPosition { index: 4, previous_hash: [10; 32] },
        blinding: [11; 32],
    };
    let disclosure = Disclosure {
        request: vec![Leaf(line.commitment())],
        response: vec![Leaf(part.commitment())],
        openings: vec![line, part, claim],
    };
    (body, disclosure)
}

fn tls() -> AttestedTls {
    AttestedTls {
        version: 0x0304,
        suite: 0x1303,
        group: 29,
        scheme: 0x0403,
        leaf_key_sha256: [4; 32],
        chain_sha256: [5; 32],
        roots_sha256: [6; 32],
        transcript: vec![7; 32],
    }
}

#[test]
fn the_report_states_proofs_and_assumptions() {
    let files = Files::new();
    let report = files.report(FULL);
    assert_eq!(
        (&report["level"], &report["attestationType"]),
        (&json!("signature"), &json!("full-reveal"))
    );
    assert_eq!(report["claims"][0]["value"], Value::Null);
    assert_eq!(report["issuer"]["name"], "the test's");
    assert!(report["assumes"].as_array().unwrap().len() >= 5);
    let opened = files.report(&[FULL, &["--disclosure", "disclosure.cbor"]].concat());
    assert_eq!(
        (&opened["level"], &opened["claims"][0]["value"]),
        (&json!("disclosure"), &json!("a"))
    );
    let hash = report["proofHash"].as_str().unwrap();
    files.report(&[FULL, &["--expect-proof-hash", hash]].concat());
    assert_eq!(hash.len(), 64);
    assert_eq!(report["accepted"], true);
    assert_eq!(report["server"]["address"], "192.0.2.1");
    assert_eq!(report["server"]["resolver"], "dns");
    assert_eq!(report["issuer"]["keyId"], hex(&key_id(key().verifying_key().as_bytes())));
    assert_eq!(report["issuer"]["validFrom"], "2026-09-21T14:13:19.999Z");
    assert_eq!(report["issuer"]["revokedAt"], Value::Null);
    assert_eq!((&report["attempt"], &report["challenge"]), (&json!(1), &Value::Null));
    assert_eq!(report["log"]["index"], 4);
}

#[test]
fn a_genuine_but_refused_attestation_is_reported() {
    let files = Files::new();
    let (code, text) = files.verify(&["--host", "other.test"]);
    let (json, line) = text.trim_end().split_once('\n').unwrap();
    let report: Value = serde_json::from_str(json).unwrap();
    assert_eq!((code, &report["accepted"]), (10, &json!(false)));
    assert_eq!(report["refused"], json!({ "code": 10, "class": "host", "message": line }));
    assert_eq!(report["server"]["name"], "platform.test");
    // An attestation that is not genuine has no report, and its refusal is JSON only on request.
    files.write("attestation.cbor", b"x");
    let (code, text) = files.verify(&["--json"]);
    let (json, line) = text.trim_end().split_once('\n').unwrap();
    let refused: Value = serde_json::from_str(json).unwrap();
    let expected = json!({ "code": 2, "class": "attestation", "message": line });
    assert_eq!((code, refused), (2, json!({ "accepted": false, "refused": expected })));
}

#[test]
fn a_revocation_in_any_list_counts() {
    let files = Files::new();
    let listed = |changes: &Value| {
        files.issue(changes);
        fs::read(files.folder.path().join("keys.json")).unwrap()
    };
    files.write("revoked.json", &listed(&json!({ "revokedAt": NOON + 1 })));
    files.issue(&json!({}));
    let code = |more: &[&str]| files.verify(&[FULL, more].concat()).0;
    assert_eq!(code(&[]), 0);
    assert_eq!(code(&["--keys", "revoked.json"]), 3);
    let before = "--accept-signed-before-revocation";
    assert_eq!(code(&["--keys", "revoked.json", before]), 0);
    let report = files.report(&[FULL, &["--keys", "revoked.json", before]].concat());
    assert_eq!(report["issuer"]["revokedAt"], "2026-09-21T14:13:20.001Z");
    assert!(report["assumes"].to_string().contains("a statement of the key's holder"));
    files.write("revoked.json", &listed(&json!({ "revokedAt": NOON })));
    assert_eq!(code(&["--keys", "revoked.json", before]), 3, "signed at that time");
    // A malformed entry could be the revocation.
    let upper = hex(key().verifying_key().as_bytes()).to_ascii_uppercase();
    files.write("revoked.json", &listed(&json!({ "publicKey": upper, "revokedAt": NOON })));
    files.issue(&json!({}));
    assert_eq!(code(&["--keys", "revoked.json"]), 1);
    let many = ["--keys", "keys.json"].repeat(16);
    assert_eq!(code(&many), 1, "seventeen lists");
}
