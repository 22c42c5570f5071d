//! The number of each key's old sessions, by status. A list adds to it those that were created since.

use std::collections::HashMap;

use ::diesel::prelude::*;
use chrono::{DateTime, TimeDelta, Utc};
use diesel_async::RunQueryDsl;
use domain::api_key::Environment;
use ports::StoreError;

use crate::engine::column::{Id, Timestamp};
use crate::engine::database::{Store, failed, with_conn, with_transaction};
use crate::engine::schema::{api_keys, session_counts, session_totals, sessions};

/// How long the count of a key stays as it is.
const COUNT_INTERVAL: TimeDelta = TimeDelta::hours(6);
/// How often a key's sessions are counted from the beginning, so that what others do to the tables is not
/// miscounted for ever.
const RESTART_INTERVAL: TimeDelta = TimeDelta::days(30);
/// How far the times of a count may lie ahead: the clock was set back by at most this.
const MAX_AHEAD: TimeDelta = TimeDelta::hours(12);
/// Sessions that one transaction counts: on SQLite nobody else writes meanwhile.
const COUNTED_AT_ONCE: usize = 20_000;
const ROWS_READ: i64 = 20_001;
/// Transactions for one key in a row; the next minute goes on.
const MAX_PARTS: usize = 20;
/// Makes those who count, and those who delete what was counted, wait for each other until the end of their
/// transactions.
pub(crate) const LOCK_TOTALS: &str = "SELECT pg_advisory_xact_lock(4852310119)";

#[derive(Insertable, AsChangeset)]
#[diesel(table_name = session_counts)]
struct CountRow {
    owner: Id,
    before: Timestamp,
    counted_at: Timestamp,
    restarted_at: Timestamp,
}

/// A session in the order of creation: when it was created, its status, and when it ended.
type CountedRow = (Timestamp, String, Option<Timestamp>);

/// What one transaction counts.
struct Part {
    /// The sessions before this moment are counted then.
    before: Timestamp,
    by_status: HashMap<String, i64>,
    /// Whether nothing more is to be counted now.
    is_last: bool,
}

impl Part {
    /// Counts the first sessions of an owner, up to a moment or to the first one that is open. One row more
    /// than a part has tells that there are more.
    fn of(rows: Vec<CountedRow>, before: DateTime<Utc>) -> Self {
        let open = rows.iter().find(|(_, _, closed)| closed.is_none());
        let end = open.map_or(before, |(created, ..)| created.0);
        let beyond = rows.get(COUNTED_AT_ONCE).map(|(created, ..)| created.0);
        let beyond = beyond.filter(|beyond| *beyond < end);
        let before = beyond.unwrap_or(end);
        let mut by_status = HashMap::new();
        for (_, status, _) in rows.into_iter().filter(|(created, ..)| created.0 < before) {
            *by_status.entry(status).or_default() += 1;
        }
        Self { before: Timestamp(before), by_status, is_last: beyond.is_none() }
    }
}

/// What is known of an owner's count.
#[derive(Queryable, Selectable)]
#[diesel(table_name = session_counts)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
struct KnownCount {
    before: Timestamp,
    counted_at: Timestamp,
    restarted_at: Timestamp,
}

impl KnownCount {
    /// Whether another process has just counted.
    fn is_recent(&self, now: DateTime<Utc>) -> bool {
        self.counted_at.0 > now - COUNT_INTERVAL && self.counted_at.0 <= now + MAX_AHEAD
    }

    /// Whether it can be gone on from. A count that was made by a wrong clock cannot.
    fn is_valid(&self, now: DateTime<Utc>) -> bool {
        self.restarted_at.0 > now - RESTART_INTERVAL
            && self.restarted_at.0 <= now + MAX_AHEAD
            && self.before.0 <= now
    }
}

/// Counts the next part of an owner's sessions up to `$before`, within the transaction of `$conn`. Returns
/// whether it is the last one.
macro_rules! count {
    ($conn:expr, $owner:expr, $now:expr, $before:expr) => {{
        let (owner, now): (Id, DateTime<Utc>) = ($owner, $now);
        let known: Option<KnownCount> = session_counts::table
            .find(owner)
            .select(KnownCount::as_select())
            .first($conn)
            .await
            .optional()?;
        if known.as_ref().is_some_and(|known| known.is_recent(now)) {
            return Ok(true);
        }
        let known = known.filter(|known| known.is_valid(now));
        let (from, restarted_at) = known.as_ref().map_or_else(
            || (Timestamp(DateTime::UNIX_EPOCH), Timestamp(now)),
            |known| (known.before, known.restarted_at),
        );
        let before = from.0.max($before);
        let rows: Vec<CountedRow> = sessions::table
            .filter(sessions::owner.eq(owner))
            .filter(sessions::created_at.ge(from))
            .filter(sessions::created_at.lt(Timestamp(before)))
            .order(sessions::created_at)
            .limit(ROWS_READ)
            .select((sessions::created_at, sessions::status, sessions::closed_at))
            .load($conn)
            .await?;
        let Part { before, by_status, is_last } = Part::of(rows, before);
        if known.is_none() {
            let old = session_totals::table.filter(session_totals::owner.eq(owner));
            ::diesel::delete(old).execute($conn).await?;
        }
        // A count with more parts stays due.
        let counted_at = Timestamp(if is_last { now } else { DateTime::UNIX_EPOCH });
        let row = CountRow { owner, before, counted_at, restarted_at };
        ::diesel::insert_into(session_counts::table)
            .values(&row)
            .on_conflict(session_counts::owner)
            .do_update()
            .set(&row)
            .execute($conn)
            .await?;
        for (status, sessions) in by_status {
            let row = (
                session_totals::owner.eq(owner),
                session_totals::status.eq(status),
                session_totals::sessions.eq(sessions),
            );
            ::diesel::insert_into(session_totals::table)
                .values(row)
                .on_conflict((session_totals::owner, session_totals::status))
                .do_update()
                .set(session_totals::sessions.eq(session_totals::sessions + sessions))
                .execute($conn)
                .await?;
        }
        Ok(is_last)
    }};
}

