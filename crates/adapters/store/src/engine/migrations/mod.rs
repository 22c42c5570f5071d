//! The migrations of this release, and which of them a database lacks. Those of PostgreSQL are
//! applied by `postgres`, those of SQLite by `sqlite`.
//!
//! The table of applied migrations has the name and the columns that Diesel's command-line program
//! uses. Diesel's own harness is not used: its errors do not tell that a lock was not available from
//! a fault of the migration.

mod postgres;
mod sqlite;

use std::{borrow::Cow, collections::BTreeSet, time::Duration};

use include_dir::{Dir, include_dir};
use ports::StoreError;

pub(crate) use self::sqlite::{applied as applied_sqlite, apply as apply_sqlite};
use crate::engine::database::failed;
use crate::engine::pools::open_sqlite;
use crate::engine::server::{DatabaseUrl, Server, Timeouts};

static POSTGRES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../../migrations/postgres");
static SQLITE: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../../migrations/sqlite");
const TABLE: &str = "CREATE TABLE IF NOT EXISTS __diesel_schema_migrations (
    version VARCHAR(50) PRIMARY KEY NOT NULL,
    run_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
)";
const VERSIONS: &str = "SELECT version FROM __diesel_schema_migrations ORDER BY version";
/// The first line of a migration whose two statements run one by one outside of a transaction.
const CONCURRENTLY: &str = "-- avouch:concurrently";

/// A step of the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    name: Cow<'static, str>,
    up: Cow<'static, str>,
}

impl Migration {
    /// Creates a migration from its name, `VERSION_SUBJECT`, and its statements.
    #[must_use]
    pub fn new(name: impl Into<Cow<'static, str>>, up: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), up: up.into() }
    }

    /// Returns the name, which is that of its folder.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what the table of applied migrations calls it.
    fn version(&self) -> &str {
        self.name.split_once('_').map_or(&*self.name, |(version, _)| version)
    }

    /// Returns the statements that run one by one outside of a transaction: the first undoes what a
    /// failed attempt at the others left. `None` for a migration that is one transaction.
    fn concurrent_statements(&self) -> Option<Vec<String>> {
        if self.up.lines().next() != Some(CONCURRENTLY) {
            return None;
        }
        let lines: String = self
            .up
            .lines()
            .filter(|line| !line.trim_start().starts_with("--"))
            .flat_map(|line| [line, "\n"])
            .collect();
        let statements = lines.split(';').map(str::trim).filter(|statement| !statement.is_empty());
        Some(statements.map(str::to_owned).collect())
    }
}

/// Returns what the table of applied migrations calls those of this release, on PostgreSQL.
pub(crate) fn postgres_versions() -> Vec<String> {
    versions(&POSTGRES)
}

/// The same on SQLite.
pub(crate) fn sqlite_versions() -> Vec<String> {
    versions(&SQLITE)
}

fn versions(folder: &'static Dir<'static>) -> Vec<String> {
    embedded(folder).iter().map(|migration| migration.version().to_owned()).collect()
}

/// Returns the migrations of a folder in their order.
fn embedded(folder: &'static Dir<'static>) -> Vec<Migration> {
    let migrations = folder.dirs().filter_map(|step| {
        let name = step.path().file_name()?.to_str()?;
        let up = folder.get_file(step.path().join("up.sql"))?.contents_utf8()?;
        Some(Migration::new(name, up))
    });
    let mut migrations: Vec<_> = migrations.collect();
    migrations.sort_by(|one, other| one.name.cmp(&other.name));
    migrations
}

/// The bounds of applying migrations to PostgreSQL. SQLite has one writer, which waits for at most
/// ten seconds for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MigrationLimits {
    /// How long an attempt at one migration may take. PostgreSQL ends a statement after this time,
    /// and 5 s later the connection is closed.
    pub migration: Duration,
    /// How long a statement waits for a lock (`lock_timeout`). As long as it waits, queries that need
    /// the table wait behind it.
    pub lock: Duration,
    /// How often a migration is attempted that gets no lock, at least once.
    pub attempts: u32,
    /// The time before the second attempt, which is doubled before each further one, up to 15 s.
    pub backoff: Duration,
    /// How long to wait while another process migrates.
    pub turn: Duration,
}

/// How long one migration may take if nothing else is configured.
const MIGRATION_TIMEOUT: Duration = Duration::from_secs(600);

impl Default for MigrationLimits {
    fn default() -> Self {
        Self::for_migrations_of(MIGRATION_TIMEOUT)
    }
}

