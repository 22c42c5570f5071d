//! Whom a team has registered.

use async_trait::async_trait;
use domain::{account::Right, id::ReceiverId, request::Receiver};
use ports::{
    driving::{PortalError, ReceiverService, Visitor},
    receiver_store::KeptReceiver,
};

use super::People;
use crate::receivers::{Unregistered, register};

const NOBODY: PortalError = PortalError::NotFound("receiver");

#[async_trait]
impl ReceiverService for People {
    async fn receivers(&self, visitor: &Visitor) -> Result<Vec<KeptReceiver>, PortalError> {
        visitor.must(Right::Look)?;
        Ok(self.receivers.receivers(visitor.team).await?)
    }

    async fn receiver(
        &self,
        visitor: &Visitor,
        id: ReceiverId,
    ) -> Result<KeptReceiver, PortalError> {
        visitor.must(Right::Look)?;
        self.receivers.receiver(visitor.team, id).await?.ok_or(NOBODY)
    }

    async fn register(
        &self,
        visitor: &Visitor,
        contact: Receiver,
    ) -> Result<ReceiverId, PortalError> {
        visitor.must(Right::Work)?;
        // Who it is stands in the list; the log outlives them.
        self.note(visitor, "receiver.add", "").await?;
        let sources = (&*self.core.clock, &*self.core.chance);
        match register(&*self.receivers, sources, visitor.team, contact).await {
            Ok(receiver) => Ok(receiver.id),
            Err(error @ Unregistered::Full) => Err(PortalError::Invalid(error.to_string())),
            Err(Unregistered::Store(error)) => Err(error.into()),
        }
    }

    async fn change_receiver(
        &self,
        visitor: &Visitor,
        id: ReceiverId,
        contact: Receiver,
    ) -> Result<(), PortalError> {
        visitor.must(Right::Work)?;
        self.note(visitor, "receiver.change", &id.to_string()).await?;
        let changed = self.receivers.change_receiver(visitor.team, id, &contact).await?;
        if changed { Ok(()) } else { Err(NOBODY) }
    }

    async fn remove_receiver(&self, visitor: &Visitor, id: ReceiverId) -> Result<(), PortalError> {
        visitor.must(Right::Work)?;
        self.note(visitor, "receiver.remove", &id.to_string()).await?;
        let removed = self.receivers.remove_receiver(visitor.team, id).await?;
        if removed { Ok(()) } else { Err(NOBODY) }
    }
}
