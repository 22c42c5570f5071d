//! Examines a recording in a separate process, because the input comes from a party that may attack
//! the attestor.

use std::{process::ExitCode, time::Duration};

use attestation::{
    CertificateTrust,
    attest::{AttestationContext, attest, capture_hash},
    body::{AttestationTimes, AttestedServer, AttestorBuild, Body, ED25519, LogPosition, VERSION},
    descriptor::{Descriptor, RevealMode},
    full_reveal::{self, Capture},
    protocol::RevealMessage,
    signed::{read, write},
    zk::Spartan,
    zktls,
};
use minicbor::{Decode, Encode, bytes::ByteVec};
use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use worker_process::Bounds;

/// Resource limits of one examination: 2 GB are usual, 7 GB for the longest requests.
const RESOURCE_LIMITS: Bounds =
    Bounds { memory: 12 * 1024 * 1024 * 1024, idle_timeout: Duration::from_secs(600) };

/// A recording with everything that its attestation states.
#[derive(Debug, Encode, Decode)]
#[cbor(array)]
pub(crate) struct ExaminationJob {
    #[cbor(n(0), with = "minicbor::bytes")]
    pub(crate) client: Vec<u8>,
    #[cbor(n(1), with = "minicbor::bytes")]
    pub(crate) server: Vec<u8>,
    #[n(2)]
    pub(crate) reveal: RevealMessage,
    /// JSON.
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
    pub(crate) time: AttestationTimes,
    #[n(15)]
    pub(crate) build: AttestorBuild,
}

/// The result of an examination.
#[derive(Debug, Encode, Decode)]
pub(crate) enum ExaminationResult {
    /// The attestation body, still without its log entry, and the encoded disclosure.
    #[n(0)]
    Accepted(#[n(0)] Box<Body>, #[cbor(n(1), with = "minicbor::bytes")] Vec<u8>),
    #[n(1)]
    Refused(#[n(0)] String),
}

impl ExaminationJob {
    pub(crate) fn write(&self) -> Option<Vec<u8>> {
        write(self).ok()
    }

    /// Returns whether a body agrees with this job in every value that is known without an
    /// examination.
    pub(crate) fn agrees_with(&self, body: &Body, descriptor: &Descriptor) -> bool {
        let mode = match &self.reveal {
            RevealMessage::FullReveal(_) => RevealMode::FullReveal,
            RevealMessage::Proved(reveal) => reveal.mode(),
        };
        let capture = Capture { client: &self.client, server: &self.server };
        let lengths = [body.capture.client_length, body.capture.server_length];
        let known = [capture.client.len(), capture.server.len()];
        let server = AttestedServer {
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
            && body.descriptor == descriptor.reference()
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

impl ExaminationResult {
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        read(bytes).ok()
    }
}

/// Examines jobs from the standard input until it ends.
#[must_use]
pub fn run_worker() -> ExitCode {
    let backend = Spartan::default();
    worker_process::serve(RESOURCE_LIMITS, |job| {
        let result = match read::<ExaminationJob>(job) {
            Ok(job) => job.examine(&backend),
            Err(error) => Err(error.to_string()),
        };
        write(&result.unwrap_or_else(ExaminationResult::Refused)).unwrap_or_default()
    })
}

impl ExaminationJob {
    fn examine(self, backend: &Spartan) -> std::result::Result<ExaminationResult, String> {
        let text = |error: &dyn std::error::Error| error.to_string();
        let descriptor: Descriptor =
            serde_json::from_str(&self.descriptor).map_err(|error| text(&error))?;
        let roots = trust_anchors(&self.roots);
        let now = UnixTime::since_unix_epoch(Duration::from_millis(self.time.opened));
        let trust = CertificateTrust { roots: &roots, now };
        let capture = Capture { client: &self.client, server: &self.server };
        let findings = match &self.reveal {
            RevealMessage::FullReveal(secret) => {
                full_reveal::examine(capture, secret, &descriptor, &trust)
            }
            RevealMessage::Proved(reveal) => {
                zktls::examine(capture, reveal, backend, &descriptor, &trust)
            }
        };
        let findings = findings.map_err(|refusal| text(&refusal))?;
        let circumstances = AttestationContext {
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
            log: LogPosition { index: 0, previous_hash: [0; 32] },
            blinding: random_bytes(),
        };
        let (body, disclosure) =
            attest(&findings, capture, &descriptor, circumstances, random_bytes);
        let disclosure = disclosure.write().map_err(|error| text(&error))?;
        Ok(ExaminationResult::Accepted(Box::new(body), disclosure))
    }
}

/// Converts root certificates to trust anchors. Certificates that cannot be parsed are left out.
pub(crate) fn trust_anchors(roots: &[ByteVec]) -> Vec<TrustAnchor<'static>> {
    let anchor = |root: &ByteVec| {
        let certificate = CertificateDer::from_slice(root);
        webpki::anchor_from_trusted_cert(&certificate).ok().map(|anchor| anchor.to_owned())
    };
    roots.iter().filter_map(anchor).collect()
}

/// # Panics
/// Panics if the system provides no random bytes, because nothing can be attested without them.
pub(crate) fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    #[expect(clippy::expect_used, reason = "see above")]
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}

#[cfg(test)]
mod tests {
    use attestation::{body, descriptor::ClaimDescriptor};

    use super::*;
    use crate::log::tests::body as sample;

    fn job(descriptor: &Descriptor) -> ExaminationJob {
        ExaminationJob {
            client: vec![1; 10],
            server: vec![2; 20],
            reveal: RevealMessage::FullReveal(vec![0; 32]),
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
            time: AttestationTimes { opened: 7, closed: 8, signed: 0 },
            build: AttestorBuild { version: "1".into(), sha256: [9; 32] },
        }
    }

    /// Returns the body that an honest examiner returns.
    fn answer(job: &ExaminationJob, descriptor: &Descriptor) -> Body {
        let capture = Capture { client: &job.client, server: &job.server };
        let claim = |claim: &ClaimDescriptor| body::AttestedClaim {
            field: claim.field.clone(),
            pointer: claim.pointer.clone(),
            commitment: [0; 32],
        };
        let mut body = sample(0);
        (body.id, body.issuer, body.session) = (job.id, job.issuer, job.session);
        (body.partner, body.attempt, body.mode) = (job.partner, job.attempt, 0);
        (body.challenge, body.time) = (job.challenge.clone(), job.time.clone());
        (body.descriptor, body.attestor) = (descriptor.reference(), job.build.clone());
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
    fn a_body_that_disagrees_with_the_job_is_not_signed() {
        let descriptor = Descriptor {
            platform: 1,
            version: 1,
            host: "platform.test".into(),
            target: "/api/me".into(),
            headers: vec![],
            values: std::collections::BTreeMap::new(),
            hidden: vec![],
            content_type: "application/json".into(),
            modes: vec![RevealMode::FullReveal],
            claims: vec![ClaimDescriptor { field: "id".into(), pointer: "/id".into() }],
        };
        let job = job(&descriptor);
        let honest = answer(&job, &descriptor);
        assert!(job.agrees_with(&honest, &descriptor));
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
            assert!(!job.agrees_with(&body, &descriptor), "change {number}");
        }
    }
}
