//! The service that manages and verifies passkeys.

use async_trait::async_trait;
use domain::{id::PasskeyId, secret::Secret};

use super::{PortalError, SignedIn, SignedInUser};
use crate::passkeys::StoredPasskey;

/// The options of a passkey ceremony for the browser, and the state that returns with its answer.
#[derive(Clone)]
pub struct PasskeyChallenge {
    /// The options as JSON.
    pub options: String,
    /// The encrypted state, which proves later that the challenge was made to this user recently.
    pub sealed: Secret,
}

/// The answer of a browser that signs in with a passkey.
pub struct PasskeyRegistered {
    /// The state of the [`PasskeyChallenge`].
    pub asked: Secret,
    /// The answer as JSON.
    pub answer: String,
    /// The known-browser tokens, as in [`SignInAttempt`](super::SignInAttempt).
    pub browsers: Secret,
}

/// Manages the passkeys of signed-in users, and verifies a passkey as the second factor.
#[async_trait]
pub trait PasskeyService: Send + Sync {
    /// Returns the user's passkeys; `None` if the deployment does not support them.
    async fn passkeys(
        &self,
        user: &SignedInUser,
    ) -> Result<Option<Vec<StoredPasskey>>, PortalError>;

    /// Starts the registration of a passkey.
    async fn offer_passkey(&self, user: &SignedInUser) -> Result<PasskeyChallenge, PortalError>;

    /// Stores the registered passkey. Returns recovery codes, which are shown once, if the user had
    /// no second factor.
    async fn keep_passkey(
        &self,
        user: &SignedInUser,
        name: String,
        asked: Secret,
        answer: String,
    ) -> Result<Vec<Secret>, PortalError>;

    /// Deletes a passkey.
    async fn drop_passkey(&self, user: &SignedInUser, id: PasskeyId) -> Result<(), PortalError>;

    /// Starts an authentication with one of the user's passkeys, to sign in or to re-authenticate.
    /// `None` if the user has none.
    async fn ask_passkey(
        &self,
        user: &SignedInUser,
    ) -> Result<Option<PasskeyChallenge>, PortalError>;

    /// Verifies the answer, and returns a new token in place of the user's current one.
    async fn show_passkey(
        &self,
        user: &SignedInUser,
        token: Secret,
        answered: PasskeyRegistered,
    ) -> Result<SignedIn, PortalError>;
}
