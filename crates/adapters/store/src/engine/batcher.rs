//! Combines concurrent statements of one kind, reads or inserts, into one statement.

use std::{
    marker::PhantomData,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ports::StoreError;
use tokio::sync::oneshot;

use crate::engine::database::failed;
use crate::engine::pipelined::PipelinedConnection;

/// The maximum number of requests in one statement.
const MAX_BATCH: usize = 128;

/// A statement of which many differ only in their parameters.
pub(crate) trait BatchRequest: Sized + Send + Sync + 'static {
    type Answer: Send + 'static;

    fn waiting(connection: &PipelinedConnection) -> &BatchQueue<Self>;

    /// Returns the answers, one for each request, in the order of the requests.
    fn answer(
        connection: &PipelinedConnection,
        requests: &[Self],
    ) -> impl Future<Output = Result<Vec<Self::Answer>, StoreError>> + Send;
}

type ReplySender<A> = oneshot::Sender<Result<<A as BatchRequest>::Answer, StoreError>>;

/// The requests that wait for the next statement.
pub(crate) struct BatchQueue<A: BatchRequest>(Mutex<PendingRequests<A>>);

struct PendingRequests<A: BatchRequest> {
    requests: Vec<(A, ReplySender<A>)>,
    /// Whether a statement is running. There is one at a time: a request that arrives meanwhile
    /// waits until it is finished, and is then sent together with all others that waited.
    running: bool,
}

impl<A: BatchRequest> Default for BatchQueue<A> {
    fn default() -> Self {
        Self(Mutex::new(PendingRequests { requests: vec![], running: false }))
    }
}

impl<A: BatchRequest> BatchQueue<A> {
    fn queue(&self) -> MutexGuard<'_, PendingRequests<A>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a runner has to be started for the request.
    fn push(&self, request: A, reply: ReplySender<A>) -> bool {
        let mut queue = self.queue();
        queue.requests.push((request, reply));
        !mem::replace(&mut queue.running, true)
    }
}

impl PipelinedConnection {
    /// Sends a request together with concurrent ones. The answer has the state of the database
    /// after this call began: a request is sent with the next statement, never with one that is
    /// already running.
    pub(crate) async fn request<A: BatchRequest>(
        self: &Arc<Self>,
        request: A,
    ) -> Result<A::Answer, StoreError> {
        let (reply, answer) = oneshot::channel();
        if A::waiting(self).push(request, reply) {
            let runner = BatchRunner::<A> {
                connection: self.clone(),
                finished: false,
                requests: PhantomData,
            };
            tokio::spawn(runner.run());
        }
        answer.await.unwrap_or_else(|closed| Err(failed("run a combined statement")(closed)))
    }
}

/// Sends requests to the database until none waits.
struct BatchRunner<A: BatchRequest> {
    connection: Arc<PipelinedConnection>,
    finished: bool,
    requests: PhantomData<fn() -> A>,
}

impl<A: BatchRequest> BatchRunner<A> {
    async fn run(mut self) {
        loop {
            // Lets other tasks add their requests first. Without this a busy worker sends few at a
            // time, since the database answers faster than the worker polls all its tasks.
            tokio::task::yield_now().await;
            let Some(mut waiting) = self.take() else { return };
            // Requests whose callers were dropped are not sent.
            waiting.retain(|(_, reply)| !reply.is_closed());
            if waiting.is_empty() {
                continue;
            }
            let (requests, replies): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
            match A::answer(&self.connection, &requests).await {
                Ok(answers) => {
                    for (reply, answer) in replies.into_iter().zip(answers) {
                        let _ = reply.send(Ok(answer));
                    }
                }
                Err(error) => {
                    let error = Arc::new(error);
                    for reply in replies {
                        let _ = reply.send(Err(failed("run a combined statement")(error.clone())));
                    }
                }
            }
        }
    }

    /// Takes the waiting requests. If there are none, finishes under the same lock, so that the
    /// next request starts another runner.
    fn take(&mut self) -> Option<Vec<(A, ReplySender<A>)>> {
        let mut queue = A::waiting(&self.connection).queue();
        let count = queue.requests.len().min(MAX_BATCH);
        let taken: Vec<_> = queue.requests.drain(..count).collect();
        if taken.is_empty() {
            queue.running = false;
            self.finished = true;
            return None;
        }
        Some(taken)
    }
}

/// Finishes even if the task is dropped midway; the waiting callers see their channels closed.
impl<A: BatchRequest> Drop for BatchRunner<A> {
    fn drop(&mut self) {
        if !self.finished {
            let mut queue = A::waiting(&self.connection).queue();
            queue.requests.clear();
            queue.running = false;
        }
    }
}
