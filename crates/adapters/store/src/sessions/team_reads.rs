//! A team's list of sessions, and their activity.

use ::diesel::{dsl::count, prelude::*};
use diesel_async::RunQueryDsl;
use domain::{
    api_key::Environment,
    id::{PlatformId, TeamId},
    request::SessionTerms,
    session::Status,
};
use ports::{
    StoreError,
    session_store::{
        ActivityPeriod, ListedSession, MAX_SESSIONS_EXAMINED, SessionActivity, SessionCursor,
        SessionFilter, TeamSessionPage,
    },
};

use crate::engine::column::{Id, Timestamp};
use crate::engine::data_key::TERMS;
use crate::engine::database::{Store, failed, with_conn};
use crate::engine::schema::{api_keys, session_events, sessions};
use crate::sessions::reads::SummaryRow;
use crate::sessions::row::REFERENCE;

/// The sessions that are read at once while references are searched.
const SEARCH_BATCH: u16 = 500;

/// A session's owner, summary, encrypted terms and error code.
type ListedRow = (Id, SummaryRow, String, Option<String>);

/// The activity of a session, as it is stored.
type ActivityRow = (Timestamp, Option<Timestamp>, String, i32, Option<String>, Option<String>);

impl Store {
    pub(crate) async fn list_team_sessions(
        &self,
        team: TeamId,
        filter: &SessionFilter,
        after: Option<SessionCursor>,
        limit: u16,
    ) -> Result<TeamSessionPage, StoreError> {
        let team = Id::from(team);
        // One more than is returned, to detect the end of the list.
        let most = limit.saturating_add(1);
        let Some(text) = &filter.text else {
            let found = self.read_team_sessions(team, filter, None, (after, most)).await?;
            return Ok(TeamSessionPage::first(found, limit));
        };
        let marks = self.indexed(team, REFERENCE, text).await?;
        let exact = self.read_team_sessions(team, filter, Some(&marks), (after, most)).await?;
        if exact.is_empty() {
            self.search_references(team, filter, text, (after, limit)).await
        } else {
            Ok(TeamSessionPage::first(exact, limit))
        }
    }

    /// Returns the sessions in whose reference or identifier a text occurs, among up to
    /// [`MAX_SESSIONS_EXAMINED`].
    async fn search_references(
        &self,
        team: Id,
        filter: &SessionFilter,
        text: &str,
        (mut after, limit): (Option<SessionCursor>, u16),
    ) -> Result<TeamSessionPage, StoreError> {
        let (mut sessions, mut examined) = (vec![], 0);
        while examined < MAX_SESSIONS_EXAMINED {
            let batch = self.read_team_sessions(team, filter, None, (after, SEARCH_BATCH)).await?;
            examined += batch.len();
            let is_last = batch.len() < usize::from(SEARCH_BATCH);
            for session in batch {
                after = Some(session.cursor());
                if !session.contains(text) {
                    continue;
                }
                sessions.push(session);
                if sessions.len() == usize::from(limit) {
                    return Ok(TeamSessionPage { sessions, next: after });
                }
            }
            if is_last {
                return Ok(TeamSessionPage { sessions, next: None });
            }
        }
        Ok(TeamSessionPage { sessions, next: after })
    }

