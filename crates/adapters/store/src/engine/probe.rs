//! Checks whether a database can be used, without changing anything in it.

use std::{collections::BTreeSet, path::Path};

use ::diesel::{
    Connection as _, OptionalExtension as _, QueryableByName, SqliteConnection, sql_query,
    sql_types::{Binary, Integer, Text},
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel_async::RunQueryDsl as _;
use ports::{StoreError, driving::Readiness};

use crate::Store;
use crate::engine::column::{SqlTimestamp, Timestamp};
use crate::engine::database::{bounded, failed};
use crate::engine::migrations::{postgres_versions, sqlite_versions};
use crate::engine::server::{DatabaseUrl, Timeouts};

const ABOUT: &str = "SELECT concat('PostgreSQL ', split_part(version(), ' ', 2), \
    coalesce((SELECT ', ' || version FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl), \
             ', without TLS')) AS text";
const SERVER: &str = "SELECT current_setting('server_version_num')::int AS version, \
    clock_timestamp() AS now";
const MIGRATIONS_TABLE: &str =
    "SELECT coalesce(to_regclass('__diesel_schema_migrations')::text, '') AS text";
const MIGRATIONS: &str = "SELECT version AS text FROM __diesel_schema_migrations";
const KEY_TABLE: &str = "SELECT coalesce(to_regclass('deployment_key')::text, '') AS text";
const KEY: &str = "SELECT fingerprint AS bytes FROM deployment_key";

/// The result of the check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The server in one line, without users and passwords.
    pub found: String,
    /// Why the connection is not protected against interception, if so.
    pub weakness: Option<&'static str>,
    /// The fingerprint of the `secret.key` that the database belongs to, if it has one.
    pub fingerprint: Option<Vec<u8>>,
    /// The version of the server as PostgreSQL numbers it (150004 is 15.4), and its time when it
    /// answered; `None` for a file.
    pub server: Option<(i32, DateTime<Utc>)>,
    pub migrations: MigrationCounts,
}

/// How the schema of a database differs from that of this program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MigrationCounts {
    /// Migrations that run at the next start.
    pub pending: usize,
    /// Migrations that a newer release has run.
    pub unknown: usize,
}

impl MigrationCounts {
    fn of(known: Vec<String>, run: Vec<TextRow>) -> Self {
        let known: BTreeSet<_> = known.into_iter().collect();
        let run: BTreeSet<_> = run.into_iter().map(|row| row.text).collect();
        Self { pending: known.difference(&run).count(), unknown: run.difference(&known).count() }
    }
}

#[derive(QueryableByName)]
struct ServerRow {
    #[diesel(sql_type = Integer)]
    version: i32,
    #[diesel(sql_type = SqlTimestamp)]
    now: Timestamp,
}

#[derive(QueryableByName)]
struct TextRow {
    #[diesel(sql_type = Text)]
    text: String,
}

#[derive(QueryableByName)]
struct BytesRow {
    #[diesel(sql_type = Binary)]
    bytes: Vec<u8>,
}

impl DatabaseUrl {
    /// Connects and reads; runs no migration and creates no file.
    ///
    /// # Errors
    /// The server is unreachable with this URL, or does not answer in time; or the file is not a
    /// database.
    pub async fn probe(&self, timeouts: Timeouts) -> Result<Probe, StoreError> {
        match self {
            Self::Sqlite(path) => sqlite(path),
            Self::Postgres(url) => {
                let server = url.server(timeouts);
                let conn = server.connect().await;
                let mut conn = conn.map_err(failed("connect"))?;
                let read = async {
                    let about: TextRow = sql_query(ABOUT).get_result(&mut conn).await?;
                    let table: TextRow = sql_query(KEY_TABLE).get_result(&mut conn).await?;
                    let migrated: TextRow =
                        sql_query(MIGRATIONS_TABLE).get_result(&mut conn).await?;
                    let run: Vec<TextRow> = if migrated.text.is_empty() {
                        vec![]
                    } else {
                        sql_query(MIGRATIONS).load(&mut conn).await?
                    };
                    let key: Option<BytesRow> = if table.text.is_empty() {
                        None
                    } else {
                        sql_query(KEY).get_result(&mut conn).await.optional()?
                    };
                    // Last, so that the time is that of the answer.
                    let answer: ServerRow = sql_query(SERVER).get_result(&mut conn).await?;
                    Ok::<_, ::diesel::result::Error>((about.text, run, key, answer))
                };
                let read = bounded(timeouts.answer(), read).await.unwrap_or_else(Err);
                let (about, run, key, answer) = read.map_err(failed("answer"))?;
                let known = postgres_versions();
                Ok(Probe {
                    found: format!("{about}, at {}", server.name()),
                    weakness: server.weakness(),
                    fingerprint: key.map(|key| key.bytes),
                    server: Some((answer.version, answer.now.0)),
                    migrations: MigrationCounts::of(known, run),
                })
            }
        }
    }
}

fn sqlite(path: &str) -> Result<Probe, StoreError> {
    if !Path::new(path).exists() {
        return Ok(Probe {
            found: format!("SQLite, {path} is made at the first start"),
            weakness: None,
            fingerprint: None,
            server: None,
            migrations: MigrationCounts::default(),
        });
    }
    let opened = SqliteConnection::establish(&format!("file:{path}?mode=ro"));
    let mut conn = opened.map_err(failed("open the file"))?;
    let about = "SELECT 'SQLite ' || sqlite_version() AS text FROM \
                 (SELECT count(*) FROM sqlite_master)";
    let about: TextRow = ::diesel::RunQueryDsl::get_result(sql_query(about), &mut conn)
        .map_err(failed("read the file"))?;
    // A database that no service has used yet does not have this table.
    let key: Option<BytesRow> = ::diesel::RunQueryDsl::get_result(sql_query(KEY), &mut conn).ok();
    let run = ::diesel::RunQueryDsl::load(sql_query(MIGRATIONS), &mut conn).unwrap_or_default();
    let known = sqlite_versions();
    Ok(Probe {
        found: format!("{}, {path}", about.text),
        weakness: None,
        fingerprint: key.map(|key| key.bytes),
        server: None,
        migrations: MigrationCounts::of(known, run),
    })
}

#[async_trait]
impl Readiness for Store {
    async fn ready(&self) -> bool {
        self.ping().await.is_ok()
    }
}
