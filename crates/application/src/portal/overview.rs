//! Counting the outcomes of a team's sessions.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use chrono::{Days, NaiveDate};
use domain::{api_key::Environment, id::PlatformId, session::Status};
use ports::{
    driving::{DailyCounts, FailingNode, FailureCount, FunnelStep, Overview, PlatformOutcomes},
    session_store::SessionActivity,
};

/// The error codes and nodes that an overview lists, the most frequent ones.
const MAX_LISTED: usize = 10;

/// Where sessions failed, and why: the platform, the node, and the error code.
pub(super) type FailurePlace = (PlatformId, String, String);

/// Returns the places where sessions failed, the most frequent first.
pub(super) fn failing_nodes(sessions: &[SessionActivity]) -> Vec<(FailurePlace, usize)> {
    let mut counts = HashMap::new();
    for session in sessions {
        if let (Some(node), Some(code)) = (&session.node, &session.error_code) {
            *counts.entry((session.platform, node.clone(), code.clone())).or_default() += 1;
        }
    }
    most_frequent(counts)
}

fn most_frequent<T: Ord>(counts: HashMap<T, usize>) -> Vec<(T, usize)> {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_unstable_by(|(one, few), (other, many)| many.cmp(few).then_with(|| one.cmp(other)));
    counts.truncate(MAX_LISTED);
    counts
}

/// Returns the platforms with sessions that ended: those with the most failures first, with the
/// numbers of sessions that ended and that failed.
pub(super) fn platform_outcomes(sessions: &[SessionActivity]) -> Vec<(PlatformId, usize, usize)> {
    let mut counts = BTreeMap::<PlatformId, (usize, usize)>::new();
    for session in sessions.iter().filter(|session| session.closed_at.is_some()) {
        let (ended, failed) = counts.entry(session.platform).or_default();
        *ended += 1;
        *failed += usize::from(session.status != Status::Completed);
    }
    let counts = counts.into_iter().map(|(platform, (ended, failed))| (platform, ended, failed));
    let mut counts: Vec<_> = counts.collect();
    // Stable, so that platforms with as many failures keep the order of their numbers.
    counts.sort_by_key(|(_, _, failed)| Reverse(*failed));
    counts.truncate(MAX_LISTED);
    counts
}

/// Returns how many of all sessions reached each step, by how many ever had each status.
pub(super) fn funnel(created: usize, statuses: &[(Status, usize)]) -> Vec<(FunnelStep, usize)> {
    let had = |status| {
        let found = statuses.iter().find(|(of, _)| *of == status);
        found.map_or(0, |(_, count)| *count)
    };
    let mut steps = [
        (FunnelStep::Created, created),
        (FunnelStep::Started, had(Status::Initializing)),
        (FunnelStep::Connected, had(Status::Running)),
        (FunnelStep::SignedIn, had(Status::CollectingData)),
        (FunnelStep::Completed, had(Status::Completed) + had(Status::PartialComplete)),
    ];
    // A session that reached a step went through those before it, whatever its timeline says.
    let mut later = 0;
    for (_, count) in steps.iter_mut().rev() {
        *count = later.max(*count);
        later = *count;
    }
    steps.to_vec()
}

/// The parts of an overview whose names come from the catalogue, and its funnel.
pub(super) struct OverviewParts {
    pub(super) environment: Environment,
    pub(super) funnel: Vec<(FunnelStep, usize)>,
    pub(super) platforms: Vec<PlatformOutcomes>,
    pub(super) nodes: Vec<FailingNode>,
    pub(super) cut: bool,
}

/// Counts sessions by day and outcome, for this many days from the first one on.
pub(super) fn overview(
    sessions: &[SessionActivity],
    (first, days): (NaiveDate, u16),
    parts: OverviewParts,
) -> Overview {
    let mut by_day: BTreeMap<NaiveDate, HashMap<Status, usize>> =
        (0..days).map(|day| (first + Days::new(day.into()), HashMap::new())).collect();
    let (mut durations, mut failures) = (vec![], HashMap::<Option<String>, usize>::new());
    for session in sessions {
        if let Some(day) = by_day.get_mut(&session.created_at.date_naive()) {
            *day.entry(session.status).or_default() += 1;
        }
        match session.closed_at {
            Some(closed) if session.status == Status::Completed => {
                durations.extend((closed - session.created_at).to_std());
            }
            Some(_) => *failures.entry(session.error_code.clone()).or_default() += 1,
            None => (),
        }
    }
    durations.sort_unstable();
    let failures = most_frequent(failures).into_iter();
    let OverviewParts { environment, funnel, platforms, nodes, cut } = parts;
    Overview {
        environment,
        days: by_day.into_iter().map(|(date, counts)| daily_counts(date, &counts)).collect(),
        created: sessions.len(),
        completed: durations.len(),
        ended: sessions.iter().filter(|session| session.closed_at.is_some()).count(),
        p50: percentile(&durations, 50),
        p95: percentile(&durations, 95),
        funnel,
        failures: failures.map(|(code, count)| FailureCount { code, count }).collect(),
        platforms,
        nodes,
        cut,
    }
}

