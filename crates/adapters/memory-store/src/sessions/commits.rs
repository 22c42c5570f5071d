//! Saving a new or changed session together with its timeline entry and its effects, in one step.

use chrono::{DateTime, Utc};
use domain::{
    id::{SessionId, TeamId},
    session::{Change, Record, Session, State as SessionState},
    webhook,
};
use ports::{
    StoreError,
    session_store::{CommitError, IdempotencyKey, InsertOutcome, TimelineEntry},
};

use super::{SessionRecord, Sessions};
use crate::{State, deliveries::WebhookBody};

/// An idempotency key under which a session was created.
pub(super) struct UsedKey {
    request: [u8; 32],
    session: SessionId,
    created_at: DateTime<Utc>,
}

impl Sessions {
    /// Returns the answer for a request whose idempotency key was used since the moment it names.
    fn look_up(&self, opening: &Session, once: &IdempotencyKey) -> Option<InsertOutcome> {
        let used = self.used_keys.get(&(opening.owner, once.key.clone()))?;
        if used.created_at < once.since {
            return None;
        }
        if used.request != once.request {
            return Some(InsertOutcome::OtherRequest);
        }
        self.session(used.session).map(|session| InsertOutcome::Before(Box::new(session.clone())))
    }

    pub(super) fn forget_used_keys(&mut self, before: DateTime<Utc>) -> usize {
        let known = self.used_keys.len();
        self.used_keys.retain(|_, used| used.created_at >= before);
        known.saturating_sub(self.used_keys.len())
    }
}

impl State {
    pub(super) fn insert(
        &mut self,
        opening: &Change,
        once: Option<&IdempotencyKey>,
    ) -> Result<InsertOutcome, StoreError> {
        const ACTION: &str = "insert a session";
        let session = &opening.session;
        let team = self.team_of_owner(session, ACTION)?;
        if let Some(before) = once.and_then(|once| self.sessions.look_up(session, once)) {
            return Ok(before);
        }
        if self.sessions.session(session.id).is_some() {
            return Err(StoreError::new(ACTION, "the session exists already"));
        }
        if !self.catalogue.has(session.terms.platform) {
            return Err(StoreError::new(ACTION, "there is no such platform"));
        }
        let record = SessionRecord { session: session.clone(), browser: None, timeline: vec![] };
        self.sessions.records.insert(session.id, record);
        if let Some(once) = once {
            let (request, created_at) = (once.request, session.created_at);
            let used = UsedKey { request, session: session.id, created_at };
            self.sessions.used_keys.insert((session.owner, once.key.clone()), used);
        }
        self.write_effects(opening, team);
        Ok(InsertOutcome::Fresh)
    }

    pub(super) fn commit(
        &mut self,
        change: &Change,
        alive_until: DateTime<Utc>,
    ) -> Result<(), CommitError> {
        let session = &change.session;
        let team = self.team_of_owner(session, "commit a change")?;
        let saved = self.sessions.records.get_mut(&session.id);
        let before = session.version.0.saturating_sub(1);
        let Some(record) = saved.filter(|record| record.session.version.0 == before) else {
            return Err(CommitError::Stale);
        };
        record.session = session.clone();
        record.browser = match session.state.lease() {
            Some(lease) if matches!(session.state, SessionState::Initializing { .. }) => {
                Some((lease.browser, alive_until))
            }
            Some(_) => record.browser,
            None => None,
        };
        self.write_effects(change, team);
        Ok(())
    }

    fn team_of_owner(&self, session: &Session, action: &'static str) -> Result<TeamId, StoreError> {
        let team = self.teams.team_of(session.owner);
        team.ok_or_else(|| StoreError::new(action, "there is no such key"))
    }

    /// Writes the timeline entry and the effects of a change whose session was saved.
    fn write_effects(&mut self, change: &Change, team: TeamId) {
        let session = &change.session;
        if let Some(record) = self.sessions.records.get_mut(&session.id) {
            record.timeline.push(entry(change));
        }
        for job in &change.effects.jobs {
            self.sessions.enqueue_job(session.id, job, change.at);
        }
        for record in &change.effects.records {
            let due = record.due(change.at);
            match record {
                Record::NotifyPartner => self.notify_partner(session, team, due),
                Record::SendLink => {
                    self.notifications.enqueue(&mut self.ids, (session.id, team), 1, due);
                }
                Record::EraseCopies => self.erase_copies(session),
                Record::KeepRecording => self.sessions.enqueue_recording(session.id, due),
            }
        }
    }

    fn notify_partner(&mut self, session: &Session, team: TeamId, at: DateTime<Utc>) {
        if let Some(body) = webhook::payload(session) {
            let message = WebhookBody { session: session.id, body: &body.to_string(), at };
            self.deliveries.enqueue_for_team(&mut self.ids, (team, session.owner), &message);
        }
    }

    fn erase_copies(&mut self, session: &Session) {
        if let Some(body) = webhook::payload(session) {
            self.deliveries.erase(session.id, &body.to_string());
            self.sessions.erase_recording(session.id);
            self.attestations.erase(session.id);
        }
    }
}

fn entry(change: &Change) -> TimelineEntry {
    let code = change.session.state.error_code();
    TimelineEntry {
        at: change.at,
        event: change.event.to_owned(),
        status: change.session.status(),
        error_code: code.map(|code| code.as_str().to_owned()),
        node: change.node.clone(),
        detail: None,
    }
}
