//! The outbox: the queue of jobs.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    id::{InstanceId, SessionId},
    session::Job,
};
use ports::{
    StoreError,
    outbox::{ClaimOutcome, Outbox, OutboxClaim},
};

use super::Sessions;
use crate::{MemoryStore, schedule::Schedule};

/// A job that waits to be carried out.
pub(super) struct OutboxEntry {
    session: SessionId,
    job: Job,
    schedule: Schedule,
    /// Given up on.
    buried: bool,
}

impl OutboxEntry {
    fn is_for(&self, node: InstanceId) -> bool {
        self.job.node().is_none_or(|only| only == node)
    }
}

impl Sessions {
    pub(super) fn enqueue_job(&mut self, session: SessionId, job: &Job, at: DateTime<Utc>) {
        self.last_entry = self.last_entry.saturating_add(1);
        let (job, schedule) = (job.clone(), Schedule::due_at(at));
        self.outbox.insert(self.last_entry, OutboxEntry { session, job, schedule, buried: false });
    }

    pub(super) fn has_jobs(&self, session: SessionId) -> bool {
        self.outbox.values().any(|waiting| waiting.session == session)
    }

    fn claim_jobs(
        &mut self,
        node: InstanceId,
        (now, lease): (DateTime<Utc>, TimeDelta),
        limit: u16,
    ) -> Vec<OutboxClaim> {
        let due = self.outbox.iter_mut().filter(|(_, waiting)| {
            !waiting.buried && waiting.schedule.is_due(now) && waiting.is_for(node)
        });
        let claims = due.take(limit.into()).map(|(entry, waiting)| OutboxClaim {
            entry: *entry,
            session: waiting.session,
            job: waiting.job.clone(),
            attempt: waiting.schedule.claim(now, lease),
        });
        claims.collect()
    }

    fn complete_job(&mut self, claim: &OutboxClaim, outcome: ClaimOutcome) -> bool {
        let open = self.outbox.get_mut(&claim.entry).filter(|waiting| !waiting.buried);
        let Some(waiting) = open.filter(|waiting| waiting.schedule.attempt == claim.attempt) else {
            return false;
        };
        match outcome {
            ClaimOutcome::Done => drop(self.outbox.remove(&claim.entry)),
            ClaimOutcome::RetryAt(due) => waiting.schedule.due = due,
            ClaimOutcome::Buried => waiting.buried = true,
        }
        true
    }

    fn delete_orphans(&mut self, node: InstanceId, before: DateTime<Utc>) -> usize {
        let known = self.outbox.len();
        self.outbox.retain(|_, waiting| waiting.is_for(node) || waiting.schedule.due >= before);
        known.saturating_sub(self.outbox.len())
    }
}

#[async_trait]
impl Outbox for MemoryStore {
    async fn claim(
        &self,
        node: InstanceId,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
    ) -> Result<Vec<OutboxClaim>, StoreError> {
        Ok(self.state().sessions.claim_jobs(node, (now, lease), limit))
    }

    async fn complete(
        &self,
        claim: &OutboxClaim,
        outcome: ClaimOutcome,
    ) -> Result<bool, StoreError> {
        Ok(self.state().sessions.complete_job(claim, outcome))
    }

    async fn delete_orphans(
        &self,
        node: InstanceId,
        before: DateTime<Utc>,
    ) -> Result<usize, StoreError> {
        Ok(self.state().sessions.delete_orphans(node, before))
    }
}
