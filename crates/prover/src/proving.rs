//! The proof, in a process of its own: it takes gigabytes for a second.

use std::{process::ExitCode, time::Duration};

use attestation::{
    Refusal, Trust,
    descriptor::Descriptor,
    full_reveal::Capture,
    signed::{read, write},
    zk::Spartan,
    zktls::{Hide, Reveal, reveal},
};
use jobs::{Bounds, JobError};
use minicbor::{Decode, Encode, bytes::ByteVec};
use ports::attestor::AttestError;
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};

const BOUNDS: Bounds =
    Bounds { memory: 12 * 1024 * 1024 * 1024, idle_timeout: Duration::from_secs(300) };

/// A connection, and what is to be hidden of it.
#[derive(Encode, Decode)]
#[cbor(array)]
pub(crate) struct Job {
    #[cbor(n(0), with = "minicbor::bytes")]
    pub(crate) client: Vec<u8>,
    #[cbor(n(1), with = "minicbor::bytes")]
    pub(crate) server: Vec<u8>,
    #[cbor(n(2), with = "minicbor::bytes")]
    pub(crate) secret: Vec<u8>,
    /// As JSON.
    #[n(3)]
    pub(crate) descriptor: String,
    /// Beside the usual ones; certificates, DER.
    #[n(4)]
    pub(crate) roots: Vec<ByteVec>,
}

#[derive(Encode, Decode)]
enum Result {
    #[n(0)]
    Proved(#[n(0)] Box<Reveal>),
    #[n(1)]
    Failed(#[n(0)] String),
    /// The response is none that can be attested.
    #[n(2)]
    Response(#[n(0)] String),
}

impl From<Refusal> for Result {
    fn from(refusal: Refusal) -> Self {
        if is_of_response(&refusal) {
            Self::Response(refusal.to_string())
        } else {
            Self::Failed(refusal.to_string())
        }
    }
}

/// Why something is not told: the response is another than planned, or anything else.
pub(crate) fn not_told(refusal: &Refusal) -> AttestError {
    if is_of_response(refusal) {
        AttestError::Platform(refusal.to_string())
    } else {
        AttestError::Proof(refusal.to_string())
    }
}

const fn is_of_response(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Response(_) | Refusal::Body(_) | Refusal::Selective(_))
}

/// Proves what comes on the standard input, until nothing does.
#[must_use]
pub fn work() -> ExitCode {
    let backend = Spartan::default();
    jobs::serve(BOUNDS, |job| {
        let result = match read::<Job>(job) {
            Ok(job) => job.prove(&backend).unwrap_or_else(|failed| failed),
            Err(error) => Result::Failed(error.to_string()),
        };
        write(&result).unwrap_or_default()
    })
}

impl Job {
    /// Has it done.
    pub(crate) async fn run(&self, pool: &jobs::Pool) -> std::result::Result<Reveal, AttestError> {
        let failed = |error: &dyn std::error::Error| AttestError::Proof(error.to_string());
        let job = write(self).map_err(|error| failed(&error))?;
        let result = pool.run(&job).await.map_err(|error| match error {
            JobError::TimedOut(_) => AttestError::TimedOut,
            JobError::Start(_) | JobError::Died | JobError::TooLong => failed(&error),
        })?;
        match read(&result).map_err(|error| failed(&error))? {
            Result::Proved(reveal) => Ok(*reveal),
            Result::Failed(why) => Err(AttestError::Proof(why)),
            Result::Response(why) => Err(AttestError::Platform(why)),
        }
    }

    fn prove(&self, backend: &Spartan) -> std::result::Result<Result, Result> {
        let said = |error: &dyn std::error::Error| Result::Failed(error.to_string());
        let descriptor: Descriptor =
            serde_json::from_str(&self.descriptor).map_err(|error| said(&error))?;
        let secret = self.secret.as_slice().try_into().map_err(|error| said(&error))?;
        let own = self.roots.iter().filter_map(|root| {
            let root = CertificateDer::from_slice(root);
            webpki::anchor_from_trusted_cert(&root).ok().map(|anchor| anchor.to_owned())
        });
        let roots: Vec<TrustAnchor<'_>> =
            webpki_roots::TLS_SERVER_ROOTS.iter().cloned().chain(own).collect();
        let trust = Trust { roots: &roots, now: UnixTime::now() };
        let capture = Capture { client: &self.client, server: &self.server };
        let hide = Hide::of(&descriptor);
        let reveal = reveal(capture, &secret, &hide, backend, &descriptor.host, &trust)?;
        Ok(Result::Proved(Box::new(reveal)))
    }
}
