//! The registered contacts of teams.

use std::cmp::Reverse;

use async_trait::async_trait;
use domain::{
    id::{ContactId, TeamId},
    request::Contact,
};
use ports::{
    StoreError,
    contact_store::{ContactStore, StoredContact},
};

use super::Teams;
use crate::MemoryStore;

impl Teams {
    /// Returns a contact of this team; one of another team counts as absent.
    fn contact(&self, team: TeamId, id: ContactId) -> Option<&StoredContact> {
        self.contacts.get(&id).filter(|kept| kept.team == team)
    }
}

/// Returns a contact as it is stored, without metadata, which belongs to a session.
fn without_metadata(contact: &Contact) -> Contact {
    Contact { metadata: Contact::default().metadata, ..contact.clone() }
}

#[async_trait]
impl ContactStore for MemoryStore {
    async fn add_contact(&self, stored: &StoredContact) -> Result<(), StoreError> {
        const ACTION: &str = "add a contact";
        let teams = &mut self.state().teams;
        teams.require(stored.team, ACTION)?;
        if teams.contacts.contains_key(&stored.id) {
            return Err(StoreError::new(ACTION, "the contact exists already"));
        }
        let contact = without_metadata(&stored.contact);
        teams.contacts.insert(stored.id, StoredContact { contact, ..stored.clone() });
        Ok(())
    }

    async fn contacts(&self, team: TeamId) -> Result<Vec<StoredContact>, StoreError> {
        let teams = &self.state().teams;
        let theirs = teams.contacts.values().filter(|kept| kept.team == team);
        let mut contacts: Vec<_> = theirs.cloned().collect();
        contacts.sort_by_key(|kept| (Reverse(kept.created_at), kept.id));
        Ok(contacts)
    }

    async fn contact(
        &self,
        team: TeamId,
        id: ContactId,
    ) -> Result<Option<StoredContact>, StoreError> {
        Ok(self.state().teams.contact(team, id).cloned())
    }

    async fn change_receiver(
        &self,
        team: TeamId,
        id: ContactId,
        contact: &Contact,
    ) -> Result<bool, StoreError> {
        let teams = &mut self.state().teams;
        let kept = teams.contacts.get_mut(&id).filter(|kept| kept.team == team);
        let Some(kept) = kept else { return Ok(false) };
        kept.contact = without_metadata(contact);
        Ok(true)
    }

    async fn remove_contact(&self, team: TeamId, id: ContactId) -> Result<bool, StoreError> {
        let teams = &mut self.state().teams;
        if teams.contact(team, id).is_none() {
            return Ok(false);
        }
        Ok(teams.contacts.remove(&id).is_some())
    }
}
