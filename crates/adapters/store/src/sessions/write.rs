//! Writes a new or changed session, its timeline and its records, in one transaction.

use ::diesel::{
    dsl::{exists, not},
    prelude::*,
    result::Error as DieselError,
    sql_types::BigInt,
};
use chrono::{DateTime, Utc};
use diesel_async::RunQueryDsl;
use domain::session::Change;
use ports::{
    StoreError,
    session_store::{CommitError, IdempotencyKey, InsertOutcome},
};

use crate::engine::column::{Id, Timestamp};
use crate::engine::database::{Store, failed, with_transaction};
use crate::engine::hash::sha256;
use crate::engine::schema::{idempotency_keys, sessions};
use crate::sessions::change_records::{ChangeRecords, write_change_records};
use crate::sessions::commit_batch::CommitRequest;
use crate::sessions::insert_batch::InsertRequest;
use crate::sessions::row::{LeaseColumns, SessionRow};

#[derive(Insertable)]
#[diesel(table_name = idempotency_keys)]
struct NewIdempotencyKey {
    owner: Id,
    key: String,
    request: Vec<u8>,
    session: Id,
    created_at: Timestamp,
}

::diesel::define_sql_function! {
    /// Takes an advisory lock until the end of the transaction, if it is free.
    #[sql_name = "pg_try_advisory_xact_lock"]
    fn try_lock(number: BigInt) -> Bool;
}

/// Returns the number of the lock of an owner's idempotency key. Two keys may have the same number;
/// then one of two concurrent requests is asked to try again.
fn lock_number(key: &NewIdempotencyKey) -> i64 {
    let digest = sha256(&[key.owner.0.as_bytes(), key.key.as_bytes()].concat());
    digest.first_chunk().map_or(0, |bytes| i64::from_be_bytes(*bytes))
}

/// The record of an idempotency key.
enum FoundKey {
    Nothing,
    InFlight,
    Other,
    Before(Box<SessionRow>),
}

/// Reads the record of an idempotency key, within the transaction of `$conn`.
macro_rules! look_up {
    ($conn:expr, $key:expr, $since:expr) => {{
        let used = || {
            idempotency_keys::table
                .filter(idempotency_keys::owner.eq($key.owner))
                .filter(idempotency_keys::key.eq(&$key.key))
        };
        let too_old = used().filter(idempotency_keys::created_at.lt($since));
        ::diesel::delete(too_old).execute($conn).await?;
        let found: Option<(Vec<u8>, SessionRow)> = used()
            .inner_join(sessions::table)
            .select((idempotency_keys::request, SessionRow::as_select()))
            .first($conn)
            .await
            .optional()?;
        match found {
            None => FoundKey::Nothing,
            Some((request, _)) if request != $key.request => FoundKey::Other,
            Some((_, row)) => FoundKey::Before(Box::new(row)),
        }
    }};
}

/// Inserts a session under its idempotency key if the key is unused, within the transaction of
/// `$conn`.
macro_rules! insert_unless_used {
    ($conn:expr, $row:expr, $records:expr, $key:expr, $since:expr) => {{
        let found = look_up!($conn, $key, $since);
        if matches!(found, FoundKey::Nothing) {
            ::diesel::insert_into(sessions::table).values($row).execute($conn).await?;
            write_change_records!($conn, $row, $records);
            ::diesel::insert_into(idempotency_keys::table).values($key).execute($conn).await?;
        }
        Ok(found)
    }};
}

