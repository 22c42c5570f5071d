//! Counting the outcomes of a team's sessions.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use chrono::{Days, NaiveDate};
use domain::{id::PlatformId, session::Status};
use ports::{
    driving::{DailyCounts, FailingNode, Overview},
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

/// Counts sessions by day and outcome, for this many days from the first one on.
pub(super) fn overview(
    sessions: &[SessionActivity],
    (first, days): (NaiveDate, u64),
    nodes: Vec<FailingNode>,
    cut: bool,
) -> Overview {
    let mut by_day: BTreeMap<NaiveDate, HashMap<Status, usize>> =
        (0..days).map(|day| (first + Days::new(day), HashMap::new())).collect();
    let (mut durations, mut failures) = (vec![], HashMap::<&str, usize>::new());
    for session in sessions {
        if let Some(day) = by_day.get_mut(&session.created_at.date_naive()) {
            *day.entry(session.status).or_default() += 1;
        }
        match session.closed_at {
            Some(closed) if session.status == Status::Completed => {
                durations.extend((closed - session.created_at).to_std());
            }
            Some(_) => {
                let code = session.error_code.as_deref().unwrap_or("none given");
                *failures.entry(code).or_default() += 1;
            }
            None => (),
        }
    }
    let failures = most_frequent(failures).into_iter();
    Overview {
        days: by_day.into_iter().map(|(date, counts)| daily_counts(date, &counts)).collect(),
        created: sessions.len(),
        completed: durations.len(),
        ended: sessions.iter().filter(|session| session.closed_at.is_some()).count(),
        median: median(durations),
        failures: failures.map(|(code, count)| (code.to_owned(), count)).collect(),
        nodes,
        cut,
    }
}

/// Returns the counts of a day, in the order of the statuses.
fn daily_counts(date: NaiveDate, counts: &HashMap<Status, usize>) -> DailyCounts {
    let all = Status::ALL.iter().filter_map(|status| counts.get_key_value(status));
    DailyCounts { date, counts: all.map(|(status, count)| (*status, *count)).collect() }
}

/// Returns the median: of an even number of durations, the longer one of the two in the middle.
fn median(mut durations: Vec<Duration>) -> Option<Duration> {
    durations.sort_unstable();
    durations.get(durations.len() / 2).copied()
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
        let overview = overview(&all, (first, 4), vec![], false);
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
        assert_eq!(overview.median, Some(Duration::from_secs(40)));
        let failures = [("NO_DATA", 2), ("ACCOUNT_LOCKED", 1), ("none given", 1)];
        let failures = failures.map(|(code, count)| (code.to_owned(), count));
        assert_eq!(overview.failures, failures);
        assert_eq!(super::overview(&[], (first, 1), vec![], false).median, None);
        let place = |node: &str, code: &str| (PlatformId(1), node.to_owned(), code.to_owned());
        assert_eq!(
            failing_nodes(&all),
            [
                (place("at_no_data", "NO_DATA"), 2),
                (place("at_account_locked", "ACCOUNT_LOCKED"), 1)
            ]
        );
    }
}
