//! The store, and how its queries come by a connection: from the pool, in a transaction, or
//! pipelined; none waits for ever.

use std::{sync::Arc, time::Duration};

use ::diesel::{
    QueryResult, QueryableByName, SqliteConnection,
    result::{DatabaseErrorKind, Error},
    sql_query,
    sql_types::Integer,
};
use diesel_async::{
    AsyncPgConnection, RunQueryDsl as _, SimpleAsyncConnection as _,
    pooled_connection::deadpool::{Object, Pool},
    sync_connection_wrapper::SyncConnectionWrapper,
};
use ports::StoreError;

use crate::engine::keyring::{Encryption, Keyring};
use crate::engine::pipelined::PipelinedConnection;
use crate::engine::pools::{self, BUSY_TIMEOUT};
use crate::engine::server::{DatabaseUrl, Server, Timeouts};
use ports::encryption::Cipher;

pub(crate) type SqliteConn = SyncConnectionWrapper<SqliteConnection>;

/// For so long readers are waited for before the write-ahead log is left as it is.
const LOG_TRUNCATE_TIMEOUT: Duration = Duration::from_millis(200);

/// All that the service keeps, in PostgreSQL or SQLite.
#[derive(Clone)]
pub struct Store {
    pub(crate) pool: Database,
    pub(crate) cipher: Arc<dyn Cipher>,
    pub(crate) timeouts: Timeouts,
    pub(crate) keyring: Arc<Keyring>,
    /// Where single reads go, if not to the pool.
    pub(crate) lane: Option<Arc<PipelinedConnection>>,
}

/// What came of emptying the write-ahead log.
#[derive(QueryableByName)]
struct WalCheckpoint {
    #[diesel(sql_type = Integer)]
    busy: i32,
}

#[derive(Clone)]
pub(crate) enum Database {
    Postgres(Pool<AsyncPgConnection>, Arc<Server>),
    Sqlite(Pool<SqliteConn>),
}

/// Runs a body with a connection of whichever database it is; the body is expanded, and checked,
/// once for each. The second form takes what differs between the two. On PostgreSQL a body that
/// takes longer than [`Timeouts::answer`] is given up, and its connection is closed.
macro_rules! with_conn {
    ($store:expr, |$conn:ident| $body:expr) => {
        with_conn!($store, postgres | $conn | $body, sqlite | $conn | $body)
    };
    ($store:expr, postgres |$pg:ident| $postgres:expr, sqlite |$lite:ident| $sqlite:expr) => {
        match &$store.pool {
            $crate::engine::database::Database::Postgres(pool, _) => {
                let wait = $store.timeouts.pool;
                let mut object = $crate::engine::database::checkout(pool.get(), wait).await?;
                let work = async {
                    let $pg = &mut *object;
                    $postgres
                };
                let bound = $store.timeouts.answer();
                match $crate::engine::database::bounded(bound, work).await {
                    Ok(done) => done,
                    Err(late) => {
                        $crate::engine::database::discard(object);
                        Err(late)
                    }
                }
            }
            $crate::engine::database::Database::Sqlite(pool) => {
                let wait = $store.timeouts.pool;
                let mut object = $crate::engine::database::checkout(pool.get(), wait).await?;
                let $lite = &mut *object;
                $sqlite
            }
        }
    };
}
pub(crate) use with_conn;

/// As [`with_conn`], in a transaction that writes. SQLite takes the place of its one writer at the
/// start: a transaction that reads first and takes it later is refused, without waiting, where
/// another process has written in between.
macro_rules! with_transaction {
    ($store:expr, |$conn:ident| $body:block) => {
        with_transaction!($store, postgres | $conn | $body, sqlite | $conn | $body)
    };
    ($store:expr, postgres |$pg:ident| $postgres:block, sqlite |$lite:ident| $sqlite:block) => {
        $crate::engine::database::with_conn!(
            $store,
            postgres
                | conn
                | ::diesel_async::AsyncConnection::transaction(conn, async |$pg| $postgres).await,
            sqlite | conn | conn.immediate_transaction(async |$lite| $sqlite).await
        )
    };
}
pub(crate) use with_transaction;

/// Runs a body in a transaction with the keys of rows that are due, which nobody else has at that
/// moment: PostgreSQL passes by what others hold, SQLite has one writer.
macro_rules! with_due {
    ($store:expr, $due:expr, |$conn:ident, $keys:ident: $key:ty| $body:block) => {
        $crate::engine::database::with_transaction!(
            $store,
            postgres | $conn | {
                let $keys: Vec<$key> = $due.for_update().skip_locked().load($conn).await?;
                $body
            },
            sqlite | $conn | {
                let $keys: Vec<$key> = $due.load($conn).await?;
                $body
            }
        )
    };
}
pub(crate) use with_due;

/// Runs a read over a lane. A read that finds the lane broken is made once more, over a new one.
macro_rules! with_pipelined_connection {
    ($lane:expr, |$conn:ident| $body:expr) => {{
        let first = {
            let held = $lane.open().await?;
            let work = async {
                let $conn = &mut &*held;
                $body
            };
            $crate::engine::database::bounded($lane.answer(), work).await.unwrap_or_else(Err)
        };
        match first {
            Err(error) if $lane.broke(&error) => {
                let held = $lane.open().await?;
                let work = async {
                    let $conn = &mut &*held;
                    $body
                };
                $crate::engine::database::bounded($lane.answer(), work).await.unwrap_or_else(Err)
            }
            read => read,
        }
    }};
}
pub(crate) use with_pipelined_connection;

