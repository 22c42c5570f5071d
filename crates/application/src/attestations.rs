//! The ports that an attestation passes on its way from the attestor to the partner.

use std::sync::Arc;

use async_trait::async_trait;
use ports::{
    attestation_reader::AttestationReader,
    attestor::{AttestError, AttestationOrder, AttestationStore, Attested, Attestor, OnProgress},
    key_store::KeyStore,
};

/// Makes, stores and reads attestations.
#[derive(Clone)]
pub struct Attestations {
    pub attestor: Arc<dyn Attestor>,
    pub store: Arc<dyn AttestationStore>,
    pub reader: Arc<dyn AttestationReader>,
    /// Knows which team the key of a session belongs to.
    pub keys: Arc<dyn KeyStore>,
}

/// The attestor of a process that has none.
pub struct NoAttestor;

#[async_trait]
impl Attestor for NoAttestor {
    async fn attest(
        &self,
        _: AttestationOrder,
        _: OnProgress<'_>,
    ) -> Result<Attested, AttestError> {
        Err(AttestError::None)
    }
}
