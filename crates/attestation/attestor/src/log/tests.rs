//! Tests of logs that an operator or a crash changed, and of clocks that go back.

pub(crate) mod changed;
mod crashed;

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
};

use attestation::{
    body::{
        AttestationTimes, AttestedRequest, AttestedResponse, AttestedServer, AttestedTls,
        AttestorBuild, CaptureHash, DescriptorReference, ED25519, ProofSummary, VERSION,
    },
    signed::{Issuer, hex},
    tlog::{entries_path, leaf_hash, read_bundle, read_tile},
};
use tempfile::TempDir;

use super::*;

pub(crate) const NOON: u64 = 1_790_000_000_000;
pub(crate) const ORIGIN: &str = "log.test/attestations";

pub(crate) fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

fn issuers() -> Vec<Issuer> {
    vec![Issuer {
        name: "us".into(),
        public_key: hex(key().verifying_key().as_bytes()),
        valid_from: 0,
        valid_to: u64::MAX,
        revoked_at: None,
    }]
}

pub(crate) fn open(folder: &Path) -> Result<TransparencyLog, LogError> {
    TransparencyLog::open(folder, ORIGIN, &issuers(), Some(&key()))
}

pub(crate) fn body(session: u16) -> Body {
    let [high, low] = session.to_be_bytes();
    let mut name = [high; 32];
    name[31] = low;
    Body {
        version: VERSION,
        id: [low; 16],
        issuer: signed::key_id(key().verifying_key().as_bytes()),
        algorithm: ED25519,
        mode: 1,
        session: name,
        partner: [10; 32],
        attempt: 1,
        challenge: vec![],
        descriptor: DescriptorReference { platform: 1, version: 1, sha256: [2; 32] },
        server: AttestedServer {
            name: "platform.test".into(),
            port: 443,
            address: vec![192, 0, 2, 1],
            egress: 0,
            resolver: 0,
        },
        tls: AttestedTls {
            version: 0x0304,
            suite: 0x1303,
            group: 29,
            scheme: 0x0403,
            leaf_key_sha256: [3; 32],
            chain_sha256: [4; 32],
            roots_sha256: [5; 32],
            transcript: vec![6; 32],
        },
        time: AttestationTimes { opened: NOON - 20, closed: NOON - 10, signed: 0 },
        capture: CaptureHash { client_length: 1, server_length: 1, sha256: [7; 32] },
        request: AttestedRequest {
            method: "GET".into(),
            target: "/".into(),
            length: 1,
            hidden: vec![],
            root: [8; 32],
        },
        response: AttestedResponse {
            status: 200,
            content_type: "application/json".into(),
            head_length: 1,
            body_length: 1,
            root: [9; 32],
            hidden: 0,
        },
        claims: vec![],
        proof: ProofSummary::default(),
        attestor: AttestorBuild { version: "0.1.0".into(), sha256: [10; 32] },
        log: LogPosition { index: 99, previous_hash: [11; 32] },
        blinding: [12; 32],
    }
}

/// Returns a closed log with the attestations of the sessions 0, 1, …
fn log_of(count: u16) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    grow(folder.path(), 0..count);
    folder
}

/// Attests more sessions.
pub(crate) fn grow(folder: &Path, sessions: impl IntoIterator<Item = u16>) {
    let mut log = open(folder).unwrap();
    for session in sessions {
        log.sign(body(session), NOON, &key()).unwrap();
    }
}

fn log_place(logged: &LoggedAttestation) -> (LogPosition, [u8; 32]) {
    let (body, hash) = signed::decode_unverified(&logged.attestation).unwrap();
    (body.log, hash)
}

/// Attacks 33 and 39.
#[test]
fn attestations_are_chained_and_never_signed_early() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = open(folder.path()).unwrap();
    let (first, hash) = log_place(&log.sign(body(1), NOON, &key()).unwrap());
    assert_eq!((first.index, first.previous_hash), (0, [0; 32]));
    let (second, _) = log_place(&log.sign(body(2), NOON, &key()).unwrap());
    assert_eq!((second.index, second.previous_hash), (1, hash));
    let back = log.sign(body(3), NOON - 1, &key());
    assert!(matches!(back, Err(SignError::Clock)), "the clock went back behind the log");
    let mut late = body(3);
    late.time.closed = NOON + 2;
    let early = log.sign(late, NOON + 1, &key());
    assert!(matches!(early, Err(SignError::Clock)), "signed before the connection was closed");
    assert!(matches!(log.sign(body(1), NOON + 1, &key()), Err(SignError::Session)));
    assert!(matches!(open(folder.path()), Err(LogError::Locked(_))), "one process holds it");
    drop(log);
    // The same holds after a restart.
    let mut log = open(folder.path()).unwrap();
    assert!(log.contains(&body(1).session) && log.contains(&body(2).session));
    assert!(!log.contains(&body(3).session));
    assert!(matches!(log.sign(body(3), NOON - 1, &key()), Err(SignError::Clock)));
    assert_eq!(log_place(&log.sign(body(3), NOON, &key()).unwrap()).0.index, 2);
}

