//! The `monitor` command: its output and its exit codes.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use attestation::tlog::{
    Checkpoint, NoteKey, RightEdge, SignedCheckpoint, entries_path, entry, leaf_hash, write_bundle,
};
use ed25519_dalek::SigningKey;

const ORIGIN: &str = "log.test/attestations";

fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

/// Writes a log with these entries, as another implementation might.
fn publish(folder: &Path, entries: &[u8]) {
    let write = |path: &str, bytes: &[u8]| {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    let mut edge = RightEdge::default();
    let entries: Vec<_> = entries.iter().map(|byte| entry(&[*byte; 32])).collect();
    for entry in &entries {
        edge.push(leaf_hash(entry)).unwrap();
    }
    for tile in edge.partial_tiles() {
        write(&tile.path(), &tile.bytes());
    }
    let bundle = write_bundle(entries.iter().map(Vec::as_slice)).unwrap();
    write(&entries_path(0, u16::try_from(entries.len()).unwrap()), &bundle);
    let checkpoint = Checkpoint { origin: ORIGIN.into(), size: edge.size(), root: edge.root() };
    let signed = SignedCheckpoint::sign(&checkpoint, &[&key()]).unwrap();
    write("checkpoint", signed.write().as_bytes());
}

fn monitor(log: &Path, state: &Path, more: &[&str]) -> Output {
    let vkey = NoteKey::new(ORIGIN, key().verifying_key().as_bytes()).unwrap().to_string();
    Command::new(env!("CARGO_BIN_EXE_avouch-attestor"))
        .arg("monitor")
        .args(["--log".as_ref(), log.as_os_str(), "--state".as_ref(), state.as_os_str()])
        .args(["--key", &vkey])
        .args(more)
        .output()
        .unwrap()
}

#[test]
fn each_monitor_error_has_an_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let (log, state) = (folder.path().join("log"), folder.path().join("state/log.json"));
    let code = |more: &[&str]| monitor(&log, &state, more).status.code().unwrap();
    assert_eq!(code(&["--once"]), 13, "there is no log yet");
    publish(&log, b"abc");
    let output = monitor(&log, &state, &["--once"]);
    assert_eq!(output.status.code(), Some(0));
    let output: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&output["origin"], &output["size"]), (&ORIGIN.into(), &3.into()));
    publish(&log, b"abcd");
    assert_eq!(code(&["--all"]), 0);
    publish(&log, b"abce");
    let output = monitor(&log, &state, &["--interval", "1"]);
    assert_eq!(output.status.code(), Some(10), "it ends at the first problem");
    assert!(String::from_utf8(output.stderr).unwrap().contains("the log was rewritten"));
    publish(&log, b"abc");
    assert_eq!(code(&[]), 11);
    publish(&log, b"abcd");
    assert_eq!(code(&[]), 0);
    fs::write(log.join("checkpoint"), "nothing").unwrap();
    assert_eq!(code(&[]), 12);
    fs::write(&state, "nothing").unwrap();
    assert_eq!(code(&[]), 14);
    assert_eq!(code(&["--once", "--interval", "1"]), 2, "invalid arguments");
    assert_eq!(code(&["--interval", "0"]), 2);
}
