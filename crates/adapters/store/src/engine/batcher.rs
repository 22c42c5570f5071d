//! Reads that are wanted at the same moment, made by one statement.

use std::{
    marker::PhantomData,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ports::StoreError;
use tokio::sync::oneshot;

use crate::engine::database::failed;
use crate::engine::pipelined::PipelinedConnection;

/// The most asks in one statement.
const MAX_BATCH: usize = 128;

/// One of many reads that differ in what they look for alone.
pub(crate) trait BatchRequest: Sized + Send + Sync + 'static {
    type Answer: Send + 'static;

    fn waiting(lane: &PipelinedConnection) -> &BatchQueue<Self>;

    /// The answers, one for each ask and in the order of the asks.
    fn answer(
        lane: &PipelinedConnection,
        asks: &[Self],
    ) -> impl Future<Output = Result<Vec<Self::Answer>, StoreError>> + Send;
}

type ReplySender<A> = oneshot::Sender<Result<<A as BatchRequest>::Answer, StoreError>>;

/// The asks that wait for the next statement.
pub(crate) struct BatchQueue<A: BatchRequest>(Mutex<PendingRequests<A>>);

struct PendingRequests<A: BatchRequest> {
    asks: Vec<(A, ReplySender<A>)>,
    /// Whether a statement is on its way. One at a time: who just missed it waits for its way there
    /// and back, but then goes with all the others who did.
    running: bool,
}

impl<A: BatchRequest> Default for BatchQueue<A> {
    fn default() -> Self {
        Self(Mutex::new(PendingRequests { asks: vec![], running: false }))
    }
}

impl<A: BatchRequest> BatchQueue<A> {
    fn queue(&self) -> MutexGuard<'_, PendingRequests<A>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a flight has to start for it.
    fn push(&self, ask: A, reply: ReplySender<A>) -> bool {
        let mut queue = self.queue();
        queue.asks.push((ask, reply));
        !mem::replace(&mut queue.running, true)
    }
}

impl PipelinedConnection {
    /// Asks, together with whoever else asks now. The answer is what the database has after this
    /// call began: an ask goes with the next statement, never with one that was sent before.
    pub(crate) async fn ask<A: BatchRequest>(
        self: &Arc<Self>,
        ask: A,
    ) -> Result<A::Answer, StoreError> {
        let (reply, answer) = oneshot::channel();
        if A::waiting(self).push(ask, reply) {
            let flight =
                BatchRunner::<A> { lane: self.clone(), finished: false, asks: PhantomData };
            tokio::spawn(flight.run());
        }
        answer.await.unwrap_or_else(|gone| Err(failed("read with others")(gone)))
    }
}

/// Carries asks to the database until none waits.
struct BatchRunner<A: BatchRequest> {
    lane: Arc<PipelinedConnection>,
    finished: bool,
    asks: PhantomData<fn() -> A>,
}

impl<A: BatchRequest> BatchRunner<A> {
    async fn run(mut self) {
        loop {
            // First whoever else is ready to ask: without this a busy worker sends few at a time,
            // since the database answers faster than the worker gets round to them all.
            tokio::task::yield_now().await;
            let Some(mut waiting) = self.take() else { return };
            // Who stopped waiting needs no answer.
            waiting.retain(|(_, reply)| !reply.is_closed());
            if waiting.is_empty() {
                continue;
            }
            let (asks, replies): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
            match A::answer(&self.lane, &asks).await {
                Ok(answers) => {
                    for (reply, answer) in replies.into_iter().zip(answers) {
                        let _ = reply.send(Ok(answer));
                    }
                }
                Err(error) => {
                    let error = Arc::new(error);
                    for reply in replies {
                        let _ = reply.send(Err(failed("read with others")(error.clone())));
                    }
                }
            }
        }
    }

    /// Lands where nobody waits, under the same lock: who comes then starts another.
    fn take(&mut self) -> Option<Vec<(A, ReplySender<A>)>> {
        let mut queue = A::waiting(&self.lane).queue();
        let most = queue.asks.len().min(MAX_BATCH);
        let taken: Vec<_> = queue.asks.drain(..most).collect();
        if taken.is_empty() {
            queue.running = false;
            self.finished = true;
            return None;
        }
        Some(taken)
    }
}

/// Lands also where the task ends half-way; those who wait are told by their closed channels.
impl<A: BatchRequest> Drop for BatchRunner<A> {
    fn drop(&mut self) {
        if !self.finished {
            let mut queue = A::waiting(&self.lane).queue();
            queue.asks.clear();
            queue.running = false;
        }
    }
}