#[test]
fn released_attestations_are_covered_by_a_published_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let known = log_key(folder.path(), ORIGIN).unwrap();
    let mut log = open(folder.path()).unwrap();
    let public = folder.path().join("public");
    let empty = SignedCheckpoint::parse(&fs::read(public.join("checkpoint")).unwrap()).unwrap();
    assert_eq!(empty.verify(&known).unwrap().size, 0);
    for session in 0..300 {
        let logged = log.sign(body(session), NOON, &key()).unwrap();
        let proof = LogProof::read(&logged.inclusion).unwrap();
        let attestation = signed::verify(&logged.attestation, &issuers()).unwrap();
        let own = proof.key_of(key().verifying_key().as_bytes()).unwrap();
        for key in [&known, &own] {
            let checkpoint = proof.verify_attestation(&attestation, key).unwrap();
            assert_eq!(checkpoint.size, u64::from(session) + 1);
        }
        let published = fs::read_to_string(public.join("checkpoint")).unwrap();
        assert_eq!(published, proof.checkpoint.write());
        // The public files alone contain the entry and its hash.
        let (index, width) = (u64::from(session) / 256, session % 256 + 1);
        let entries = fs::read(public.join(entries_path(index, width))).unwrap();
        let entries = read_bundle(&entries, width).unwrap();
        let (_, hash) = log_place(&logged);
        assert_eq!(*entries.last().unwrap(), tlog::entry(&hash));
        let suffix = if width == 256 { String::new() } else { format!(".p/{width}") };
        let tile = fs::read(public.join(format!("tile/0/{index:03}{suffix}"))).unwrap();
        let leaf = *read_tile(&tile, width).unwrap().last().unwrap();
        assert_eq!(leaf, leaf_hash(entries.last().unwrap()));
    }
    assert!(!public.join("tile/0/000.p").exists(), "the full tile has replaced it");
    assert_eq!(fs::read(public.join("tile/1/000.p/1")).unwrap().len(), 32);
    drop(log);
    open(folder.path()).unwrap();
}

#[test]
fn an_attestation_with_another_index_is_not_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = open(folder.path()).unwrap();
    let logged = log.sign(body(1), NOON, &key()).unwrap();
    let proof = LogProof::read(&logged.inclusion).unwrap();
    let own = proof.key_of(key().verifying_key().as_bytes()).unwrap();
    let mut attestation = signed::verify(&logged.attestation, &issuers()).unwrap();
    attestation.body.log.index = 1;
    let refused = proof.verify_attestation(&attestation, &own);
    assert_eq!(refused, Err(attestation::tlog::TlogError::Index));
}

#[test]
fn a_log_keeps_its_origin_and_key() {
    let folder = log_of(2);
    let other = TransparencyLog::open(folder.path(), "other", &issuers(), None);
    assert!(matches!(&other, Err(LogError::Corrupt(_, why)) if why.contains("another one")));
    let path = folder.path().join("private/key");
    let secret = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(matches!(open(folder.path()), Err(LogError::File(..))), "no other key is created");
    let write = |text: &[u8], mode| {
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        open(folder.path()).map(drop)
    };
    assert!(matches!(write(&secret, 0o640), Err(LogError::TooOpen(_))));
    assert!(matches!(write(b"00", 0o600), Err(LogError::Corrupt(..))));
    let other = write("0".repeat(64).as_bytes(), 0o600);
    assert!(matches!(&other, Err(LogError::Corrupt(_, why)) if why.contains("no signature")));
    write(&secret, 0o600).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    assert!(matches!(open(file.path()), Err(LogError::EarlierVersion(_))));
    assert!(tlog::is_key_name(&default_origin(" Witness + Söhne Ltd\n")));
    assert_eq!(default_origin("Witness Ltd"), "Witness-Ltd");
    assert_eq!(default_origin(" "), "attestor");
}
