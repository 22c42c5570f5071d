//! The examination of a recording, in a process of its own: what it reads comes from somebody who
//! may want to harm the attestor.

use std::{process::ExitCode, time::Duration};

use attestation::{
    Trust,
    attest::{Circumstances, attest, capture_hash},
    body::{Body, Build, ED25519, LogPlace, Server, Time, VERSION},
    descriptor::{Descriptor, Mode},
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
const BOUNDS: Bounds =
    Bounds { memory: 12 * 1024 * 1024 * 1024, idle_timeout: Duration::from_secs(600) };

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
    Found(#[n(0)] Box<Body>, #[cbor(n(1), with = "minicbor::bytes")] Vec<u8>),
    #[n(1)]
    Refused(#[n(0)] String),
}

impl Job {
    pub(crate) fn write(&self) -> Option<Vec<u8>> {
        write(self).ok()
    }

    /// Whether a body says of everything that is known without an examination what this job does.
    pub(crate) fn is_answered_by(&self, body: &Body, descriptor: &Descriptor) -> bool {
        let mode = match &self.telling {
            Telling::FullReveal(_) => Mode::FullReveal,
            Telling::Proved(reveal) => reveal.mode(),
        };
        let capture = Capture { client: &self.client, server: &self.server };
        let lengths = [body.capture.client_length, body.capture.server_length];
        let known = [capture.client.len(), capture.server.len()];
        let server = Server {
            name: descriptor.host.clone(),
            port: 443,
            address: self.address.clone(),
            egress: 0,
            resolver: self.resolver,
        };
        let claims = body.claims.iter().map(|claim| (&claim.field, &claim.pointer));
        (body.version, body.algorithm, body.mode) == (VERSION, ED25519, mode.number())
            && (body.id, body.issuer, body.session) == (self.id, self.issuer, self.session)
            && (body.partner, body.attempt) == (self.partner, self.attempt)
            && body.challenge == self.challenge
            && body.descriptor == descriptor.name()
            && body.server == server
            && body.request.target == descriptor.target
            && body.tls.roots_sha256 == self.roots_sha256
            && body.time == self.time
            && lengths.map(|length| usize::try_from(length).ok()) == known.map(Some)
            && body.capture.sha256 == capture_hash(&self.id, capture)
            && claims.eq(descriptor.claims.iter().map(|claim| (&claim.field, &claim.pointer)))
            && body.attestor == self.build
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

#[cfg(test)]
mod tests {
    use attestation::{body, descriptor::Claim};

    use super::*;
    use crate::log::tests::body as sample;

    fn job(descriptor: &Descriptor) -> Job {
        Job {
            client: vec![1; 10],
            server: vec![2; 20],
            telling: Telling::FullReveal(vec![0; 32]),
            descriptor: serde_json::to_string(descriptor).unwrap(),
            roots: vec![],
            roots_sha256: [5; 32],
            id: [1; 16],
            issuer: [2; 32],
            session: [3; 32],
            partner: [4; 32],
            attempt: 2,
            challenge: vec![6; 8],
            address: vec![192, 0, 2, 1],
            resolver: 0,
            time: Time { opened: 7, closed: 8, signed: 0 },
            build: Build { version: "1".into(), sha256: [9; 32] },
        }
    }

    /// What an honest examiner answers.
    fn answer(job: &Job, descriptor: &Descriptor) -> Body {
        let capture = Capture { client: &job.client, server: &job.server };
        let claim = |claim: &Claim| body::Claim {
            field: claim.field.clone(),
            pointer: claim.pointer.clone(),
            commitment: [0; 32],
        };
        let mut body = sample(0);
        (body.id, body.issuer, body.session) = (job.id, job.issuer, job.session);
        (body.partner, body.attempt, body.mode) = (job.partner, job.attempt, 0);
        (body.challenge, body.time) = (job.challenge.clone(), job.time.clone());
        (body.descriptor, body.attestor) = (descriptor.name(), job.build.clone());
        (body.server.name, body.server.address) = (descriptor.host.clone(), job.address.clone());
        body.request.target = descriptor.target.clone();
        body.capture = body::CaptureHash {
            client_length: 10,
            server_length: 20,
            sha256: capture_hash(&job.id, capture),
        };
        body.claims = descriptor.claims.iter().map(claim).collect();
        body
    }

    #[test]
    fn a_body_of_anything_else_is_not_signed() {
        let descriptor = Descriptor {
            platform: 1,
            version: 1,
            host: "platform.test".into(),
            target: "/api/me".into(),
            headers: vec![],
            values: std::collections::BTreeMap::new(),
            hidden: vec![],
            content_type: "application/json".into(),
            modes: vec![Mode::FullReveal],
            claims: vec![Claim { field: "id".into(), pointer: "/id".into() }],
        };
        let job = job(&descriptor);
        let honest = answer(&job, &descriptor);
        assert!(job.is_answered_by(&honest, &descriptor));
        let changes: [fn(&mut Body); 25] = [
            |body| body.version = 1,
            |body| body.algorithm = 2,
            |body| body.mode = 1,
            |body| body.id[0] ^= 1,
            |body| body.issuer[0] ^= 1,
            |body| body.session[0] ^= 1,
            |body| body.partner[0] ^= 1,
            |body| body.attempt = 1,
            |body| body.challenge.clear(),
            |body| body.descriptor.sha256[0] ^= 1,
            |body| body.descriptor.version += 1,
            |body| body.server.name.push('x'),
            |body| body.server.port = 80,
            |body| body.server.address = vec![],
            |body| body.server.egress = 1,
            |body| body.server.resolver = 1,
            |body| body.request.target.push('x'),
            |body| body.tls.roots_sha256[0] ^= 1,
            |body| body.time.opened -= 1,
            |body| body.time.closed += 1,
            |body| body.capture.sha256[0] ^= 1,
            |body| body.capture.client_length += 1,
            |body| body.claims.clear(),
            |body| body.claims[0].pointer = "/name".into(),
            |body| body.attestor.sha256[0] ^= 1,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut body = honest.clone();
            change(&mut body);
            assert!(!job.is_answered_by(&body, &descriptor), "change {number}");
        }
    }
}
