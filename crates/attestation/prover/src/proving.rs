//! Computes the proof in a separate process, because it takes gigabytes for a second.

use std::{process::ExitCode, time::Duration};

use attestation::{
    CertificateTrust, ExaminationError,
    descriptor::Descriptor,
    full_reveal::Capture,
    signed::{read, write},
    zk::Spartan,
    zktls::{HidePolicy, Reveal, reveal},
};
use minicbor::{Decode, Encode, bytes::ByteVec};
use ports::attestor::AttestError;
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};
use worker_process::{Bounds, JobError};

const RESOURCE_LIMITS: Bounds =
    Bounds { memory: 12 * 1024 * 1024 * 1024, idle_timeout: Duration::from_secs(300) };

/// A connection, and what is to be hidden of it.
#[derive(Encode, Decode)]
#[cbor(array)]
pub(crate) struct ProvingJob {
    #[cbor(n(0), with = "minicbor::bytes")]
    pub(crate) client: Vec<u8>,
    #[cbor(n(1), with = "minicbor::bytes")]
    pub(crate) server: Vec<u8>,
    #[cbor(n(2), with = "minicbor::bytes")]
    pub(crate) secret: Vec<u8>,
    /// JSON.
    #[n(3)]
    pub(crate) descriptor: String,
    /// Additional root certificates, DER.
    #[n(4)]
    pub(crate) roots: Vec<ByteVec>,
}

#[derive(Encode, Decode)]
enum ProvingResult {
    #[n(0)]
    Proved(#[n(0)] Box<Reveal>),
    #[n(1)]
    Failed(#[n(0)] String),
    /// The response cannot be attested.
    #[n(2)]
    Response(#[n(0)] String),
}

impl From<ExaminationError> for ProvingResult {
    fn from(refusal: ExaminationError) -> Self {
        if is_response_error(&refusal) {
            Self::Response(refusal.to_string())
        } else {
            Self::Failed(refusal.to_string())
        }
    }
}

/// Converts a refusal that prevents the reveal: either the response differs from the plan, or the
/// proof failed.
pub(crate) fn reveal_error(refusal: &ExaminationError) -> AttestError {
    if is_response_error(refusal) {
        AttestError::Platform(refusal.to_string())
    } else {
        AttestError::Proof(refusal.to_string())
    }
}

const fn is_response_error(refusal: &ExaminationError) -> bool {
    matches!(
        refusal,
        ExaminationError::Response(_) | ExaminationError::Body(_) | ExaminationError::Selective(_)
    )
}

/// Proves jobs from the standard input until it ends.
#[must_use]
pub fn run_worker() -> ExitCode {
    let backend = Spartan::default();
    worker_process::serve(RESOURCE_LIMITS, |job| {
        let result = match read::<ProvingJob>(job) {
            Ok(job) => job.prove(&backend).unwrap_or_else(|failed| failed),
            Err(error) => ProvingResult::Failed(error.to_string()),
        };
        write(&result).unwrap_or_default()
    })
}

impl ProvingJob {
    /// Runs the job in a proving process.
    pub(crate) async fn run(
        &self,
        pool: &worker_process::Pool,
    ) -> std::result::Result<Reveal, AttestError> {
        let failed = |error: &dyn std::error::Error| AttestError::Proof(error.to_string());
        let job = write(self).map_err(|error| failed(&error))?;
        let result = pool.run(&job).await.map_err(|error| match error {
            JobError::TimedOut(_) => AttestError::TimedOut,
            JobError::Start(_) | JobError::Died | JobError::TooLong => failed(&error),
        })?;
        match read(&result).map_err(|error| failed(&error))? {
            ProvingResult::Proved(reveal) => Ok(*reveal),
            ProvingResult::Failed(why) => Err(AttestError::Proof(why)),
            ProvingResult::Response(why) => Err(AttestError::Platform(why)),
        }
    }

    fn prove(&self, backend: &Spartan) -> std::result::Result<ProvingResult, ProvingResult> {
        let failed = |error: &dyn std::error::Error| ProvingResult::Failed(error.to_string());
        let descriptor: Descriptor =
            serde_json::from_str(&self.descriptor).map_err(|error| failed(&error))?;
        let secret = self.secret.as_slice().try_into().map_err(|error| failed(&error))?;
        let extra = self.roots.iter().filter_map(|root| {
            let root = CertificateDer::from_slice(root);
            webpki::anchor_from_trusted_cert(&root).ok().map(|anchor| anchor.to_owned())
        });
        let roots: Vec<TrustAnchor<'_>> =
            webpki_roots::TLS_SERVER_ROOTS.iter().cloned().chain(extra).collect();
        let trust = CertificateTrust { roots: &roots, now: UnixTime::now() };
        let capture = Capture { client: &self.client, server: &self.server };
        let hide = HidePolicy::of(&descriptor);
        let reveal = reveal(capture, &secret, &hide, backend, &descriptor.host, &trust)?;
        Ok(ProvingResult::Proved(Box::new(reveal)))
    }
}
