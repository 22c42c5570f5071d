//! Logs that somebody, or a crash, changed; clocks that go back.

use std::fs;

use attestation::body::{
    Build, CaptureHash, DescriptorName, ED25519, Proof, Request, Response, Server, Time, Tls,
    VERSION,
};

use super::*;

const NOON: u64 = 1_790_000_000_000;

fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

fn body(session: u8) -> Body {
    Body {
        version: VERSION,
        id: [session; 16],
        issuer: [1; 32],
        algorithm: ED25519,
        mode: 1,
        session: [session; 32],
        partner: [10; 32],
        attempt: 1,
        challenge: vec![],
        descriptor: DescriptorName { platform: 1, version: 1, sha256: [2; 32] },
        server: Server {
            name: "platform.test".into(),
            port: 443,
            address: vec![192, 0, 2, 1],
            egress: 0,
            resolver: 0,
        },
        tls: Tls {
            version: 0x0304,
            suite: 0x1303,
            group: 29,
            scheme: 0x0403,
            leaf_key_sha256: [3; 32],
            chain_sha256: [4; 32],
            roots_sha256: [5; 32],
            transcript: vec![6; 32],
        },
        time: Time { opened: NOON - 20, closed: NOON - 10, signed: 0 },
        capture: CaptureHash { client_length: 1, server_length: 1, sha256: [7; 32] },
        request: Request {
            method: "GET".into(),
            target: "/".into(),
            length: 1,
            hidden: vec![],
            root: [8; 32],
        },
        response: Response {
            status: 200,
            content_type: "application/json".into(),
            head_length: 1,
            body_length: 1,
            root: [9; 32],
        },
        claims: vec![],
        proof: Proof::default(),
        attestor: Build { version: "0.1.0".into(), sha256: [10; 32] },
        log: LogPlace { index: 99, before: [11; 32] },
        blind: [12; 32],
    }
}

fn place(attestation: &[u8]) -> (LogPlace, [u8; 32]) {
    let (body, hash) = signed::unverified(attestation).unwrap();
    (body.log, hash)
}

/// Attacks 33 and 39.
#[test]
fn each_names_the_one_before_and_none_is_signed_before_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut log = Log::open(&path).unwrap();
    let (first, hash) = place(&log.sign(body(1), NOON, &key()).unwrap());
    assert_eq!((first.index, first.before), (0, [0; 32]));
    let (second, _) = place(&log.sign(body(2), NOON, &key()).unwrap());
    assert_eq!((second.index, second.before), (1, hash));
    let back = log.sign(body(3), NOON - 1, &key());
    assert!(matches!(back, Err(NotSigned::Clock)), "the clock went back behind the log");
    let mut late = body(3);
    late.time.closed = NOON + 2;
    let early = log.sign(late, NOON + 1, &key());
    assert!(matches!(early, Err(NotSigned::Clock)), "signed before it was over");
    assert!(matches!(log.sign(body(1), NOON + 1, &key()), Err(NotSigned::Session)));
    assert!(matches!(Log::open(&path), Err(LogError::Taken(_))), "one process has it");
    drop(log);
    // All of this holds after a start too.
    let mut log = Log::open(&path).unwrap();
    assert!(log.has(&[1; 32]) && log.has(&[2; 32]) && !log.has(&[3; 32]));
    assert!(matches!(log.sign(body(3), NOON - 1, &key()), Err(NotSigned::Clock)));
    assert_eq!(place(&log.sign(body(3), NOON, &key()).unwrap()).0.index, 2);
}

#[test]
fn half_a_line_is_cut_off_and_a_changed_log_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut log = Log::open(&path).unwrap();
    for session in 1..=3 {
        log.sign(body(session), NOON, &key()).unwrap();
    }
    drop(log);
    let whole = fs::read_to_string(&path).unwrap();
    let lines: Vec<_> = whole.lines().collect();
    fs::write(&path, format!("{whole}{}", &lines[0][..100])).unwrap();
    drop(Log::open(&path).unwrap());
    assert_eq!(fs::read_to_string(&path).unwrap(), whole, "what was never handed out is gone");
    let refused = |text: String| {
        fs::write(&path, text).unwrap();
        matches!(Log::open(&path), Err(LogError::Broken(..)))
    };
    assert!(refused(format!("{}\n{}\n", lines[0], lines[2])), "one left out");
    assert!(refused(format!("{}\n", lines[1])), "the first left out");
    assert!(refused(format!("{}\n{}\n", lines[0], lines[0])), "one twice");
    assert!(refused(whole.replacen("81", "82", 1)), "a digit changed");
    assert!(refused("no log\n".into()));
}
