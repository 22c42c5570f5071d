//! Reads stored attestations without verifying them, since they were verified when they were stored.

use std::{collections::BTreeMap, error::Error};

use domain::id::{SessionId, TeamId};

use crate::attestor::AttestationPackage;

/// Reads attestations in the format that the attestor issues.
pub trait AttestationReader: Send + Sync {
    /// Returns the attested value of each field, as JSON text.
    fn claims(&self, package: &AttestationPackage) -> Result<BTreeMap<String, String>, ReadError>;

    /// Returns whether two JSON texts are the same string, number, boolean or null. Numbers are
    /// compared digit by digit, since account numbers exceed the precision of a double.
    fn is_same_value(&self, one: &str, other: &str) -> bool;

    /// Encodes an attestation as a file that anyone can verify without this service.
    fn portable(
        &self,
        session: SessionId,
        team: TeamId,
        package: AttestationPackage,
    ) -> Result<Vec<u8>, ReadError>;
}

/// Why an attestation could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The format version is no longer supported; callers treat the attestation as absent.
    #[error("the attestation has an earlier format version: {0}")]
    Outdated(String),
    #[error("the attestation is damaged")]
    Damaged(#[source] Box<dyn Error + Send + Sync>),
}
