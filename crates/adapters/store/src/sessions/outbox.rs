//! The outbox: the queue of jobs.

use ::diesel::prelude::*;
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use diesel_async::RunQueryDsl;
use domain::{
    id::{InstanceId, SessionId},
    session::Job,
};
use ports::{
    StoreError,
    outbox::{ClaimOutcome, Outbox, OutboxClaim},
};

use crate::engine::column::{Id, Timestamp};
use crate::engine::database::{Store, failed, with_conn, with_due};
use crate::engine::schema::outbox;

#[derive(Insertable)]
#[diesel(table_name = outbox)]
pub(crate) struct NewEntry {
    pub(crate) session: Id,
    pub(crate) effect: String,
    pub(crate) node: Option<Id>,
    pub(crate) due: Timestamp,
}

impl NewEntry {
    pub(crate) fn of(
        session: SessionId,
        job: &Job,
        due: DateTime<Utc>,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            session: Id::from(session),
            effect: serde_json::to_string(job).map_err(failed("serialize a job"))?,
            node: job.node().map(Id::from),
            due: Timestamp(due),
        })
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = outbox)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
struct EntryRow {
    id: i64,
    session: Id,
    effect: String,
    attempt: i32,
}

impl EntryRow {
    /// Returns the claim; `None` for a job that this version does not know. Another instance may
    /// know it, and claims it once the lease has expired.
    fn readable(self) -> Option<OutboxClaim> {
        let (entry, session) = (self.id, self.session.0);
        let claim = self.read();
        if let Err(error) = &claim {
            let error: &dyn std::error::Error = error;
            tracing::error!(
                outbox.entry = entry, session.id = %session, error,
                "failed to read a job; it is claimed again after its lease",
            );
        }
        claim.ok()
    }

    fn read(self) -> Result<OutboxClaim, StoreError> {
        Ok(OutboxClaim {
            entry: self.id,
            session: self.session.to(),
            job: serde_json::from_str(&self.effect).map_err(failed("deserialize a job"))?,
            attempt: self.attempt,
        })
    }
}

#[async_trait]
impl Outbox for Store {
    async fn claim(
        &self,
        node: InstanceId,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
    ) -> Result<Vec<OutboxClaim>, StoreError> {
        let (node, until) = (Id::from(node), Timestamp(now + lease));
        let due = outbox::table
            .select(outbox::id)
            .filter(outbox::buried.eq(false))
            .filter(outbox::due.le(Timestamp(now)))
            .filter(outbox::node.is_null().or(outbox::node.eq(node)))
            .order(outbox::id)
            .limit(limit.into());
        let taken = (outbox::attempt.eq(outbox::attempt + 1), outbox::due.eq(until));
        let claimed: QueryResult<Vec<EntryRow>> = with_due!(self, due, |conn, due: i64| {
            ::diesel::update(outbox::table.filter(outbox::id.eq_any(due)))
                .set(taken)
                .returning(EntryRow::as_returning())
                .get_results(conn)
                .await
        });
        let claimed = claimed.map_err(failed("claim jobs"))?;
        Ok(claimed.into_iter().filter_map(EntryRow::readable).collect())
    }

    async fn complete(
        &self,
        claim: &OutboxClaim,
        outcome: ClaimOutcome,
    ) -> Result<bool, StoreError> {
        let held = outbox::table
            .filter(outbox::id.eq(claim.entry))
            .filter(outbox::attempt.eq(claim.attempt))
            .filter(outbox::buried.eq(false));
        let settled = with_conn!(self, |conn| match outcome {
            ClaimOutcome::Done => ::diesel::delete(held).execute(conn).await,
            ClaimOutcome::RetryAt(due) => {
                ::diesel::update(held).set(outbox::due.eq(Timestamp(due))).execute(conn).await
            }
            ClaimOutcome::Buried => {
                ::diesel::update(held).set(outbox::buried.eq(true)).execute(conn).await
            }
        });
        settled.map(|rows| rows == 1).map_err(failed("complete a job"))
    }

    async fn delete_orphans(
        &self,
        node: InstanceId,
        before: DateTime<Utc>,
    ) -> Result<usize, StoreError> {
        let dropped = with_conn!(self, |conn| {
            let orphans = outbox::table
                .filter(outbox::node.ne(Id::from(node)))
                .filter(outbox::due.lt(Timestamp(before)));
            ::diesel::delete(orphans).execute(conn).await
        });
        dropped.map_err(failed("delete jobs of instances that are gone"))
    }
}
