//! The connection pools, and the migrations that run before anything else.

use std::{sync::Arc, time::Duration};

use ::diesel::{
    ConnectionError, QueryResult, QueryableByName, SqliteConnection, sql_query, sql_types::Integer,
};
use diesel_async::{
    AsyncConnection as _, AsyncMigrationHarness, AsyncPgConnection, RunQueryDsl as _,
    SimpleAsyncConnection as _,
    pooled_connection::{
        AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod, deadpool::Pool,
    },
    sync_connection_wrapper::SyncConnectionWrapper,
};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness as _, embed_migrations};
use ports::StoreError;

use super::{
    keyring::{Encryption, Keyring},
    lane::Lane,
};
use crate::seal::Seal;

pub(super) type SqliteConn = SyncConnectionWrapper<SqliteConnection>;

const POSTGRES_MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations/postgres");
const SQLITE_MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations/sqlite");
/// Held while migrating, so that two processes that start at once do not both do it.
const MIGRATION_LOCK: &str = "SELECT pg_advisory_lock(4852310117)";
const POSTGRES_CONNECTIONS: usize = 16;
/// What is deleted is overwritten with zeros (`secure_delete`).
const SETTINGS: &str =
    "PRAGMA busy_timeout = 10000; PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON;";
/// The same as in [`SETTINGS`].
const BUSY_PATIENCE: Duration = Duration::from_secs(10);
/// For so long readers are waited for before the write-ahead log is left as it is.
const LOG_PATIENCE: Duration = Duration::from_millis(200);
const WRITE_AHEAD: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;";
const MOST_ASKED: u32 = 500;
const ASKED_EVERY: Duration = Duration::from_millis(20);

/// All that the service keeps, in PostgreSQL or SQLite.
#[derive(Clone)]
pub struct Store {
    pub(super) pool: Database,
    pub(super) seal: Arc<Seal>,
    pub(super) keyring: Arc<Keyring>,
    /// Where single reads go, if not to the pool.
    pub(super) lane: Option<Arc<Lane>>,
}

/// What came of emptying the write-ahead log.
#[derive(QueryableByName)]
struct Checkpoint {
    #[diesel(sql_type = Integer)]
    busy: i32,
}

#[derive(Clone)]
pub(super) enum Database {
    Postgres(Pool<AsyncPgConnection>),
    Sqlite(Pool<SqliteConn>),
}

/// Runs a body with a connection of whichever database it is; the body is expanded, and checked,
/// once for each. The second form takes what differs between the two.
macro_rules! with_conn {
    ($store:expr, |$conn:ident| $body:expr) => {
        with_conn!($store, postgres | $conn | $body, sqlite | $conn | $body)
    };
    ($store:expr, postgres |$pg:ident| $postgres:expr, sqlite |$lite:ident| $sqlite:expr) => {
        match &$store.pool {
            $crate::diesel::database::Database::Postgres(pool) => {
                let mut object =
                    pool.get().await.map_err($crate::diesel::database::failed("connect"))?;
                let $pg = &mut *object;
                $postgres
            }
            $crate::diesel::database::Database::Sqlite(pool) => {
                let mut object =
                    pool.get().await.map_err($crate::diesel::database::failed("connect"))?;
                let $lite = &mut *object;
                $sqlite
            }
        }
    };
}
pub(super) use with_conn;

/// As [`with_conn`], in a transaction that writes. SQLite takes the place of its one writer at the
/// start: a transaction that reads first and takes it later is refused, without waiting, where
/// another process has written in between.
macro_rules! with_transaction {
    ($store:expr, |$conn:ident| $body:block) => {
        with_transaction!($store, postgres | $conn | $body, sqlite | $conn | $body)
    };
    ($store:expr, postgres |$pg:ident| $postgres:block, sqlite |$lite:ident| $sqlite:block) => {
        $crate::diesel::database::with_conn!(
            $store,
            postgres
                | conn
                | ::diesel_async::AsyncConnection::transaction(conn, async |$pg| $postgres).await,
            sqlite | conn | conn.immediate_transaction(async |$lite| $sqlite).await
        )
    };
}
pub(super) use with_transaction;

