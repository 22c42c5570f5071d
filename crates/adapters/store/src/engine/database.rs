//! The store, and the ways in which its queries use a connection: from the pool, in a transaction,
//! or pipelined. Each has a timeout.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

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
use crate::engine::measure::measure_wait;
use crate::engine::migrations::SchemaPolicy;
use crate::engine::pipelined::PipelinedConnection;
use crate::engine::pools::{self, BUSY_TIMEOUT};
use crate::engine::server::{DatabaseUrl, Server, Timeouts};
use ports::encryption::Cipher;

pub(crate) type SqliteConn = SyncConnectionWrapper<SqliteConnection>;

/// How long to wait for readers before the write-ahead log is left as it is.
const LOG_TRUNCATE_TIMEOUT: Duration = Duration::from_millis(200);

/// All records of the service, in PostgreSQL or SQLite.
#[derive(Clone)]
pub struct Store {
    pub(crate) pool: Database,
    pub(crate) cipher: Arc<dyn Cipher>,
    pub(crate) timeouts: Timeouts,
    pub(crate) keyring: Arc<Keyring>,
    /// The connection of single reads; `None` to use the pool.
    pub(crate) pipelined: Option<Arc<PipelinedConnection>>,
    /// The connection of combined writes, so that no read waits until the write-ahead log is
    /// flushed; `None` to use the pool.
    pub(crate) writes: Option<Arc<PipelinedConnection>>,
}

/// The result of truncating the write-ahead log.
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

/// Runs a body with a connection of either database; the body is expanded and type-checked once for
/// each. The second form takes what differs between the two. On PostgreSQL a body that takes longer
/// than [`Timeouts::answer`] is aborted, and its connection is closed.
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
                let (bound, began) = ($store.timeouts.answer(), ::std::time::Instant::now());
                let done = $crate::engine::database::bounded(bound, work).await;
                if done.is_err() {
                    $crate::engine::database::discard(object);
                }
                $crate::engine::measure::measured(began, done)
            }
            $crate::engine::database::Database::Sqlite(pool) => {
                let wait = $store.timeouts.pool;
                let mut object = $crate::engine::database::checkout(pool.get(), wait).await?;
                let $lite = &mut *object;
                let began = ::std::time::Instant::now();
                let done = $sqlite;
                $crate::engine::measure::measured(began, Ok(done))
            }
        }
    };
}
pub(crate) use with_conn;

/// Like [`with_conn`], in a transaction that writes. On SQLite the write lock is taken at the
/// start: a transaction that reads first and takes it later fails without waiting if another
/// process has written in between.
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

/// Runs a body in a transaction with the keys of due rows that no other transaction has locked:
/// PostgreSQL skips locked rows, SQLite has one writer.
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

/// Runs a read over the pipelined connection. If the connection is broken, the read is repeated
/// once over a new one.
macro_rules! with_pipelined_connection {
    ($connection:expr, |$conn:ident| $body:expr) => {{
        let first = {
            let held = $connection.open().await?;
            let work = async {
                let $conn = &mut &*held;
                $body
            };
            let began = ::std::time::Instant::now();
            let done = $crate::engine::database::bounded($connection.answer(), work).await;
            $crate::engine::measure::measured(began, done)
        };
        match first {
            Err(error) if $connection.broke(&error) => {
                let held = $connection.open().await?;
                let work = async {
                    let $conn = &mut &*held;
                    $body
                };
                let began = ::std::time::Instant::now();
                let done = $crate::engine::database::bounded($connection.answer(), work).await;
                $crate::engine::measure::measured(began, done)
            }
            read => read,
        }
    }};
}
pub(crate) use with_pipelined_connection;

/// Like [`with_conn`], for a single read: over the pipelined connection if this store has one.
macro_rules! with_read {
    ($store:expr, |$conn:ident| $body:expr) => {
        if let Some(connection) = &$store.pipelined {
            $crate::engine::database::with_pipelined_connection!(connection, |$conn| $body)
        } else {
            $crate::engine::database::with_conn!($store, |$conn| $body)
        }
    };
}
pub(crate) use with_read;

