//! The attestor, which attests the answer of a platform's server, and the store of attestations.

use async_trait::async_trait;
use domain::{
    fairness::Tenant,
    id::{ApiKeyId, SessionId},
    secret::Secret,
    session::{AttestationStep, ExtractedData, ProofHash},
    workflow::{Attest, AttestMode},
};

use crate::{Reencrypted, StoreError};

/// A request to be attested.
pub struct AttestationOrder {
    pub session: SessionId,
    /// The team with whose key the session was created. The attestor sees a salted hash of it.
    pub tenant: Tenant,
    /// The challenge that the attestation repeats, up to 64 bytes; empty if the partner gave none.
    pub challenge: Vec<u8>,
    /// The URL of the request, from the definition.
    pub url: String,
    pub plan: Attest,
    /// The value of the `Cookie` header.
    pub cookies: Secret,
    pub user_agent: String,
}

/// An attestation with its attested values.
#[derive(Debug, Clone, PartialEq)]
pub struct Attested {
    pub proof: ProofHash,
    /// The values by field of the plan, as the platform's server sent them.
    pub values: ExtractedData,
    pub package: AttestationPackage,
}

/// A stored attestation with its disclosure and evidence. Its holder can show it to others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttestationPackage {
    pub mode: AttestMode,
    /// The salt with which the session's identifier is hashed to its name in the attestation.
    pub salt: [u8; 32],
    pub attestation: Vec<u8>,
    pub disclosure: Vec<u8>,
    /// `None` if the evidence would contain credentials.
    pub evidence: Option<Vec<u8>>,
    /// The inclusion proof for the attestor's log, as text (C2SP tlog-proof). `None` for
    /// attestations that are older than the log.
    pub inclusion: Option<Vec<u8>>,
    pub issuer: Issuer,
}

/// The notary key of the attestor and its validity, in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer {
    pub public_key: [u8; 32],
    pub valid_from: u64,
    pub valid_to: u64,
}

/// The callback for each step that an attestation reaches.
pub type OnProgress<'a> = &'a (dyn Fn(AttestationStep) + Send + Sync);

/// Why there is no attestation.
#[derive(Debug, thiserror::Error)]
pub enum AttestError {
    #[error("no attestor is configured")]
    None,
    #[error("the definition's plan cannot be attested: {0}")]
    Plan(String),
    #[error("the attestor is not the configured one, or violates the protocol: {0}")]
    Attestor(String),
    #[error("the attestor is unreachable, or the connection to it was lost: {0}")]
    Lost(String),
    #[error("the attestor has no capacity: {0}")]
    Busy(String),
    #[error("the platform's server was unreachable or did not answer as planned: {0}")]
    Platform(String),
    #[error(
        "the response has header `{0}`, whose value may be a credential and would be shown to the attestor"
    )]
    Credentials(String),
    #[error("failed to make the proof: {0}")]
    Proof(String),
    #[error("the attestor refused: {0}")]
    Refused(String),
    #[error("the attestation does not match the recorded exchange: {0}")]
    Untrue(String),
    #[error("the attestation timed out")]
    TimedOut,
}

impl AttestError {
    /// Returns whether another attempt may succeed: this one failed because of a timeout, missing
    /// capacity, or a lost connection to the attestor. An attempt that was refused or found wrong is
    /// not temporary.
    #[must_use]
    pub const fn is_temporary(&self) -> bool {
        match self {
            Self::Lost(_) | Self::Busy(_) | Self::TimedOut => true,
            Self::None
            | Self::Plan(_)
            | Self::Attestor(_)
            | Self::Platform(_)
            | Self::Credentials(_)
            | Self::Proof(_)
            | Self::Refused(_)
            | Self::Untrue(_) => false,
        }
    }
}

#[async_trait]
pub trait Attestor: Send + Sync {
    /// Makes the request through the attestor and has it attested. Waits for an attestor that is
    /// unreachable, for as long as its restart may take. A second attempt is made if the first failed
    /// [temporarily](AttestError::is_temporary). Reports each step when it is reached; the second
    /// attempt may reach a step again. The call takes seconds, bounded by timeouts.
    async fn attest(
        &self,
        order: AttestationOrder,
        on_progress: OnProgress<'_>,
    ) -> Result<Attested, AttestError>;
}

/// Stores attestations, encrypted, until the session's data is erased.
#[async_trait]
pub trait AttestationStore: Send + Sync {
    /// Stores the attestation of an open session, in place of an earlier one. Returns `false` if
    /// the session is closed, since its data may have been erased.
    async fn keep(
        &self,
        session: SessionId,
        proof: &ProofHash,
        package: &AttestationPackage,
    ) -> Result<bool, StoreError>;

    async fn attestation(
        &self,
        session: SessionId,
    ) -> Result<Option<(ProofHash, AttestationPackage)>, StoreError>;

    /// Encrypts values that an earlier key encrypted with the newest one, for up to `limit`
    /// attestations after this one in the order of their sessions.
    async fn reencrypt_attestations(
        &self,
        after: Option<SessionId>,
        limit: u16,
    ) -> Result<Reencrypted<SessionId>, StoreError>;

    /// Returns the key's session whose attestation has this hash, and the attestation.
    async fn attested(
        &self,
        owner: ApiKeyId,
        proof: &ProofHash,
    ) -> Result<Option<(SessionId, AttestationPackage)>, StoreError>;
}