/// Returns the counts of a day, in the order of the statuses.
fn daily_counts(date: NaiveDate, counts: &HashMap<Status, usize>) -> DailyCounts {
    let all = Status::ALL.iter().filter_map(|status| counts.get_key_value(status));
    DailyCounts { date, counts: all.map(|(status, count)| (*status, *count)).collect() }
}

/// Returns the smallest of the durations, which are sorted, that at least this percentage of them
/// does not exceed (nearest rank).
fn percentile(durations: &[Duration], percent: usize) -> Option<Duration> {
    let rank = (durations.len() * percent).div_ceil(100);
    durations.get(rank.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta, Utc};

    use super::*;

    fn session(
        day: i64,
        seconds: Option<i64>,
        status: Status,
        code: Option<&str>,
    ) -> SessionActivity {
        let created_at = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(day);
        let closed_at = seconds.map(|seconds| created_at + TimeDelta::seconds(seconds));
        let error_code = code.map(str::to_owned);
        let node = code.map(|code| format!("at_{}", code.to_lowercase()));
        SessionActivity { created_at, closed_at, status, platform: PlatformId(1), error_code, node }
    }

    #[test]
    fn sessions_are_counted_by_day_and_outcome() {
        let all = [
            session(1, Some(40), Status::Completed, None),
            session(1, Some(20), Status::Completed, None),
            session(1, Some(90), Status::Completed, None),
            session(1, Some(9), Status::Error, Some("NO_DATA")),
            session(3, Some(9), Status::Error, Some("ACCOUNT_LOCKED")),
            session(3, Some(9), Status::PartialComplete, Some("NO_DATA")),
            session(3, Some(9), Status::Terminated, None),
            session(3, None, Status::Running, None),
            session(9, None, Status::Running, None),
        ];
        let first = DateTime::<Utc>::UNIX_EPOCH.date_naive();
        let overview = overview(&all, (first, 4), parts());
        let counts: Vec<_> = overview.days.iter().map(|day| day.counts.clone()).collect();
        assert_eq!(
            counts,
            [
                vec![],
                vec![(Status::Completed, 3), (Status::Error, 1)],
                vec![],
                vec![
                    (Status::Running, 1),
                    (Status::PartialComplete, 1),
                    (Status::Error, 1),
                    (Status::Terminated, 1)
                ],
            ]
        );
        assert_eq!((overview.created, overview.completed, overview.ended), (9, 3, 7));
        assert_eq!(overview.p50, Some(Duration::from_secs(40)));
        assert_eq!(overview.p95, Some(Duration::from_secs(90)));
        let failures = [(Some("NO_DATA"), 2), (None, 1), (Some("ACCOUNT_LOCKED"), 1)];
        let failures = failures.map(|(code, count)| {
            let code = code.map(str::to_owned);
            FailureCount { code, count }
        });
        assert_eq!(overview.failures, failures);
        assert_eq!(super::overview(&[], (first, 1), parts()).p50, None);
        assert_eq!(platform_outcomes(&all), [(PlatformId(1), 7, 4)]);
        let place = |node: &str, code: &str| (PlatformId(1), node.to_owned(), code.to_owned());
        assert_eq!(
            failing_nodes(&all),
            [
                (place("at_no_data", "NO_DATA"), 2),
                (place("at_account_locked", "ACCOUNT_LOCKED"), 1)
            ]
        );
    }

    fn parts() -> OverviewParts {
        OverviewParts {
            environment: Environment::Production,
            funnel: vec![],
            platforms: vec![],
            nodes: vec![],
            cut: false,
        }
    }

    #[test]
    fn a_percentile_is_the_nearest_rank() {
        let seconds = |count: u64| (1..=count).map(Duration::from_secs).collect::<Vec<_>>();
        for (count, percent, expected) in
            [(1, 50, 1), (2, 50, 1), (3, 50, 2), (20, 95, 19), (100, 95, 95), (3, 95, 3)]
        {
            let found = percentile(&seconds(count), percent);
            assert_eq!(found, Some(Duration::from_secs(expected)), "{count} {percent}");
        }
        assert_eq!(percentile(&[], 95), None);
    }

    #[test]
    fn a_session_that_reached_a_step_went_through_those_before_it() {
        let statuses = [
            (Status::Initializing, 3),
            (Status::Running, 3),
            (Status::Completed, 1),
            (Status::PartialComplete, 1),
        ];
        let counts: Vec<_> = funnel(5, &statuses).into_iter().map(|(_, count)| count).collect();
        assert_eq!(counts, [5, 3, 3, 2, 2]);
        let none: Vec<_> = funnel(0, &[]).into_iter().map(|(_, count)| count).collect();
        assert_eq!(none, [0; 5]);
    }
}
