//! Whether the service can serve requests.

use async_trait::async_trait;

/// Checks what the service depends on.
#[async_trait]
pub trait Readiness: Send + Sync {
    /// Returns whether everything that requests need answers now.
    async fn ready(&self) -> bool;
}
