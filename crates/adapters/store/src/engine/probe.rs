//! Checks whether a database can be used, without changing anything in it.

use std::path::Path;

use ::diesel::{
    Connection as _, OptionalExtension as _, QueryableByName, SqliteConnection, sql_query,
    sql_types::{Binary, Text},
};
use async_trait::async_trait;
use diesel_async::RunQueryDsl as _;
use ports::{StoreError, driving::Readiness};

use crate::Store;
use crate::engine::database::{bounded, failed};
use crate::engine::server::{ConnectionPurpose, DatabaseUrl, Timeouts};

const ABOUT: &str = "SELECT concat('PostgreSQL ', split_part(version(), ' ', 2), \
    coalesce((SELECT ', ' || version FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl), \
             ', without TLS')) AS text";
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
                let conn = server.connect(ConnectionPurpose::Work).await;
                let mut conn = conn.map_err(failed("connect"))?;
                let read = async {
                    let about: TextRow = sql_query(ABOUT).get_result(&mut conn).await?;
                    let table: TextRow = sql_query(KEY_TABLE).get_result(&mut conn).await?;
                    let key: Option<BytesRow> = if table.text.is_empty() {
                        None
                    } else {
                        sql_query(KEY).get_result(&mut conn).await.optional()?
                    };
                    Ok::<_, ::diesel::result::Error>((about.text, key))
                };
                let read = bounded(timeouts.answer(), read).await.unwrap_or_else(Err);
                let (about, key) = read.map_err(failed("answer"))?;
                Ok(Probe {
                    found: format!("{about}, at {}", server.name()),
                    weakness: server.weakness(),
                    fingerprint: key.map(|key| key.bytes),
                })
            }
        }
    }
}

fn sqlite(path: &str) -> Result<Probe, StoreError> {
    if !Path::new(path).exists() {
        let found = format!("SQLite, {path} is made at the first start");
        return Ok(Probe { found, weakness: None, fingerprint: None });
    }
    let opened = SqliteConnection::establish(&format!("file:{path}?mode=ro"));
    let mut conn = opened.map_err(failed("open the file"))?;
    let about = "SELECT 'SQLite ' || sqlite_version() AS text FROM \
                 (SELECT count(*) FROM sqlite_master)";
    let about: TextRow = ::diesel::RunQueryDsl::get_result(sql_query(about), &mut conn)
        .map_err(failed("read the file"))?;
    // A database that no service has used yet does not have this table.
    let key: Option<BytesRow> = ::diesel::RunQueryDsl::get_result(sql_query(KEY), &mut conn).ok();
    let found = format!("{}, {path}", about.text);
    Ok(Probe { found, weakness: None, fingerprint: key.map(|key| key.bytes) })
}

#[async_trait]
impl Readiness for Store {
    async fn ready(&self) -> bool {
        self.ping().await.is_ok()
    }
}
