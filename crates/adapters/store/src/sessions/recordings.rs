//! The queue of recordings to be encoded.

use ::diesel::prelude::*;
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use diesel_async::RunQueryDsl;
use domain::id::SessionId;
use ports::{
    StoreError,
    recording::{RecordingClaim, RecordingOutcome, RecordingQueue, RecordingState},
};

use crate::engine::column::{Id, Timestamp};
use crate::engine::database::{Store, failed, with_conn, with_due};
use crate::engine::schema::recordings;

pub(crate) const PENDING: &str = "pending";
const IN_PROGRESS: &str = "in_progress";
const KEPT: &str = "kept";
const FAILED: &str = "failed";
pub(crate) const ERASED: &str = "erased";
const OPEN: [&str; 2] = [PENDING, IN_PROGRESS];

#[derive(Insertable)]
#[diesel(table_name = recordings)]
pub(crate) struct NewRecording {
    pub(crate) session: Id,
    pub(crate) state: &'static str,
    pub(crate) due: Timestamp,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = recordings)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
struct RecordingClaimRow {
    session: Id,
    attempt: i32,
}

#[async_trait]
impl RecordingQueue for Store {
    async fn recording(&self, session: SessionId) -> Result<Option<RecordingState>, StoreError> {
        let row: QueryResult<Option<(String, Option<String>)>> = with_conn!(self, |conn| {
            recordings::table
                .find(Id::from(session))
                .select((recordings::state, recordings::error))
                .first(conn)
                .await
                .optional()
        });
        let row = row.map_err(failed("read a recording"))?;
        row.map(|(state, error)| read(&state, error)).transpose()
    }

    async fn claim_recordings(
        &self,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
    ) -> Result<Vec<RecordingClaim>, StoreError> {
        let due = recordings::table
            .select(recordings::session)
            .filter(recordings::state.eq_any(OPEN))
            .filter(recordings::due.le(Timestamp(now)))
            .order(recordings::due)
            .limit(limit.into());
        let taken = (
            recordings::state.eq(IN_PROGRESS),
            recordings::attempt.eq(recordings::attempt + 1),
            recordings::due.eq(Timestamp(now + lease)),
        );
        let claimed: QueryResult<Vec<RecordingClaimRow>> = with_due!(self, due, |conn, due: Id| {
            ::diesel::update(recordings::table.filter(recordings::session.eq_any(due)))
                .set(taken)
                .returning(RecordingClaimRow::as_returning())
                .get_results(conn)
                .await
        });
        let claims = claimed
            .map_err(failed("claim recordings"))?
            .into_iter()
            .map(|row| RecordingClaim { session: row.session.to(), attempt: row.attempt });
        Ok(claims.collect())
    }

    async fn renew_recording(
        &self,
        claim: &RecordingClaim,
        until: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let renewed = with_conn!(self, |conn| {
            ::diesel::update(recordings::table.find(Id::from(claim.session)))
                .filter(recordings::state.eq(IN_PROGRESS))
                .filter(recordings::attempt.eq(claim.attempt))
                .set(recordings::due.eq(Timestamp(until)))
                .execute(conn)
                .await
        });
        renewed.map(|rows| rows == 1).map_err(failed("renew a recording's lease"))
    }

    async fn complete_recording(
        &self,
        claim: &RecordingClaim,
        verdict: RecordingOutcome,
    ) -> Result<bool, StoreError> {
        let (state, error, due) = match verdict {
            RecordingOutcome::Kept => (KEPT, None, None),
            RecordingOutcome::Failed(error) => (FAILED, Some(error), None),
            RecordingOutcome::RetryAt(due) => (PENDING, None, Some(Timestamp(due))),
        };
        let settled = with_conn!(self, |conn| {
            let held = ::diesel::update(recordings::table.find(Id::from(claim.session)))
                .filter(recordings::state.eq(IN_PROGRESS))
                .filter(recordings::attempt.eq(claim.attempt));
            let outcome = (recordings::state.eq(state), recordings::error.eq(error));
            match due {
                Some(due) => held.set((outcome, recordings::due.eq(due))).execute(conn).await,
                None => held.set(outcome).execute(conn).await,
            }
        });
        settled.map(|rows| rows == 1).map_err(failed("settle a recording"))
    }
}

fn read(state: &str, error: Option<String>) -> Result<RecordingState, StoreError> {
    Ok(match state {
        PENDING => RecordingState::Pending,
        IN_PROGRESS => RecordingState::InProgress,
        KEPT => RecordingState::Kept,
        FAILED => RecordingState::Failed(error.unwrap_or_default()),
        ERASED => RecordingState::Erased,
        _ => return Err(StoreError::new("read a recording", "its state is unknown")),
    })
}