/// Converts an error of an action to a [`StoreError`].
pub(crate) fn failed<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    action: &'static str,
) -> impl Fn(E) -> StoreError {
    move |error| StoreError::new(action, error)
}

/// Waits for a connection of the pool.
pub(crate) async fn checkout<T, E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    got: impl Future<Output = Result<T, E>>,
    within: Duration,
) -> Result<T, StoreError> {
    let began = Instant::now();
    let got = tokio::time::timeout(within, got).await;
    measure_wait(began, matches!(got, Ok(Ok(_))));
    let Ok(got) = got else {
        let waited = format!("no connection was free within {} s", within.as_secs());
        return Err(failed("connect")(waited));
    };
    got.map_err(failed("connect"))
}

/// Closes a connection whose server may still be executing an aborted statement.
pub(crate) fn discard(object: Object<AsyncPgConnection>) {
    drop(Object::take(object));
}

/// Returns the error of a server that did not answer in time.
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

/// Runs a future with a timeout.
pub(crate) async fn bounded<T, E: StatementTimeout>(
    within: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> Result<Result<T, E>, E> {
    tokio::time::timeout(within, work).await.map_err(|_| E::no_answer(within))
}

impl Store {
    /// Opens the database of a `postgres://` or `sqlite://` URL, and migrates its schema.
    pub async fn open(url: &str, cipher: Arc<dyn Cipher>) -> Result<Self, StoreError> {
        let url = url.parse().map_err(failed("read the database's URL"))?;
        Self::connect(&url, Timeouts::default(), SchemaPolicy::default(), cipher).await
    }

    /// Like [`Store::open`], with timeouts, a parsed URL, and what happens to the schema. A schema
    /// that a newer release has migrated is accepted.
    ///
    /// # Errors
    /// The server is unreachable, or not as securely as the URL requires; or a migration failed, or
    /// is missing and must not be applied.
    pub async fn connect(
        url: &DatabaseUrl,
        timeouts: Timeouts,
        schema: SchemaPolicy,
        cipher: Arc<dyn Cipher>,
    ) -> Result<Self, StoreError> {
        let pool = match url {
            DatabaseUrl::Sqlite(path) => Database::Sqlite(pools::sqlite(path, schema).await?),
            DatabaseUrl::Postgres(url) => {
                let server = Arc::new(url.server(timeouts));
                Database::Postgres(pools::postgres(&server, schema).await?, server)
            }
        };
        Ok(Self { pool, cipher, timeouts, keyring: Arc::default(), pipelined: None, writes: None })
    }

    /// Returns the same store with another encryption mode.
    #[must_use]
    pub fn with_encryption(&self, mode: Encryption) -> Self {
        Self { keyring: Arc::new(Keyring::new(mode)), ..self.clone() }
    }

    /// Returns the same store for the single reads of one worker: on PostgreSQL they share one
    /// connection, on which each is sent without waiting for the answers of earlier ones. New and
    /// changed sessions share another one. A connection is opened with its first statement, on the
    /// runtime of that statement.
    #[must_use]
    pub fn with_pipelined_connection(&self) -> Self {
        let open = || match &self.pool {
            Database::Postgres(_, server) => {
                Some(Arc::new(PipelinedConnection::new(server.clone(), self.timeouts.answer())))
            }
            Database::Sqlite(_) => None,
        };
        Self { pipelined: open(), writes: open(), ..self.clone() }
    }

    /// Returns whether reads are pipelined; a pipelined read may be dropped midway.
    #[must_use]
    pub const fn is_pipelined(&self) -> bool {
        self.pipelined.is_some()
    }

    /// Truncates SQLite's write-ahead log, so that overwritten data does not remain in it. Returns
    /// `false` if readers prevented it for [`LOG_TRUNCATE_TIMEOUT`]; the caller tries again later. Does
    /// nothing on PostgreSQL.
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

    /// Returns whether the database responds.
    pub async fn ping(&self) -> Result<(), StoreError> {
        with_conn!(self, |conn| conn.batch_execute("SELECT 1").await.map_err(failed("answer")))
    }
}
