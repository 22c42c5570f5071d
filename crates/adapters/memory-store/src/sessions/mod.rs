//! Sessions, and the records that a change of one writes besides it.

mod commits;
mod devices;
mod lists;
mod outbox;
mod recordings;

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    api_key::KeyHash,
    frame_ancestors::FrameAncestor,
    id::{ApiKeyId, BrowserId, SessionId, TeamId},
    request::ListQuery,
    session::{Change, Session, Status},
};
use ports::{
    StoreError,
    session_store::{
        ActivityPeriod, BrowserLeases, ClosedSession, CommitError, DueReason, IdempotencyKey,
        InsertOutcome, PolledRecord, SessionActivity, SessionCursor, SessionFilter, SessionQueries,
        SessionRetention, SessionStore, SessionSummary, TeamSessionPage, TeamSessionQueries,
        TimelineEntry,
    },
};

use self::{commits::UsedKey, devices::Devices, outbox::OutboxEntry, recordings::RecordingRecord};
use crate::{MemoryStore, State, schedule::earliest};

/// The records of all sessions.
#[derive(Default)]
pub(crate) struct Sessions {
    records: BTreeMap<SessionId, SessionRecord>,
    used_keys: BTreeMap<(ApiKeyId, String), UsedKey>,
    outbox: BTreeMap<i64, OutboxEntry>,
    /// The greatest number of an outbox entry so far; a number is not used twice.
    last_entry: i64,
    recordings: BTreeMap<SessionId, RecordingRecord>,
    devices: Devices,
}

struct SessionRecord {
    session: Session,
    /// The browser that is starting or running, and when its lease expires.
    browser: Option<(BrowserId, DateTime<Utc>)>,
    /// One entry for each version, in their order.
    timeline: Vec<TimelineEntry>,
}

impl Sessions {
    pub(crate) fn session(&self, id: SessionId) -> Option<&Session> {
        self.records.get(&id).map(|record| &record.session)
    }

    pub(crate) fn owner(&self, id: SessionId) -> Option<ApiKeyId> {
        self.session(id).map(|session| session.owner)
    }

    pub(crate) fn is_open(&self, id: SessionId) -> bool {
        self.session(id).is_some_and(|session| session.closed_at.is_none())
    }

    fn owned(&self, owner: ApiKeyId, id: SessionId) -> Option<&SessionRecord> {
        self.records.get(&id).filter(|record| record.session.owner == owner)
    }

    fn all(&self) -> impl Iterator<Item = &Session> {
        self.records.values().map(|record| &record.session)
    }

    fn find_unerased(
        &self,
        before: DateTime<Utc>,
        after: Option<ClosedSession>,
        limit: u16,
    ) -> Vec<ClosedSession> {
        let kept = self.all().filter(|session| session.erased_at.is_none());
        let closed = kept.filter_map(|session| {
            session.closed_at.map(|closed_at| ClosedSession { closed_at, id: session.id })
        });
        let found = closed.filter(|closed| closed.closed_at < before && Some(*closed) > after);
        let found: BTreeSet<_> = found.collect();
        found.into_iter().take(limit.into()).collect()
    }

    fn find_deletable(&self, before: DateTime<Utc>, limit: u16) -> Vec<SessionId> {
        let erased = self.all().filter(|session| session.erased_at.is_some());
        let idle = erased.filter(|session| !self.has_jobs(session.id));
        let old = idle.filter(|session| session.created_at < before);
        old.map(|session| session.id).take(limit.into()).collect()
    }

    fn delete(&mut self, id: SessionId) {
        self.records.remove(&id);
        self.recordings.remove(&id);
        self.devices.delete_of(id);
    }

    fn renew(&mut self, id: SessionId, browser: BrowserId, until: DateTime<Utc>) -> bool {
        let held = self.records.get_mut(&id).and_then(|record| record.browser.as_mut());
        let Some((_, alive_until)) = held.filter(|(held, _)| *held == browser) else {
            return false;
        };
        *alive_until = until;
        true
    }

    /// Returns up to `limit` of the sessions that are due, the expired ones first.
    fn due(&self, now: DateTime<Utc>, limit: u16) -> Vec<(Session, DueReason)> {
        let open = self.all().filter(|session| session.closed_at.is_none());
        let expired = open.filter(|session| session.expires_at <= now);
        let expired = earliest(expired.map(|session| (session.expires_at, session.id)), limit);
        let browsers = self.records.iter().filter_map(|(id, record)| {
            record.browser.map(|(browser, until)| (until, (*id, browser)))
        });
        let lapsed = earliest(browsers.filter(|(until, _)| *until <= now), limit);
        let expired = expired.into_iter().map(|id| (id, DueReason::Expired));
        let lapsed =
            lapsed.into_iter().map(|(id, browser)| (id, DueReason::BrowserLapsed(browser)));
        let due = expired.chain(lapsed).take(limit.into());
        due.filter_map(|(id, due)| Some((self.session(id)?.clone(), due))).collect()
    }
}

