//! A witness who attests what a platform's server says.

use async_trait::async_trait;
use domain::{
    fairness::Tenant,
    id::{ApiKeyId, SessionId},
    secret::Secret,
    session::{AttestationStep, ExtractedData, ProofHash},
    workflow::{Attest, AttestMode},
};

use crate::{Reencrypted, StoreError};

/// What is to be attested, and what it takes.
pub struct AttestationOrder {
    pub session: SessionId,
    /// The team for whose key the session was created. The witness sees a salted hash of it.
    pub tenant: Tenant,
    /// Repeated in the attestation, up to 64 bytes; empty if the partner gave none.
    pub challenge: Vec<u8>,
    /// The request's, from the definition.
    pub url: String,
    pub plan: Attest,
    /// The value of the `Cookie` header.
    pub cookies: Secret,
    pub user_agent: String,
}

/// An attestation and what belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Attested {
    pub proof: ProofHash,
    /// By field of the plan, as the platform's server said it.
    pub values: ExtractedData,
    pub package: AttestationPackage,
}

/// What is kept of an attestation; who has it can show it to others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttestationPackage {
    pub mode: AttestMode,
    /// Makes the session's name in the attestation of the session's identifier.
    pub salt: [u8; 32],
    pub attestation: Vec<u8>,
    pub disclosure: Vec<u8>,
    /// None where credentials are in it.
    pub evidence: Option<Vec<u8>>,
    /// The proof that the attestation is in the witness's log, as text (C2SP tlog-proof). None of
    /// attestations that are older than the log.
    pub inclusion: Option<Vec<u8>>,
    pub issuer: Issuer,
}

/// The key of the witness, and when it may sign, in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer {
    pub public_key: [u8; 32],
    pub valid_from: u64,
    pub valid_to: u64,
}

/// Who is told how far an attestation is.
pub type OnProgress<'a> = &'a (dyn Fn(AttestationStep) + Send + Sync);

/// Why there is no attestation.
#[derive(Debug, thiserror::Error)]
pub enum AttestError {
    #[error("no attestor is configured")]
    None,
    #[error("the definition's plan cannot be attested: {0}")]
    Plan(String),
    #[error("the attestor is another one, or does not keep to the protocol: {0}")]
    Attestor(String),
    #[error("the attestor cannot be reached, or was lost: {0}")]
    Lost(String),
    #[error("the attestor has no time or no place: {0}")]
    Busy(String),
    #[error("the platform's server was not reached or did not answer as planned: {0}")]
    Platform(String),
    #[error(
        "the response has header `{0}`, whose value may be a credential and would be shown to the attestor"
    )]
    Credentials(String),
    #[error("nothing could be proved: {0}")]
    Proof(String),
    #[error("the attestor refused: {0}")]
    Refused(String),
    #[error("what the attestor gave is not what was recorded: {0}")]
    Untrue(String),
    #[error("it took too long")]
    TimedOut,
}

impl AttestError {
    /// Whether another attempt may succeed where this one failed: for want of time or a place, or
    /// because the witness was lost. Never where something was refused or found wrong.
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
    /// Makes the request through the witness and has it attested, at most twice: a second time where
    /// the first failed [temporarily](AttestError::is_temporary); and tells each step as it is
    /// reached; a step may be reached again where an attempt was given up for another. Takes
    /// seconds, and bounded ones.
    async fn attest(
        &self,
        order: AttestationOrder,
        reached: OnProgress<'_>,
    ) -> Result<Attested, AttestError>;
}

/// Keeps what belongs to attestations, encrypted, until the session's data are erased.
#[async_trait]
pub trait AttestationStore: Send + Sync {
    /// Keeps an open session's attestation, in the place of one that was kept before. Answers
    /// `false` where the session is closed: its data may have been erased.
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

    /// Encrypts with the newest key what others closed, of so many attestations after this one in
    /// the order of their sessions.
    async fn reencrypt_attestations(
        &self,
        after: Option<SessionId>,
        limit: u16,
    ) -> Result<Reencrypted<SessionId>, StoreError>;

    /// The session of this key's whose attestation has this hash, and what belongs to it.
    async fn attested(
        &self,
        owner: ApiKeyId,
        proof: &ProofHash,
    ) -> Result<Option<(SessionId, AttestationPackage)>, StoreError>;
}
