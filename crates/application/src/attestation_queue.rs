//! Turns at attestations: each takes gigabytes and seconds, so that a process makes a few at once,
//! and teams take turns.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use domain::{
    fairness::{Quotas, Tenant, Turn, TurnQueue},
    id::SessionId,
};
use ports::{
    attestor::{AttestError, AttestationOrder, Attested, Attestor, OnProgress},
    clock::Clock,
};
use tokio::{sync::Notify, time::Instant};

/// Those who wait ask so often though nothing has ended: sooner than they would lose their place.
const TURN_POLL_INTERVAL: Duration = Duration::from_secs(3);
/// How long a session waits for its turn.
const TURN_TIMEOUT: Duration = Duration::from_secs(20 * 60);

/// An attestor that is asked by each team in its turn.
pub struct FairAttestor {
    attestor: Arc<dyn Attestor>,
    queue: Mutex<TurnQueue<SessionId>>,
    /// Told when a turn has ended.
    ended: Notify,
    clock: Arc<dyn Clock>,
}

/// A session's turn, or its place among those who wait; given back when it is dropped.
struct HeldTurn<'a> {
    of: &'a FairAttestor,
    session: SessionId,
}

impl Drop for HeldTurn<'_> {
    fn drop(&mut self) {
        self.of.queue().ended(self.session);
        self.of.ended.notify_waiters();
    }
}

impl FairAttestor {
    pub fn new(attestor: Arc<dyn Attestor>, quotas: Quotas, clock: Arc<dyn Clock>) -> Self {
        let queue = Mutex::new(TurnQueue::new(quotas));
        Self { attestor, queue, ended: Notify::new(), clock }
    }

    fn queue(&self) -> MutexGuard<'_, TurnQueue<SessionId>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn turn(&self, session: SessionId, tenant: Tenant) -> Result<HeldTurn<'_>, AttestError> {
        let (held, began) = (HeldTurn { of: self, session }, Instant::now());
        while began.elapsed() < TURN_TIMEOUT {
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            match self.queue().ask(session, tenant, self.clock.now()) {
                Turn::Now => return Ok(held),
                Turn::Full => return Err(AttestError::Busy("too many wait for a proof".into())),
                Turn::Wait { .. } => (),
            }
            let _ = tokio::time::timeout(TURN_POLL_INTERVAL, ended).await;
        }
        Err(AttestError::TimedOut)
    }
}

#[async_trait]
impl Attestor for FairAttestor {
    async fn attest(
        &self,
        order: AttestationOrder,
        reached: OnProgress<'_>,
    ) -> Result<Attested, AttestError> {
        let _held = self.turn(order.session, order.tenant).await?;
        self.attestor.attest(order, reached).await
    }
}

#[cfg(test)]
mod tests;
