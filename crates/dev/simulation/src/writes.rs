//! The rows that the store writes, as `crates/adapters/store` writes them, counted for each table.

use std::collections::BTreeMap;

use domain::{
    session::{Change, Record, State},
    webhook,
};

use crate::numbers::count;

/// A kind of row, with what is done to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Write {
    SessionInserted,
    /// Each transition, with the state encrypted anew.
    SessionUpdated,
    /// The columns `browser` and `alive_until`, in a second statement of a transition's transaction.
    LeaseChanged,
    /// The column `alive_until` alone, every five seconds while a browser runs, and with each question
    /// for a turn.
    LeaseRenewed,
    TimelineInserted,
    JobInserted,
    JobClaimed,
    JobPutOff,
    JobDeleted,
    BodyInserted,
    BodyErased,
    BodyDeleted,
    DeliveryInserted,
    DeliveryExhausted,
    DeliveryDeleted,
    QueueEntryInserted,
    QueueEntryClaimed,
    QueueEntryPutOff,
    QueueEntryDeleted,
    AttemptInserted,
    AttemptErased,
    AttemptDeleted,
    HealthUpdated,
    NotificationInserted,
    NotificationClaimed,
    NotificationSettled,
    RecordingInserted,
    RecordingClaimed,
    RecordingSettled,
    RecordingErased,
    AttestationInserted,
    AttestationDeleted,
    IdempotencyKeyInserted,
    IdempotencyKeyDeleted,
}

impl Write {
    /// Returns the table, and what is done to its row.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SessionInserted => "sessions: insert",
            Self::SessionUpdated => "sessions: update",
            Self::LeaseChanged => "sessions: update the lease",
            Self::LeaseRenewed => "sessions: renew the lease",
            Self::TimelineInserted => "session_events: insert",
            Self::JobInserted => "outbox: insert",
            Self::JobClaimed => "outbox: claim",
            Self::JobPutOff => "outbox: put off",
            Self::JobDeleted => "outbox: delete",
            Self::BodyInserted => "notices: insert",
            Self::BodyErased => "notices: erase",
            Self::BodyDeleted => "notices: delete",
            Self::DeliveryInserted => "deliveries: insert",
            Self::DeliveryExhausted => "deliveries: exhaust",
            Self::DeliveryDeleted => "deliveries: delete",
            Self::QueueEntryInserted => "delivery_queue: insert",
            Self::QueueEntryClaimed => "delivery_queue: claim",
            Self::QueueEntryPutOff => "delivery_queue: put off",
            Self::QueueEntryDeleted => "delivery_queue: delete",
            Self::AttemptInserted => "delivery_attempts: insert",
            Self::AttemptErased => "delivery_attempts: erase",
            Self::AttemptDeleted => "delivery_attempts: delete",
            Self::HealthUpdated => "webhooks: update the health",
            Self::NotificationInserted => "notifications: insert",
            Self::NotificationClaimed => "notifications: claim",
            Self::NotificationSettled => "notifications: settle",
            Self::RecordingInserted => "recordings: insert",
            Self::RecordingClaimed => "recordings: claim",
            Self::RecordingSettled => "recordings: settle",
            Self::RecordingErased => "recordings: erase",
            Self::AttestationInserted => "attestations: insert",
            Self::AttestationDeleted => "attestations: delete",
            Self::IdempotencyKeyInserted => "idempotency_keys: insert",
            Self::IdempotencyKeyDeleted => "idempotency_keys: delete",
        }
    }
}

/// The bytes of the values that sampled sessions wrote, as JSON before it is encrypted, without the
/// overhead of rows, indexes and the database's log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampledBytes {
    pub sessions: u64,
    /// Terms, state and definition version, written by the insert and each update.
    pub session_rows: u64,
    pub bodies: u64,
    pub jobs: u64,
    /// The event's name, status, error code and node.
    pub timeline: u64,
}

/// Counts what the store writes.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    rows: BTreeMap<Write, u64>,
    /// Transactions that save a transition or a creation.
    changes: u64,
    bytes: SampledBytes,
}

