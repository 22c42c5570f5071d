//! Signing in with somebody else's word for who one is.

use async_trait::async_trait;
use domain::secret::Secret;

use super::{PortalError, SignedIn, SignedInUser};
use crate::{account_store::RequestOrigin, identity::AuthorizationCallback};

/// Signing in at a provider of identities, in the place of a password.
#[async_trait]
pub trait IdentityService: Send + Sync {
    /// What the provider is called; `None`: there is none.
    fn provider(&self) -> Option<&str>;

    /// Where a browser is sent, and what it keeps for when it comes back, to which it goes on to
    /// `next`.
    async fn begin_sign_in(
        &self,
        next: String,
        from: RequestOrigin,
    ) -> Result<(String, Secret), PortalError>;

    /// Where a browser is sent so that the provider asks the visitor anew who they are, whether
    /// they are signed in there or not; and what it keeps for when it comes back.
    async fn depart_to_confirm(
        &self,
        visitor: &SignedInUser,
    ) -> Result<(String, Secret), PortalError>;

    /// Understands what a browser came back with: signs in whom the provider names, if they are in
    /// a team here, or confirms who the visitor is. A second factor is asked for as after a
    /// password. `browser`: who is signed in in it, and what it was handed as in
    /// [`Attempt`](super::Attempt).
    async fn complete_sign_in(
        &self,
        kept: Secret,
        arrival: AuthorizationCallback,
        from: RequestOrigin,
        browser: (Option<SignedInUser>, Secret),
    ) -> Result<SignInOutcome, PortalError>;
}

/// What came of a browser that came back from the provider.
pub enum SignInOutcome {
    /// Somebody is signed in, and goes on to a page.
    SignedIn(SignedIn, String),
    /// The visitor was asked anew: the first half of a [`Proof`](super::Proof), good for 10 minutes.
    Asked(Secret),
}
