//! The verification matrix: one real connection with its proof and attestation, and all possible
//! defects of the attestation, each with its exit code.
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests panic to fail")]

#[path = "../../../format/tests/attacks/any_certificate.rs"]
mod any_certificate;
mod attested;
mod claims;
mod fields;
mod files;
mod selective;
#[expect(dead_code, reason = "the attacks of the attestation crate use the other items")]
#[path = "../../../format/tests/attacks/setup.rs"]
mod setup;

use std::{fs, path::Path, process::Command};

use attestation::{
    body::Body,
    portable::{AttestationBundle, Subject},
    signed::{hex, sign},
};
use ed25519_dalek::SigningKey;
use serde_json::{Value, json};
use tempfile::TempDir;

use self::attested::{ATTESTED, Attested, CHALLENGE, SALT, SESSION, TEAM, key};

const DISCLOSED: &[&str] = &["--disclosure", "disclosure.cbor", "--level", "disclosure"];
const EXAMINED: &[&str] = &["--evidence", "evidence.cbor", "--roots", "roots.pem"];

/// A folder with the files of a partner.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self::of(&ATTESTED)
    }

    fn of(attested: &Attested) -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        files.attest(&attested.body);
        files.write("disclosure.cbor", &attested.disclosure.write().unwrap());
        files.write("evidence.cbor", &attested.evidence.write().unwrap());
        files.write("roots.pem", attested.roots.as_bytes());
        files.write("descriptor.json", attested.evidence.descriptor.as_bytes());
        let keys = issuers_of(attested, &json!({}));
        files.write("keys.json", keys.as_bytes());
        files.session(SESSION);
        files
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.0.path().join(name), bytes).unwrap();
    }

    /// Signs another body with the trusted key.
    fn attest(&self, body: &Body) {
        self.write("attestation.cbor", &sign(body, &key()).unwrap());
    }

    fn session(&self, id: &str) {
        let session = json!({ "sessionId": id, "salt": hex(&SALT) });
        self.write("session.json", session.to_string().as_bytes());
    }

    fn verify(&self, more: &[&str]) -> (i32, Value, String) {
        let program = Path::new(env!("CARGO_BIN_EXE_avouch-verify"));
        let arguments = [&["attestation.cbor", "--keys", "keys.json"], more].concat();
        let output = Command::new(program).args(arguments).current_dir(&self.0).output().unwrap();
        let report = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (output.status.code().unwrap(), report, String::from_utf8(output.stderr).unwrap())
    }

    /// Verifies with options and expects a refusal in one line.
    fn refused(&self, more: &[&str], expected: i32) {
        let (code, report, stderr) = self.verify(more);
        assert_eq!(code, expected, "{more:?}: {stderr}");
        assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
        assert_ne!(report["accepted"], true);
    }
}

fn issuers(changes: &Value) -> String {
    issuers_of(&ATTESTED, changes)
}

fn issuers_of(attested: &Attested, changes: &Value) -> String {
    let now = attested.body.time.signed;
    let mut issuer = json!({
        "name": "Witness Ltd", "publicKey": hex(key().verifying_key().as_bytes()),
        "validFrom": now - 1000, "validTo": now + 1000,
    });
    issuer.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    json!({ "issuers": [issuer] }).to_string()
}

/// Returns all expectations that the attestation meets.
fn expected() -> Vec<String> {
    let hash = hex(&ATTESTED.body.descriptor.sha256);
    let all = [
        "--host platform.test",
        "--platform 1",
        &format!("--descriptor {hash}"),
        "--mode zktls-request",
        &format!("--challenge {CHALLENGE}"),
        &format!("--partner {TEAM}"),
        "--session session.json",
        "--require-field user_id",
        "--require-field verified",
        "--max-attempt 2",
        "--max-age 1h",
    ];
    all.join(" ").split(' ').map(str::to_owned).collect()
}