impl MigrationLimits {
    /// Returns the bounds for migrations that may take this long each: ten attempts of a second,
    /// 75 s of waiting between them, and another process is waited for a minute longer than its
    /// longest migration may take.
    #[must_use]
    pub const fn for_migrations_of(migration: Duration) -> Self {
        Self {
            migration,
            lock: Duration::from_secs(1),
            attempts: 10,
            backoff: Duration::from_millis(500),
            turn: migration.saturating_add(Duration::from_secs(60)),
        }
    }
}

/// What happens to the schema when a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaPolicy {
    /// Pending migrations are applied.
    Migrate(MigrationLimits),
    /// Nothing is changed; a store whose schema lacks a migration is not opened.
    Require,
}

impl Default for SchemaPolicy {
    fn default() -> Self {
        Self::Migrate(MigrationLimits::default())
    }
}

/// How the schema of a database differs from that of this release.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SchemaStatus {
    /// The names of the migrations that the database lacks, in their order.
    pub pending: Vec<String>,
    /// The versions of applied migrations that this release does not have: those of a newer one.
    pub newer: Vec<String>,
}

/// Why a schema is not, or not known to be, that of this release.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    #[error("the database lacks {}: run `avouch migrate`", shortened(.0))]
    Missing(Vec<String>),
    #[error(
        "another process has been migrating for {} s: it holds the advisory lock of migrations",
        .0.as_secs()
    )]
    Busy(Duration),
    #[error(
        "{migration} got no lock in {attempts} attempts of {} ms and was rolled back: {holders}",
        .lock.as_millis()
    )]
    Locked { migration: String, attempts: u32, lock: Duration, holders: String },
    #[error(
        "{migration} took longer than {} s and was rolled back: see migration_seconds",
        .limit.as_secs()
    )]
    TooLong { migration: String, limit: Duration },
    #[error("{migration} failed and was rolled back")]
    Failed {
        migration: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("the database gave no answer within {} s", .0.as_secs())]
    NoAnswer(Duration),
    #[error("{0}")]
    Connect(String),
    #[error("a query about the schema failed")]
    Query(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl MigrationError {
    /// Converts the error to one of an action. A connection that could not be opened is told as it is
    /// elsewhere.
    pub(crate) fn into_store_error(self, action: &'static str) -> StoreError {
        match self {
            Self::Connect(error) => StoreError::new("connect", error),
            Self::Missing(_)
            | Self::Busy(_)
            | Self::Locked { .. }
            | Self::TooLong { .. }
            | Self::Failed { .. }
            | Self::NoAnswer(_)
            | Self::Query(_) => StoreError::new(action, self),
        }
    }
}

/// Returns a list of migrations in words, which is not longer than a line.
fn shortened(names: &[String]) -> String {
    match names {
        [] => "no migration".to_owned(),
        [one] => format!("the migration {one}"),
        [first, .., last] => format!("{} migrations, {first} to {last}", names.len()),
    }
}

/// Compares the schema of a database with that of this release, and applies what is missing.
pub struct Migrator<'a> {
    url: &'a DatabaseUrl,
    timeouts: Timeouts,
    migrations: Vec<Migration>,
}

impl<'a> Migrator<'a> {
    /// Creates a migrator with the migrations of this release.
    #[must_use]
    pub fn new(url: &'a DatabaseUrl, timeouts: Timeouts) -> Self {
        let migrations = match url {
            DatabaseUrl::Sqlite(_) => sqlite_migrations(),
            DatabaseUrl::Postgres(_) => postgres_migrations(),
        };
        Self { url, timeouts, migrations }
    }

    /// Returns a migrator with further migrations, as a later release has them.
    #[must_use]
    pub fn with(mut self, further: impl IntoIterator<Item = Migration>) -> Self {
        self.migrations.extend(further);
        self
    }

    /// Reads which migrations the database has. Changes nothing, and creates no file.
    ///
    /// # Errors
    /// The database cannot be reached, or does not answer in time.
    pub async fn status(&self) -> Result<SchemaStatus, StoreError> {
        let applied = match self.url {
            DatabaseUrl::Sqlite(path) => sqlite::read(path),
            DatabaseUrl::Postgres(url) => postgres::read(&url.server(self.timeouts)).await,
        };
        let applied = applied.map_err(|error| error.into_store_error("read the schema"))?;
        Ok(compare(&self.migrations, &applied))
    }

