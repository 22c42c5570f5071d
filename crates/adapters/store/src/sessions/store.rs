//! Finds and leases sessions. `write` saves transitions, `reads` has the queries of partners.

use ::diesel::prelude::*;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel_async::RunQueryDsl;
use domain::{
    api_key::KeyHash,
    frame_ancestors::FrameAncestor,
    id::{ApiKeyId, BrowserId, SessionId, TeamId},
    request::ListQuery,
    session::{Change, Session, Status},
};
use ports::{
    StoreError,
    session_store::{
        ActivityPeriod, BrowserLeases, ClosedSession, CommitError, DueReason, IdempotencyKey,
        InsertOutcome, PolledRecord, SessionActivity, SessionCursor, SessionFilter, SessionQueries,
        SessionRetention, SessionStore, SessionSummary, TeamSessionPage, TeamSessionQueries,
        TimelineEntry,
    },
};
use uuid::Uuid;

use crate::engine::column::{Id, Timestamp};
use crate::engine::database::{Store, failed, with_conn};
use crate::engine::schema::{api_keys, idempotency_keys, sessions, teams};
use crate::sessions::find_batch::FindRequest;
use crate::sessions::row::SessionRow;
use crate::teams::keys::read_ancestors;

#[async_trait]
impl SessionStore for Store {
    async fn insert(
        &self,
        opening: &Change,
        once: Option<&IdempotencyKey>,
    ) -> Result<InsertOutcome, StoreError> {
        self.insert_session(opening, once).await
    }

    async fn find_unscoped(&self, id: SessionId) -> Result<Option<Session>, StoreError> {
        let found = self.session_row(Id::from(id)).await?;
        self.read_found(found).await
    }

    async fn frame_ancestors_of(&self, id: SessionId) -> Result<Vec<FrameAncestor>, StoreError> {
        let owner = sessions::table.find(Id::from(id)).select(sessions::owner);
        let team = api_keys::table.filter(api_keys::id.eq_any(owner)).select(api_keys::team);
        let list: QueryResult<Option<String>> = with_conn!(self, |conn| {
            teams::table
                .filter(teams::id.eq_any(team))
                .select(teams::frame_ancestors)
                .first(conn)
                .await
                .optional()
        });
        let list = list.map_err(failed("find whose pages may show a session"))?;
        read_ancestors(&list.unwrap_or_default())
    }

    async fn commit(&self, change: &Change, alive_until: DateTime<Utc>) -> Result<(), CommitError> {
        self.commit_change(change, alive_until).await
    }
}

#[async_trait]
impl SessionQueries for Store {
    async fn poll(&self, key: &KeyHash, id: SessionId) -> Result<Option<PolledRecord>, StoreError> {
        self.poll_session(key, id).await
    }

    async fn find(&self, owner: ApiKeyId, id: SessionId) -> Result<Option<Session>, StoreError> {
        let found = self.session_row(Id::from(id)).await?;
        self.read_found(found.filter(|row| row.owner == Id::from(owner))).await
    }

    async fn list(
        &self,
        owner: ApiKeyId,
        query: ListQuery,
    ) -> Result<(Vec<SessionSummary>, i64), StoreError> {
        self.list_sessions(owner, query).await
    }

    async fn timeline(
        &self,
        owner: ApiKeyId,
        id: SessionId,
    ) -> Result<Option<Vec<TimelineEntry>>, StoreError> {
        self.session_timeline(owner, id).await
    }
}

#[async_trait]
impl TeamSessionQueries for Store {
    async fn team_sessions(
        &self,
        team: TeamId,
        filter: &SessionFilter,
        after: Option<SessionCursor>,
        limit: u16,
    ) -> Result<TeamSessionPage, StoreError> {
        self.list_team_sessions(team, filter, after, limit).await
    }

    async fn team_activity(
        &self,
        team: TeamId,
        period: ActivityPeriod,
        limit: u16,
    ) -> Result<Vec<SessionActivity>, StoreError> {
        self.read_activity(team, period, limit).await
    }

    async fn team_statuses(
        &self,
        team: TeamId,
        period: ActivityPeriod,
        limit: u16,
    ) -> Result<Vec<(Status, usize)>, StoreError> {
        self.count_statuses(team, period, limit).await
    }
}

#[async_trait]
impl BrowserLeases for Store {
    async fn renew(
        &self,
        id: SessionId,
        browser: BrowserId,
        alive_until: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let held = sessions::table
            .filter(sessions::id.eq(Id::from(id)))
            .filter(sessions::browser.eq(Id::from(browser)));
        let renewed = with_conn!(self, |conn| {
            let until = sessions::alive_until.eq(Timestamp(alive_until));
            ::diesel::update(held).set(until).execute(conn).await
        });
        renewed.map(|rows| rows == 1).map_err(failed("renew a browser's lease"))
    }