#[test]
fn an_attestation_that_meets_all_expectations_is_accepted() {
    let files = Files::new();
    let expected = expected();
    let expected: Vec<_> = expected.iter().map(String::as_str).collect();
    let (code, report, stderr) = files.verify(&[&expected[..], EXAMINED].concat());
    assert_eq!((code, &report["level"]), (0, &json!("evidence")), "{stderr}");
    let checked = ["session", "age", "host", "platform", "descriptor", "mode", "challenge"];
    let checked = [&checked[..], &["partner", "field", "attempt"]].concat();
    assert_eq!((&report["accepted"], &report["checked"]), (&json!(true), &json!(checked)));
    assert_eq!((&report["challenge"], &report["attempt"]), (&json!(CHALLENGE), &json!(2)));
    assert_eq!(report["claims"][0]["value"], "acct-829137", "found in the evidence");
    assert_eq!(report["server"]["address"], "192.0.2.1");
    let chosen = &report["request"]["chosenHeaders"];
    assert_eq!(*chosen, json!([]), "the descriptor fixes the only visible header");
    for name in ["request", "responseHead", "responseBody"] {
        assert_eq!(report["evidence"].get(name), None, "{name} has undeclared data");
    }
    let shown = files.verify(&[EXAMINED, &["--show-transcript"]].concat()).1;
    let head = shown["evidence"]["responseHead"].as_array().unwrap();
    assert_eq!(head[0], hex(b"HTTP/1.1 200 OK"));
    assert!(shown["evidence"]["responseBody"].as_str().unwrap().contains(&hex(b"\"n\":42")));
}

/// Each expectation alone, met and not met.
#[test]
fn each_unmet_expectation_has_its_exit_code() {
    let files = Files::new();
    files
        .write("keys-of-others.json", issuers(&json!({ "publicKey": "01".repeat(32) })).as_bytes());
    let hash = hex(&ATTESTED.body.descriptor.sha256);
    let other_hash = "0".repeat(64);
    let same = |options: &[&str]| {
        let (code, _, stderr) = files.verify(&[DISCLOSED, options].concat());
        assert_eq!(code, 0, "{options:?}: {stderr}");
    };
    let wrong = |options: &[&str], code| files.refused(&[DISCLOSED, options].concat(), code);
    same(&["--host", "platform.test"]);
    same(&["--host", "Platform.TEST:443"]);
    wrong(&["--host", "platform.test:8443"], 10);
    wrong(&["--host", "platform.tes"], 10);
    wrong(&["--host", "a.platform.test"], 10);
    same(&["--platform", "1"]);
    wrong(&["--platform", "2"], 11);
    same(&["--descriptor", &hash]);
    same(&["--descriptor", &hash.to_uppercase()]);
    same(&["--descriptor", "descriptor.json"]);
    wrong(&["--descriptor", &other_hash], 12);
    let other = ATTESTED.evidence.descriptor.replace("/api/v1/me", "/api/v1/you");
    files.write("other.json", other.as_bytes());
    wrong(&["--descriptor", "other.json"], 12);
    same(&["--mode", "zktls-request"]);
    wrong(&["--mode", "full-reveal"], 13);
    same(&["--challenge", CHALLENGE]);
    wrong(&["--challenge", "AAAA"], 15);
    wrong(&["--challenge", &CHALLENGE[..32]], 15);
    let session = ["--session", "session.json"];
    same(&[&session[..], &["--partner", TEAM]].concat());
    let other_team = TEAM.replace('4', "5");
    wrong(&[&session[..], &["--partner", &other_team]].concat(), 16);
    same(&["--require-field", "verified"]);
    wrong(&["--require-field", "verified", "--require-field", "n"], 17);
    wrong(&["--require-field", "User_id"], 17);
    same(&["--max-attempt", "2"]);
    wrong(&["--max-attempt", "1"], 18);
    same(&["--max-age", "1h"]);
    wrong(&["--max-age", "0s"], 9);
    files.refused(&["--level", "evidence"], 14);
    files.refused(&["--level", "disclosure"], 14);
    files.refused(&["--level", "evidence", "--disclosure", "disclosure.cbor"], 14);
    files.session(&SESSION.replace('3', "4"));
    wrong(&session, 8);
}

