//! Somebody else who knows the people of the portal (OpenID Connect Core 1.0).

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{account::Email, secret::Secret};

/// Asks a provider who somebody is. Takes seconds, and bounded ones.
#[async_trait]
pub trait IdentityProvider: Send + Sync {
    /// What people call it.
    fn name(&self) -> &str;

    /// Begins to ask; `Prompt::Login` has the provider ask the person, whoever is signed in there.
    async fn authorization_request(
        &self,
        prompt: AuthorizationPrompt,
    ) -> Result<AuthorizationRequest, IdentityError>;

    /// Understands what a browser came back with.
    async fn exchange_code(
        &self,
        kept: &Secret,
        arrival: &AuthorizationCallback,
    ) -> Result<Identity, IdentityError>;
}

/// Where somebody's browser is sent, and what is needed to understand what it comes back with.
pub struct AuthorizationRequest {
    pub url: String,
    /// To be kept from everybody, whoever's browser it is too.
    pub kept: Secret,
}

/// What a browser comes back with.
pub struct AuthorizationCallback {
    pub state: String,
    pub code: Secret,
}

/// Whom a provider says that somebody is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The provider, a blank, and its name for them: never another person's, and never changed
    /// (section 2).
    pub subject: String,
    /// One that the provider has seen to be theirs.
    pub email: Email,
    /// When the provider last asked them who they are, as it says (`auth_time`, section 2).
    pub authenticated_at: Option<DateTime<Utc>>,
}

/// Whether a provider may answer from its own sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthorizationPrompt {
    /// It decides.
    Any,
    /// It has to ask the person (`prompt=login`, `max_age=0`, section 3.1.2.1).
    Login,
}

/// Why nobody knows who somebody is. The texts are for the operator's log.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error("the provider of identities cannot be asked: {0}")]
    Unreachable(String),
    #[error("the provider's answer does not count: {0}")]
    Refused(String),
    /// An address that the provider has not verified is nobody's.
    #[error("the provider names no address that it has verified")]
    NoAddress,
}
