//! Confirming again who one is before a sensitive change, and the form that waits meanwhile.

use async_trait::async_trait;
use domain::secret::Secret;

use super::{PortalError, Visitor};

/// Confirms again who the visitor is (step-up authentication).
#[async_trait]
pub trait ConfirmationService: Send + Sync {
    /// Keeps what the visitor was about to do for 10 minutes, in the place of what was kept before.
    ///
    /// # Errors
    /// [`PortalError::Invalid`]: its fields are longer than 32 KiB.
    async fn hold(
        &self,
        visitor: &Visitor,
        path: String,
        fields: Option<String>,
    ) -> Result<(), PortalError>;

    /// What the visitor was about to do, if it is kept still.
    async fn held(&self, visitor: &Visitor) -> Result<Option<HeldForm>, PortalError>;

    /// Takes out what was kept under this identifier. Of two at once one gets it.
    async fn take_held(
        &self,
        visitor: &Visitor,
        id: String,
    ) -> Result<Option<HeldForm>, PortalError>;

    /// Confirms who the visitor is; answers the token that they have from now on. The token that
    /// they had before is void, so that a copy of it gains nothing by the confirmation.
    ///
    /// # Errors
    /// A proof is wrong or missing, or was tried too often.
    async fn confirm(
        &self,
        visitor: &Visitor,
        token: Secret,
        proof: Proof,
    ) -> Result<Secret, PortalError>;
}

/// What somebody was about to do.
#[derive(Clone)]
pub struct HeldForm {
    pub id: String,
    /// Of the portal.
    pub path: String,
    /// A form's fields, URL-encoded; `None`: it is a page that they were to see.
    pub fields: Option<String>,
}

/// With what somebody confirms who they are: a first factor, and a second one where they have one.
pub struct Proof {
    pub first: FirstFactor,
    pub second: Option<OtherFactor>,
}

/// The first factor.
pub enum FirstFactor {
    Password(Secret),
    /// That the provider of identities has asked them a moment ago, sealed by the service.
    Provider(Secret),
}

/// The second factor.
pub enum OtherFactor {
    /// A one-time code or a recovery code.
    Code(String),
    /// An answer to what [`PasskeyService::ask_passkey`](super::PasskeyService::ask_passkey) asked.
    Passkey { asked: Secret, answer: String },
}