    /// Applies what is missing, in one process at a time, and returns the names of what this call
    /// applied. A migration that fails leaves nothing, and those before it stay applied.
    ///
    /// # Errors
    /// The database cannot be reached, or a migration failed; or a bound of `limits` was reached.
    pub async fn apply(&self, limits: MigrationLimits) -> Result<Vec<String>, StoreError> {
        match self.url {
            DatabaseUrl::Sqlite(path) => {
                let mut conn = open_sqlite(path).await.map_err(failed("connect"))?;
                apply_sqlite(&mut conn, self.migrations.clone()).await
            }
            DatabaseUrl::Postgres(url) => {
                let server = url.server(self.timeouts);
                postgres::apply(&server, &self.migrations, limits).await
            }
        }
        .map_err(|error| error.into_store_error("migrate"))
    }
}

pub(crate) fn sqlite_migrations() -> Vec<Migration> {
    embedded(&SQLITE)
}

fn postgres_migrations() -> Vec<Migration> {
    embedded(&POSTGRES)
}

/// Brings the schema of a server to that of this release, or requires that it is.
pub(crate) async fn prepare_postgres(
    server: &Server,
    policy: SchemaPolicy,
) -> Result<(), MigrationError> {
    let migrations = postgres_migrations();
    let status = compare(&migrations, &postgres::read(server).await?);
    accept(&status, policy)?;
    match policy {
        // A process that lacks nothing does not wait for one that applies a later release's steps,
        // and needs no right to change the schema.
        SchemaPolicy::Migrate(limits) if !status.pending.is_empty() => {
            postgres::apply(server, &migrations, limits).await.map(drop)
        }
        SchemaPolicy::Migrate(_) | SchemaPolicy::Require => Ok(()),
    }
}

/// Refuses a schema that lacks what this release needs and that may not be changed. A newer schema is
/// accepted: releases only add to it as long as the one before may run.
pub(crate) fn accept(status: &SchemaStatus, policy: SchemaPolicy) -> Result<(), MigrationError> {
    if !status.newer.is_empty() {
        let newer = status.newer.join(", ");
        tracing::info!(newer, "the schema is that of a newer release, with the migrations {newer}");
    }
    if policy == SchemaPolicy::Require && !status.pending.is_empty() {
        return Err(MigrationError::Missing(status.pending.clone()));
    }
    Ok(())
}

/// Returns what differs between the migrations of this release and the applied versions.
pub(crate) fn compare(migrations: &[Migration], applied: &[String]) -> SchemaStatus {
    let known: BTreeSet<_> = migrations.iter().map(Migration::version).collect();
    let applied: BTreeSet<_> = applied.iter().map(String::as_str).collect();
    let pending = migrations.iter().filter(|migration| !applied.contains(migration.version()));
    SchemaStatus {
        pending: pending.map(|migration| migration.name().to_owned()).collect(),
        newer: applied.difference(&known).map(|version| (*version).to_owned()).collect(),
    }
}

/// Returns the migrations whose versions are not among the applied ones.
fn pending(migrations: Vec<Migration>, applied: &[String]) -> Vec<Migration> {
    let applied: BTreeSet<_> = applied.iter().map(String::as_str).collect();
    migrations.into_iter().filter(|migration| !applied.contains(migration.version())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_databases_have_the_same_steps() {
        let names = |migrations: Vec<Migration>| {
            migrations.into_iter().map(|migration| migration.name).collect::<Vec<_>>()
        };
        let postgres = names(postgres_migrations());
        assert_eq!(postgres, names(sqlite_migrations()));
        assert!(postgres.len() >= 27, "{postgres:?}");
        assert!(postgres.is_sorted(), "{postgres:?}");
    }

    #[test]
    fn missing_and_newer_migrations_are_told_apart() {
        let migrations = [("0001_first", ""), ("0002_second", ""), ("0003_third", "")]
            .map(|(name, up)| Migration::new(name, up));
        let applied = ["0001", "0003", "0004"].map(str::to_owned);
        let status = compare(&migrations, &applied);
        assert_eq!(status.pending, ["0002_second"]);
        assert_eq!(status.newer, ["0004"]);
    }

    #[test]
    fn a_concurrent_migration_is_split_into_its_statements() {
        let up = "-- avouch:concurrently\n-- Why; with a semicolon.\nDROP INDEX CONCURRENTLY IF \
                  EXISTS a;\nCREATE INDEX CONCURRENTLY a\n    ON b (c);\n";
        let statements = Migration::new("0001_a", up).concurrent_statements().unwrap();
        let expected =
            ["DROP INDEX CONCURRENTLY IF EXISTS a", "CREATE INDEX CONCURRENTLY a\n    ON b (c)"];
        assert_eq!(statements, expected);
        assert_eq!(Migration::new("0002_b", "SELECT 1").concurrent_statements(), None);
    }
}