impl State {
    /// Returns the team whose key a session was created with.
    pub(crate) fn team_of_session(&self, id: SessionId) -> Option<TeamId> {
        self.teams.team_of(self.sessions.owner(id)?)
    }

    fn delete_erased_sessions(&mut self, before: DateTime<Utc>, limit: u16) -> usize {
        let old = self.sessions.find_deletable(before, limit);
        for id in &old {
            self.sessions.delete(*id);
            self.notifications.delete_of(*id);
            self.attestations.erase(*id);
        }
        old.len()
    }

    fn poll(&self, key: &KeyHash, id: SessionId) -> Option<PolledRecord> {
        let key = self.teams.key_by_hash(key)?;
        let session = self.sessions.owned(key.id, id).map(|record| record.session.clone());
        let found = session.map(|session| {
            let card = self.catalogue.card(session.terms.platform);
            (session, card)
        });
        Some((key.clone(), found))
    }
}

#[async_trait]
impl SessionStore for MemoryStore {
    async fn insert(
        &self,
        opening: &Change,
        once: Option<&IdempotencyKey>,
    ) -> Result<InsertOutcome, StoreError> {
        self.state().insert(opening, once)
    }

    async fn find_unscoped(&self, id: SessionId) -> Result<Option<Session>, StoreError> {
        Ok(self.state().sessions.session(id).cloned())
    }

    async fn frame_ancestors_of(&self, id: SessionId) -> Result<Vec<FrameAncestor>, StoreError> {
        let state = self.state();
        let team = state.team_of_session(id);
        Ok(team.map(|team| state.teams.ancestors(team)).unwrap_or_default())
    }

    async fn commit(&self, change: &Change, alive_until: DateTime<Utc>) -> Result<(), CommitError> {
        self.state().commit(change, alive_until)
    }
}

#[async_trait]
impl SessionQueries for MemoryStore {
    async fn poll(&self, key: &KeyHash, id: SessionId) -> Result<Option<PolledRecord>, StoreError> {
        Ok(self.state().poll(key, id))
    }

    async fn find(&self, owner: ApiKeyId, id: SessionId) -> Result<Option<Session>, StoreError> {
        Ok(self.state().sessions.owned(owner, id).map(|record| record.session.clone()))
    }

    async fn list(
        &self,
        owner: ApiKeyId,
        query: ListQuery,
    ) -> Result<(Vec<SessionSummary>, i64), StoreError> {
        Ok(self.state().sessions.list(owner, query))
    }

    async fn timeline(
        &self,
        owner: ApiKeyId,
        id: SessionId,
    ) -> Result<Option<Vec<TimelineEntry>>, StoreError> {
        Ok(self.state().timeline(owner, id))
    }
}

#[async_trait]
impl TeamSessionQueries for MemoryStore {
    async fn team_sessions(
        &self,
        team: TeamId,
        filter: &SessionFilter,
        after: Option<SessionCursor>,
        limit: u16,
    ) -> Result<TeamSessionPage, StoreError> {
        Ok(self.state().team_sessions(team, filter, after, limit))
    }

    async fn team_activity(
        &self,
        team: TeamId,
        period: ActivityPeriod,
        limit: u16,
    ) -> Result<Vec<SessionActivity>, StoreError> {
        Ok(self.state().team_activity(team, period, limit))
    }

    async fn team_statuses(
        &self,
        team: TeamId,
        period: ActivityPeriod,
        limit: u16,
    ) -> Result<Vec<(Status, usize)>, StoreError> {
        Ok(self.state().team_statuses(team, period, limit))
    }
}

#[async_trait]
impl BrowserLeases for MemoryStore {
    async fn renew(
        &self,
        id: SessionId,
        browser: BrowserId,
        alive_until: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        Ok(self.state().sessions.renew(id, browser, alive_until))
    }

    async fn find_due(
        &self,
        now: DateTime<Utc>,
        limit: u16,
    ) -> Result<Vec<(Session, DueReason)>, StoreError> {
        Ok(self.state().sessions.due(now, limit))
    }
}

#[async_trait]
impl SessionRetention for MemoryStore {
    async fn find_unerased(
        &self,
        before: DateTime<Utc>,
        after: Option<ClosedSession>,
        limit: u16,
    ) -> Result<Vec<ClosedSession>, StoreError> {
        Ok(self.state().sessions.find_unerased(before, after, limit))
    }

    async fn delete_erased_sessions(
        &self,
        before: DateTime<Utc>,
        limit: u16,
    ) -> Result<usize, StoreError> {
        Ok(self.state().delete_erased_sessions(before, limit))
    }

    async fn delete_idempotency_keys(&self, before: DateTime<Utc>) -> Result<usize, StoreError> {
        Ok(self.state().sessions.forget_used_keys(before))
    }
}
