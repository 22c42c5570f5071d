//! People whom teams have registered to be verified.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    id::{ReceiverId, TeamId},
    request::Receiver,
};

use crate::StoreError;

/// Keeps a team's registered receivers. Another team's are as if they were not there.
#[async_trait]
pub trait ReceiverStore: Send + Sync {
    async fn add_receiver(&self, receiver: &KeptReceiver) -> Result<(), StoreError>;

    /// A team's, the newest first.
    async fn receivers(&self, team: TeamId) -> Result<Vec<KeptReceiver>, StoreError>;

    async fn receiver(
        &self,
        team: TeamId,
        id: ReceiverId,
    ) -> Result<Option<KeptReceiver>, StoreError>;

    /// Gives somebody another contact; `false`: they are not there. Sessions keep what they have.
    async fn change_receiver(
        &self,
        team: TeamId,
        id: ReceiverId,
        contact: &Receiver,
    ) -> Result<bool, StoreError>;

    /// Forgets somebody; `false`: they are not there. Sessions keep what they have.
    async fn remove_receiver(&self, team: TeamId, id: ReceiverId) -> Result<bool, StoreError>;
}

/// Somebody registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptReceiver {
    pub id: ReceiverId,
    pub team: TeamId,
    /// Without metadata, which belongs to a session.
    pub contact: Receiver,
    pub created_at: DateTime<Utc>,
}
