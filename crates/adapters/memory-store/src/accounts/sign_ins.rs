//! Sign-ins to the portal.

use std::cmp::Reverse;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::id::{SignInId, UserId};
use ports::{
    StoreError,
    account_store::{CodeHash, HeldForms, SignIn, SignInStore, StoredUser, TeamMembership},
};

use super::AccountState;
use crate::{MemoryStore, State};

/// The precision of the time of last use.
const SEEN_PRECISION: TimeDelta = TimeDelta::minutes(1);

/// A sign-in with its token.
pub(super) struct SignInRecord {
    pub(super) sign_in: SignIn,
    token: CodeHash,
    /// A form that waits for re-authentication.
    form: Option<Vec<u8>>,
}

impl SignInRecord {
    fn is_live(&self, idle: TimeDelta, now: DateTime<Utc>) -> bool {
        self.sign_in.expires_at > now && self.sign_in.seen_at > now - idle
    }
}

impl AccountState {
    fn by_token(&mut self, token: &CodeHash) -> Option<&mut SignInRecord> {
        self.sign_ins.values_mut().find(|record| record.token == *token)
    }

    /// Gives the sign-in with the token `old` the token `new` and returns it. Returns `None`, and
    /// changes nothing, if there is no such sign-in or `may` rejects it.
    fn exchange_token(
        &mut self,
        (old, new): (&CodeHash, &CodeHash),
        action: &'static str,
        may: impl Fn(&SignIn) -> bool,
    ) -> Result<Option<&mut SignIn>, StoreError> {
        let is_taken = old != new && self.by_token(new).is_some();
        let record = self.by_token(old).filter(|record| may(&record.sign_in));
        let Some(record) = record else { return Ok(None) };
        if is_taken {
            return Err(StoreError::new(action, "another sign-in has this token"));
        }
        record.token = new.clone();
        Ok(Some(&mut record.sign_in))
    }

    /// Removes the sign-ins that match and returns how many.
    fn end(&mut self, matches: impl Fn(&SignIn) -> bool) -> usize {
        let known = self.sign_ins.len();
        self.sign_ins.retain(|_, record| !matches(&record.sign_in));
        known.saturating_sub(self.sign_ins.len())
    }
}

impl State {
    fn sign_in(
        &mut self,
        token: &CodeHash,
        idle: TimeDelta,
        now: DateTime<Utc>,
    ) -> Option<(SignIn, StoredUser, TeamMembership)> {
        let record = self.accounts.by_token(token).filter(|record| record.is_live(idle, now))?;
        let sign_in = record.sign_in.clone();
        if now - sign_in.seen_at >= SEEN_PRECISION {
            record.sign_in.seen_at = now;
        }
        let kept = self.accounts.kept_of(sign_in.user)?;
        let team = self.teams.team(kept.user.team)?;
        let home = TeamMembership {
            name: team.name.clone(),
            needs_second_factor: team.needs_second_factor,
        };
        Some((sign_in, kept, home))
    }
}

#[async_trait]
impl SignInStore for MemoryStore {
    async fn add_sign_in(&self, sign_in: &SignIn, token: &CodeHash) -> Result<(), StoreError> {
        const ACTION: &str = "add a sign-in";
        let accounts = &mut self.state().accounts;
        accounts.require(sign_in.user, ACTION)?;
        if accounts.sign_ins.contains_key(&sign_in.id) || accounts.by_token(token).is_some() {
            return Err(StoreError::new(ACTION, "the sign-in exists already"));
        }
        let record = SignInRecord { sign_in: sign_in.clone(), token: token.clone(), form: None };
        accounts.sign_ins.insert(sign_in.id, record);
        Ok(())
    }

    async fn sign_in(
        &self,
        token: &CodeHash,
        idle: TimeDelta,
        now: DateTime<Utc>,
    ) -> Result<Option<(SignIn, StoredUser, TeamMembership)>, StoreError> {
        Ok(self.state().sign_in(token, idle, now))
    }

    async fn mark_second_factor_verified(
        &self,
        old: &CodeHash,
        new: &CodeHash,
        until: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let accounts = &mut self.state().accounts;
        let passed = accounts.exchange_token((old, new), "pass a sign-in", |_| true)?;
        let Some(sign_in) = passed else { return Ok(false) };
        sign_in.passed = true;
        sign_in.expires_at = until;
        Ok(true)
    }

    async fn confirm_sign_in(
        &self,
        old: &CodeHash,
        new: &CodeHash,
        at: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let accounts = &mut self.state().accounts;
        let passed = |sign_in: &SignIn| sign_in.passed;
        let confirmed = accounts.exchange_token((old, new), "confirm a sign-in", passed)?;
        let Some(sign_in) = confirmed else { return Ok(false) };
        sign_in.confirmed_at = Some(at);
        Ok(true)
    }

    async fn sign_ins(
        &self,
        user: UserId,
        idle: TimeDelta,
        now: DateTime<Utc>,
    ) -> Result<Vec<SignIn>, StoreError> {
        let accounts = &self.state().accounts;
        let live = accounts.sign_ins.values().filter(|record| record.is_live(idle, now));
        let theirs = live.map(|record| &record.sign_in).filter(|sign_in| sign_in.user == user);
        let mut sign_ins: Vec<_> = theirs.cloned().collect();
        sign_ins.sort_by_key(|sign_in| Reverse((sign_in.created_at, sign_in.id)));
        Ok(sign_ins)
    }

    async fn end_sign_in(&self, user: UserId, id: SignInId) -> Result<bool, StoreError> {
        let accounts = &mut self.state().accounts;
        Ok(accounts.end(|sign_in| sign_in.user == user && sign_in.id == id) > 0)
    }

    async fn end_other_sign_ins(
        &self,
        user: UserId,
        but: Option<SignInId>,
    ) -> Result<usize, StoreError> {
        let accounts = &mut self.state().accounts;
        Ok(accounts.end(|sign_in| sign_in.user == user && Some(sign_in.id) != but))
    }

    async fn delete_expired_sign_ins(&self, now: DateTime<Utc>) -> Result<usize, StoreError> {
        Ok(self.state().accounts.end(|sign_in| sign_in.expires_at <= now))
    }
}

#[async_trait]
impl HeldForms for MemoryStore {
    async fn hold_form(&self, id: SignInId, sealed: &[u8]) -> Result<(), StoreError> {
        if let Some(record) = self.state().accounts.sign_ins.get_mut(&id) {
            record.form = Some(sealed.to_vec());
        }
        Ok(())
    }

    async fn held_form(&self, id: SignInId) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.state().accounts.sign_ins.get(&id).and_then(|record| record.form.clone()))
    }

    async fn drop_form(&self, id: SignInId, sealed: &[u8]) -> Result<bool, StoreError> {
        let accounts = &mut self.state().accounts;
        let held = accounts.sign_ins.get_mut(&id);
        let held = held.filter(|record| record.form.as_deref() == Some(sealed));
        let Some(record) = held else { return Ok(false) };
        record.form = None;
        Ok(true)
    }
}
