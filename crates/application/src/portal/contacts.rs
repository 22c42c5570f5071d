//! The registered contacts of a team.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{account::Permission, id::ContactId, request::Contact};
use ports::{
    clock::Clock,
    contact_store::{ContactStore, StoredContact},
    driving::{ContactService, PortalError, SignedInUser},
    random::RandomSource,
};

use super::AuditTrail;
use crate::contacts::{RegisterContactError, register};

const NOT_FOUND: PortalError = PortalError::NotFound("recipient");

/// Implements [`ContactService`].
pub struct Contacts {
    pub contacts: Arc<dyn ContactStore>,
    pub audit: AuditTrail,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn RandomSource>,
}

#[async_trait]
impl ContactService for Contacts {
    async fn receivers(&self, user: &SignedInUser) -> Result<Vec<StoredContact>, PortalError> {
        user.require(Permission::View)?;
        Ok(self.contacts.contacts(user.team).await?)
    }

    async fn receiver(
        &self,
        user: &SignedInUser,
        id: ContactId,
    ) -> Result<StoredContact, PortalError> {
        user.require(Permission::View)?;
        self.contacts.contact(user.team, id).await?.ok_or(NOT_FOUND)
    }

    async fn register(
        &self,
        user: &SignedInUser,
        contact: Contact,
    ) -> Result<ContactId, PortalError> {
        user.require(Permission::Edit)?;
        // The event names no one: the log outlives the contact, whose data must be erasable.
        self.audit.record(user, "receiver.add", "").await?;
        let sources = (&*self.clock, &*self.random);
        match register(&*self.contacts, sources, user.team, contact).await {
            Ok(stored) => Ok(stored.id),
            Err(error @ RegisterContactError::Full) => Err(PortalError::Invalid(error.to_string())),
            Err(RegisterContactError::Store(error)) => Err(error.into()),
        }
    }

    async fn change_receiver(
        &self,
        user: &SignedInUser,
        id: ContactId,
        contact: Contact,
    ) -> Result<(), PortalError> {
        user.require(Permission::Edit)?;
        self.audit.record(user, "receiver.change", &id.to_string()).await?;
        let changed = self.contacts.change_receiver(user.team, id, &contact).await?;
        if changed { Ok(()) } else { Err(NOT_FOUND) }
    }

    async fn remove_receiver(&self, user: &SignedInUser, id: ContactId) -> Result<(), PortalError> {
        user.require(Permission::Edit)?;
        self.audit.record(user, "receiver.remove", &id.to_string()).await?;
        let removed = self.contacts.remove_contact(user.team, id).await?;
        if removed { Ok(()) } else { Err(NOT_FOUND) }
    }
}
