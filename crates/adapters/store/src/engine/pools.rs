//! The connection pools, and the migrations at the start.

use std::{sync::Arc, time::Duration};

use ::diesel::ConnectionError;
use diesel_async::{
    AsyncConnection as _, AsyncMigrationHarness, AsyncPgConnection, SimpleAsyncConnection as _,
    pooled_connection::{
        AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod, deadpool::Pool,
    },
};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness as _, embed_migrations};
use ports::StoreError;
use tokio::runtime::Handle;

use crate::engine::database::{SqliteConn, failed};
use crate::engine::server::{ConnectionPurpose, Server};

const POSTGRES_MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../../migrations/postgres");
const SQLITE_MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../../migrations/sqlite");
/// The advisory lock of migrations, so that concurrently starting processes do not run them twice.
const MIGRATION_LOCK: &str = "SELECT pg_advisory_lock(4852310117)";
const POSTGRES_CONNECTIONS: usize = 16;
/// Deleted content is overwritten with zeros (`secure_delete`).
const SETTINGS: &str =
    "PRAGMA busy_timeout = 10000; PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON;";
/// The timeout in [`SETTINGS`].
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
const WRITE_AHEAD: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;";
const MAX_LOCK_ATTEMPTS: u32 = 500;
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Returns a pool of connections to a server, after migrating its schema.
pub(crate) async fn postgres(server: &Arc<Server>) -> Result<Pool<AsyncPgConnection>, StoreError> {
    migrate(server).await?;
    let mut config = ManagerConfig::<AsyncPgConnection>::default();
    // By default the pool checks each connection with a query; a broken connection is detected on
    // its first use instead.
    config.recycling_method = RecyclingMethod::Fast;
    // The task that drives a connection has to outlive the HTTP server's threads, each of which has
    // a runtime of its own. It therefore runs on the runtime that opened the pool.
    let (opened, runtime) = (server.clone(), Handle::current());
    config.custom_setup = Box::new(move |_| {
        let (server, runtime) = (opened.clone(), runtime.clone());
        Box::pin(async move {
            let opening =
                runtime.spawn(async move { server.connect(ConnectionPurpose::Work).await });
            opening.await.unwrap_or_else(|error| {
                Err(ConnectionError::BadConnection(format!("the service is stopping: {error}")))
            })
        })
    });
    let manager = AsyncDieselConnectionManager::new_with_config("", config);
    Pool::builder(manager).max_size(POSTGRES_CONNECTIONS).build().map_err(failed("make a pool"))
}

async fn migrate(server: &Server) -> Result<(), StoreError> {
    let conn = server.connect(ConnectionPurpose::Migrations).await;
    let mut conn = conn.map_err(failed("connect"))?;
    if let Some(weakness) = server.weakness() {
        tracing::warn!(
            "{weakness} on the way to PostgreSQL ({}): set sslmode=verify-full and sslrootcert in \
             database_url",
            server.name()
        );
    }
    conn.batch_execute(MIGRATION_LOCK).await.map_err(failed("take the migration lock"))?;
    let mut harness = AsyncMigrationHarness::new(conn);
    harness.run_pending_migrations(POSTGRES_MIGRATIONS).map_err(failed("migrate"))?;
    let mut conn = harness.into_inner();
    conn.batch_execute("SELECT pg_advisory_unlock_all()")
        .await
        .map_err(failed("free the migration lock"))
}

pub(crate) async fn sqlite(path: &str) -> Result<Pool<SqliteConn>, StoreError> {
    let mut config = ManagerConfig::<SqliteConn>::default();
    config.recycling_method = RecyclingMethod::Fast;
    config.custom_setup = Box::new(|path| Box::pin(open_sqlite(path)));
    let manager = AsyncDieselConnectionManager::new_with_config(path, config);
    // One connection: SQLite has one writer, and a pool of one connection cannot be locked by
    // itself.
    let pool = Pool::builder(manager).max_size(1).build().map_err(failed("make a pool"))?;
    let mut conn = pool.get().await.map_err(failed("connect"))?;
    // All migrations run in one write transaction, so that concurrently starting processes do not
    // run them twice.
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
    // Switching to a write-ahead log does not wait while another process opens the new file; it
    // fails at once and is repeated.
    let mut asked = 0;
    while let Err(error) = conn.batch_execute(WRITE_AHEAD).await {
        asked += 1;
        if asked == MAX_LOCK_ATTEMPTS {
            return Err(ConnectionError::CouldntSetupConfiguration(error));
        }
        tokio::time::sleep(LOCK_RETRY_INTERVAL).await;
    }
    Ok(conn)
}
