//! People whom teams have registered to be verified.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    id::{ContactId, TeamId},
    request::Contact,
};

use crate::StoreError;

/// Keeps a team's registered receivers. Another team's are as if they were not there.
#[async_trait]
pub trait ContactStore: Send + Sync {
    async fn add_contact(&self, receiver: &StoredContact) -> Result<(), StoreError>;

    /// A team's, the newest first.
    async fn contacts(&self, team: TeamId) -> Result<Vec<StoredContact>, StoreError>;

    async fn contact(
        &self,
        team: TeamId,
        id: ContactId,
    ) -> Result<Option<StoredContact>, StoreError>;

    /// Gives somebody another contact; `false`: they are not there. Sessions keep what they have.
    async fn change_receiver(
        &self,
        team: TeamId,
        id: ContactId,
        contact: &Contact,
    ) -> Result<bool, StoreError>;

    /// Forgets somebody; `false`: they are not there. Sessions keep what they have.
    async fn remove_contact(&self, team: TeamId, id: ContactId) -> Result<bool, StoreError>;
}

/// Somebody registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredContact {
    pub id: ContactId,
    pub team: TeamId,
    /// Without metadata, which belongs to a session.
    pub contact: Contact,
    pub created_at: DateTime<Utc>,
}
