//! Queries of partners: lists and the timeline.

use ::diesel::{
    backend::Backend,
    prelude::*,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    serialize::ToSql,
    sql_types::{BigInt, HasSqlType, Integer, Nullable, Text},
};
use chrono::DateTime;
use diesel_async::RunQueryDsl;
use domain::{
    id::{ApiKeyId, PlatformId, SessionId},
    request::ListQuery,
    session::{Change, Status},
};
use ports::{
    StoreError,
    session_store::{SessionSummary, TimelineEntry},
};

use crate::deliveries::notifications::{ResendState, ResendStateRow};
use crate::engine::column::{Id, SqlId, SqlTimestamp, Timestamp};
use crate::engine::database::{Store, failed, with_conn, with_read};
use crate::engine::schema::{notifications, session_devices, session_events, sessions};
use crate::sessions::devices::DeviceRow;

#[derive(Queryable, Selectable)]
#[diesel(table_name = sessions)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
pub(crate) struct SummaryRow {
    id: Id,
    status: String,
    platform: i32,
    created_at: Timestamp,
    closed_at: Option<Timestamp>,
}

impl SummaryRow {
    pub(crate) fn read(self) -> Result<SessionSummary, StoreError> {
        Ok(SessionSummary {
            id: self.id.to(),
            status: self.status.parse().map_err(failed("read a status back"))?,
            platform: PlatformId(self.platform),
            created_at: self.created_at.0,
            closed_at: self.closed_at.map(|moment| moment.0),
        })
    }
}

type TotalRow = (i64, Option<SummaryRow>);

/// Reads a page of an owner's sessions, each row with the total number; for an empty page, one row
/// with the number alone. Page and number come from one statement, so that they are consistent. The number
/// is what was counted before (see `totals`), and the sessions since.
struct SessionListQuery<const BY_STATUS: bool>(Id, ListQuery);

/// No session is older.
const FIRST_MOMENT: Timestamp = Timestamp(DateTime::UNIX_EPOCH);

impl<const BY_STATUS: bool> QueryId for SessionListQuery<BY_STATUS> {
    type QueryId = Self;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl<const BY_STATUS: bool> Query for SessionListQuery<BY_STATUS> {
    type SqlType = (BigInt, Nullable<(SqlId, Text, Integer, SqlTimestamp, Nullable<SqlTimestamp>)>);
}

impl<DB, const BY_STATUS: bool> QueryFragment<DB> for SessionListQuery<BY_STATUS>
where
    DB: Backend + HasSqlType<SqlId> + HasSqlType<SqlTimestamp>,
    Id: ToSql<SqlId, DB>,
    str: ToSql<Text, DB>,
    i64: ToSql<BigInt, DB>,
    Timestamp: ToSql<SqlTimestamp, DB>,
{
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        let Self(owner, query) = self;
        let status = query.status.filter(|_| BY_STATUS).map(Status::as_str);
        let whose = |table: &str, out: &mut AstPass<'_, 'b, DB>| {
            out.push_sql(table);
            out.push_sql(" WHERE owner = ");
            out.push_bind_param::<SqlId, _>(owner)?;
            let Some(status) = status else { return Ok(()) };
            out.push_sql(" AND status = ");
            out.push_bind_param::<Text, _>(status)
        };
        out.push_sql(
            "SELECT counted.total, page.id, page.status, page.platform, page.created_at, \
             page.closed_at FROM (SELECT (SELECT CAST(coalesce(sum(sessions), 0) AS BIGINT)",
        );
        whose(" FROM session_totals", &mut out)?;
        out.push_sql(") + (SELECT count(*)");
        whose(" FROM sessions", &mut out)?;
        out.push_sql(
            " AND created_at >= coalesce((SELECT before FROM session_counts WHERE owner = ",
        );
        out.push_bind_param::<SqlId, _>(owner)?;
        out.push_sql("), ");
        out.push_bind_param::<SqlTimestamp, _>(&FIRST_MOMENT)?;
        out.push_sql(
            ")) AS total) AS counted \
             LEFT JOIN (SELECT id, status, platform, created_at, closed_at",
        );
        whose(" FROM sessions", &mut out)?;
        out.push_sql(" ORDER BY created_at DESC, id DESC LIMIT ");
        out.push_bind_param::<BigInt, _>(&query.page.limit)?;
        out.push_sql(" OFFSET ");
        out.push_bind_param::<BigInt, _>(&query.page.offset)?;
        out.push_sql(") AS page ON TRUE ORDER BY page.created_at DESC, page.id DESC");
        Ok(())
    }
}

