//! The clock of the database: that of the server, or that of this machine where the database is a file.

use ::diesel::{QueryResult, QueryableByName, sql_query};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel_async::RunQueryDsl as _;
use ports::{StoreError, clock::ReferenceClock};

use crate::engine::column::{SqlTimestamp, Timestamp};
use crate::engine::database::{Database, Store, failed, with_conn, with_read};

#[derive(QueryableByName)]
struct ClockRow {
    #[diesel(sql_type = SqlTimestamp)]
    now: Timestamp,
}

#[async_trait]
impl ReferenceClock for Store {
    async fn read_clock(&self) -> Result<DateTime<Utc>, StoreError> {
        let statement = match &self.pool {
            Database::Postgres(..) => "SELECT clock_timestamp() AS now",
            Database::Sqlite(_) => {
                "SELECT CAST(unixepoch('now', 'subsec') * 1000000 AS INTEGER) AS now"
            }
        };
        let read: QueryResult<ClockRow> =
            with_read!(self, |conn| sql_query(statement).get_result(conn).await);
        read.map(|row| row.now.0).map_err(failed("read the clock"))
    }
}
