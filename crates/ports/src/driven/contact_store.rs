//! The store of teams' registered contacts.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    id::{ContactId, TeamId},
    request::Contact,
};

use crate::StoreError;

/// Stores the registered contacts of teams. Contacts of another team count as absent.
#[async_trait]
pub trait ContactStore: Send + Sync {
    async fn add_contact(&self, contact: &StoredContact) -> Result<(), StoreError>;

    /// Returns a team's contacts, the newest first.
    async fn contacts(&self, team: TeamId) -> Result<Vec<StoredContact>, StoreError>;

    async fn contact(
        &self,
        team: TeamId,
        id: ContactId,
    ) -> Result<Option<StoredContact>, StoreError>;

    /// Replaces the data of a contact. Returns `false` if it does not exist. Sessions keep the
    /// earlier data.
    async fn change_receiver(
        &self,
        team: TeamId,
        id: ContactId,
        contact: &Contact,
    ) -> Result<bool, StoreError>;

    /// Deletes a contact. Returns `false` if it does not exist. Sessions keep its data.
    async fn remove_contact(&self, team: TeamId, id: ContactId) -> Result<bool, StoreError>;
}

/// A registered contact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredContact {
    pub id: ContactId,
    pub team: TeamId,
    /// The contact data, without metadata, which belongs to a session.
    pub contact: Contact,
    pub created_at: DateTime<Utc>,
}
