//! The passkeys of members.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::id::{PasskeyId, UserId};
use ports::{
    StoreError,
    account_store::CodeHash,
    passkeys::{MAX_PASSKEYS, PasskeyStore, StoredPasskey},
};

use super::AccountState;
use crate::MemoryStore;

impl AccountState {
    fn add_passkey(
        &mut self,
        passkey: &StoredPasskey,
        recovery: Option<&[CodeHash]>,
    ) -> Result<bool, StoreError> {
        let known = self.passkey_count(passkey.user);
        let Some(record) = self.users.get_mut(&passkey.user) else { return Ok(false) };
        // Recovery codes come only with the first factor; whether it is one is decided here.
        let has_factor = known > 0 || record.totp.is_some();
        let mut others = self.passkeys.values();
        let is_taken = others.any(|other| other.credential.id == passkey.credential.id);
        if has_factor != recovery.is_none() || known >= MAX_PASSKEYS || is_taken {
            return Ok(false);
        }
        if self.passkeys.contains_key(&passkey.id) {
            return Err(StoreError::new("add a passkey", "the passkey exists already"));
        }
        record.recovery.extend_from_slice(recovery.unwrap_or_default());
        self.passkeys.insert(passkey.id, passkey.clone());
        Ok(true)
    }

    fn remove_passkey(&mut self, user: UserId, id: PasskeyId) -> bool {
        if self.passkeys.get(&id).is_none_or(|passkey| passkey.user != user) {
            return false;
        }
        self.passkeys.remove(&id);
        let is_last = self.passkey_count(user) == 0;
        let without = self.users.get_mut(&user).filter(|record| record.totp.is_none() && is_last);
        if let Some(record) = without {
            record.recovery.clear();
        }
        true
    }
}

#[async_trait]
impl PasskeyStore for MemoryStore {
    async fn add_passkey(
        &self,
        passkey: &StoredPasskey,
        recovery: Option<&[CodeHash]>,
    ) -> Result<bool, StoreError> {
        self.state().accounts.add_passkey(passkey, recovery)
    }

    async fn passkeys(&self, user: UserId) -> Result<Vec<StoredPasskey>, StoreError> {
        let accounts = &self.state().accounts;
        let theirs = accounts.passkeys.values().filter(|passkey| passkey.user == user);
        let mut passkeys: Vec<_> = theirs.cloned().collect();
        passkeys.sort_by_key(|passkey| (passkey.created_at, passkey.id));
        Ok(passkeys)
    }

    async fn use_passkey(
        &self,
        id: PasskeyId,
        (old, new): (&[u8], &[u8]),
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let accounts = &mut self.state().accounts;
        let passkey = accounts.passkeys.get_mut(&id);
        let Some(passkey) = passkey.filter(|passkey| passkey.credential.state == old) else {
            return Ok(false);
        };
        passkey.credential.state = new.to_vec();
        passkey.used_at = Some(now);
        Ok(true)
    }

    async fn remove_passkey(&self, user: UserId, id: PasskeyId) -> Result<bool, StoreError> {
        Ok(self.state().accounts.remove_passkey(user, id))
    }
}
