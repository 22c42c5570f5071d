//! Deletes sessions that were erased long ago.

use std::collections::{HashMap, HashSet};

use ::diesel::{
    dsl::{exists, not},
    prelude::*,
};
use chrono::{DateTime, Utc};
use diesel_async::RunQueryDsl;
use ports::StoreError;
use uuid::Uuid;

use crate::engine::column::{Id, SqlTimestamp, Timestamp};
use crate::engine::database::{Store, failed, with_conn, with_transaction};
use crate::engine::schema::{
    attestations, join_codes, notifications, outbox, recordings, session_counts, session_devices,
    session_events, session_totals, sessions,
};
use crate::sessions::totals::{LOCK_TOTALS, subtract_deleted};

/// Returns the least identifier (RFC 9562, version 7) of a moment, without version and variant, so that
/// it is not greater than any identifier of that millisecond.
fn least_id(at: DateTime<Utc>) -> Id {
    let milliseconds = u128::try_from(at.timestamp_millis()).unwrap_or_default();
    Id(Uuid::from_u128(milliseconds << 80))
}

::diesel::define_sql_function! {
    /// Creates and drops partitions, and returns how many.
    fn maintain_timeline(at: SqlTimestamp, before: SqlTimestamp) -> Integer;
}

/// Deletes sessions with everything but their timeline, within the transaction of `$conn`.
macro_rules! delete_all {
    ($conn:expr, $ids:expr) => {{
        if $ids.is_empty() {
            return Ok(0);
        }
        subtract_deleted!($conn, &$ids);
        let codes = join_codes::table.filter(join_codes::session.eq_any(&$ids));
        ::diesel::delete(codes).execute($conn).await?;
        let devices = session_devices::table.filter(session_devices::session.eq_any(&$ids));
        ::diesel::delete(devices).execute($conn).await?;
        let messages = notifications::table.filter(notifications::session.eq_any(&$ids));
        ::diesel::delete(messages).execute($conn).await?;
        let recorded = recordings::table.filter(recordings::session.eq_any(&$ids));
        ::diesel::delete(recorded).execute($conn).await?;
        let proved = attestations::table.filter(attestations::session.eq_any(&$ids));
        ::diesel::delete(proved).execute($conn).await?;
        let these = sessions::table.filter(sessions::id.eq_any(&$ids));
        ::diesel::delete(these).execute($conn).await
    }};
}

impl Store {
    /// The sessions are found by their identifiers, which have the time of their creation: the index of
    /// the primary key begins with the oldest.
    pub(crate) async fn delete_erased(
        &self,
        before: DateTime<Utc>,
        limit: u16,
    ) -> Result<usize, StoreError> {
        let jobs = outbox::table.filter(outbox::session.eq(sessions::id));
        let old = sessions::table
            .filter(sessions::id.lt(least_id(before)))
            .filter(sessions::created_at.lt(Timestamp(before)))
            .filter(sessions::erased_at.is_not_null())
            .filter(not(exists(jobs)))
            .order(sessions::id)
            .limit(limit.into())
            .select(sessions::id);
        let deleted: QueryResult<usize> = with_transaction!(
            self,
            postgres | conn | {
                ::diesel::sql_query(LOCK_TOTALS).execute(conn).await?;
                let ids: Vec<Id> = old.load(conn).await?;
                // Their timeline goes with its partition.
                delete_all!(conn, ids)
            },
            sqlite | conn | {
                let ids: Vec<Id> = old.load(conn).await?;
                let events = session_events::table.filter(session_events::session.eq_any(&ids));
                ::diesel::delete(events).execute(conn).await?;
                delete_all!(conn, ids)
            }
        );
        deleted.map_err(failed("delete erased sessions"))
    }

    /// Calls the function of the schema that creates and drops the partitions of the timeline. SQLite has
    /// none.
    pub(crate) async fn maintain_timeline(
        &self,
        now: DateTime<Utc>,
        before: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let changed: QueryResult<i32> = with_conn!(
            self,
            postgres | conn | {
                let (now, before) = (Timestamp(now), Timestamp(before));
                ::diesel::select(maintain_timeline(now, before)).get_result(conn).await
            },
            sqlite | _conn | Ok(0)
        );
        let changed = changed.map_err(failed("maintain the partitions of the timeline"))?;
        if changed > 0 {
            tracing::info!(partitions = changed, "created or dropped partitions of the timeline");
        }
        Ok(())
    }
}
