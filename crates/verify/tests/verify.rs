//! The program as an auditor runs it: files in, JSON or one line and a code out.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests panic to fail")]

#[path = "verify/log.rs"]
mod log;

use std::{fs, path::Path, process::Command};

use attestation::{
    attest::{Disclosure, Leaf},
    body::{
        Body, Build, CaptureHash, Claim, DescriptorName, ED25519, LogPlace, Proof, Request,
        Response, Server, Time, Tls, VERSION,
    },
    commitment::{Kind, Opening, root},
    signed::{hex, key_id, sign},
};
use ed25519_dalek::SigningKey;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Accepts what the attestation below is.
const FULL: &[&str] = &["--mode", "full-reveal"];
const NOON: u64 = 1_790_000_000_000;

/// A folder with an attestation, what opens it, and the keys that are believed.
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

    /// Writes the list of keys, with changes to the only one.
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

    /// Runs the program there; its code, and what it said.
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
    let line = opening(Kind::RequestLine, 0, "GET /me HTTP/1.1");
    let part = opening(Kind::BodyPart, 0, "{\"id\":\"a\"}");
    let claim = opening(Kind::Claim, 0, "\"a\"");
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
        descriptor: DescriptorName { platform: 1, version: 2, sha256: [3; 32] },
        server: Server {
            name: "platform.test".into(),
            port: 443,
            address: vec![192, 0, 2, 1],
            egress: 0,
            resolver: 0,
        },
        tls: tls(),
        time: Time { opened: NOON - 20, closed: NOON - 10, signed: NOON },
        capture: CaptureHash { client_length: 1, server_length: 2, sha256: [8; 32] },
        request: Request {
            method: "GET".into(),
            target: "/me".into(),
            length: 100,
            hidden: vec![],
            root: root(&[line.commitment()]),
        },
        response: Response {
            status: 200,
            content_type: "application/json".into(),
            head_length: 50,
            body_length: 10,
            root: root(&[part.commitment()]),
        },
        claims: vec![Claim {
            field: "user_id".into(),
            pointer: "/id".into(),
            commitment: claim.commitment(),
        }],
        proof: Proof::default(),
        attestor: Build { version: "0.1.0".into(), sha256: [9; 32] },
        log: LogPlace { index: 4, before: [10; 32] },
        blind: [11; 32],
    };
    let disclosure = Disclosure {
        request: vec![Leaf(line.commitment())],
        response: vec![Leaf(part.commitment())],
        openings: vec![line, part, claim],
    };
    (body, disclosure)
}

