//! Sends a request through the attestor's relay and has the response attested: the TLS client whose
//! secrets are known, the conversation with the attestor, and the proof, which a separate process
//! computes.
//!
//! **Invariant:** no secret is revealed to the attestor before the connection is closed and the
//! attestor's receipt matches the bytes that the prover saw. The attestation is verified like one
//! from any other source.

mod address;
mod channel;
mod connection;
mod conversation;
mod diagnostic;
mod outage;
mod plan;
mod proving;
mod reader;
mod sanitize;
mod verification;

use std::{path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use attestation::signed::hex;
use ports::attestor::{AttestError, AttestationOrder, Attested, Attestor, OnProgress};
use rustls::RootCertStore;
use tokio::sync::Semaphore;

pub use self::{
    address::{AttestorAddress, InvalidAttestorAddress},
    connection::{ALPN_PROTOCOL, offered_parameters, take_shared_secret},
    diagnostic::AttestorDiagnostic,
    plan::{PlanDescriptors, descriptor, request},
    proving::run_worker,
    reader::PackageReader,
};

/// First argument with which the proving process is started; a program that receives it calls
/// [`run_worker`].
pub const PROVER_ARGUMENT: &str = "prove-requests";
/// Time limit for one proof, and for one proof with the one that it waits for. An attestor may set
/// a shorter limit.
const PROVING_TIMEOUT: Duration = Duration::from_secs(180);
const REVEAL_TIMEOUT: Duration = Duration::from_secs(360);
/// Maximum time from the reveal message to the attestation; the attestor states how much of it it
/// may need.
const EXAMINATION_TIMEOUT: Duration = Duration::from_secs(600);
/// Time limit for an attempt, including waiting for a permit: more than the sum of its parts.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(1200);
/// Minimum delay before the second attempt, and maximum random addition in milliseconds.
const RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_JITTER_MILLIS: u64 = 2000;

/// The prover of all attestations.
pub struct Prover {
    address: AttestorAddress,
    /// The public root certificates, and those of the operator.
    roots: Arc<RootCertStore>,
    extra: Vec<Vec<u8>>,
    pool: worker_process::Pool,
    /// Two permits per concurrent proof: one connection is recorded while another one is proved.
    /// Attempts wait before the recording, because a recording is valid only for a short time.
    attempt_permits: Semaphore,
    outage: outage::Outage,
}

impl Prover {
    /// Creates a prover that trusts the public roots and the DER certificates in `extra`, and
    /// computes `max_proofs` proofs concurrently with `program`.
    ///
    /// # Errors
    /// A root is not a valid certificate.
    pub fn new(
        address: AttestorAddress,
        extra: Vec<Vec<u8>>,
        program: PathBuf,
        max_proofs: usize,
    ) -> Result<Self, rustls::Error> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        for root in &extra {
            roots.add(root.clone().into())?;
        }
        let pool = worker_process::Pool::new(program, PROVER_ARGUMENT, max_proofs, PROVING_TIMEOUT);
        let room = Semaphore::new(2 * max_proofs);
        Ok(Self {
            address,
            roots: Arc::new(roots),
            extra,
            pool,
            attempt_permits: room,
            outage: outage::Outage::default(),
        })
    }
}

impl Prover {
    async fn attempt(
        &self,
        order: &AttestationOrder,
        salt: [u8; 32],
        reached: OnProgress<'_>,
    ) -> Result<Attested, AttestError> {
        let work = async {
            let _place = self.attempt_permits.acquire().await.map_err(|_| AttestError::TimedOut)?;
            self.run_conversation(order, salt, reached).await
        };
        let result = tokio::time::timeout(ATTEMPT_TIMEOUT, work).await;
        result.unwrap_or(Err(AttestError::TimedOut)).map_err(sanitize::sanitize_error)
    }
}

#[async_trait]
impl Attestor for Prover {
    async fn attest(
        &self,
        order: AttestationOrder,
        reached: OnProgress<'_>,
    ) -> Result<Attested, AttestError> {
        let mut salt = [0; 32];
        getrandom::fill(&mut salt).map_err(|error| AttestError::Proof(error.to_string()))?;
        let mut result = self.attempt(&order, salt, reached).await;
        if let Err(error) = &result
            && error.is_temporary()
        {
            tracing::warn!(session.id = %order.session, %error, "failed to attest temporarily; trying once more");
            let mut random = [0; 8];
            let _ = getrandom::fill(&mut random);
            let jitter = Duration::from_millis(u64::from_ne_bytes(random) % MAX_JITTER_MILLIS);
            tokio::time::sleep(RETRY_DELAY + jitter).await;
            // The second attempt starts from the beginning, including the platform's response. The
            // session identifier stays, so that the attestor counts it as the second attempt. It
            // waits for an attestor that is being restarted, as the first one does.
            result = self.attempt(&order, salt, reached).await;
        }
        match &result {
            Ok(attested) => {
                let key = hex(&attested.package.issuer.public_key);
                tracing::info!(session.id = %order.session, "attested with key {key}");
            }
            Err(error) => {
                tracing::warn!(session.id = %order.session, %error, "failed to attest; the session has no attestation");
            }
        }
        result
    }
}
