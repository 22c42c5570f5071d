//! Tests of inclusion in the log, and of logs that were changed since.

use attestation::{
    signed::{unhex, verify},
    tlog::{
        Checkpoint, LogProof, NoteKey, RightEdge, SignedCheckpoint, entries_path, entry, leaf_hash,
        write_bundle,
    },
};

use super::*;

const ORIGIN: &str = "log.test/attestations";
const SIGNATURE: &[&str] = &["--mode", "full-reveal", "--level", "signature"];
const PROVED: &[&str] = &["--inclusion", "inclusion.tlog-proof"];

/// The key of the log; the attestation's key is [`key`].
fn log_key() -> SigningKey {
    SigningKey::from_bytes(&[8; 32])
}

fn vkey(key: &SigningKey, origin: &str) -> String {
    NoteKey::new(origin, key.verifying_key().as_bytes()).unwrap().to_string()
}

fn signed(origin: &str, edge: &RightEdge, keys: &[&SigningKey]) -> SignedCheckpoint {
    let checkpoint = Checkpoint { origin: origin.into(), size: edge.size(), root: edge.root() };
    SignedCheckpoint::sign(&checkpoint, keys).unwrap()
}

/// Returns files whose attestation is the third of three entries.
fn logged(keys: &[&SigningKey]) -> Files {
    let files = Files::new();
    let mut body = attested().0;
    body.log.index = 2;
    let bytes = sign(&body, &key()).unwrap();
    files.write("attestation.cbor", &bytes);
    let mut edge = RightEdge::default();
    for other in entries(&files, 2).iter().take(2) {
        edge.push(leaf_hash(other)).unwrap();
    }
    let path = edge.next_path();
    edge.push(leaf_hash(&own(&files))).unwrap();
    let proof = LogProof { index: 2, path, checkpoint: signed(ORIGIN, &edge, keys) };
    files.write("inclusion.tlog-proof", proof.write().as_bytes());
    files
}

fn own(files: &Files) -> Vec<u8> {
    let bytes = fs::read(files.folder.path().join("attestation.cbor")).unwrap();
    let keys = fs::read(files.folder.path().join("keys.json")).unwrap();
    let issuers = attestation::trust_list::parse_trust_list(&keys).unwrap();
    let hash = verify(&bytes, &issuers).unwrap().proof_hash;
    entry(&unhex(&hash).unwrap().try_into().unwrap())
}

/// Returns the attestation's entry after two others, and more entries.
fn entries(files: &Files, count: u8) -> Vec<Vec<u8>> {
    let others = (0..count).map(|byte| entry(&[byte; 32]));
    let mut entries: Vec<_> = others.collect();
    entries.insert(2, own(files));
    entries
}

/// Publishes a log in a subfolder.
fn publish(files: &Files, entries: &[Vec<u8>], key: &SigningKey) {
    let mut edge = RightEdge::default();
    for entry in entries {
        edge.push(leaf_hash(entry)).unwrap();
    }
    let folder = files.folder.path().join("log");
    let path = folder.join(entries_path(0, u16::try_from(entries.len()).unwrap()));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, write_bundle(entries.iter().map(Vec::as_slice)).unwrap()).unwrap();
    fs::write(folder.join("checkpoint"), signed(ORIGIN, &edge, &[key]).write()).unwrap();
}

#[test]
fn an_inclusion_proof_is_verified_by_either_key() {
    let files = logged(&[&log_key(), &key()]);
    let report = files.report(&[SIGNATURE, PROVED].concat());
    let inclusion = &report["log"]["inclusion"];
    assert_eq!((&inclusion["origin"], &inclusion["index"]), (&json!(ORIGIN), &json!(2)));
    assert_eq!(
        (&inclusion["treeSize"], &inclusion["verifiedBy"]),
        (&json!(3), &json!("attestation"))
    );
    let vkey = vkey(&log_key(), ORIGIN);
    let report = files.report(&[SIGNATURE, PROVED, &["--log", &vkey]].concat());
    assert_eq!(report["log"]["inclusion"]["verifiedBy"], "log");
    assert!(report["checked"].as_array().unwrap().contains(&json!("log")));
    // Without a proof there is nothing to verify, which the report states.
    let report = files.report(SIGNATURE);
    assert_eq!(report["log"]["inclusion"], Value::Null);
    let assumed = report["assumes"].to_string();
    assert!(assumed.contains("there is no proof of that here"), "{assumed}");
}

