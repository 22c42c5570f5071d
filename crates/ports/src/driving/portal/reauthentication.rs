//! Confirming again who one is before a sensitive change, and the form that waits meanwhile.

use async_trait::async_trait;
use domain::secret::Secret;

use super::{PortalError, SignedInUser};

/// Confirms again who the visitor is (step-up authentication).
#[async_trait]
pub trait ReauthenticationService: Send + Sync {
    /// Keeps what the visitor was about to do for 10 minutes, in the place of what was kept before.
    ///
    /// # Errors
    /// [`PortalError::Invalid`]: its fields are longer than 32 KiB.
    async fn hold_form(
        &self,
        visitor: &SignedInUser,
        path: String,
        fields: Option<String>,
    ) -> Result<(), PortalError>;

    /// What the visitor was about to do, if it is kept still.
    async fn held_form(&self, visitor: &SignedInUser) -> Result<Option<PendingForm>, PortalError>;

    /// Takes out what was kept under this identifier. Of two at once one gets it.
    async fn take_held_form(
        &self,
        visitor: &SignedInUser,
        id: String,
    ) -> Result<Option<PendingForm>, PortalError>;

    /// Confirms who the visitor is; answers the token that they have from now on. The token that
    /// they had before is void, so that a copy of it gains nothing by the confirmation.
    ///
    /// # Errors
    /// A proof is wrong or missing, or was tried too often.
    async fn reauthenticate(
        &self,
        visitor: &SignedInUser,
        token: Secret,
        proof: ReauthenticationProof,
    ) -> Result<Secret, PortalError>;
}

/// What somebody was about to do.
#[derive(Clone)]
pub struct PendingForm {
    pub id: String,
    /// Of the portal.
    pub path: String,
    /// A form's fields, URL-encoded; `None`: it is a page that they were to see.
    pub fields: Option<String>,
}

/// With what somebody confirms who they are: a first factor, and a second one where they have one.
pub struct ReauthenticationProof {
    pub first: FirstFactor,
    pub second: Option<SecondFactorProof>,
}

/// The first factor.
pub enum FirstFactor {
    Password(Secret),
    /// That the provider of identities has asked them a moment ago, sealed by the service.
    Provider(Secret),
}

/// The second factor.
pub enum SecondFactorProof {
    /// A one-time code or a recovery code.
    Code(String),
    /// An answer to what [`PasskeyService::ask_passkey`](super::PasskeyService::ask_passkey) asked.
    Passkey { asked: Secret, answer: String },
}