/// An entry of a session's timeline.
#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = session_events)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
pub(crate) struct TimelineRow {
    session: Id,
    version: i32,
    pub(crate) at: Timestamp,
    pub(crate) event: String,
    status: String,
    pub(crate) error_code: Option<String>,
    pub(crate) node: Option<String>,
}

impl TimelineRow {
    pub(crate) fn of(change: &Change) -> Self {
        let session = &change.session;
        let code = session.state.error_code();
        Self {
            session: Id::from(session.id),
            version: session.version.0,
            at: Timestamp(change.at),
            event: change.event.to_owned(),
            status: session.status().to_string(),
            error_code: code.map(|code| code.as_str().to_owned()),
            node: change.node.clone(),
        }
    }

    fn read(self) -> Result<TimelineEntry, StoreError> {
        let status = self.status.parse().map_err(failed("read a status back"))?;
        let Self { at, event, error_code, node, .. } = self;
        Ok(TimelineEntry { at: at.0, event, status, error_code, node, detail: None })
    }
}

/// Returns the timeline's entries about links and devices between the transitions of the session;
/// each has the session's status at its time.
fn with_lines(
    moves: Vec<TimelineEntry>,
    told: impl Iterator<Item = ResendState>,
) -> Vec<TimelineEntry> {
    let mut entries = moves;
    for (at, event, detail) in told {
        let place = entries.partition_point(|entry| entry.at <= at.0);
        let before = place.checked_sub(1).and_then(|before| entries.get(before));
        let status = before.map_or(Status::Created, |entry| entry.status);
        let event = event.to_owned();
        let entry = TimelineEntry { at: at.0, event, status, error_code: None, node: None, detail };
        entries.insert(place, entry);
    }
    entries
}

impl Store {
    pub(crate) async fn list_sessions(
        &self,
        owner: ApiKeyId,
        query: ListQuery,
    ) -> Result<(Vec<SessionSummary>, i64), StoreError> {
        let owner = Id::from(owner);
        let read: QueryResult<Vec<TotalRow>> = match query.status {
            None => {
                with_read!(self, |conn| SessionListQuery::<false>(owner, query).load(conn).await)
            }
            Some(_) => {
                with_read!(self, |conn| SessionListQuery::<true>(owner, query).load(conn).await)
            }
        };
        let lines = read.map_err(failed("list sessions"))?;
        let total = lines.as_slice().first().map_or(0, |(total, ..)| *total);
        let page = lines.into_iter().filter_map(|(_, row)| row);
        Ok((page.map(SummaryRow::read).collect::<Result<_, _>>()?, total))
    }

    pub(crate) async fn session_timeline(
        &self,
        owner: ApiKeyId,
        id: SessionId,
    ) -> Result<Option<Vec<TimelineEntry>>, StoreError> {
        let (owner, id) = (Id::from(owner), Id::from(id));
        let read: QueryResult<(Vec<TimelineRow>, Vec<ResendStateRow>, Vec<DeviceRow>)> =
            with_read!(self, |conn| {
                let its = sessions::table.filter(sessions::owner.eq(owner)).select(sessions::id);
                let moves = session_events::table
                    .filter(session_events::session.eq(id))
                    .filter(session_events::session.eq_any(its))
                    .order(session_events::version)
                    .select(TimelineRow::as_select())
                    .load(conn)
                    .await;
                let told = notifications::table
                    .filter(notifications::session.eq(id))
                    .select(ResendStateRow::as_select())
                    .load(conn)
                    .await;
                let devices = session_devices::table
                    .filter(session_devices::session.eq(id))
                    .select(DeviceRow::as_select())
                    .load(conn)
                    .await;
                moves.and_then(|moves| Ok((moves, told?, devices?)))
            });
        let (rows, told, devices) = read.map_err(failed("read a timeline"))?;
        // Each session has its first entry from its creation on.
        if rows.is_empty() {
            return Ok(None);
        }
        let told = told.into_iter().flat_map(ResendStateRow::lines);
        let told = told.chain(devices.into_iter().flat_map(DeviceRow::lines));
        let moves = rows.into_iter().map(TimelineRow::read).collect::<Result<_, _>>()?;
        Ok(Some(with_lines(moves, told)))
    }
}
