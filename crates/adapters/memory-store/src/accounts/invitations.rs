//! Invitations to an address that another member already has.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::id::UserId;
use ports::{StoreError, account_store::User, invitations::InvitationStore};

use super::{AccountState, UserRecord};
use crate::MemoryStore;

impl AccountState {
    fn claim_address(&mut self, id: UserId) -> bool {
        let Some(record) = self.users.get(&id) else { return true };
        if self.holder(&record.email).is_some_and(|holder| holder.id != id) {
            return false;
        }
        if let Some(record) = self.users.get_mut(&id) {
            record.has_address = true;
        }
        true
    }
}

#[async_trait]
impl InvitationStore for MemoryStore {
    async fn add_invited(&self, user: &User, now: DateTime<Utc>) -> Result<bool, StoreError> {
        let mut state = self.state();
        state.teams.require(user.team, "invite a person")?;
        let accounts = &mut state.accounts;
        let mut invited = accounts.users.values().filter(|other| !other.has_address);
        let twice = invited.any(|other| other.team == user.team && other.email == user.email);
        if twice || accounts.users.contains_key(&user.id) {
            return Ok(false);
        }
        accounts.users.insert(user.id, UserRecord::new(user, None, false, now));
        Ok(true)
    }

    async fn claim_address(&self, id: UserId) -> Result<bool, StoreError> {
        Ok(self.state().accounts.claim_address(id))
    }
}
