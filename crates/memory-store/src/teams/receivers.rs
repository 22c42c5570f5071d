//! The contacts that teams have registered.

use std::cmp::Reverse;

use async_trait::async_trait;
use domain::{
    id::{ReceiverId, TeamId},
    request::Receiver,
};
use ports::{
    StoreError,
    receiver_store::{KeptReceiver, ReceiverStore},
};

use super::Teams;
use crate::MemoryStore;

impl Teams {
    /// Returns a contact of this team; another team's is as good as absent.
    fn receiver(&self, team: TeamId, id: ReceiverId) -> Option<&KeptReceiver> {
        self.receivers.get(&id).filter(|kept| kept.team == team)
    }
}

/// Returns a contact as it is stored, without metadata, which belongs to a session.
fn without_metadata(contact: &Receiver) -> Receiver {
    Receiver { metadata: Receiver::default().metadata, ..contact.clone() }
}

#[async_trait]
impl ReceiverStore for MemoryStore {
    async fn add_receiver(&self, receiver: &KeptReceiver) -> Result<(), StoreError> {
        const ACTION: &str = "add a receiver";
        let teams = &mut self.state().teams;
        teams.require(receiver.team, ACTION)?;
        if teams.receivers.contains_key(&receiver.id) {
            return Err(StoreError::new(ACTION, "the receiver exists already"));
        }
        let contact = without_metadata(&receiver.contact);
        teams.receivers.insert(receiver.id, KeptReceiver { contact, ..receiver.clone() });
        Ok(())
    }

    async fn receivers(&self, team: TeamId) -> Result<Vec<KeptReceiver>, StoreError> {
        let teams = &self.state().teams;
        let theirs = teams.receivers.values().filter(|kept| kept.team == team);
        let mut receivers: Vec<_> = theirs.cloned().collect();
        receivers.sort_by_key(|kept| (Reverse(kept.created_at), kept.id));
        Ok(receivers)
    }

    async fn receiver(
        &self,
        team: TeamId,
        id: ReceiverId,
    ) -> Result<Option<KeptReceiver>, StoreError> {
        Ok(self.state().teams.receiver(team, id).cloned())
    }

    async fn change_receiver(
        &self,
        team: TeamId,
        id: ReceiverId,
        contact: &Receiver,
    ) -> Result<bool, StoreError> {
        let teams = &mut self.state().teams;
        let kept = teams.receivers.get_mut(&id).filter(|kept| kept.team == team);
        let Some(kept) = kept else { return Ok(false) };
        kept.contact = without_metadata(contact);
        Ok(true)
    }

    async fn remove_receiver(&self, team: TeamId, id: ReceiverId) -> Result<bool, StoreError> {
        let teams = &mut self.state().teams;
        if teams.receiver(team, id).is_none() {
            return Ok(false);
        }
        Ok(teams.receivers.remove(&id).is_some())
    }
}
