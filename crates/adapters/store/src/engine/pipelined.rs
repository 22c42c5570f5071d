//! One connection to PostgreSQL that many reads share.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ::diesel::result::{DatabaseErrorKind, Error};
use diesel_async::{AsyncPgConnection, SimpleAsyncConnection as _};
use ports::StoreError;

use crate::engine::batcher::BatchQueue;
use crate::engine::database::failed;
use crate::engine::server::{ConnectionPurpose, Server};
use crate::sessions::insert_batch::InsertRequest;
use crate::sessions::poll_batch::{KeyRequest, PollRequest};

/// What goes over a lane finds rows by their keys. The planner is told so, once: left to itself it
/// plans a statement anew each time that an array is among its parameters, which costs more than
/// carrying it out, prefers reading a whole table while that is small, and compiles what it takes
/// for expensive.
const KEYED_PLANS: &str = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; \
                     SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off";

/// A connection on which reads are pipelined; opened when needed, and again when it broke.
pub(crate) struct PipelinedConnection {
    server: Arc<Server>,
    answer: Duration,
    open: Mutex<Option<Arc<AsyncPgConnection>>>,
    /// Held while opening, so that many who come at once open one.
    opening: tokio::sync::Mutex<()>,
    pub(crate) polls: BatchQueue<PollRequest>,
    pub(crate) keys: BatchQueue<KeyRequest>,
    pub(crate) inserts: BatchQueue<InsertRequest>,
}

impl PipelinedConnection {
    /// A connection to a server, on which each answer is waited for this long.
    pub(crate) fn new(server: Arc<Server>, answer: Duration) -> Self {
        Self {
            server,
            answer,
            open: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            polls: BatchQueue::default(),
            keys: BatchQueue::default(),
            inserts: BatchQueue::default(),
        }
    }

    /// How long an answer is waited for.
    pub(crate) fn answer(&self) -> Duration {
        self.answer
    }

    fn held(&self) -> Option<Arc<AsyncPgConnection>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) async fn open(&self) -> Result<Arc<AsyncPgConnection>, StoreError> {
        if let Some(held) = self.held() {
            return Ok(held);
        }
        let _one = self.opening.lock().await;
        if let Some(held) = self.held() {
            return Ok(held);
        }
        let mut fresh =
            self.server.connect(ConnectionPurpose::Work).await.map_err(failed("connect"))?;
        fresh.batch_execute(KEYED_PLANS).await.map_err(failed("set a connection up"))?;
        let fresh = Arc::new(fresh);
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(fresh.clone());
        Ok(fresh)
    }

    /// Whether an error means that the connection is gone; if so it is let go.
    pub(crate) fn broke(&self, error: &Error) -> bool {
        let gone = matches!(
            error,
            Error::DatabaseError(
                DatabaseErrorKind::ClosedConnection | DatabaseErrorKind::UnableToSendCommand,
                _
            )
        );
        if gone {
            self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
        gone
    }
}