/// Runs a body in a transaction with the keys of rows that are due, which nobody else has at that
/// moment: PostgreSQL passes by what others hold, SQLite has one writer.
macro_rules! with_due {
    ($store:expr, $due:expr, |$conn:ident, $keys:ident: $key:ty| $body:block) => {
        $crate::diesel::database::with_transaction!(
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
pub(super) use with_due;

/// Runs a read over a lane. A read that finds the lane broken is made once more, over a new one.
macro_rules! with_lane {
    ($lane:expr, |$conn:ident| $body:expr) => {{
        let first = {
            let held = $lane.open().await?;
            let $conn = &mut &*held;
            $body
        };
        match first {
            Err(error) if $lane.broke(&error) => {
                let held = $lane.open().await?;
                let $conn = &mut &*held;
                $body
            }
            read => read,
        }
    }};
}
pub(super) use with_lane;

/// As [`with_conn`], for a single read: over the lane where this store has one.
macro_rules! with_read {
    ($store:expr, |$conn:ident| $body:expr) => {
        if let Some(lane) = &$store.lane {
            $crate::diesel::database::with_lane!(lane, |$conn| $body)
        } else {
            $crate::diesel::database::with_conn!($store, |$conn| $body)
        }
    };
}
pub(super) use with_read;

/// Makes a [`StoreError`] of whatever went wrong with an action.
pub(super) fn failed<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    action: &'static str,
) -> impl Fn(E) -> StoreError {
    move |error| StoreError::new(action, error)
}

impl Store {
    /// Opens the database that a `postgres://` or `sqlite://` URL names, and brings its schema up
    /// to date. Call it on a multi-threaded runtime.
    pub async fn open(url: &str, seal: Arc<Seal>) -> Result<Self, StoreError> {
        let pool = match url.strip_prefix("sqlite://") {
            Some(path) => Database::Sqlite(sqlite(path).await?),
            None => Database::Postgres(postgres(url).await?),
        };
        Ok(Self { pool, seal, keyring: Arc::default(), lane: None })
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
    pub fn with_lane(&self, url: &str) -> Self {
        let lane = match &self.pool {
            Database::Postgres(_) => Some(Arc::new(Lane::new(url.to_owned()))),
            Database::Sqlite(_) => None,
        };
        Self { lane, ..self.clone() }
    }

    /// Whether reads go over a lane, on which one may be given up half-way.
    #[must_use]
    pub const fn has_lane(&self) -> bool {
        self.lane.is_some()
    }

    /// Empties SQLite's write-ahead log into the file, so that nothing that was overwritten stays in
    /// it. `false`: a reader held it back for [`LOG_PATIENCE`], and it is to be tried again. There is
    /// nothing to be done on PostgreSQL.
    pub(super) async fn truncate_log(&self) -> Result<bool, StoreError> {
        let Database::Sqlite(pool) = &self.pool else { return Ok(true) };
        let mut conn = pool.get().await.map_err(failed("connect"))?;
        let unfit = failed("empty the write-ahead log");
        let patience = |time: Duration| format!("PRAGMA busy_timeout = {}", time.as_millis());
        conn.batch_execute(&patience(LOG_PATIENCE)).await.map_err(&unfit)?;
        let done: QueryResult<Checkpoint> =
            sql_query("PRAGMA wal_checkpoint(TRUNCATE)").get_result(&mut *conn).await;
        conn.batch_execute(&patience(BUSY_PATIENCE)).await.map_err(&unfit)?;
        Ok(done.map_err(&unfit)?.busy == 0)
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<(), StoreError> {
        with_conn!(self, |conn| conn.batch_execute("SELECT 1").await.map_err(failed("answer")))
    }
}

async fn postgres(url: &str) -> Result<Pool<AsyncPgConnection>, StoreError> {
    let mut config = ManagerConfig::<AsyncPgConnection>::default();
    // The default asks the server at each checkout; a connection that died shows at its first use.
    config.recycling_method = RecyclingMethod::Fast;
    let manager = AsyncDieselConnectionManager::new_with_config(url, config);
    let pool = Pool::builder(manager)
        .max_size(POSTGRES_CONNECTIONS)
        .build()
        .map_err(failed("make a pool"))?;
    let mut conn = pool.get().await.map_err(failed("connect"))?;
    conn.batch_execute(MIGRATION_LOCK).await.map_err(failed("take the migration lock"))?;
    let mut harness = AsyncMigrationHarness::new(conn);
    harness.run_pending_migrations(POSTGRES_MIGRATIONS).map_err(failed("migrate"))?;
    let mut conn = harness.into_inner();
    conn.batch_execute("SELECT pg_advisory_unlock_all()")
        .await
        .map_err(failed("free the migration lock"))?;
    Ok(pool)
}

async fn sqlite(path: &str) -> Result<Pool<SqliteConn>, StoreError> {
    let mut config = ManagerConfig::<SqliteConn>::default();
    config.recycling_method = RecyclingMethod::Fast;
    config.custom_setup = Box::new(|path| Box::pin(open_sqlite(path)));
    let manager = AsyncDieselConnectionManager::new_with_config(path, config);
    // One connection: SQLite has one writer, and a pool of one cannot be busy with itself.
    let pool = Pool::builder(manager).max_size(1).build().map_err(failed("make a pool"))?;
    let mut conn = pool.get().await.map_err(failed("connect"))?;
    // All in one transaction of the one writer, so that two processes do not both do it.
    let migrated = conn.spawn_blocking(|conn| {
        Ok(conn
            .immediate_transaction(|conn| conn.run_pending_migrations(SQLITE_MIGRATIONS).map(drop)))
    });
    migrated.await.map_err(failed("migrate"))?.map_err(failed("migrate"))?;
    drop(conn);
    Ok(pool)
}

async fn open_sqlite(path: &str) -> Result<SqliteConn, ConnectionError> {
    let mut conn = SqliteConn::establish(path).await?;
    conn.batch_execute(SETTINGS).await.map_err(ConnectionError::CouldntSetupConfiguration)?;
    // The first change to a write-ahead log does not wait for another process that is opening the
    // new file: it is refused at once.
    let mut asked = 0;
    while let Err(error) = conn.batch_execute(WRITE_AHEAD).await {
        asked += 1;
        if asked == MOST_ASKED {
            return Err(ConnectionError::CouldntSetupConfiguration(error));
        }
        tokio::time::sleep(ASKED_EVERY).await;
    }
    Ok(conn)
}
