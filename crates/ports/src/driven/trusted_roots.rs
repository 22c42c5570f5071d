//! The root certificates that the service trusts.

/// Returns the certificates of the system, of the operator, and of the sandbox platform.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait TrustedRoots: Send + Sync {
    /// Returns the certificates in DER.
    fn certificates(&self) -> Vec<Vec<u8>>;
}
