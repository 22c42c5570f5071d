//! The service for signing in at an identity provider.

use async_trait::async_trait;
use domain::secret::Secret;

use super::{PortalError, SignedIn, SignedInUser};
use crate::{account_store::RequestOrigin, identity::AuthorizationCallback};

/// Signs members in, and re-authenticates them, at an identity provider instead of with a password.
#[async_trait]
pub trait IdentityService: Send + Sync {
    /// Returns the name of the provider; `None` if there is none.
    fn provider(&self) -> Option<&str>;

    /// Starts a sign-in. Returns the URL that the browser is redirected to, and the state that it
    /// keeps for the callback. After the sign-in the browser continues to `next`.
    async fn begin_sign_in(
        &self,
        next: String,
        from: RequestOrigin,
    ) -> Result<(String, Secret), PortalError>;

    /// Starts a re-authentication, for which the provider authenticates the user again even if they
    /// are signed in there. Returns the URL that the browser is redirected to, and the state that
    /// it keeps for the callback.
    async fn depart_to_confirm(&self, user: &SignedInUser)
    -> Result<(String, Secret), PortalError>;

    /// Handles the callback of the browser: signs in the member whom the provider authenticated, if
    /// they are in a team, or completes the re-authentication of the user. A second factor is
    /// required as after a password. `browser` is the user who is signed in in the browser, and
    /// its tokens as in [`SignInAttempt::browsers`](super::SignInAttempt::browsers).
    async fn complete_sign_in(
        &self,
        state: Secret,
        callback: AuthorizationCallback,
        from: RequestOrigin,
        browser: (Option<SignedInUser>, Secret),
    ) -> Result<SignInOutcome, PortalError>;
}

/// The result of a callback from the provider.
pub enum SignInOutcome {
    /// A member is signed in, and continues to a page.
    SignedIn(SignedIn, String),
    /// The user was authenticated again. The secret is the first factor of a
    /// [`ReauthenticationProof`](super::ReauthenticationProof), valid for 10 minutes.
    Asked(Secret),
}
