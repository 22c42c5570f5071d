//! Gives teams turns at attestations. Each attestation takes gigabytes and seconds, so a process makes
//! only a few at a time.

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

/// How often a waiting session asks for its turn although none has ended: sooner than it would lose
/// its position ([`domain::fairness::WAITING_TTL`]).
const TURN_POLL_INTERVAL: Duration = Duration::from_secs(3);
/// How long a session waits for its turn.
const TURN_TIMEOUT: Duration = Duration::from_secs(20 * 60);

/// An attestor that serves teams in turn.
pub struct FairAttestor {
    attestor: Arc<dyn Attestor>,
    queue: Mutex<TurnQueue<SessionId>>,
    /// Notified when a turn has ended.
    ended: Notify,
    clock: Arc<dyn Clock>,
}

/// A session's turn, or its position in the queue; given back when it is dropped.
struct HeldTurn<'a> {
    queue: &'a FairAttestor,
    session: SessionId,
}

impl Drop for HeldTurn<'_> {
    fn drop(&mut self) {
        self.queue.queue().ended(self.session);
        self.queue.ended.notify_waiters();
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
        let (held, began) = (HeldTurn { queue: self, session }, Instant::now());
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
        on_progress: OnProgress<'_>,
    ) -> Result<Attested, AttestError> {
        let _held = self.turn(order.session, order.tenant).await?;
        self.attestor.attest(order, on_progress).await
    }
}

#[cfg(test)]
mod tests;
