//! Applies migrations to PostgreSQL: one process at a time, and without blocking the others.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::{Client, error::SqlState};

use super::{Migration, MigrationError, MigrationLimits, TABLE, VERSIONS, pending};
use crate::engine::server::Server;

/// The advisory lock of migrations. Releases before `avouch migrate` take it at their start as well.
const ADVISORY_LOCK: i64 = 4_852_310_117;
/// The time between two attempts to take [`ADVISORY_LOCK`].
const TURN_INTERVAL: Duration = Duration::from_millis(250);
/// The most time between two attempts at a migration.
const MAX_BACKOFF: Duration = Duration::from_secs(15);
/// The additional time until the connection of a statement is closed that PostgreSQL did not end.
const GRACE: Duration = Duration::from_secs(5);
/// How long removing an incomplete index may take, within [`GRACE`].
const UNDO_TIMEOUT: Duration = Duration::from_secs(3);
const HAS_TABLE: &str = "SELECT to_regclass('__diesel_schema_migrations') IS NOT NULL";
/// The oldest transactions in the database, any of which may hold the lock. Their statements are not
/// read, since these may contain data.
const OLDEST_TRANSACTIONS: &str = "
    SELECT format('process %s (%s, %s) for %s s', pid, coalesce(nullif(application_name, ''), usename),
                  state, extract(epoch FROM now() - xact_start)::bigint)
    FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
        AND state IS NOT NULL
    ORDER BY xact_start LIMIT 3";

/// Reads the applied versions; none of a database without the table.
pub(super) async fn read(server: &Server) -> Result<Vec<String>, MigrationError> {
    let client = server.client().await.map_err(MigrationError::Connect)?;
    let within = server.answer();
    bounded(within, applied(&client)).await
}

/// Applies the migrations that are missing; returns the names of those that this call applied.
pub(super) async fn apply(
    server: &Server,
    migrations: &[Migration],
    limits: MigrationLimits,
) -> Result<Vec<String>, MigrationError> {
    let mut client = server.client().await.map_err(MigrationError::Connect)?;
    let timeout = statement_timeout(limits.migration);
    let settings = format!("SET application_name = 'avouch migrate'; {timeout}");
    bounded(GRACE, async { client.batch_execute(&settings).await.map_err(query) }).await?;
    take_turn(&client, limits.turn).await?;
    // The lock ends with the connection, also where this returns early.
    let names = bounded(limits.migration.saturating_add(GRACE), async {
        // Only where it is missing: the right to create tables is not needed otherwise.
        if !has_table(&client).await? {
            client.batch_execute(TABLE).await.map_err(query)?;
        }
        applied(&client).await
    })
    .await?;
    let mut done = Vec::new();
    for migration in pending(migrations.to_vec(), &names) {
        let name = migration.name();
        tracing::info!(migration = name, "applying migration {name}");
        with_retries(&mut client, &migration, limits).await?;
        done.push(name.to_owned());
    }
    Ok(done)
}

/// Waits until no other process migrates. A statement that waits for the lock would have a snapshot, and
/// the other process could not create an index concurrently as long as there is one; so each attempt
/// returns at once.
async fn take_turn(client: &Client, within: Duration) -> Result<(), MigrationError> {
    let (ends, mut is_first) = (Instant::now() + within, true);
    loop {
        let taken = async {
            let lock = "SELECT pg_try_advisory_lock($1)";
            let row = client.query_one(lock, &[&ADVISORY_LOCK]).await;
            row.and_then(|row| row.try_get::<_, bool>(0)).map_err(query)
        };
        if bounded(GRACE, taken).await? {
            return Ok(());
        }
        if Instant::now() >= ends {
            return Err(MigrationError::Busy(within));
        }
        if is_first {
            tracing::info!("another process migrates the schema; waiting for it");
            is_first = false;
        }
        sleep(TURN_INTERVAL).await;
    }
}

async fn has_table(client: &Client) -> Result<bool, MigrationError> {
    client.query_one(HAS_TABLE, &[]).await.and_then(|row| row.try_get(0)).map_err(query)
}

async fn applied(client: &Client) -> Result<Vec<String>, MigrationError> {
    if !has_table(client).await? {
        return Ok(vec![]);
    }
    let rows = client.query(VERSIONS, &[]).await.map_err(query)?;
    rows.iter().map(|row| row.try_get(0).map_err(query)).collect()
}