/// Subtracts sessions that are about to be deleted, within the transaction of `$conn`, which has the lock.
macro_rules! subtract_deleted {
    ($conn:expr, $ids:expr) => {{
        let going: Vec<(Id, String, Timestamp)> = sessions::table
            .filter(sessions::id.eq_any($ids))
            .select((sessions::owner, sessions::status, sessions::created_at))
            .load($conn)
            .await?;
        let owners = going.iter().map(|(owner, ..)| *owner).collect::<HashSet<_>>();
        let counts: Vec<(Id, Timestamp)> = session_counts::table
            .filter(session_counts::owner.eq_any(owners))
            .select((session_counts::owner, session_counts::before))
            .load($conn)
            .await?;
        for (owner, before) in counts {
            let mut counted = HashMap::<&str, i64>::new();
            for (_, status, _) in
                going.iter().filter(|(its, _, at)| *its == owner && at.0 < before.0)
            {
                *counted.entry(status).or_default() += 1;
            }
            for (status, number) in counted {
                ::diesel::update(session_totals::table.find((owner, status)))
                    .set(session_totals::sessions.eq(session_totals::sessions - number))
                    .execute($conn)
                    .await?;
            }
        }
    }};
}
pub(crate) use subtract_deleted;

impl Store {
    /// Counts the sessions of up to `limit` keys whose count is some hours old. Those of development keys are
    /// counted by each list: the test clock changes when they were created.
    pub(crate) async fn count_sessions(
        &self,
        now: DateTime<Utc>,
        before: DateTime<Utc>,
        limit: u16,
    ) -> Result<usize, StoreError> {
        let counted_at = session_counts::counted_at.nullable();
        let is_due = counted_at
            .is_null()
            .or(counted_at.le(Timestamp(now - COUNT_INTERVAL)))
            .or(counted_at.gt(Timestamp(now + MAX_AHEAD)));
        let due: QueryResult<Vec<Id>> = with_conn!(self, |conn| {
            api_keys::table
                .left_join(session_counts::table.on(session_counts::owner.eq(api_keys::id)))
                .filter(api_keys::environment.eq(Environment::Production.as_str()))
                .filter(is_due)
                .order((counted_at.is_not_null(), counted_at))
                .limit(limit.into())
                .select(api_keys::id)
                .load(conn)
                .await
        });
        let due = due.map_err(failed("find keys whose sessions are to be counted"))?;
        let mut failure = None;
        for owner in &due {
            // One that fails keeps no other from being counted.
            failure = self.count_sessions_of(*owner, now, before).await.err().or(failure);
        }
        failure.map_or(Ok(due.len()), Err)
    }

    async fn count_sessions_of(
        &self,
        owner: Id,
        now: DateTime<Utc>,
        before: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        for _ in 0..MAX_PARTS {
            let counted: QueryResult<bool> = with_transaction!(
                self,
                postgres | conn | {
                    ::diesel::sql_query(LOCK_TOTALS).execute(conn).await?;
                    count!(conn, owner, now, before)
                },
                sqlite | conn | { count!(conn, owner, now, before) }
            );
            if counted.map_err(failed("count the sessions of a key"))? {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(second)
    }

    fn row(second: usize, is_closed: bool) -> CountedRow {
        let created = Timestamp(at(i64::try_from(second).unwrap()));
        (created, "COMPLETED".to_owned(), is_closed.then_some(created))
    }

    #[test]
    fn a_part_ends_at_the_first_open_session_or_at_its_length() {
        let end = at(1_000_000);
        let closed = |count: usize| (0..count).map(|second| row(second, true)).collect::<Vec<_>>();
        let part = Part::of(closed(5), end);
        assert_eq!((part.before.0, part.by_status["COMPLETED"], part.is_last), (end, 5, true));
        let part = Part::of([closed(5), vec![row(5, false), row(6, true)]].concat(), end);
        assert_eq!((part.before.0, part.by_status["COMPLETED"], part.is_last), (at(5), 5, true));
        let part = Part::of(closed(COUNTED_AT_ONCE + 1), end);
        let expected = (at(20_000), 20_000, false);
        assert_eq!((part.before.0, part.by_status["COMPLETED"], part.is_last), expected);
        assert!(Part::of(vec![], end).by_status.is_empty());
    }

    #[test]
    fn counts_of_another_process_are_kept_and_those_of_a_wrong_clock_are_not() {
        let now = at(100_000_000);
        let count = |before: TimeDelta, counted: TimeDelta| KnownCount {
            before: Timestamp(now + before),
            counted_at: Timestamp(now + counted),
            restarted_at: Timestamp(now + counted),
        };
        let (day, moment) = (TimeDelta::days(-1), TimeDelta::milliseconds(30));
        for (known, is_recent, is_valid) in [
            (count(day + moment, moment), true, true),
            (count(day, TimeDelta::hours(-7)), false, true),
            (count(day, TimeDelta::days(-31)), false, false),
            (count(TimeDelta::days(9), TimeDelta::days(10)), false, false),
        ] {
            assert_eq!((known.is_recent(now), known.is_valid(now)), (is_recent, is_valid));
        }
    }
}