/// As [`with_conn`], for a single read: over the lane where this store has one.
macro_rules! with_read {
    ($store:expr, |$conn:ident| $body:expr) => {
        if let Some(lane) = &$store.lane {
            $crate::engine::database::with_pipelined_connection!(lane, |$conn| $body)
        } else {
            $crate::engine::database::with_conn!($store, |$conn| $body)
        }
    };
}
pub(crate) use with_read;

/// Makes a [`StoreError`] of whatever went wrong with an action.
pub(crate) fn failed<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    action: &'static str,
) -> impl Fn(E) -> StoreError {
    move |error| StoreError::new(action, error)
}

/// Waits for a connection that a pool has or opens.
pub(crate) async fn checkout<T, E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    got: impl Future<Output = Result<T, E>>,
    within: Duration,
) -> Result<T, StoreError> {
    let Ok(got) = tokio::time::timeout(within, got).await else {
        let waited = format!("no connection was free within {} s", within.as_secs());
        return Err(failed("connect")(waited));
    };
    got.map_err(failed("connect"))
}

/// Closes a connection whose server may still be at work on what was given up.
pub(crate) fn discard(object: Object<AsyncPgConnection>) {
    drop(Object::take(object));
}

/// An error that says that the server gave no answer in time.
pub(crate) trait StatementTimeout {
    fn no_answer(within: Duration) -> Self;
}

impl StatementTimeout for Error {
    fn no_answer(within: Duration) -> Self {
        let waited = format!("the database gave no answer within {} s", within.as_secs());
        Self::DatabaseError(DatabaseErrorKind::ClosedConnection, Box::new(waited))
    }
}

impl StatementTimeout for StoreError {
    fn no_answer(within: Duration) -> Self {
        failed("wait for an answer")(Error::no_answer(within))
    }
}

/// Carries work out within a time, or gives it up.
pub(crate) async fn bounded<T, E: StatementTimeout>(
    within: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> Result<Result<T, E>, E> {
    tokio::time::timeout(within, work).await.map_err(|_| E::no_answer(within))
}

impl Store {
    /// Opens the database that a `postgres://` or `sqlite://` URL names, and brings its schema up
    /// to date. Call it on a multi-threaded runtime.
    pub async fn open(url: &str, cipher: Arc<dyn Cipher>) -> Result<Self, StoreError> {
        let url = url.parse().map_err(failed("read the database's URL"))?;
        Self::connect(&url, Timeouts::default(), cipher).await
    }

    /// The same with timeouts, of a URL that was read before.
    ///
    /// # Errors
    /// The server cannot be reached, or not as securely as the URL says; or a migration failed.
    pub async fn connect(
        url: &DatabaseUrl,
        timeouts: Timeouts,
        cipher: Arc<dyn Cipher>,
    ) -> Result<Self, StoreError> {
        let pool = match url {
            DatabaseUrl::Sqlite(path) => Database::Sqlite(pools::sqlite(path).await?),
            DatabaseUrl::Postgres(url) => {
                let server = Arc::new(url.server(timeouts));
                Database::Postgres(pools::postgres(&server).await?, server)
            }
        };
        Ok(Self { pool, cipher, timeouts, keyring: Arc::default(), lane: None })
    }

    /// The same store with another rule of what is encrypted.
    #[must_use]
    pub fn with_encryption(&self, mode: Encryption) -> Self {
        Self { keyring: Arc::new(Keyring::new(mode)), ..self.clone() }
    }

    /// The same store for one worker's single reads: on PostgreSQL they share one connection, on
    /// which each is sent without waiting for the answers of those before it. The connection is
    /// opened with the first read and runs on the runtime that makes it.
    #[must_use]
    pub fn with_pipelined_connection(&self) -> Self {
        let lane = match &self.pool {
            Database::Postgres(_, server) => {
                Some(Arc::new(PipelinedConnection::new(server.clone(), self.timeouts.answer())))
            }
            Database::Sqlite(_) => None,
        };
        Self { lane, ..self.clone() }
    }

    /// Whether reads go over a lane, on which one may be given up half-way.
    #[must_use]
    pub const fn is_pipelined(&self) -> bool {
        self.lane.is_some()
    }

    /// Empties SQLite's write-ahead log into the file, so that nothing that was overwritten stays in
    /// it. `false`: a reader held it back for [`LOG_PATIENCE`], and it is to be tried again. There is
    /// nothing to be done on PostgreSQL.
    pub(crate) async fn truncate_log(&self) -> Result<bool, StoreError> {
        let Database::Sqlite(pool) = &self.pool else { return Ok(true) };
        let mut conn = checkout(pool.get(), self.timeouts.pool).await?;
        let unfit = failed("empty the write-ahead log");
        let patience = |time: Duration| format!("PRAGMA busy_timeout = {}", time.as_millis());
        conn.batch_execute(&patience(LOG_TRUNCATE_TIMEOUT)).await.map_err(&unfit)?;
        let done: QueryResult<WalCheckpoint> =
            sql_query("PRAGMA wal_checkpoint(TRUNCATE)").get_result(&mut *conn).await;
        conn.batch_execute(&patience(BUSY_TIMEOUT)).await.map_err(&unfit)?;
        Ok(done.map_err(&unfit)?.busy == 0)
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<(), StoreError> {
        with_conn!(self, |conn| conn.batch_execute("SELECT 1").await.map_err(failed("answer")))
    }
}
