//! The record of the secret key that a database belongs to, and of the key that outlasts its
//! rotation.

use async_trait::async_trait;

use crate::StoreError;

/// The key of a deployment, as its database records it. It contains no plaintext key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeploymentKey {
    /// Identifies the secret key, and reveals nothing else about it.
    pub fingerprint: Vec<u8>,
    /// The key whose uses outlast a rotation of the secret key, encrypted with the secret key.
    pub encrypted_stable_key: Vec<u8>,
}

/// Reads to which secret key a database belongs before the service has used it.
#[async_trait]
pub trait RecordedFingerprint: Send + Sync {
    /// Returns the fingerprint; `None` before the first start of the deployment. Changes nothing.
    async fn recorded_fingerprint(&self) -> Result<Option<Vec<u8>>, StoreError>;
}

/// Records to which secret key a database belongs. All processes of a deployment have the same
/// secret key.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait DeploymentKeys: Send + Sync {
    /// Returns the record; `None` before the first start of the deployment.
    async fn deployment_key(&self) -> Result<Option<DeploymentKey>, StoreError>;

    /// Writes the record if there is none. Returns the record that is stored then. Of concurrent
    /// calls with different keys, all MUST return the same record.
    async fn claim_deployment_key(&self, key: &DeploymentKey) -> Result<DeploymentKey, StoreError>;

    /// Replaces the record `before`. Returns `false`, and changes nothing, if another fingerprint is
    /// stored.
    async fn renew_deployment_key(
        &self,
        before: &DeploymentKey,
        key: &DeploymentKey,
    ) -> Result<bool, StoreError>;

    /// Returns whether the database has a team, and therefore perhaps encrypted values.
    async fn has_any_team(&self) -> Result<bool, StoreError>;
}