/// A complete attestation, presented to a verifier that expects another one.
#[test]
fn an_attestation_of_another_partner_or_challenge_is_refused() {
    let files = Files::new();
    let mut replayed = ATTESTED.body.clone();
    replayed.challenge = b"yesterday's".to_vec();
    files.attest(&replayed);
    files.refused(&[DISCLOSED, &["--challenge", CHALLENGE]].concat(), 15);
    replayed.challenge = vec![];
    files.attest(&replayed);
    files.refused(&[DISCLOSED, &["--challenge", CHALLENGE]].concat(), 15);
    // The other partner's session has the other partner's salt.
    let mut others = ATTESTED.body.clone();
    others.session = attestation::attest::session_hash(&[8; 32], &[3; 16]);
    others.partner = attestation::attest::partner_hash(&[8; 32], &[5; 16]);
    files.attest(&others);
    let session = ["--session", "session.json", "--partner", TEAM];
    files.refused(&[DISCLOSED, &session].concat(), 8);
    others.session = ATTESTED.body.session;
    files.attest(&others);
    files.refused(&[DISCLOSED, &session].concat(), 16);
}

/// A portable file has the salt of its names, so that session and partner can be expected without
/// another file.
#[test]
fn a_portable_attestation_is_checked_for_session_and_partner() {
    let files = Files::new();
    let subject = Subject { session: [3; 16], partner: [4; 16], salt: SALT };
    let of = |subject: Subject| {
        let signed = sign(&ATTESTED.body, &key()).unwrap();
        let opened = ATTESTED.disclosure.write().unwrap();
        AttestationBundle::from_parts(subject, signed, &opened, None, None)
            .unwrap()
            .write()
            .unwrap()
    };
    files.write("attestation.cbor", &of(subject.clone()));
    let code = |options: &[&str]| {
        let (code, _, stderr) = files.verify(options);
        assert_eq!(stderr.trim_end().lines().count(), usize::from(code != 0), "{stderr}");
        code
    };
    let enough = ["--level", "disclosure"];
    let named = ["--session", SESSION, "--partner", TEAM, "--require-field", "user_id"];
    assert_eq!(code(&[&enough[..], &named].concat()), 0);
    assert_eq!(code(&named), 14, "the evidence is required and missing");
    assert_eq!(code(&["--session", "session.json", "--level", "disclosure"]), 0);
    let (other_session, other_team) = (SESSION.replace('3', "5"), TEAM.replace('4', "5"));
    assert_eq!(code(&["--session", &other_session]), 8);
    assert_eq!(code(&["--partner", &other_team]), 16);
    // The file states its subject; only the attestation proves it.
    files.write("attestation.cbor", &of(Subject { partner: [5; 16], ..subject.clone() }));
    assert_eq!(code(&["--partner", &other_team]), 8);
    files.write("attestation.cbor", &of(Subject { salt: [8; 32], ..subject }));
    assert_eq!(code(&enough), 8);
}

#[test]
fn revoked_keys_are_refused_at_every_level() {
    let files = Files::new();
    let signed = ATTESTED.body.time.signed;
    let code = |options: &[&str]| files.verify(&[DISCLOSED, options].concat()).0;
    for (changes, expected) in [
        (json!({}), 0),
        (json!({ "revokedAt": signed + 500 }), 3),
        (json!({ "revokedAt": signed - 500 }), 3),
        (json!({ "validTo": signed }), 3),
        (json!({ "validFrom": signed + 1 }), 3),
        (json!({ "publicKey": "01".repeat(32) }), 3),
    ] {
        files.write("keys.json", issuers(&changes).as_bytes());
        assert_eq!(code(&[]), expected, "{changes}");
        // A second list without the revocation does not help.
        files.write("more.json", issuers(&json!({})).as_bytes());
        let found = code(&["--keys", "more.json"]);
        let unlisted = changes.get("publicKey").is_some();
        assert_eq!(found, if unlisted { 0 } else { expected }, "{changes}");
    }
    files.write("keys.json", issuers(&json!({ "revokedAt": signed + 500 })).as_bytes());
    files.refused(EXAMINED, 3);
}
