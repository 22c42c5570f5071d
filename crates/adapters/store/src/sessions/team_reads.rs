//! What a whole team sees of its sessions.

use ::diesel::prelude::*;
use chrono::{DateTime, Utc};
use diesel_async::RunQueryDsl;
use domain::{
    id::{ApiKeyId, PlatformId, TeamId},
    request::ListQuery,
    session::Status,
};
use ports::{
    StoreError,
    session_store::{SessionActivity, SessionSummary},
};

use crate::engine::column::{Id, Timestamp};
use crate::engine::database::{Store, failed, with_conn};
use crate::engine::schema::{api_keys, session_events, sessions};
use crate::sessions::reads::SummaryRow;
use crate::sessions::row::REFERENCE;

/// What came of a session, as rows have it.
type ActivityRow = (Timestamp, Option<Timestamp>, String, i32, Option<String>, Option<String>);

impl Store {
    pub(crate) async fn list_team_sessions(
        &self,
        team: TeamId,
        query: ListQuery,
        reference: Option<&str>,
    ) -> Result<Vec<(ApiKeyId, SessionSummary)>, StoreError> {
        let team = Id(*team.as_uuid());
        let marks = match reference {
            Some(reference) => Some(self.indexed(team, REFERENCE, reference).await?),
            None => None,
        };
        let statuses = query.status.map_or_else(|| Status::ALL.to_vec(), |status| vec![status]);
        let statuses: Vec<_> = statuses.into_iter().map(Status::as_str).collect();
        let rows: QueryResult<Vec<(Id, SummaryRow)>> = with_conn!(self, |conn| {
            let keys = api_keys::table.filter(api_keys::team.eq(team)).select(api_keys::id);
            let mut found = sessions::table
                .filter(sessions::owner.eq_any(keys))
                .filter(sessions::status.eq_any(&statuses))
                .order((sessions::created_at.desc(), sessions::id.desc()))
                .limit(query.page.limit)
                .offset(query.page.offset)
                .select((sessions::owner, SummaryRow::as_select()))
                .into_boxed();
            if let Some(marks) = &marks {
                found = found.filter(sessions::reference.eq_any(marks));
            }
            found.load(conn).await
        });
        let rows = rows.map_err(failed("list a team's sessions"))?.into_iter();
        rows.map(|(owner, row)| Ok((ApiKeyId::from_uuid(owner.0), row.read()?))).collect()
    }

    pub(crate) async fn read_activity(
        &self,
        team: TeamId,
        since: DateTime<Utc>,
        limit: u16,
    ) -> Result<Vec<SessionActivity>, StoreError> {
        let team = Id(*team.as_uuid());
        let rows: QueryResult<Vec<ActivityRow>> = with_conn!(self, |conn| {
            let keys = api_keys::table.filter(api_keys::team.eq(team)).select(api_keys::id);
            let last = session_events::session
                .eq(sessions::id)
                .and(session_events::version.eq(sessions::version));
            sessions::table
                .left_join(session_events::table.on(last))
                .filter(sessions::owner.eq_any(keys))
                .filter(sessions::created_at.ge(Timestamp(since)))
                .order((sessions::created_at.desc(), sessions::id.desc()))
                .limit(limit.into())
                .select((
                    sessions::created_at,
                    sessions::closed_at,
                    sessions::status,
                    sessions::platform,
                    session_events::error_code.nullable(),
                    session_events::node.nullable(),
                ))
                .load(conn)
                .await
        });
        let rows = rows.map_err(failed("read what came of a team's sessions"))?.into_iter();
        rows.map(|(created, closed, status, platform, error_code, node)| {
            Ok(SessionActivity {
                created_at: created.0,
                closed_at: closed.map(|moment| moment.0),
                status: status.parse().map_err(failed("read a status back"))?,
                platform: PlatformId(platform),
                error_code,
                node,
            })
        })
        .collect()
    }
}