#[test]
fn an_unproved_log_inclusion_is_refused() {
    let vkey_of = |key: &SigningKey| vkey(key, ORIGIN);
    let refused = |files: &Files, more: &[&str], why: &str| {
        let (code, text) = files.verify(&[SIGNATURE, more].concat());
        assert_eq!(code, 19, "{text}");
        assert!(text.contains(why) && text.contains("\"accepted\":false"), "{text}");
    };
    let files = logged(&[&log_key(), &key()]);
    let log = vkey_of(&log_key());
    refused(&files, &["--log", &log], "there is no proof");
    refused(
        &files,
        &[PROVED, &["--log", &vkey_of(&SigningKey::from_bytes(&[9; 32]))]].concat(),
        "no signature",
    );
    refused(&files, &[PROVED, &["--log", &vkey(&log_key(), "other")]].concat(), "another one");
    let alone = logged(&[&log_key()]);
    refused(&alone, PROVED, "no signature");
    assert_eq!(alone.verify(&[SIGNATURE, PROVED, &["--log", &log]].concat()).0, 0);
    // The proof of another attestation, and of another index.
    let proof = fs::read_to_string(files.folder.path().join("inclusion.tlog-proof")).unwrap();
    files.write("inclusion.tlog-proof", proof.replace("index 2", "index 1").as_bytes());
    refused(&files, PROVED, "another index");
    files.write(
        "inclusion.tlog-proof",
        proof.replacen("\n\n", "\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n", 1).as_bytes(),
    );
    refused(&files, PROVED, "not in the tree");
    files.write("inclusion.tlog-proof", b"none");
    refused(&files, PROVED, "malformed");
    files.write("inclusion.tlog-proof", &vec![b'x'; 10_000]);
    refused(&files, PROVED, "longer");
    files.write("inclusion.tlog-proof", proof.as_bytes());
    let (mut body, _) = attested();
    (body.log.index, body.attempt) = (2, 2);
    files.write("attestation.cbor", &sign(&body, &key()).unwrap());
    refused(&files, PROVED, "not in the tree");
    assert_eq!(files.verify(&[SIGNATURE, PROVED, &["--log", "no+key"]].concat()).0, 1);
    assert_eq!(
        files.verify(&[SIGNATURE, PROVED, &["--checkpoint", "x"]].concat()).0,
        1,
        "the log's key is missing"
    );
}

#[test]
fn the_copy_of_the_log_must_be_consistent_with_the_inclusion_proof() {
    let files = logged(&[&log_key(), &key()]);
    let log = vkey(&log_key(), ORIGIN);
    let seen = [SIGNATURE, PROVED, &["--log", &log, "--checkpoint", "log/checkpoint"]].concat();
    for count in [2, 3, 200] {
        publish(&files, &entries(&files, count), &log_key());
        let report = files.report(&seen);
        assert_eq!(report["log"]["inclusion"]["seenSize"], u64::from(count) + 1);
    }
    let refused = |change: fn(&mut Vec<Vec<u8>>), key: &SigningKey, why: &str| {
        for count in [2, 200] {
            let mut entries = entries(&files, count);
            change(&mut entries);
            publish(&files, &entries, key);
            let (code, text) = files.verify(&seen);
            assert_eq!(code, 19, "{text}");
            assert!(text.contains(why), "{text}");
        }
    };
    refused(|_| (), &key(), "no signature");
    refused(|entries| entries.swap(0, 1), &log_key(), "another one");
    refused(|entries| entries.swap(1, 2), &log_key(), "another one");
    refused(|entries| entries[2] = entry(&[99; 32]), &log_key(), "another one");
    refused(|entries| entries.truncate(2), &log_key(), "has 2 entries, fewer");
    publish(&files, &entries(&files, 200), &log_key());
    let path = files.folder.path().join("log/tile/entries/000.p/201");
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, bytes).unwrap();
    assert_eq!(files.verify(&seen).0, 19, "not the entries of the checkpoint");
    fs::remove_file(path).unwrap();
    assert_eq!(files.verify(&seen).0, 1, "a file is missing");
}
