//! The connection pools, whose schema is checked, and migrated if that is the policy, when they are
//! opened.

use std::{sync::Arc, time::Duration};

use ::diesel::ConnectionError;
use diesel_async::{
    AsyncConnection as _, AsyncPgConnection, SimpleAsyncConnection as _,
    pooled_connection::{
        AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod, deadpool::Pool,
    },
};
use ports::StoreError;
use tokio::runtime::Handle;

use crate::engine::database::{SqliteConn, failed};
use crate::engine::migrations::{self, MigrationError, SchemaPolicy};
use crate::engine::server::Server;

const POSTGRES_CONNECTIONS: usize = 16;
/// Deleted content is overwritten with zeros (`secure_delete`).
const SETTINGS: &str =
    "PRAGMA busy_timeout = 10000; PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON;";
/// The timeout in [`SETTINGS`].
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
const WRITE_AHEAD: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;";
const MAX_LOCK_ATTEMPTS: u32 = 500;
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Returns a pool of connections to a server whose schema is that of this release.
pub(crate) async fn postgres(
    server: &Arc<Server>,
    policy: SchemaPolicy,
) -> Result<Pool<AsyncPgConnection>, StoreError> {
    migrations::prepare_postgres(server, policy).await.map_err(unfit)?;
    if let Some(weakness) = server.weakness() {
        tracing::warn!(
            "{weakness} on the way to PostgreSQL ({}): set sslmode=verify-full and sslrootcert in \
             database_url",
            server.name()
        );
    }
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
            let opening = runtime.spawn(async move { server.connect().await });
            opening.await.unwrap_or_else(|error| {
                Err(ConnectionError::BadConnection(format!("the service is stopping: {error}")))
            })
        })
    });
    let manager = AsyncDieselConnectionManager::new_with_config("", config);
    Pool::builder(manager).max_size(POSTGRES_CONNECTIONS).build().map_err(failed("make a pool"))
}

/// Returns a pool with the one connection to a file whose schema is that of this release.
pub(crate) async fn sqlite(
    path: &str,
    policy: SchemaPolicy,
) -> Result<Pool<SqliteConn>, StoreError> {
    let mut config = ManagerConfig::<SqliteConn>::default();
    config.recycling_method = RecyclingMethod::Fast;
    config.custom_setup = Box::new(|path| Box::pin(open_sqlite(path)));
    let manager = AsyncDieselConnectionManager::new_with_config(path, config);
    // One connection: SQLite has one writer, and a pool of one connection cannot be locked by
    // itself.
    let pool = Pool::builder(manager).max_size(1).build().map_err(failed("make a pool"))?;
    let mut conn = pool.get().await.map_err(failed("connect"))?;
    let migrations = migrations::sqlite_migrations();
    let applied = migrations::applied_sqlite(&mut conn).await.map_err(unfit)?;
    let status = migrations::compare(&migrations, &applied);
    migrations::accept(&status, policy).map_err(unfit)?;
    if !status.pending.is_empty() {
        migrations::apply_sqlite(&mut conn, migrations).await.map_err(unfit)?;
    }
    drop(conn);
    Ok(pool)
}

fn unfit(error: MigrationError) -> StoreError {
    error.into_store_error("prepare the schema")
}

/// Opens a file with the settings of the service; creates it if there is none.
pub(crate) async fn open_sqlite(path: &str) -> Result<SqliteConn, ConnectionError> {
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
