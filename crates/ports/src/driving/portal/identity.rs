//! Signing in with somebody else's word for who one is.

use async_trait::async_trait;
use domain::secret::Secret;

use super::{PortalError, SignedIn};
use crate::{account_store::Whence, identity::Arrival};

/// Signing in at a provider of identities, in the place of a password.
#[async_trait]
pub trait IdentityService: Send + Sync {
    /// What the provider is called; `None`: there is none.
    fn provider(&self) -> Option<&str>;

    /// Where a browser is sent, and what it keeps for when it comes back, to which it goes on to
    /// `next`.
    async fn depart(&self, next: String, from: Whence) -> Result<(String, Secret), PortalError>;

    /// Signs in whom the provider names, if they are in a team here; answers where they go on to.
    /// A second factor is asked for as after a password.
    async fn arrive(
        &self,
        kept: Secret,
        arrival: Arrival,
        from: Whence,
    ) -> Result<(SignedIn, String), PortalError>;
}
