//! Lists of sessions, a team's activity, and timelines.

use std::cmp::Reverse;

use chrono::{DateTime, Utc};
use domain::{
    error_code::ErrorCode,
    id::{ApiKeyId, SessionId, TeamId},
    request::{ListQuery, PageRequest},
    session::{Session, Status},
};
use ports::session_store::{
    ActivityPeriod, ListedSession, MAX_SESSIONS_EXAMINED, SessionActivity, SessionCursor,
    SessionFilter, SessionSummary, TeamSessionPage, TimelineEntry,
};

use super::{SessionRecord, Sessions};
use crate::{State, notifications::Line};

impl Sessions {
    /// Returns a page of an owner's sessions, and the number of all that fit the filter.
    pub(super) fn list(&self, owner: ApiKeyId, query: ListQuery) -> (Vec<SessionSummary>, i64) {
        let theirs = self.all().filter(|session| session.owner == owner);
        let fitting = newest_first(theirs.filter(|session| fits(session, query.status)));
        let total = i64::try_from(fitting.len()).unwrap_or(i64::MAX);
        (page(fitting, query.page).map(summary).collect(), total)
    }
}

impl State {
    pub(super) fn team_sessions(
        &self,
        team: TeamId,
        filter: &SessionFilter,
        after: Option<SessionCursor>,
        limit: u16,
    ) -> TeamSessionPage {
        let records = self.sessions.records.values();
        let theirs =
            records.filter(|record| self.teams.team_of(record.session.owner) == Some(team));
        let mut fitting: Vec<_> =
            theirs.map(listed).filter(|session| matches(session, filter)).collect();
        fitting.retain(|session| after.is_none_or(|after| session.cursor() < after));
        fitting.sort_by_key(|session| Reverse(session.cursor()));
        let Some(text) = &filter.text else { return TeamSessionPage::first(fitting, limit) };
        let is_exact = |session: &ListedSession| session.reference.as_ref() == Some(text);
        let exact: Vec<_> = fitting.iter().filter(|session| is_exact(session)).cloned().collect();
        if !exact.is_empty() {
            return TeamSessionPage::first(exact, limit);
        }
        let rest = fitting.get(MAX_SESSIONS_EXAMINED.saturating_sub(1));
        let rest = rest.filter(|_| fitting.len() > MAX_SESSIONS_EXAMINED);
        let rest = rest.map(ListedSession::cursor);
        fitting.truncate(MAX_SESSIONS_EXAMINED);
        fitting.retain(|session| session.contains(text));
        let page = TeamSessionPage::first(fitting, limit);
        TeamSessionPage { next: page.next.or(rest), ..page }
    }

    pub(super) fn team_activity(
        &self,
        team: TeamId,
        period: ActivityPeriod,
        limit: u16,
    ) -> Vec<SessionActivity> {
        self.recent(team, period, limit).into_iter().map(activity).collect()
    }

    pub(super) fn team_statuses(
        &self,
        team: TeamId,
        period: ActivityPeriod,
        limit: u16,
    ) -> Vec<(Status, usize)> {
        let recent = self.recent(team, period, limit);
        let count = |status: Status| {
            let had = |record: &&&SessionRecord| {
                record.timeline.iter().any(|entry| entry.status == status)
            };
            (status, recent.iter().filter(had).count())
        };
        Status::ALL.iter().map(|status| count(*status)).collect()
    }

    /// Returns up to `limit` of a team's sessions of a period, the newest first.
    fn recent(&self, team: TeamId, period: ActivityPeriod, limit: u16) -> Vec<&SessionRecord> {
        let ActivityPeriod { environment, since } = period;
        let records = self.sessions.records.values();
        let recent = records.filter(|record| record.session.created_at >= since);
        let theirs = recent.filter(|record| {
            record.session.terms.environment == environment
                && self.teams.team_of(record.session.owner) == Some(team)
        });
        let mut theirs: Vec<_> = theirs.collect();
        theirs.sort_by_key(|record| newest(&record.session));
        theirs.truncate(limit.into());
        theirs
    }

    /// Returns a session's timeline, including its notifications and devices.
    pub(super) fn timeline(&self, owner: ApiKeyId, id: SessionId) -> Option<Vec<TimelineEntry>> {
        let steps = self.sessions.owned(owner, id)?.timeline.clone();
        let links = self.notifications.lines(id);
        Some(with_lines(steps, links.chain(self.sessions.devices.lines(id))))
    }
}

fn listed(record: &SessionRecord) -> ListedSession {
    let session = &record.session;
    ListedSession {
        owner: session.owner,
        summary: summary(session),
        environment: session.terms.environment,
        reference: session.terms.external_reference.clone(),
        error_code: record.timeline.last().and_then(|entry| entry.error_code.clone()),
    }
}

/// Returns whether a session matches a filter, apart from its text.
fn matches(session: &ListedSession, filter: &SessionFilter) -> bool {
    let summary = &session.summary;
    let code = filter.error_code.map(ErrorCode::as_str);
    filter.status.is_none_or(|status| summary.status == status)
        && filter.platform.is_none_or(|platform| summary.platform == platform)
        && filter.environments().contains(&session.environment)
        && filter.from.is_none_or(|from| summary.created_at >= from)
        && filter.to.is_none_or(|to| summary.created_at < to)
        && (code.is_none() || session.error_code.as_deref() == code)
}

fn fits(session: &Session, status: Option<Status>) -> bool {
    status.is_none_or(|status| session.status() == status)
}

/// The order of lists: the newest first, ties by the greater identifier.
const fn newest(session: &Session) -> Reverse<(DateTime<Utc>, SessionId)> {
    Reverse((session.created_at, session.id))
}

fn newest_first<'a>(sessions: impl Iterator<Item = &'a Session>) -> Vec<&'a Session> {
    let mut sessions: Vec<_> = sessions.collect();
    sessions.sort_by_key(|session| newest(session));
    sessions
}

fn page<T>(items: Vec<T>, page: PageRequest) -> impl Iterator<Item = T> {
    let size = |number: i64| usize::try_from(number.max(0)).unwrap_or(usize::MAX);
    items.into_iter().skip(size(page.offset)).take(size(page.limit))
}

fn summary(session: &Session) -> SessionSummary {
    SessionSummary {
        id: session.id,
        status: session.status(),
        platform: session.terms.platform,
        created_at: session.created_at,
        closed_at: session.closed_at,
    }
}

fn activity(record: &SessionRecord) -> SessionActivity {
    let (session, last) = (&record.session, record.timeline.last());
    SessionActivity {
        created_at: session.created_at,
        closed_at: session.closed_at,
        status: session.status(),
        platform: session.terms.platform,
        error_code: last.and_then(|entry| entry.error_code.clone()),
        node: last.and_then(|entry| entry.node.clone()),
    }
}

/// Inserts lines between the steps of a session, each after all steps up to its moment and with the
/// status of that moment.
fn with_lines(steps: Vec<TimelineEntry>, lines: impl Iterator<Item = Line>) -> Vec<TimelineEntry> {
    let mut entries = steps;
    for (at, event, detail) in lines {
        let place = entries.partition_point(|entry| entry.at <= at);
        let before = place.checked_sub(1).and_then(|before| entries.get(before));
        let status = before.map_or(Status::Created, |entry| entry.status);
        let event = event.to_owned();
        let entry = TimelineEntry { at, event, status, error_code: None, node: None, detail };
        entries.insert(place, entry);
    }
    entries
}
