//! The key subcommands as an operator runs them: the program, a configuration, and JSON or one line
//! as output.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

use std::{fs, process::Command};

use serde_json::{Value, json};
use tempfile::TempDir;

struct Operator(TempDir);

impl Operator {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("descriptors")).unwrap();
        let root = rcgen::generate_simple_self_signed(vec!["root.test".to_owned()]).unwrap();
        fs::write(folder.path().join("roots.pem"), root.cert.pem()).unwrap();
        let config = "listen = \"127.0.0.1:0\"\nname = \"Witness Ltd\"\nkeys = \"keys\"\n\
                      log = \"log\"\ndescriptors = \"descriptors\"\nroots = \"roots.pem\"\n";
        fs::write(folder.path().join("attestor.toml"), config).unwrap();
        Self(folder)
    }

    /// Runs the program. Returns whether it succeeded, and its output.
    fn run(&self, arguments: &[&str]) -> (bool, String) {
        let program = env!("CARGO_BIN_EXE_avouch-attestor");
        let output = Command::new(program).args(arguments).current_dir(&self.0).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let (success, text) = self.run(arguments);
        assert!(success, "{text}");
        serde_json::from_str(&text).unwrap()
    }
}

#[test]
fn a_key_is_created_rotated_and_revoked() {
    let operator = Operator::new();
    assert!(operator.run(&["new-key"]).0);
    let list = operator.json(&["list-keys", "--json"]);
    let first = list["keys"][0]["keyId"].as_str().unwrap().to_owned();
    assert_eq!(list["keys"][0]["state"], "current");
    assert!(operator.run(&["new-key"]).0);
    let states = |list: &Value| {
        let keys = list["keys"].as_array().unwrap();
        keys.iter().map(|key| key["state"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(states(&operator.json(&["list-keys", "--json"])), ["valid", "current"]);
    let at = "2026-02-03T04:05:06+01:00";
    let revoked =
        operator.json(&["revoke-key", "--key", &first, "--at", at, "--reason", "disk stolen"]);
    assert_eq!(revoked["revokedAt"], 1_770_087_906_000_u64);
    assert_eq!(
        (&revoked["state"], &revoked["revocationReason"]),
        (&json!("revoked"), &json!("disk stolen"))
    );
    assert_eq!(states(&operator.json(&["list-keys", "--json"])), ["revoked", "current"]);
    let (_, text) = operator.run(&["list-keys"]);
    let line = text.lines().next().unwrap();
    assert!(line.starts_with(&first) && line.contains("revoked 2026-02-03T03:05:06Z"), "{line}");
    assert!(line.ends_with(": disk stolen"), "{line}");
    let issuers = operator.json(&["issuers"])["issuers"].clone();
    assert_eq!(issuers[0]["revokedAt"], 1_770_087_906_000_u64);
    assert_eq!(issuers[1].get("revokedAt"), None);
    assert!(!issuers.to_string().contains("disk"), "the reason is not published");
}

#[test]
fn invalid_revocations_are_reported_in_one_line() {
    let operator = Operator::new();
    assert!(operator.run(&["new-key"]).0);
    let id = operator.json(&["list-keys", "--json"])["keys"][0]["keyId"].clone();
    let id = id.as_str().unwrap();
    let other = "0".repeat(64);
    let long = "a".repeat(201);
    for arguments in [
        ["revoke-key", "--key", &other, "--reason", ""],
        ["revoke-key", "--key", id, "--at", "2100-01-01T00:00:00Z"],
        ["revoke-key", "--key", id, "--reason", &long],
        ["revoke-key", "--key", id, "--reason", "a\u{7}b"],
    ] {
        let (success, text) = operator.run(&arguments);
        assert!(!success && text.trim_end().lines().count() == 1, "{text}");
    }
    for at in ["yesterday", "2026-01-01", "1969-12-31T23:59:59Z", ""] {
        assert!(!operator.run(&["revoke-key", "--key", id, "--at", at]).0, "{at}");
    }
    assert_eq!(operator.json(&["list-keys", "--json"])["keys"][0]["state"], "current");
}

/// Verifiers must be able to parse the published list.
#[test]
fn a_name_that_no_trust_list_accepts_is_refused() {
    let operator = Operator::new();
    assert!(operator.run(&["new-key"]).0);
    let file = operator.0.path().join("attestor.toml");
    let config = fs::read_to_string(&file).unwrap();
    for (name, fine) in [
        ("W".repeat(200), true),
        ("W".repeat(201), false),
        (String::new(), false),
        ("W\\nX".into(), false),
    ] {
        fs::write(&file, config.replace("Witness Ltd", &name)).unwrap();
        let (success, text) = operator.run(&["issuers"]);
        assert_eq!(success, fine, "{text}");
        assert!(fine || text.contains("name must be 1 to 200 bytes"), "{text}");
        let parsed = attestation::trust_list::parse_trust_list(text.as_bytes());
        assert_eq!(parsed.is_ok(), fine);
    }
}
