//! What partners read: a list with its total, a timeline.

use ::diesel::prelude::*;
use diesel_async::RunQueryDsl;
use domain::{
    id::{ApiKeyId, PlatformId, SessionId},
    request::ListQuery,
    session::{Change, Outcome, Status},
};
use ports::{
    StoreError,
    session_store::{Entry, Summary},
};

use super::{
    column::{Id, Moment},
    database::{Store, failed, with_conn, with_read},
    schema::{session_events, sessions},
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = sessions)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
struct SummaryRow {
    id: Id,
    status: String,
    platform: i32,
    created_at: Moment,
    closed_at: Option<Moment>,
}

impl SummaryRow {
    fn read(self) -> Result<Summary, StoreError> {
        Ok(Summary {
            id: SessionId::from_uuid(self.id.0),
            status: self.status.parse().map_err(failed("read a status back"))?,
            platform: PlatformId(self.platform),
            created_at: self.created_at.0,
            closed_at: self.closed_at.map(|moment| moment.0),
        })
    }
}

/// A line of a session's timeline.
#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = session_events)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
pub(super) struct EventRow {
    session: Id,
    version: i32,
    at: Moment,
    event: String,
    status: String,
    error_code: Option<String>,
}

impl EventRow {
    pub(super) fn of(change: &Change) -> Self {
        let session = &change.session;
        let code = session.state.outcome().and_then(Outcome::error_code);
        Self {
            session: Id(*session.id.as_uuid()),
            version: session.version.0,
            at: Moment(change.at),
            event: change.event.to_owned(),
            status: session.status().to_string(),
            error_code: code.map(|code| code.as_str().to_owned()),
        }
    }

    fn read(self) -> Result<Entry, StoreError> {
        let status = self.status.parse().map_err(failed("read a status back"))?;
        Ok(Entry { at: self.at.0, event: self.event, status, error_code: self.error_code })
    }
}

impl Store {
    pub(super) async fn list_sessions(
        &self,
        owner: ApiKeyId,
        query: ListQuery,
    ) -> Result<(Vec<Summary>, i64), StoreError> {
        let owner = Id(*owner.as_uuid());
        let status = query.status.map(Status::as_str);
        let read: QueryResult<(Vec<SummaryRow>, i64)> = with_read!(self, |conn| {
            let (mut page, mut count) = (
                sessions::table.filter(sessions::owner.eq(owner)).into_boxed(),
                sessions::table.filter(sessions::owner.eq(owner)).into_boxed(),
            );
            if let Some(status) = status {
                page = page.filter(sessions::status.eq(status));
                count = count.filter(sessions::status.eq(status));
            }
            let page = page
                .order((sessions::created_at.desc(), sessions::id.desc()))
                .limit(query.page.limit)
                .offset(query.page.offset)
                .select(SummaryRow::as_select());
            let rows = page.load(conn).await;
            let total = count.count().get_result::<i64>(conn).await;
            rows.and_then(|rows| Ok((rows, total?)))
        });
        let (rows, total) = read.map_err(failed("list sessions"))?;
        Ok((rows.into_iter().map(SummaryRow::read).collect::<Result<_, _>>()?, total))
    }

    pub(super) async fn session_timeline(
        &self,
        owner: ApiKeyId,
        id: SessionId,
    ) -> Result<Option<Vec<Entry>>, StoreError> {
        let (owner, id) = (Id(*owner.as_uuid()), Id(*id.as_uuid()));
        let read: QueryResult<Vec<EventRow>> = with_read!(self, |conn| {
            let its = sessions::table.filter(sessions::owner.eq(owner)).select(sessions::id);
            session_events::table
                .filter(session_events::session.eq(id))
                .filter(session_events::session.eq_any(its))
                .order(session_events::version)
                .select(EventRow::as_select())
                .load(conn)
                .await
        });
        let rows = read.map_err(failed("read a timeline"))?;
        // Each session has its first line from the start.
        if rows.is_empty() {
            return Ok(None);
        }
        rows.into_iter().map(EventRow::read).collect::<Result<_, _>>().map(Some)
    }
}
