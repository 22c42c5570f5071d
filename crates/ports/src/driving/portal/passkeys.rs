//! Passkeys in the portal.

use async_trait::async_trait;
use domain::{id::PasskeyId, secret::Secret};

use super::{PortalError, SignedIn, SignedInUser};
use crate::passkeys::StoredPasskey;

/// What somebody's browser is asked, and what comes back with its answer.
#[derive(Clone)]
pub struct PasskeyChallenge {
    /// JSON.
    pub options: String,
    /// Says later that it was we who asked, this person, a moment ago.
    pub sealed: Secret,
}

/// What a browser answers to somebody's attempt to sign in with a passkey.
pub struct PasskeyRegistered {
    /// As it was in what was [`Asked`].
    pub asked: Secret,
    /// JSON.
    pub answer: String,
    /// As in [`Attempt`](super::Attempt).
    pub browsers: Secret,
}

/// Passkeys of whoever is signed in, and of whoever has shown their password alone.
#[async_trait]
pub trait PasskeyService: Send + Sync {
    /// The visitor's passkeys; `None` where the deployment can have none.
    async fn passkeys(
        &self,
        visitor: &SignedInUser,
    ) -> Result<Option<Vec<StoredPasskey>>, PortalError>;

    /// Asks for a new passkey.
    async fn offer_passkey(&self, visitor: &SignedInUser) -> Result<PasskeyChallenge, PortalError>;

    /// Keeps it; answers recovery codes, which are shown once, if the visitor had no second factor.
    async fn keep_passkey(
        &self,
        visitor: &SignedInUser,
        name: String,
        asked: Secret,
        answer: String,
    ) -> Result<Vec<Secret>, PortalError>;

    /// Forgets one.
    async fn drop_passkey(&self, visitor: &SignedInUser, id: PasskeyId) -> Result<(), PortalError>;

    /// Asks somebody for one of their passkeys, to sign in or to confirm who they are; `None`: they
    /// have none.
    async fn ask_passkey(
        &self,
        visitor: &SignedInUser,
    ) -> Result<Option<PasskeyChallenge>, PortalError>;

    /// Checks the answer; answers their new token in the place of the one that they have.
    async fn show_passkey(
        &self,
        visitor: &SignedInUser,
        token: Secret,
        answered: PasskeyRegistered,
    ) -> Result<SignedIn, PortalError>;
}