    /// Reads up to a number of sessions from after a cursor on; with marks, only those whose
    /// reference has one of these values in the blind index. The text of the filter is not applied.
    async fn read_team_sessions(
        &self,
        team: Id,
        filter: &SessionFilter,
        marks: Option<&[String]>,
        (after, limit): (Option<SessionCursor>, u16),
    ) -> Result<Vec<ListedSession>, StoreError> {
        let environments: Vec<_> =
            filter.environments().into_iter().map(Environment::as_str).collect();
        let rows: QueryResult<Vec<ListedRow>> = with_conn!(self, |conn| {
            let keys = api_keys::table
                .filter(api_keys::team.eq(team))
                .filter(api_keys::environment.eq_any(&environments))
                .select(api_keys::id);
            let last = session_events::session
                .eq(sessions::id)
                .and(session_events::version.eq(sessions::version));
            let mut found = sessions::table
                .left_join(session_events::table.on(last))
                .filter(sessions::owner.eq_any(keys))
                .order((sessions::created_at.desc(), sessions::id.desc()))
                .limit(limit.into())
                .select((
                    sessions::owner,
                    SummaryRow::as_select(),
                    sessions::terms,
                    session_events::error_code.nullable(),
                ))
                .into_boxed();
            if let Some(SessionCursor { created_at, id }) = after {
                let (created_at, id) = (Timestamp(created_at), Id::from(id));
                let tie = sessions::created_at.eq(created_at).and(sessions::id.lt(id));
                // The first condition is implied by the second, and lets an index bound the range.
                found = found
                    .filter(sessions::created_at.le(created_at))
                    .filter(sessions::created_at.lt(created_at).or(tie));
            }
            if let Some(status) = filter.status {
                found = found.filter(sessions::status.eq(status.as_str()));
            }
            if let Some(code) = filter.error_code {
                found = found.filter(session_events::error_code.eq(code.as_str()));
            }
            if let Some(platform) = filter.platform {
                found = found.filter(sessions::platform.eq(platform.0));
            }
            if let Some(from) = filter.from {
                found = found.filter(sessions::created_at.ge(Timestamp(from)));
            }
            if let Some(to) = filter.to {
                found = found.filter(sessions::created_at.lt(Timestamp(to)));
            }
            if let Some(marks) = marks {
                found = found.filter(sessions::reference.eq_any(marks));
            }
            found.load(conn).await
        });
        let mut listed = vec![];
        for (owner, row, terms, error_code) in rows.map_err(failed("list a team's sessions"))? {
            let summary = row.read()?;
            let terms = self.opened(team, TERMS, Id::from(summary.id), terms).await?;
            let terms: SessionTerms =
                serde_json::from_str(&terms).map_err(failed("read a session back"))?;
            listed.push(ListedSession {
                owner: owner.to(),
                summary,
                environment: terms.environment,
                reference: terms.external_reference,
                error_code,
            });
        }
        Ok(listed)
    }

    pub(crate) async fn read_activity(
        &self,
        team: TeamId,
        ActivityPeriod { environment, since }: ActivityPeriod,
        limit: u16,
    ) -> Result<Vec<SessionActivity>, StoreError> {
        let team = Id::from(team);
        let rows: QueryResult<Vec<ActivityRow>> = with_conn!(self, |conn| {
            let keys = api_keys::table
                .filter(api_keys::team.eq(team))
                .filter(api_keys::environment.eq(environment.as_str()))
                .select(api_keys::id);
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

    pub(crate) async fn count_statuses(
        &self,
        team: TeamId,
        ActivityPeriod { environment, since }: ActivityPeriod,
        limit: u16,
    ) -> Result<Vec<(Status, usize)>, StoreError> {
        let team = Id::from(team);
        let rows: QueryResult<Vec<(String, i64)>> = with_conn!(self, |conn| {
            let keys = api_keys::table
                .filter(api_keys::team.eq(team))
                .filter(api_keys::environment.eq(environment.as_str()))
                .select(api_keys::id);
            let newest = sessions::table
                .filter(sessions::owner.eq_any(keys))
                .filter(sessions::created_at.ge(Timestamp(since)))
                .order((sessions::created_at.desc(), sessions::id.desc()))
                .limit(limit.into())
                .select(sessions::id);
            session_events::table
                .filter(session_events::session.eq_any(newest))
                .group_by(session_events::status)
                .select((
                    session_events::status,
                    count(session_events::session).aggregate_distinct(),
                ))
                .load(conn)
                .await
        });
        let rows = rows.map_err(failed("count the statuses of a team's sessions"))?.into_iter();
        rows.map(|(status, count)| {
            let status = status.parse().map_err(failed("read a status back"))?;
            Ok((status, usize::try_from(count).unwrap_or_default()))
        })
        .collect()
    }
}