impl Store {
    pub(crate) async fn insert_session(
        &self,
        opening: &Change,
        once: Option<&IdempotencyKey>,
    ) -> Result<InsertOutcome, StoreError> {
        let (row, records) = self.written(opening).await?;
        let key = once.map(|once| NewIdempotencyKey {
            owner: row.owner,
            key: once.key.clone(),
            request: once.request.to_vec(),
            session: row.id,
            created_at: row.created_at,
        });
        let since = Timestamp(once.map_or(opening.at, |once| once.since));
        let written: Result<FoundKey, DieselError> = match &key {
            None => match &self.writes {
                Some(connection) if records.has_only_event() => {
                    let event = opening.event.to_owned();
                    connection.request(InsertRequest { row, event }).await??;
                    return Ok(InsertOutcome::Fresh);
                }
                Some(_) | None => self.insert_new(&row, &records).await?,
            },
            Some(key) => self.insert_once(&row, &records, key, since).await?,
        };
        Ok(match written.map_err(failed("insert a session"))? {
            FoundKey::Nothing => InsertOutcome::Fresh,
            FoundKey::InFlight => InsertOutcome::InFlight,
            FoundKey::Other => InsertOutcome::OtherRequest,
            FoundKey::Before(row) => {
                InsertOutcome::Before(Box::new(self.read_session(*row).await?))
            }
        })
    }

    /// The values that a change writes, encrypted with a key of the session's team.
    async fn written(&self, change: &Change) -> Result<(SessionRow, ChangeRecords), StoreError> {
        let team = self.team_of_key(Id::from(change.session.owner)).await?;
        let writer = self.writer(team).await?;
        Ok((SessionRow::of(&change.session, &writer)?, ChangeRecords::of(change, team, &writer)?))
    }

    async fn insert_new(
        &self,
        row: &SessionRow,
        records: &ChangeRecords,
    ) -> Result<Result<FoundKey, DieselError>, StoreError> {
        Ok(with_transaction!(self, |conn| {
            ::diesel::insert_into(sessions::table).values(row).execute(conn).await?;
            write_change_records!(conn, row, records);
            Ok(FoundKey::Nothing)
        }))
    }

    /// Writes nothing if the idempotency key was used. PostgreSQL holds an advisory lock for the
    /// key meanwhile; SQLite has one writer.
    async fn insert_once(
        &self,
        row: &SessionRow,
        records: &ChangeRecords,
        key: &NewIdempotencyKey,
        since: Timestamp,
    ) -> Result<Result<FoundKey, DieselError>, StoreError> {
        let lock = lock_number(key);
        Ok(with_transaction!(
            self,
            postgres | conn | {
                let mine = ::diesel::select(try_lock(lock)).get_result::<bool>(conn).await?;
                if !mine {
                    return Ok(FoundKey::InFlight);
                }
                insert_unless_used!(conn, row, records, key, since)
            },
            sqlite | conn | { insert_unless_used!(conn, row, records, key, since) }
        ))
    }

    pub(crate) async fn commit_change(
        &self,
        change: &Change,
        alive_until: DateTime<Utc>,
    ) -> Result<(), CommitError> {
        let (row, records) = self.written(change).await?;
        let lease = LeaseColumns::of(&change.session, alive_until);
        if let Some(connection) = &self.writes
            && records.fit_a_batch()
        {
            let is_saved = connection.request(CommitRequest { row, lease, records }).await??;
            return if is_saved { Ok(()) } else { Err(CommitError::Stale) };
        }
        let written: Result<bool, DieselError> = with_transaction!(self, |conn| {
            let before = sessions::table
                .filter(sessions::id.eq(row.id))
                .filter(sessions::version.eq(row.version.saturating_sub(1)));
            let browser = sessions::browser.eq(lease.browser);
            let alive_until = lease.alive_until.map(|until| sessions::alive_until.eq(until));
            let all = (&row, browser, alive_until);
            if ::diesel::update(before).set(all).execute(conn).await? == 0 {
                return Ok(false);
            }
            write_change_records!(conn, row, records);
            Ok(true)
        });
        match written {
            Ok(true) => {
                if records.erased.is_some() {
                    // The data is erased in any case; if truncating the log fails, it is repeated
                    // within a minute.
                    let _ = self.truncate_log().await;
                }
                Ok(())
            }
            Ok(false) => Err(CommitError::Stale),
            Err(error) => Err(failed("commit a change")(error).into()),
        }
    }
}
