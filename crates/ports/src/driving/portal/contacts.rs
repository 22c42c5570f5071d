//! People whom a team has registered, as the portal shows and changes them.

use async_trait::async_trait;
use domain::{id::ContactId, request::Contact};

use super::{PortalError, SignedInUser};
use crate::contact_store::StoredContact;

/// A team's registered receivers.
#[async_trait]
pub trait ContactService: Send + Sync {
    /// The newest first.
    async fn receivers(&self, visitor: &SignedInUser) -> Result<Vec<StoredContact>, PortalError>;

    async fn receiver(
        &self,
        visitor: &SignedInUser,
        id: ContactId,
    ) -> Result<StoredContact, PortalError>;

    /// Registers somebody; a team has so many at most.
    async fn register(
        &self,
        visitor: &SignedInUser,
        contact: Contact,
    ) -> Result<ContactId, PortalError>;

    /// Gives somebody another contact, for sessions to come.
    async fn change_receiver(
        &self,
        visitor: &SignedInUser,
        id: ContactId,
        contact: Contact,
    ) -> Result<(), PortalError>;

    /// Forgets somebody. Sessions that name them keep what they have.
    async fn remove_receiver(
        &self,
        visitor: &SignedInUser,
        id: ContactId,
    ) -> Result<(), PortalError>;
}
