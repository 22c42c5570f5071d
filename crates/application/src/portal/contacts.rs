//! Whom a team has registered.

use async_trait::async_trait;
use domain::{account::Permission, id::ContactId, request::Contact};
use ports::{
    contact_store::StoredContact,
    driving::{ContactService, PortalError, SignedInUser},
};

use super::People;
use crate::contacts::{RegisterContactError, register};

const NOBODY: PortalError = PortalError::NotFound("receiver");

#[async_trait]
impl ContactService for People {
    async fn receivers(&self, visitor: &SignedInUser) -> Result<Vec<StoredContact>, PortalError> {
        visitor.require(Permission::Look)?;
        Ok(self.receivers.contacts(visitor.team).await?)
    }

    async fn receiver(
        &self,
        visitor: &SignedInUser,
        id: ContactId,
    ) -> Result<StoredContact, PortalError> {
        visitor.require(Permission::Look)?;
        self.receivers.contact(visitor.team, id).await?.ok_or(NOBODY)
    }

    async fn register(
        &self,
        visitor: &SignedInUser,
        contact: Contact,
    ) -> Result<ContactId, PortalError> {
        visitor.require(Permission::Work)?;
        // Who it is stands in the list; the log outlives them.
        self.note(visitor, "receiver.add", "").await?;
        let sources = (&*self.core.clock, &*self.core.random);
        match register(&*self.receivers, sources, visitor.team, contact).await {
            Ok(receiver) => Ok(receiver.id),
            Err(error @ RegisterContactError::Full) => Err(PortalError::Invalid(error.to_string())),
            Err(RegisterContactError::Store(error)) => Err(error.into()),
        }
    }

    async fn change_receiver(
        &self,
        visitor: &SignedInUser,
        id: ContactId,
        contact: Contact,
    ) -> Result<(), PortalError> {
        visitor.require(Permission::Work)?;
        self.note(visitor, "receiver.change", &id.to_string()).await?;
        let changed = self.receivers.change_receiver(visitor.team, id, &contact).await?;
        if changed { Ok(()) } else { Err(NOBODY) }
    }

    async fn remove_receiver(
        &self,
        visitor: &SignedInUser,
        id: ContactId,
    ) -> Result<(), PortalError> {
        visitor.require(Permission::Work)?;
        self.note(visitor, "receiver.remove", &id.to_string()).await?;
        let removed = self.receivers.remove_contact(visitor.team, id).await?;
        if removed { Ok(()) } else { Err(NOBODY) }
    }
}
