//! The rotation of the secret key that all processes of a deployment have in common.

use std::error::Error;

use async_trait::async_trait;

/// The fingerprints after a rotation, in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RotatedFingerprints {
    pub current: String,
    pub earlier: String,
}

/// Why the secret key was not rotated or recorded.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct SecretKeyError(Box<dyn Error + Send + Sync>);

impl SecretKeyError {
    pub fn new(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(source.into())
    }
}

/// Rotates the secret key.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait SecretKeyRotation: Send + Sync {
    /// Generates a new key, and keeps the current one as the earlier one, which decrypts and
    /// verifies only.
    ///
    /// # Errors
    /// There is an earlier key, which may still decrypt values; or the keys cannot be written.
    fn rotate(&self) -> Result<RotatedFingerprints, SecretKeyError>;

    /// Records in the database that it belongs to the current key. It is called when the earlier key
    /// decrypts nothing any more. A second call changes nothing.
    async fn record_current(&self) -> Result<(), SecretKeyError>;
}