/// Applies a migration in as many attempts as the limits allow. Between two of them nothing waits for
/// it. Only one process migrates, so the times between attempts need no jitter.
async fn with_retries(
    client: &mut Client,
    migration: &Migration,
    limits: MigrationLimits,
) -> Result<(), MigrationError> {
    let (attempts, mut backoff) = (limits.attempts.max(1), limits.backoff);
    for attempt in 1..=attempts {
        let within = limits.migration.saturating_add(GRACE);
        let result = timeout(within, attempt_at(client, migration, limits)).await;
        // A connection that is dropped before its commit rolls the migration back.
        let error = match result.map_err(|_| MigrationError::NoAnswer(within))? {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let name = migration.name().to_owned();
        let code = error.code();
        if code == Some(&SqlState::QUERY_CANCELED) {
            return Err(MigrationError::TooLong { migration: name, limit: limits.migration });
        }
        let blocked = [SqlState::LOCK_NOT_AVAILABLE, SqlState::T_R_DEADLOCK_DETECTED];
        if !code.is_some_and(|code| blocked.contains(code)) {
            return Err(MigrationError::Failed { migration: name, source: Box::new(error) });
        }
        let holders = holders(client).await;
        if attempt == attempts {
            let lock = limits.lock;
            return Err(MigrationError::Locked { migration: name, attempts, lock, holders });
        }
        tracing::warn!(
            migration = name,
            attempt,
            "migration {name} got no lock and was rolled back; trying again in {} ms: {holders}",
            backoff.as_millis()
        );
        sleep(backoff).await;
        backoff = backoff.saturating_mul(2).min(MAX_BACKOFF);
    }
    Ok(())
}

/// Applies a migration and records it: in one transaction, or statement by statement.
async fn attempt_at(
    client: &mut Client,
    migration: &Migration,
    limits: MigrationLimits,
) -> Result<(), tokio_postgres::Error> {
    let record = "INSERT INTO __diesel_schema_migrations (version) VALUES ($1)";
    let Some(statements) = migration.concurrent_statements() else {
        let transaction = client.transaction().await?;
        let limit = format!("SET LOCAL lock_timeout = {}", limits.lock.as_millis());
        transaction.batch_execute(&limit).await?;
        transaction.batch_execute(&migration.up).await?;
        transaction.execute(record, &[&migration.version()]).await?;
        return transaction.commit().await;
    };
    // Nobody waits behind the locks of these statements, so that only the limit of the migration ends
    // their wait.
    for statement in &statements {
        if let Err(error) = client.batch_execute(statement).await {
            undo(client, migration, &statements).await;
            client.batch_execute(&statement_timeout(limits.migration)).await?;
            return Err(error);
        }
    }
    client.execute(record, &[&migration.version()]).await.map(drop)
}

/// Removes the index that a failed attempt left: it is invalid, and each write would maintain it. If
/// that is not possible at once, the next attempt begins with it.
async fn undo(client: &Client, migration: &Migration, statements: &[String]) {
    let Some(first) = statements.first() else { return };
    let limited = client.batch_execute(&statement_timeout(UNDO_TIMEOUT)).await;
    let undone = match limited {
        Ok(()) => client.batch_execute(first).await,
        Err(error) => Err(error),
    };
    if let Err(error) = undone {
        let (name, error): (_, &dyn std::error::Error) = (migration.name(), &error);
        tracing::warn!(
            migration = name,
            error,
            "failed to remove what migration {name} left; the next attempt begins with that"
        );
    }
}

fn statement_timeout(timeout: Duration) -> String {
    format!("SET statement_timeout = {}", timeout.as_millis())
}

/// Returns the oldest transactions in words.
async fn holders(client: &Client) -> String {
    let read = timeout(GRACE, client.query(OLDEST_TRANSACTIONS, &[])).await;
    let rows = read.ok().and_then(Result::ok).unwrap_or_default();
    let rows: Vec<String> = rows.iter().filter_map(|row| row.try_get(0).ok()).collect();
    if rows.is_empty() {
        return "no transaction is open any more".to_owned();
    }
    format!("the oldest open transactions are of {}", rows.join(", "))
}

fn query(error: tokio_postgres::Error) -> MigrationError {
    MigrationError::Query(Box::new(error))
}

async fn bounded<T>(
    within: Duration,
    work: impl Future<Output = Result<T, MigrationError>>,
) -> Result<T, MigrationError> {
    timeout(within, work).await.unwrap_or(Err(MigrationError::NoAnswer(within)))
}
