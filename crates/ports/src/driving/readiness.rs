//! The readiness of the service.

use async_trait::async_trait;

/// Checks the dependencies of the service.
#[async_trait]
pub trait Readiness: Send + Sync {
    /// Returns whether all dependencies that requests need respond now.
    async fn ready(&self) -> bool;
}
