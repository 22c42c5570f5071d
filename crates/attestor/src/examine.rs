//! The examination of a recording, in a process of its own: what it reads comes from somebody who
//! may want to harm the attestor.

use std::{process::ExitCode, time::Duration};

use attestation::{
    Trust,
    attest::{Circumstances, attest},
    body::{Build, LogPlace, Time},
    descriptor::Descriptor,
    full_reveal::{self, Capture},
    protocol::Telling,
    signed::{read, write},
    zk::Spartan,
    zktls,
};
use jobs::Bounds;
use minicbor::{Decode, Encode, bytes::ByteVec};
use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};

/// What one examination may use: 2 GB are usual, 7 for the longest requests.
const BOUNDS: Bounds = Bounds { memory: 12 * 1024 * 1024 * 1024, rest: Duration::from_secs(600) };

/// A recording, and all that is to be written of it.
#[derive(Debug, Encode, Decode)]
#[cbor(array)]
pub(crate) struct Job {
    #[cbor(n(0), with = "minicbor::bytes")]
    pub(crate) client: Vec<u8>,
    #[cbor(n(1), with = "minicbor::bytes")]
    pub(crate) server: Vec<u8>,
    #[n(2)]
    pub(crate) telling: Telling,
    /// As JSON.
    #[n(3)]
    pub(crate) descriptor: String,
    /// Certificates, DER.
    #[n(4)]
    pub(crate) roots: Vec<ByteVec>,
    #[cbor(n(5), with = "minicbor::bytes")]
    pub(crate) roots_sha256: [u8; 32],
    #[cbor(n(6), with = "minicbor::bytes")]
    pub(crate) id: [u8; 16],
    #[cbor(n(7), with = "minicbor::bytes")]
    pub(crate) issuer: [u8; 32],
    #[cbor(n(8), with = "minicbor::bytes")]
    pub(crate) session: [u8; 32],
    #[cbor(n(9), with = "minicbor::bytes")]
    pub(crate) partner: [u8; 32],
    #[n(10)]
    pub(crate) attempt: u32,
    #[cbor(n(11), with = "minicbor::bytes")]
    pub(crate) challenge: Vec<u8>,
    #[cbor(n(12), with = "minicbor::bytes")]
    pub(crate) address: Vec<u8>,
    #[n(13)]
    pub(crate) resolver: u8,
    #[n(14)]
    pub(crate) time: Time,
    #[n(15)]
    pub(crate) build: Build,
}

/// What came of it.
#[derive(Debug, Encode, Decode)]
pub(crate) enum Result {
    /// The body, still without a place in the log, and what opens it.
    #[n(0)]
    Found(#[n(0)] Box<attestation::body::Body>, #[cbor(n(1), with = "minicbor::bytes")] Vec<u8>),
    #[n(1)]
    Refused(#[n(0)] String),
}

impl Job {
    pub(crate) fn write(&self) -> Option<Vec<u8>> {
        write(self).ok()
    }
}

impl Result {
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        read(bytes).ok()
    }
}

/// Examines what comes on the standard input, until nothing does.
#[must_use]
pub fn work() -> ExitCode {
    let backend = Spartan::default();
    jobs::serve(BOUNDS, |job| {
        let result = match read::<Job>(job) {
            Ok(job) => job.examine(&backend),
            Err(error) => Err(error.to_string()),
        };
        write(&result.unwrap_or_else(Result::Refused)).unwrap_or_default()
    })
}

impl Job {
    fn examine(self, backend: &Spartan) -> std::result::Result<Result, String> {
        let said = |error: &dyn std::error::Error| error.to_string();
        let descriptor: Descriptor =
            serde_json::from_str(&self.descriptor).map_err(|error| said(&error))?;
        let roots = anchors(&self.roots);
        let now = UnixTime::since_unix_epoch(Duration::from_millis(self.time.opened));
        let trust = Trust { roots: &roots, now };
        let capture = Capture { client: &self.client, server: &self.server };
        let found = match &self.telling {
            Telling::FullReveal(secret) => {
                full_reveal::examine(capture, secret, &descriptor, &trust)
            }
            Telling::Proved(reveal) => {
                zktls::examine(capture, reveal, backend, &descriptor, &trust)
            }
        };
        let found = found.map_err(|refusal| said(&refusal))?;
        let circumstances = Circumstances {
            id: self.id,
            issuer: self.issuer,
            session: self.session,
            partner: self.partner,
            attempt: self.attempt,
            challenge: self.challenge,
            server_address: self.address,
            egress: 0,
            resolver: self.resolver,
            roots_sha256: self.roots_sha256,
            time: self.time,
            attestor: self.build,
            log: LogPlace { index: 0, before: [0; 32] },
            blind: random(),
        };
        let (body, disclosure) = attest(&found, capture, &descriptor, circumstances, random);
        let disclosure = disclosure.write().map_err(|error| said(&error))?;
        Ok(Result::Found(Box::new(body), disclosure))
    }
}

/// The roots as what a chain may end at; those that are none are left out.
pub(crate) fn anchors(roots: &[ByteVec]) -> Vec<TrustAnchor<'static>> {
    let anchor = |root: &ByteVec| {
        let certificate = CertificateDer::from_slice(root);
        webpki::anchor_from_trusted_cert(&certificate).ok().map(|anchor| anchor.to_owned())
    };
    roots.iter().filter_map(anchor).collect()
}

/// # Panics
/// Without randomness there is nothing that could be attested.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    #[expect(clippy::expect_used, reason = "see above")]
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}