fn tls() -> Tls {
    Tls {
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
fn what_is_proved_and_assumed_is_told() {
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

/// Finding 7: the attestor's word on what it has seen in full is no proof, and was taken for one.
#[test]
fn the_attestors_word_alone_is_accepted_only_where_it_is_asked_for() {
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
    // The other mode has evidence, which the signature does not stand for.
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

#[test]
fn what_is_genuine_but_not_accepted_is_reported_as_such() {
    let files = Files::new();
    let (code, text) = files.verify(&["--host", "other.test"]);
    let (json, line) = text.trim_end().split_once('\n').unwrap();
    let report: Value = serde_json::from_str(json).unwrap();
    assert_eq!((code, &report["accepted"]), (10, &json!(false)));
    assert_eq!(report["refused"], json!({ "code": 10, "class": "host", "message": line }));
    assert_eq!(report["server"]["name"], "platform.test");
    // What is not genuine is not reported, and said as JSON only on request.
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
    assert!(report["assumes"].to_string().contains("the word of whoever held it"));
    files.write("revoked.json", &listed(&json!({ "revokedAt": NOON })));
    assert_eq!(code(&["--keys", "revoked.json", before]), 3, "signed at that time");
    // An entry that cannot be read could be the revocation.
    let upper = hex(key().verifying_key().as_bytes()).to_ascii_uppercase();
    files.write("revoked.json", &listed(&json!({ "publicKey": upper, "revokedAt": NOON })));
    files.issue(&json!({}));
    assert_eq!(code(&["--keys", "revoked.json"]), 1);
    let many = ["--keys", "keys.json"].repeat(16);
    assert_eq!(code(&many), 1, "seventeen lists");
}

#[test]
fn options_that_are_malformed_are_wrong_usage() {
    let files = Files::new();
    let long = "A".repeat(87);
    let name = "a".repeat(101);
    for (option, values) in [
        ("--host", &["", "a b", "a..b", ".", "a:", "a:0", "a:65536", "a:b", "https://a"][..]),
        ("--platform", &["", "-1", "x", "4294967296", "1.0"]),
        ("--mode", &["", "full", "ZKTLS-REQUEST", "0"]),
        ("--level", &["", "proof", "Evidence"]),
        ("--challenge", &["", "A", "AA==", "+A", "/A", "A A", "AB", "é", &long]),
        ("--require-field", &["", &name]),
        ("--max-attempt", &["", "0", "-1", "x", "4294967296"]),
        ("--max-age", &["", "1", "h", "-1h", "1y"]),
        ("--partner", &["", "x", "0", "00000000-0000-0000-0000-00000000000g"]),
    ] {
        for value in values {
            let option = format!("{option}={value}");
            let (code, text) = files.verify(&["--session", "session.json", &option]);
            assert_eq!(code, 1, "{option}: {text}");
            assert!(text.starts_with("error: "), "{option}: {text}");
        }
    }
    for arguments in [
        &["--evidence", "evidence.cbor"][..],
        &["--host", "a.test", "--host", "b.test"],
        &["--json=yes"],
    ] {
        let (code, text) = files.verify(arguments);
        assert_eq!(code, 1, "{arguments:?}: {text}");
        assert!(text.starts_with("error: "), "{text}");
    }
    // Read as a file where it is no hash.
    for (name, bytes) in [("empty", &b""[..]), ("other", b"{}"), ("long", &b" ".repeat(65537))] {
        files.write(name, bytes);
        assert_eq!(files.verify(&["--descriptor", name]).0, 1, "{name}");
    }
    assert_eq!(files.verify(&["--descriptor", &"0".repeat(63)]).0, 1);
}

#[test]
fn each_kind_of_failure_has_a_code_and_a_line() {
    let files = Files::new();
    let fails = |more: &[&str], expected: i32| {
        let (code, text) = files.verify(more);
        assert_eq!(code, expected, "{text}");
        assert_eq!(text.trim_end().lines().count(), 1, "{text}");
    };
    fails(&["--expect-proof-hash", &"0".repeat(64)], 5);
    fails(&["--disclosure", "nowhere.cbor"], 1);
    // Nothing has the salt of these names.
    fails(&["--partner", "00000000-0000-0000-0000-000000000000"], 1);
    fails(&["--session", "00000000-0000-0000-0000-000000000000"], 1);
    files.write("disclosure.cbor", b"x");
    fails(&["--disclosure", "disclosure.cbor"], 6);
    let (body, mut disclosure) = attested();
    disclosure.openings[2].value = b"\"b\"".to_vec();
    files.write("disclosure.cbor", &disclosure.write().unwrap());
    fails(&["--disclosure", "disclosure.cbor"], 6);
    files.issue(&json!({ "revokedAt": NOON }));
    fails(&[], 3);
    files.issue(&json!({ "validTo": NOON }));
    fails(&[], 3);
    files.issue(&json!({ "publicKey": "00".repeat(32) }));
    fails(&[], 3);
    files.issue(&json!({ "surprise": 1 }));
    fails(&[], 1);
    files.issue(&json!({}));
    files.write("attestation.cbor", &sign(&body, &SigningKey::from_bytes(&[8; 32])).unwrap());
    fails(&[], 4);
    files.write("attestation.cbor", b"x");
    fails(&[], 2);
    files.write("attestation.cbor", &vec![0; 300 * 1024]);
    fails(&[], 2);
    let (code, _) = files.verify(&["--no-such-flag"]);
    assert_eq!(code, 1);
}

/// The guide's table has the codes and classes that `--help` has.
#[test]
fn the_guide_lists_every_exit_code() {
    let files = Files::new();
    let (code, help) = files.verify(&["--help"]);
    assert_eq!(code, 0);
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/partners-guide.md");
    let guide = fs::read_to_string(guide).unwrap();
    let table = help.split("Exit codes:").nth(1).unwrap().lines();
    let rows: Vec<_> = table
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let code: u8 = words.next()?.parse().ok()?;
            Some((code, words.next()?))
        })
        .collect();
    assert!(rows.len() > 18 && (0..).zip(&rows).all(|(at, (code, _))| at == *code), "{rows:?}");
    for (code, class) in &rows[1..] {
        assert!(guide.contains(&format!("\n| {code} | {class} | ")), "{code} {class}");
    }
}
