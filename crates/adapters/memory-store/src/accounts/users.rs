//! Portal users, each in one team.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    account::{Email, Permission, Role},
    id::{TeamId, UserId},
};
use ports::{
    Reencrypted, StoreError,
    account_store::{
        CodeHash, MembershipChange, NewPassword, ProviderSubjects, SecondFactor, SecondFactors,
        StoredUser, TeamMembers, User, UserStore,
    },
};

use super::{AccountState, UserRecord};
use crate::{MemoryStore, resealed};

impl AccountState {
    fn bind(&mut self, id: UserId, before: Option<&str>, subject: &str) -> bool {
        let mut others = self.users.values().filter(|record| record.id != id);
        if others.any(|record| record.subject.as_deref() == Some(subject)) {
            return false;
        }
        let record = self.users.get_mut(&id);
        let Some(record) = record.filter(|record| record.subject.as_deref() == before) else {
            return false;
        };
        record.subject = Some(subject.to_owned());
        true
    }

    /// Returns whether a member of a team may change, where `governs` says whether they govern it
    /// afterwards: a member who governs the team and has a password has to remain.
    fn may_change(&self, team: TeamId, id: UserId, governs: bool) -> MembershipChange {
        if self.users.get(&id).is_none_or(|record| record.team != team) {
            return MembershipChange::Nobody;
        }
        let mut others = self.users.values().filter(|other| other.team == team && other.id != id);
        let remains =
            governs || others.any(|o| o.role.may(Permission::ManageTeam) && o.password.is_some());
        if remains { MembershipChange::Done } else { MembershipChange::Last }
    }

    fn set_factor(&mut self, id: UserId, factor: Option<&SecondFactor>) -> Result<(), StoreError> {
        let has_passkey = self.passkey_count(id) > 0;
        let Some(record) = self.users.get_mut(&id) else {
            return factor.map_or(Ok(()), |_| self.require(id, "set a second factor"));
        };
        record.totp = factor.map(|factor| factor.totp.clone());
        record.totp_step = factor.map_or(0, |factor| factor.step);
        match factor {
            Some(factor) => factor.recovery.clone_into(&mut record.recovery),
            // Recovery codes are kept if a passkey remains.
            None if has_passkey => (),
            None => record.recovery.clear(),
        }
        Ok(())
    }

    fn use_step(&mut self, id: UserId, step: i64) -> bool {
        let record = self.users.get_mut(&id).filter(|record| record.totp_step < step);
        let Some(record) = record else { return false };
        record.totp_step = step;
        true
    }

    fn use_recovery(&mut self, id: UserId, code: &CodeHash) -> bool {
        let Some(record) = self.users.get_mut(&id) else { return false };
        let known = record.recovery.len();
        record.recovery.retain(|other| other != code);
        record.recovery.len() < known
    }
}

#[async_trait]
impl UserStore for MemoryStore {
    async fn add_user(
        &self,
        user: &User,
        password: Option<&NewPassword>,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        const ACTION: &str = "add a person";
        let mut state = self.state();
        state.teams.require(user.team, ACTION)?;
        let accounts = &mut state.accounts;
        if accounts.holder(&user.email).is_some() {
            return Ok(false);
        }
        if accounts.users.contains_key(&user.id) {
            return Err(StoreError::new(ACTION, "the person exists already"));
        }
        accounts.users.insert(user.id, UserRecord::new(user, password, true, now));
        Ok(true)
    }

    async fn user_by_email(&self, email: &Email) -> Result<Option<StoredUser>, StoreError> {
        let accounts = &self.state().accounts;
        Ok(accounts.holder(email).map(|record| accounts.kept(record)))
    }

    async fn user(&self, id: UserId) -> Result<Option<StoredUser>, StoreError> {
        Ok(self.state().accounts.kept_of(id))
    }

    async fn set_password(&self, id: UserId, password: &NewPassword) -> Result<(), StoreError> {
        let accounts = &mut self.state().accounts;
        accounts.links.retain(|_, record| record.link.user != id);
        if let Some(record) = accounts.users.get_mut(&id) {
            record.password = Some(password.hash.clone());
            record.password_until = password.until;
        }
        Ok(())
    }

    async fn reencrypt_users(
        &self,
        after: Option<UserId>,
        limit: u16,
    ) -> Result<Reencrypted<UserId>, StoreError> {
        let accounts = &self.state().accounts;
        let with_secret = accounts.users.values().filter(|record| record.totp.is_some());
        Ok(resealed(with_secret.map(|record| record.id), after, limit))
    }
}

#[async_trait]
impl ProviderSubjects for MemoryStore {
    async fn user_by_subject(&self, subject: &str) -> Result<Option<StoredUser>, StoreError> {
        let accounts = &self.state().accounts;
        let mut all = accounts.users.values();
        let known = all.find(|record| record.subject.as_deref() == Some(subject));
        Ok(known.map(|record| accounts.kept(record)))
    }

    async fn bind_subject(
        &self,
        id: UserId,
        before: Option<&str>,
        subject: &str,
    ) -> Result<bool, StoreError> {
        Ok(self.state().accounts.bind(id, before, subject))
    }
}

#[async_trait]
impl TeamMembers for MemoryStore {
    async fn users(&self, team: TeamId) -> Result<Vec<User>, StoreError> {
        let accounts = &self.state().accounts;
        let theirs = accounts.users.values().filter(|record| record.team == team);
        let mut users: Vec<_> = theirs.map(|record| accounts.user(record)).collect();
        users.sort_by(|a, b| (a.email.as_str(), a.id).cmp(&(b.email.as_str(), b.id)));
        Ok(users)
    }

    async fn set_role(
        &self,
        team: TeamId,
        id: UserId,
        role: Role,
    ) -> Result<MembershipChange, StoreError> {
        let accounts = &mut self.state().accounts;
        let change = accounts.may_change(team, id, role.may(Permission::ManageTeam));
        if let (MembershipChange::Done, Some(record)) = (change, accounts.users.get_mut(&id)) {
            record.role = role;
        }
        Ok(change)
    }

    async fn remove_user(&self, team: TeamId, id: UserId) -> Result<MembershipChange, StoreError> {
        let accounts = &mut self.state().accounts;
        let change = accounts.may_change(team, id, false);
        if change == MembershipChange::Done {
            accounts.remove(id);
        }
        Ok(change)
    }

    async fn require_second_factor(&self, team: TeamId, required: bool) -> Result<(), StoreError> {
        if let Some(team) = self.state().teams.team_mut(team) {
            team.needs_second_factor = required;
        }
        Ok(())
    }

    async fn requires_second_factor(&self, team: TeamId) -> Result<bool, StoreError> {
        Ok(self.state().teams.team(team).is_some_and(|team| team.needs_second_factor))
    }
}

#[async_trait]
impl SecondFactors for MemoryStore {
    async fn set_second_factor(
        &self,
        id: UserId,
        factor: Option<&SecondFactor>,
    ) -> Result<(), StoreError> {
        self.state().accounts.set_factor(id, factor)
    }

    async fn use_step(&self, id: UserId, step: i64) -> Result<bool, StoreError> {
        Ok(self.state().accounts.use_step(id, step))
    }

    async fn use_recovery(&self, id: UserId, code: &CodeHash) -> Result<bool, StoreError> {
        Ok(self.state().accounts.use_recovery(id, code))
    }
}