    async fn find_due(
        &self,
        now: DateTime<Utc>,
        limit: u16,
    ) -> Result<Vec<(Session, DueReason)>, StoreError> {
        let now = Timestamp(now);
        let read = with_conn!(self, |conn| {
            let expired = sessions::table
                .filter(sessions::closed_at.is_null())
                .filter(sessions::expires_at.le(now))
                .order(sessions::expires_at)
                .limit(limit.into())
                .select(SessionRow::as_select())
                .load(conn)
                .await;
            let lapsed = sessions::table
                .filter(sessions::browser.is_not_null())
                .filter(sessions::alive_until.le(now))
                .order(sessions::alive_until)
                .limit(limit.into())
                .select(SessionRow::as_select())
                .load(conn)
                .await;
            expired.and_then(|expired| Ok((expired, lapsed?)))
        });
        let (expired, lapsed) = read.map_err(failed("find sessions that are due"))?;
        let mut due = Vec::new();
        for row in expired {
            due.push((self.read_session(row).await?, DueReason::Expired));
        }
        for row in lapsed {
            let session = self.read_session(row).await?;
            if let Some(lease) = session.state.lease() {
                due.push((session, DueReason::BrowserLapsed(lease.browser)));
            }
        }
        Ok(due)
    }
}

#[async_trait]
impl SessionRetention for Store {
    async fn find_unerased(
        &self,
        before: DateTime<Utc>,
        after: Option<ClosedSession>,
        limit: u16,
    ) -> Result<Vec<ClosedSession>, StoreError> {
        // No session closed before the epoch.
        let (last, id) = after.map_or((DateTime::UNIX_EPOCH, Id(Uuid::nil())), |after| {
            (after.closed_at, Id::from(after.id))
        });
        let last = Timestamp(last);
        let behind = sessions::closed_at.gt(last).or(sessions::id.gt(id).nullable());
        let found: QueryResult<Vec<(Option<Timestamp>, Id)>> = with_conn!(self, |conn| {
            sessions::table
                .filter(sessions::closed_at.lt(Timestamp(before)))
                .filter(sessions::closed_at.ge(last))
                .filter(behind)
                .filter(sessions::erased_at.is_null())
                .order((sessions::closed_at, sessions::id))
                .limit(limit.into())
                .select((sessions::closed_at, sessions::id))
                .load(conn)
                .await
        });
        let found = found.map_err(failed("find sessions to erase"))?;
        let closed = found.into_iter().filter_map(|(at, id)| {
            at.map(|closed_at| ClosedSession { closed_at: closed_at.0, id: id.to() })
        });
        Ok(closed.collect())
    }

    async fn delete_erased_sessions(
        &self,
        before: DateTime<Utc>,
        limit: u16,
    ) -> Result<usize, StoreError> {
        self.delete_erased(before, limit).await
    }

    async fn maintain_partitions(
        &self,
        now: DateTime<Utc>,
        before: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        self.maintain_timeline(now, before).await
    }

    async fn count_sessions(
        &self,
        now: DateTime<Utc>,
        before: DateTime<Utc>,
        limit: u16,
    ) -> Result<usize, StoreError> {
        self.count_sessions(now, before, limit).await
    }

    async fn truncate_log(&self) -> Result<bool, StoreError> {
        self.truncate_log().await
    }

    async fn delete_idempotency_keys(&self, before: DateTime<Utc>) -> Result<usize, StoreError> {
        let old =
            idempotency_keys::table.filter(idempotency_keys::created_at.lt(Timestamp(before)));
        let forgotten = with_conn!(self, |conn| ::diesel::delete(old).execute(conn).await);
        forgotten.map_err(failed("forget idempotency keys"))
    }
}

impl Store {
    /// Finds the row of a session of any owner.
    async fn session_row(&self, id: Id) -> Result<Option<SessionRow>, StoreError> {
        if let Some(connection) = &self.pipelined {
            return connection.request(FindRequest(id)).await;
        }
        let found = with_conn!(self, |conn| {
            sessions::table.find(id).select(SessionRow::as_select()).first(conn).await.optional()
        });
        found.map_err(failed("find a session"))
    }

    async fn read_found(&self, row: Option<SessionRow>) -> Result<Option<Session>, StoreError> {
        match row {
            Some(row) => self.read_session(row).await.map(Some),
            None => Ok(None),
        }
    }
}