impl Writes {
    pub(crate) fn add(&mut self, write: Write, rows: u64) {
        if rows > 0 {
            let counted = self.rows.entry(write).or_default();
            *counted = counted.saturating_add(rows);
        }
    }

    pub(crate) const fn rows(&self) -> &BTreeMap<Write, u64> {
        &self.rows
    }

    pub(crate) const fn changes(&self) -> u64 {
        self.changes
    }

    pub(crate) const fn bytes(&self) -> SampledBytes {
        self.bytes
    }

    /// Counts the creation of a session, as `insert_session` in `store` writes it.
    pub(crate) fn opening(&mut self, opening: &Change) {
        self.add(Write::SessionInserted, 1);
        self.records(opening, 0);
    }

    /// Counts a transition, as `commit_change` in `store` writes it.
    pub(crate) fn transition(&mut self, change: &Change, webhooks: u64) {
        self.add(Write::SessionUpdated, 1);
        let starts = matches!(change.session.state, State::Initializing { .. });
        if starts || change.session.state.lease().is_none() {
            self.add(Write::LeaseChanged, 1);
        }
        self.records(change, webhooks);
    }

    /// Counts the erasure of a session that had deliveries, each with attempts.
    pub(crate) fn erasure(&mut self, change: &Change, (bodies, attempts): (u64, u64)) {
        self.transition(change, 0);
        self.add(Write::BodyErased, bodies);
        self.add(Write::AttemptErased, attempts);
    }

    fn records(&mut self, change: &Change, webhooks: u64) {
        self.changes = self.changes.saturating_add(1);
        self.add(Write::TimelineInserted, 1);
        self.add(Write::JobInserted, count(change.effects.jobs.len()));
        for record in &change.effects.records {
            match record {
                Record::NotifyPartner => {
                    self.add(Write::BodyInserted, webhooks.min(1));
                    self.add(Write::DeliveryInserted, webhooks);
                    self.add(Write::QueueEntryInserted, webhooks);
                }
                Record::SendLink => {
                    self.add(Write::NotificationInserted, 1);
                    self.add(Write::NotificationClaimed, 1);
                    self.add(Write::NotificationSettled, 1);
                }
                Record::KeepRecording => {
                    self.add(Write::RecordingInserted, 1);
                    self.add(Write::RecordingClaimed, 1);
                    self.add(Write::RecordingSettled, 1);
                }
                // Its rows depend on what the session has.
                Record::EraseCopies => (),
            }
        }
    }

    /// Notes that the bytes of one more session are counted.
    pub(crate) fn sample(&mut self) {
        self.bytes.sessions = self.bytes.sessions.saturating_add(1);
    }

    /// Adds the bytes of a change of a sampled session.
    pub(crate) fn sampled_change(&mut self, change: &Change) {
        let length =
            |text: Result<String, serde_json::Error>| count(text.unwrap_or_default().len());
        let session = &change.session;
        let row = [
            length(serde_json::to_string(&session.terms)),
            length(serde_json::to_string(&session.state)),
            session.workflow.as_ref().map_or(0, |version| length(serde_json::to_string(version))),
        ];
        let bytes = &mut self.bytes;
        bytes.session_rows = bytes.session_rows.saturating_add(row.iter().sum());
        let jobs = change.effects.jobs.iter().map(|job| length(serde_json::to_string(job)));
        bytes.jobs = bytes.jobs.saturating_add(jobs.sum());
        let code = session.state.error_code().map_or(0, |code| code.as_str().len());
        let node = change.node.as_ref().map_or(0, String::len);
        let event = [change.event.len(), session.status().as_str().len(), code, node];
        bytes.timeline = bytes.timeline.saturating_add(count(event.iter().sum()));
        if change.effects.records.contains(&Record::NotifyPartner) {
            let body = webhook::payload(session).map_or(0, |body| body.to_string().len());
            bytes.bodies = bytes.bodies.saturating_add(count(body));
        }
    }
}
