//! The ports that an attestation passes on its way from the attestor to the partner.

use std::sync::Arc;

use ports::{
    attestation_reader::AttestationReader,
    attestor::{AttestationStore, Attestor},
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
