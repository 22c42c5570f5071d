//! The queue of recordings to be encoded.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::id::SessionId;
use ports::{
    StoreError,
    recording::{RecordingClaim, RecordingOutcome, RecordingQueue, RecordingState},
};

use super::Sessions;
use crate::{
    MemoryStore,
    schedule::{Schedule, earliest},
};

/// The progress of a session's recording.
pub(super) struct RecordingRecord {
    state: RecordingState,
    schedule: Schedule,
}

impl Sessions {
    pub(super) fn enqueue_recording(&mut self, session: SessionId, due: DateTime<Utc>) {
        let record =
            RecordingRecord { state: RecordingState::Pending, schedule: Schedule::due_at(due) };
        self.recordings.insert(session, record);
    }

    pub(super) fn erase_recording(&mut self, session: SessionId) {
        if let Some(record) = self.recordings.get_mut(&session) {
            record.state = RecordingState::Erased;
        }
    }

    fn claim_recordings(
        &mut self,
        (now, lease): (DateTime<Utc>, TimeDelta),
        limit: u16,
    ) -> Vec<RecordingClaim> {
        let due = self.recordings.iter().filter(|(_, record)| {
            let open = matches!(record.state, RecordingState::Pending | RecordingState::InProgress);
            open && record.schedule.is_due(now)
        });
        let due = earliest(due.map(|(session, record)| (record.schedule.due, *session)), limit);
        let claims = due.into_iter().filter_map(|session| {
            let record = self.recordings.get_mut(&session)?;
            record.state = RecordingState::InProgress;
            Some(RecordingClaim { session, attempt: record.schedule.claim(now, lease) })
        });
        claims.collect()
    }

    /// Returns the recording of a claim if the claim is still held.
    fn held(&mut self, claim: &RecordingClaim) -> Option<&mut RecordingRecord> {
        let record = self.recordings.get_mut(&claim.session)?;
        let open = record.state == RecordingState::InProgress;
        (open && record.schedule.attempt == claim.attempt).then_some(record)
    }

    fn complete_recording(&mut self, claim: &RecordingClaim, verdict: RecordingOutcome) -> bool {
        let Some(record) = self.held(claim) else { return false };
        match verdict {
            RecordingOutcome::Kept => record.state = RecordingState::Kept,
            RecordingOutcome::Failed(why) => record.state = RecordingState::Failed(why),
            RecordingOutcome::RetryAt(due) => {
                record.state = RecordingState::Pending;
                record.schedule.due = due;
            }
        }
        true
    }
}

#[async_trait]
impl RecordingQueue for MemoryStore {
    async fn recording(&self, session: SessionId) -> Result<Option<RecordingState>, StoreError> {
        Ok(self.state().sessions.recordings.get(&session).map(|record| record.state.clone()))
    }

    async fn claim_recordings(
        &self,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
    ) -> Result<Vec<RecordingClaim>, StoreError> {
        Ok(self.state().sessions.claim_recordings((now, lease), limit))
    }

    async fn renew_recording(
        &self,
        claim: &RecordingClaim,
        until: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let sessions = &mut self.state().sessions;
        let Some(record) = sessions.held(claim) else { return Ok(false) };
        record.schedule.due = until;
        Ok(true)
    }

    async fn complete_recording(
        &self,
        claim: &RecordingClaim,
        verdict: RecordingOutcome,
    ) -> Result<bool, StoreError> {
        Ok(self.state().sessions.complete_recording(claim, verdict))
    }
}
