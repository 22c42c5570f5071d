//! A connection with a hidden cookie, its proof, and its attestation. Created once, because a proof
//! takes seconds.

use std::{
    sync::LazyLock,
    time::{SystemTime, UNIX_EPOCH},
};

use attestation::{
    CertificateTrust,
    attest::{AttestationContext, Disclosure, attest, partner_hash, session_hash},
    body::{AttestationTimes, AttestorBuild, Body, LogPosition},
    descriptor::{Descriptor, RevealMode},
    evidence::Evidence,
    full_reveal::Capture,
    signed::key_id,
    zk::Spartan,
    zktls::{HidePolicy, examine, reveal},
};
use ed25519_dalek::SigningKey;
use rustls::pki_types::UnixTime;

use crate::setup::{HOST, Setup, descriptor, request_with};

/// 64 bytes.
const COOKIE: &str = "sid=0123456789abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMN";
pub(crate) const SALT: [u8; 32] = [2; 32];
/// 16 bytes of 3, and of 4.
pub(crate) const SESSION: &str = "03030303-0303-0303-0303-030303030303";
pub(crate) const TEAM: &str = "04040404-0404-0404-0404-040404040404";
/// "order 4711 of 24 November", which uses all kinds of characters of the alphabet.
pub(crate) const CHALLENGE: &str = "b3JkZXIgNDcxMSBvZiAyNCBOb3ZlbWJlcg";

pub(crate) static SPARTAN: LazyLock<Spartan> = LazyLock::new(Spartan::default);
pub(crate) static ATTESTED: LazyLock<Attested> =
    LazyLock::new(|| Attested::new(RevealMode::ZktlsRequest));
/// The same connection with selective disclosure of the response.
pub(crate) static SELECTIVE: LazyLock<Attested> =
    LazyLock::new(|| Attested::new(RevealMode::ZktlsFull));

pub(crate) struct Attested {
    pub(crate) body: Body,
    pub(crate) disclosure: Disclosure,
    pub(crate) evidence: Evidence,
    /// PEM.
    pub(crate) roots: String,
    /// The same certificate, DER.
    pub(crate) root: Vec<u8>,
}

pub(crate) fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

impl Attested {
    fn new(mode: RevealMode) -> Self {
        let request = request_with(&format!("Accept: application/json\r\nCookie: {COOKIE}\r\n"));
        let session = Setup { request, ..Setup::default() }.play();
        let descriptor = Descriptor {
            modes: vec![mode],
            values: [("accept".to_owned(), "application/json".to_owned())].into(),
            ..descriptor()
        };
        let capture = Capture { client: &session.client, server: &session.server };
        let trust = CertificateTrust { roots: &session.roots, now: UnixTime::now() };
        let secret = session.secret.as_slice().try_into().unwrap();
        let hide = HidePolicy::of(&descriptor);
        let told = reveal(capture, secret, &hide, &*SPARTAN, HOST, &trust).unwrap();
        let found = examine(capture, &told, &*SPARTAN, &descriptor, &trust).unwrap();
        let mut count = 0;
        let salt = || {
            count += 1;
            [count; 16]
        };
        let (body, disclosure) = attest(&found, capture, &descriptor, circumstances(), salt);
        let evidence = Evidence {
            client: session.client.clone(),
            server: session.server.clone(),
            reveal: told,
            descriptor: serde_json::to_string(&descriptor).unwrap(),
        };
        let roots = pem(&session.root);
        Self { body, disclosure, evidence, roots, root: session.root }
    }
}

fn circumstances() -> AttestationContext {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let now = u64::try_from(now).unwrap();
    AttestationContext {
        id: [1; 16],
        issuer: key_id(key().verifying_key().as_bytes()),
        session: session_hash(&SALT, &[3; 16]),
        partner: partner_hash(&SALT, &[4; 16]),
        attempt: 2,
        challenge: b"order 4711 of 24 November".to_vec(),
        server_address: vec![192, 0, 2, 1],
        egress: 0,
        resolver: 0,
        roots_sha256: [4; 32],
        time: AttestationTimes { opened: now - 20, closed: now - 10, signed: now - 1000 },
        attestor: AttestorBuild { version: "0.1.0".into(), sha256: [5; 32] },
        log: LogPosition { index: 9, previous_hash: [6; 32] },
        blinding: [8; 32],
    }
}

fn pem(der: &[u8]) -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", STANDARD.encode(der))
}
