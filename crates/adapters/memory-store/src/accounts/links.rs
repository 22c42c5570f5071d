//! Account links, with which members choose a password, and the queue of their mails.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::id::{AccountLinkId, TeamId};
use ports::{
    StoreError,
    account_links::{AccountLink, AccountLinkStore, MailClaim, Mailed},
    account_store::{PasswordHash, StoredUser},
    notifier::NotificationOutcome,
};

use super::AccountState;
use crate::{
    MemoryStore, State,
    schedule::{Schedule, earliest},
};

/// A link, and the state of its mail.
pub(super) struct LinkRecord {
    pub(super) link: AccountLink,
    mailed: Mailed,
    schedule: Schedule,
}

impl AccountState {
    /// Returns a link unless it has expired.
    fn live_link(&self, id: AccountLinkId, now: DateTime<Utc>) -> Option<AccountLink> {
        let link = self.links.get(&id).map(|record| record.link);
        link.filter(|link| link.expires_at > now)
    }

    fn use_link(&mut self, id: AccountLinkId, password: &PasswordHash, now: DateTime<Utc>) -> bool {
        let Some(link) = self.live_link(id, now) else { return false };
        self.links.remove(&id);
        self.sign_ins.retain(|_, record| record.sign_in.user != link.user);
        self.browsers.retain(|browser| browser.user != link.user);
        if let Some(record) = self.users.get_mut(&link.user) {
            record.password = Some(password.clone());
            record.password_until = None;
        }
        true
    }

    fn settle_mail(&mut self, claim: &MailClaim, verdict: NotificationOutcome) -> bool {
        let record = self.links.get_mut(&claim.link.id);
        let queued = record.filter(|record| record.mailed == Mailed::Queued);
        let Some(record) = queued.filter(|record| record.schedule.attempt == claim.attempt) else {
            return false;
        };
        match verdict {
            NotificationOutcome::Sent { .. } => record.mailed = Mailed::Sent,
            NotificationOutcome::RetryAt(due) => record.schedule.due = due,
            NotificationOutcome::Failed { why, .. } => {
                record.mailed = Mailed::Failed(why.as_str().to_owned());
            }
        }
        true
    }
}

impl State {
    fn claim_mails(
        &mut self,
        (now, lease): (DateTime<Utc>, TimeDelta),
        limit: u16,
    ) -> Vec<MailClaim> {
        let Self { accounts, teams, .. } = self;
        let queued = accounts.links.values().filter(|record| record.mailed == Mailed::Queued);
        let live =
            queued.filter(|record| record.link.expires_at > now && record.schedule.is_due(now));
        let due = earliest(live.map(|record| (record.schedule.due, record.link.id)), limit);
        let claims = due.into_iter().filter_map(|id| {
            let record = accounts.links.get_mut(&id)?;
            let user = accounts.users.get(&record.link.user)?;
            let team = teams.team(user.team)?.name.clone();
            let (link, email, is_taken) = (record.link, user.email.clone(), !user.has_address);
            let attempt = record.schedule.claim(now, lease);
            Some(MailClaim { link, email, is_taken, team, attempt })
        });
        claims.collect()
    }
}

#[async_trait]
impl AccountLinkStore for MemoryStore {
    async fn enqueue_link(&self, link: &AccountLink) -> Result<(), StoreError> {
        const ACTION: &str = "queue an account link";
        let accounts = &mut self.state().accounts;
        accounts.require(link.user, ACTION)?;
        if accounts.links.get(&link.id).is_some_and(|record| record.link.user != link.user) {
            return Err(StoreError::new(ACTION, "the link exists already"));
        }
        accounts.links.retain(|_, record| record.link.user != link.user);
        let (mailed, schedule) = (Mailed::Queued, Schedule::due_at(link.created_at));
        accounts.links.insert(link.id, LinkRecord { link: *link, mailed, schedule });
        Ok(())
    }

    async fn link(
        &self,
        id: AccountLinkId,
        now: DateTime<Utc>,
    ) -> Result<Option<(AccountLink, StoredUser)>, StoreError> {
        let accounts = &self.state().accounts;
        let link = accounts.live_link(id, now);
        Ok(link.and_then(|link| Some((link, accounts.kept_of(link.user)?))))
    }

    async fn use_link(
        &self,
        id: AccountLinkId,
        password: &PasswordHash,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        Ok(self.state().accounts.use_link(id, password, now))
    }

    async fn links(&self, team: TeamId) -> Result<Vec<(AccountLink, Mailed)>, StoreError> {
        let accounts = &self.state().accounts;
        let is_theirs =
            |link: &AccountLink| accounts.users.get(&link.user).is_some_and(|u| u.team == team);
        let theirs = accounts.links.values().filter(|record| is_theirs(&record.link));
        Ok(theirs.map(|record| (record.link, record.mailed.clone())).collect())
    }

    async fn claim_mails(
        &self,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
    ) -> Result<Vec<MailClaim>, StoreError> {
        Ok(self.state().claim_mails((now, lease), limit))
    }

    async fn settle_mail(
        &self,
        claim: &MailClaim,
        verdict: NotificationOutcome,
    ) -> Result<bool, StoreError> {
        Ok(self.state().accounts.settle_mail(claim, verdict))
    }

    async fn delete_expired_links(&self, now: DateTime<Utc>) -> Result<usize, StoreError> {
        let accounts = &mut self.state().accounts;
        let known = accounts.links.len();
        accounts.links.retain(|_, record| record.link.expires_at > now);
        Ok(known.saturating_sub(accounts.links.len()))
    }
}
