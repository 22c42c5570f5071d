//! The service for re-authentication before a sensitive change, and for the form that waits for it.

use async_trait::async_trait;
use domain::secret::Secret;

use super::{PortalError, SignedInUser};

/// Re-authenticates the user (step-up authentication).
#[async_trait]
pub trait ReauthenticationService: Send + Sync {
    /// Stores the form that the user was about to send for 10 minutes, in place of an earlier one.
    ///
    /// # Errors
    /// [`PortalError::Invalid`] if its fields are longer than 32 KiB.
    async fn hold_form(
        &self,
        user: &SignedInUser,
        path: String,
        fields: Option<String>,
    ) -> Result<(), PortalError>;

    /// Returns the stored form of the user, if it has not expired.
    async fn held_form(&self, user: &SignedInUser) -> Result<Option<PendingForm>, PortalError>;

    /// Removes and returns the stored form with this identifier. Of two concurrent calls one gets
    /// it.
    async fn take_held_form(
        &self,
        user: &SignedInUser,
        id: String,
    ) -> Result<Option<PendingForm>, PortalError>;

    /// Re-authenticates the user and returns the new token of their sign-in. The earlier token is
    /// void, so that a copy of it does not gain from the re-authentication.
    ///
    /// # Errors
    /// A factor is wrong or missing, or there were too many attempts.
    async fn reauthenticate(
        &self,
        user: &SignedInUser,
        token: Secret,
        proof: ReauthenticationProof,
    ) -> Result<Secret, PortalError>;
}

/// A request of the user that waits for the re-authentication.
#[derive(Clone)]
pub struct PendingForm {
    pub id: String,
    /// The path in the portal.
    pub path: String,
    /// The fields of the form, URL-encoded; `None` for a page.
    pub fields: Option<String>,
}

/// The factors of a re-authentication: a first one, and a second one if the user has it.
pub struct ReauthenticationProof {
    pub first: FirstFactor,
    pub second: Option<SecondFactorProof>,
}

/// The first factor.
pub enum FirstFactor {
    Password(Secret),
    /// An encrypted proof that the identity provider authenticated the user recently.
    Provider(Secret),
}

/// The second factor.
pub enum SecondFactorProof {
    /// A one-time code or a recovery code.
    Code(String),
    /// An answer to [`PasskeyService::ask_passkey`](super::PasskeyService::ask_passkey).
    Passkey { asked: Secret, answer: String },
}
