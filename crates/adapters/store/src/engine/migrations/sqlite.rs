//! Applies migrations to SQLite, all in one transaction that writes: processes that start at the same
//! time wait for each other, and see nothing to do.

use std::path::Path;

use ::diesel::{
    Connection as _, QueryResult, QueryableByName, RunQueryDsl as _, SqliteConnection,
    connection::SimpleConnection as _, sql_query, sql_types::Text,
};

use super::{Migration, MigrationError, TABLE, VERSIONS, pending};
use crate::engine::database::SqliteConn;
use crate::engine::pools::BUSY_TIMEOUT;

const HAS_TABLE: &str =
    "SELECT name AS version FROM sqlite_master WHERE name = '__diesel_schema_migrations'";

#[derive(QueryableByName)]
struct VersionRow {
    #[diesel(sql_type = Text)]
    version: String,
}

/// Why the transaction was rolled back.
enum Rollback {
    Query(::diesel::result::Error),
    Failed(String, ::diesel::result::Error),
}

impl From<::diesel::result::Error> for Rollback {
    fn from(error: ::diesel::result::Error) -> Self {
        Self::Query(error)
    }
}

impl From<Rollback> for MigrationError {
    fn from(rollback: Rollback) -> Self {
        match rollback {
            Rollback::Query(error) => Self::Query(Box::new(error)),
            Rollback::Failed(migration, error) => {
                Self::Failed { migration, source: Box::new(error) }
            }
        }
    }
}

/// Reads the applied versions of a file, without creating or changing it.
pub(super) fn read(path: &str) -> Result<Vec<String>, MigrationError> {
    if !Path::new(path).exists() {
        return Ok(vec![]);
    }
    let opened = SqliteConnection::establish(&format!("file:{path}?mode=ro"));
    let mut conn = opened.map_err(|error| MigrationError::Connect(error.to_string()))?;
    // Another process may be migrating, or making the file's write-ahead log.
    let patience = format!("PRAGMA busy_timeout = {}", BUSY_TIMEOUT.as_millis());
    let read = conn.batch_execute(&patience).and_then(|()| versions(&mut conn));
    read.map_err(|error| MigrationError::Query(Box::new(error)))
}

/// Reads the applied versions over an open connection.
pub(crate) async fn applied(conn: &mut SqliteConn) -> Result<Vec<String>, MigrationError> {
    let read = conn.spawn_blocking(versions);
    read.await.map_err(|error| MigrationError::Query(Box::new(error)))
}

/// Applies the migrations that are missing; returns the names of those that this call applied.
pub(crate) async fn apply(
    conn: &mut SqliteConn,
    migrations: Vec<Migration>,
) -> Result<Vec<String>, MigrationError> {
    let applied = conn.spawn_blocking(move |conn| {
        Ok(conn.immediate_transaction(|conn| apply_all(conn, migrations)))
    });
    let applied = applied.await.map_err(|error| MigrationError::Query(Box::new(error)))?;
    Ok(applied?)
}

fn apply_all(
    conn: &mut SqliteConnection,
    migrations: Vec<Migration>,
) -> Result<Vec<String>, Rollback> {
    conn.batch_execute(TABLE)?;
    let mut done = Vec::new();
    for migration in pending(migrations, &versions(conn)?) {
        let name = migration.name().to_owned();
        tracing::info!(migration = name, "applying migration {name}");
        conn.batch_execute(&migration.up).map_err(|error| Rollback::Failed(name.clone(), error))?;
        sql_query("INSERT INTO __diesel_schema_migrations (version) VALUES (?)")
            .bind::<Text, _>(migration.version())
            .execute(conn)?;
        done.push(name);
    }
    Ok(done)
}

fn versions(conn: &mut SqliteConnection) -> QueryResult<Vec<String>> {
    let table: Vec<VersionRow> = sql_query(HAS_TABLE).load(conn)?;
    if table.is_empty() {
        return Ok(vec![]);
    }
    let rows: Vec<VersionRow> = sql_query(VERSIONS).load(conn)?;
    Ok(rows.into_iter().map(|row| row.version).collect())
}
