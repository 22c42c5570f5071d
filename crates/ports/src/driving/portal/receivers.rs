//! People whom a team has registered, as the portal shows and changes them.

use async_trait::async_trait;
use domain::{id::ReceiverId, request::Receiver};

use super::{PortalError, Visitor};
use crate::receiver_store::KeptReceiver;

/// A team's registered receivers.
#[async_trait]
pub trait ReceiverService: Send + Sync {
    /// The newest first.
    async fn receivers(&self, visitor: &Visitor) -> Result<Vec<KeptReceiver>, PortalError>;

    async fn receiver(
        &self,
        visitor: &Visitor,
        id: ReceiverId,
    ) -> Result<KeptReceiver, PortalError>;

    /// Registers somebody; a team has so many at most.
    async fn register(
        &self,
        visitor: &Visitor,
        contact: Receiver,
    ) -> Result<ReceiverId, PortalError>;

    /// Gives somebody another contact, for sessions to come.
    async fn change_receiver(
        &self,
        visitor: &Visitor,
        id: ReceiverId,
        contact: Receiver,
    ) -> Result<(), PortalError>;

    /// Forgets somebody. Sessions that name them keep what they have.
    async fn remove_receiver(&self, visitor: &Visitor, id: ReceiverId) -> Result<(), PortalError>;
}
