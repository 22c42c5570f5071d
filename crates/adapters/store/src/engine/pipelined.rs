//! A PostgreSQL connection that many statements share.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ::diesel::result::{DatabaseErrorKind, Error};
use diesel_async::{AsyncPgConnection, SimpleAsyncConnection as _};
use ports::StoreError;

use crate::engine::batcher::BatchQueue;
use crate::engine::database::failed;
use crate::engine::server::Server;
use crate::sessions::commit_batch::CommitRequest;
use crate::sessions::find_batch::FindRequest;
use crate::sessions::insert_batch::InsertRequest;
use crate::sessions::poll_batch::{KeyRequest, PollRequest};
use crate::teams::template_batch::TemplatesRequest;

/// Planner settings for pipelined statements, which all find rows by keys. With the default settings the
/// planner plans a statement with an array parameter on each execution, which costs more than the
/// execution, and prefers sequential scans on small tables.
const KEYED_PLANS: &str = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; \
                     SET enable_hashjoin = off; SET enable_mergejoin = off";

/// A connection on which statements are pipelined. It is opened on demand, and again after it broke.
pub(crate) struct PipelinedConnection {
    server: Arc<Server>,
    answer: Duration,
    open: Mutex<Option<Arc<AsyncPgConnection>>>,
    /// Held while opening, so that concurrent callers open only one connection.
    opening: tokio::sync::Mutex<()>,
    pub(crate) polls: BatchQueue<PollRequest>,
    pub(crate) keys: BatchQueue<KeyRequest>,
    pub(crate) finds: BatchQueue<FindRequest>,
    pub(crate) templates: BatchQueue<TemplatesRequest>,
    pub(crate) inserts: BatchQueue<InsertRequest>,
    pub(crate) commits: BatchQueue<CommitRequest>,
}

impl PipelinedConnection {
    /// Creates a connection to a server with a timeout for each answer.
    pub(crate) fn new(server: Arc<Server>, answer: Duration) -> Self {
        Self {
            server,
            answer,
            open: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            polls: BatchQueue::default(),
            keys: BatchQueue::default(),
            finds: BatchQueue::default(),
            templates: BatchQueue::default(),
            inserts: BatchQueue::default(),
            commits: BatchQueue::default(),
        }
    }

    /// Returns the timeout of an answer.
    pub(crate) fn answer(&self) -> Duration {
        self.answer
    }

    fn current(&self) -> Option<Arc<AsyncPgConnection>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) async fn open(&self) -> Result<Arc<AsyncPgConnection>, StoreError> {
        if let Some(current) = self.current() {
            return Ok(current);
        }
        let _guard = self.opening.lock().await;
        if let Some(current) = self.current() {
            return Ok(current);
        }
        let mut new = self.server.connect().await.map_err(failed("connect"))?;
        new.batch_execute(KEYED_PLANS).await.map_err(failed("set a connection up"))?;
        let new = Arc::new(new);
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(new.clone());
        Ok(new)
    }

    /// Returns whether an error means that the connection is broken; if so, it is dropped.
    pub(crate) fn broke(&self, error: &Error) -> bool {
        let is_broken = matches!(
            error,
            Error::DatabaseError(
                DatabaseErrorKind::ClosedConnection | DatabaseErrorKind::UnableToSendCommand,
                _
            )
        );
        if is_broken {
            self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
        is_broken
    }
}
