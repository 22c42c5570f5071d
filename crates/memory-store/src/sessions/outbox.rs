//! The queue of effects.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    id::{NodeId, SessionId},
    session::Effect,
};
use ports::{
    StoreError,
    outbox::{Claim, Outbox, Verdict},
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
    fn is_for(&self, node: NodeId) -> bool {
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
        node: NodeId,
        (now, lease): (DateTime<Utc>, TimeDelta),
        limit: u16,
    ) -> Vec<Claim> {
        let due = self.outbox.iter_mut().filter(|(_, waiting)| {
            !waiting.buried && waiting.job.is_due(now) && waiting.is_for(node)
        });
        let claims = due.take(limit.into()).map(|(entry, waiting)| Claim {
            entry: *entry,
            session: waiting.session,
            effect: waiting.effect.clone(),
            attempt: waiting.job.claim(now, lease),
        });
        claims.collect()
    }

    fn settle_effect(&mut self, claim: &Claim, verdict: Verdict) -> bool {
        let open = self.outbox.get_mut(&claim.entry).filter(|waiting| !waiting.buried);
        let Some(waiting) = open.filter(|waiting| waiting.job.attempt == claim.attempt) else {
            return false;
        };
        match verdict {
            Verdict::Done => drop(self.outbox.remove(&claim.entry)),
            Verdict::RetryAt(due) => waiting.job.due = due,
            Verdict::Buried => waiting.buried = true,
        }
        true
    }

    fn drop_orphans(&mut self, node: NodeId, before: DateTime<Utc>) -> usize {
        let known = self.outbox.len();
        self.outbox.retain(|_, waiting| waiting.is_for(node) || waiting.job.due >= before);
        known.saturating_sub(self.outbox.len())
    }
}

#[async_trait]
impl Outbox for MemoryStore {
    async fn claim(
        &self,
        node: NodeId,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
    ) -> Result<Vec<Claim>, StoreError> {
        Ok(self.state().sessions.claim_effects(node, (now, lease), limit))
    }

    async fn settle(&self, claim: &Claim, verdict: Verdict) -> Result<bool, StoreError> {
        Ok(self.state().sessions.settle_effect(claim, verdict))
    }

    async fn drop_orphans(&self, node: NodeId, before: DateTime<Utc>) -> Result<usize, StoreError> {
        Ok(self.state().sessions.drop_orphans(node, before))
    }
}
