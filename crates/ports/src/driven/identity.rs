//! The identity provider of the portal's members (OpenID Connect Core 1.0).

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{account::Email, secret::Secret};

/// Authenticates members at an identity provider. Calls take seconds, bounded by timeouts.
#[async_trait]
pub trait IdentityProvider: Send + Sync {
    /// Returns the name of the provider, for people.
    fn name(&self) -> &str;

    /// Starts an authorization. With [`AuthorizationPrompt::Login`] the provider authenticates the
    /// member again, even if they are signed in there.
    async fn authorization_request(
        &self,
        prompt: AuthorizationPrompt,
    ) -> Result<AuthorizationRequest, IdentityError>;

    /// Verifies the callback and exchanges its code for an identity.
    async fn exchange_code(
        &self,
        state: &Secret,
        callback: &AuthorizationCallback,
    ) -> Result<Identity, IdentityError>;
}

/// The URL that the browser is redirected to, and the state that the callback is verified with.
pub struct AuthorizationRequest {
    pub url: String,
    /// The state of the authorization. It must be secret to all parties, including the member.
    pub kept: Secret,
}

/// The parameters with which the browser returns from the provider.
pub struct AuthorizationCallback {
    pub state: String,
    pub code: Secret,
}

/// An identity that the provider has authenticated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The issuer, a space, and the subject identifier, which never changes and is never reassigned
    /// (section 2).
    pub subject: String,
    /// An address that the provider has verified.
    pub email: Email,
    /// When the provider last authenticated the member, by its own statement (`auth_time`,
    /// section 2).
    pub authenticated_at: Option<DateTime<Utc>>,
}

/// Whether the provider may use its existing sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthorizationPrompt {
    /// The provider decides.
    Any,
    /// The provider has to authenticate the member (`prompt=login`, `max_age=0`, section 3.1.2.1).
    Login,
}

/// Why an authorization failed. The texts are for the operator's log.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error("failed to reach the identity provider: {0}")]
    Unreachable(String),
    #[error("the identity provider's answer is invalid: {0}")]
    Refused(String),
    /// An address that the provider has not verified does not identify a member.
    #[error("the identity provider returned no verified address")]
    NoAddress,
}
