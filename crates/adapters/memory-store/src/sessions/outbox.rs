//! The queue of effects.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    id::{InstanceId, SessionId},
    session::Effect,
};
use ports::{
    StoreError,
    outbox::{ClaimOutcome, Outbox, OutboxClaim},
};

use super::Sessions;
use crate::{MemoryStore, jobs::Job};

/// An effect that waits to be carried out.
pub(super) struct OutboxEntry {
    session: SessionId,
    effect: Effect,
    job: Job,
    /// Given up on.
    buried: bool,
}

impl OutboxEntry {
    fn is_for(&self, node: InstanceId) -> bool {
        self.effect.node().is_none_or(|only| only == node)
    }
}

impl Sessions {
    pub(super) fn enqueue_effect(
        &mut self,
        session: SessionId,
        effect: &Effect,
        at: DateTime<Utc>,
    ) {
        self.last_entry = self.last_entry.saturating_add(1);
        let (effect, job) = (effect.clone(), Job::due_at(at));
        self.outbox.insert(self.last_entry, OutboxEntry { session, effect, job, buried: false });
    }

    fn claim_effects(
        &mut self,
        node: InstanceId,
        (now, lease): (DateTime<Utc>, TimeDelta),
        limit: u16,
    ) -> Vec<OutboxClaim> {
        let due = self.outbox.iter_mut().filter(|(_, waiting)| {
            !waiting.buried && waiting.job.is_due(now) && waiting.is_for(node)
        });
        let claims = due.take(limit.into()).map(|(entry, waiting)| OutboxClaim {
            entry: *entry,
            session: waiting.session,
            effect: waiting.effect.clone(),
            attempt: waiting.job.claim(now, lease),
        });
        claims.collect()
    }

    fn settle_effect(&mut self, claim: &OutboxClaim, verdict: ClaimOutcome) -> bool {
        let open = self.outbox.get_mut(&claim.entry).filter(|waiting| !waiting.buried);
        let Some(waiting) = open.filter(|waiting| waiting.job.attempt == claim.attempt) else {
            return false;
        };
        match verdict {
            ClaimOutcome::Done => drop(self.outbox.remove(&claim.entry)),
            ClaimOutcome::RetryAt(due) => waiting.job.due = due,
            ClaimOutcome::Buried => waiting.buried = true,
        }
        true
    }

    fn delete_orphans(&mut self, node: InstanceId, before: DateTime<Utc>) -> usize {
        let known = self.outbox.len();
        self.outbox.retain(|_, waiting| waiting.is_for(node) || waiting.job.due >= before);
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
        Ok(self.state().sessions.claim_effects(node, (now, lease), limit))
    }

    async fn complete(
        &self,
        claim: &OutboxClaim,
        verdict: ClaimOutcome,
    ) -> Result<bool, StoreError> {
        Ok(self.state().sessions.settle_effect(claim, verdict))
    }

    async fn delete_orphans(
        &self,
        node: InstanceId,
        before: DateTime<Utc>,
    ) -> Result<usize, StoreError> {
        Ok(self.state().sessions.delete_orphans(node, before))
    }
}
