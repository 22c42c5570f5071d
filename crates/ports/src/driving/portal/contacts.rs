//! The service that manages a team's registered contacts.

use async_trait::async_trait;
use domain::{id::ContactId, request::Contact};

use super::{PortalError, SignedInUser};
use crate::contact_store::StoredContact;

/// Reads and changes a team's registered contacts.
#[async_trait]
pub trait ContactService: Send + Sync {
    /// Returns the team's contacts, the newest first.
    async fn receivers(&self, user: &SignedInUser) -> Result<Vec<StoredContact>, PortalError>;

    async fn receiver(
        &self,
        user: &SignedInUser,
        id: ContactId,
    ) -> Result<StoredContact, PortalError>;

    /// Registers a contact, up to the limit of the team.
    async fn register(
        &self,
        user: &SignedInUser,
        contact: Contact,
    ) -> Result<ContactId, PortalError>;

    /// Replaces the data of a contact, for new sessions.
    async fn change_receiver(
        &self,
        user: &SignedInUser,
        id: ContactId,
        contact: Contact,
    ) -> Result<(), PortalError>;

    /// Deletes a contact. Sessions keep its data.
    async fn remove_receiver(&self, user: &SignedInUser, id: ContactId) -> Result<(), PortalError>;
}
