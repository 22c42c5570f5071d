//! What came of sessions, counted.

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

/// Reasons that are told apart, and nodes.
const MAX_FAILING_NODES: usize = 10;

/// Where a session failed: the platform, the node, and why.
pub(super) type Place = (PlatformId, String, String);

/// The places where sessions failed, the most frequent first.
pub(super) fn nodes(came: &[SessionActivity]) -> Vec<(Place, usize)> {
    let mut counts = HashMap::new();
    for one in came {
        if let (Some(node), Some(why)) = (&one.node, &one.error_code) {
            *counts.entry((one.platform, node.clone(), why.clone())).or_default() += 1;
        }
    }
    most(counts)
}

/// The most frequent ones first.
fn most<T: Ord>(counts: HashMap<T, usize>) -> Vec<(T, usize)> {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_unstable_by(|(one, few), (other, many)| many.cmp(few).then_with(|| one.cmp(other)));
    counts.truncate(MAX_FAILING_NODES);
    counts
}

/// Counts so many days from the first one on.
pub(super) fn of(
    came: &[SessionActivity],
    first: NaiveDate,
    days: u64,
    nodes: Vec<FailingNode>,
    cut: bool,
) -> Overview {
    let mut by_day: BTreeMap<NaiveDate, HashMap<Status, usize>> =
        (0..days).map(|day| (first + Days::new(day), HashMap::new())).collect();
    let (mut took, mut failures) = (vec![], HashMap::<&str, usize>::new());
    for one in came {
        if let Some(day) = by_day.get_mut(&one.created_at.date_naive()) {
            *day.entry(one.status).or_default() += 1;
        }
        match one.closed_at {
            Some(closed) if one.status == Status::Completed => {
                took.extend((closed - one.created_at).to_std());
            }
            Some(_) => {
                *failures.entry(one.error_code.as_deref().unwrap_or("none given")).or_default() +=
                    1;
            }
            None => (),
        }
    }
    let failures = most(failures).into_iter().map(|(why, count)| (why.to_owned(), count));
    Overview {
        days: by_day.into_iter().map(|(date, counts)| day(date, &counts)).collect(),
        created: came.len(),
        completed: took.len(),
        ended: came.iter().filter(|one| one.closed_at.is_some()).count(),
        median: median(took),
        failures: failures.collect(),
        nodes,
        cut,
    }
}

fn day(date: NaiveDate, counts: &HashMap<Status, usize>) -> DailyCounts {
    let all = Status::ALL.iter().filter_map(|status| counts.get_key_value(status));
    DailyCounts { date, counts: all.map(|(status, count)| (*status, *count)).collect() }
}

/// Of an even number the later one of the two in the middle.
fn median(mut all: Vec<Duration>) -> Option<Duration> {
    all.sort_unstable();
    all.get(all.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta, Utc};

    use super::*;

    fn came(day: i64, seconds: Option<i64>, status: Status, code: Option<&str>) -> SessionActivity {
        let created_at = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(day);
        let closed_at = seconds.map(|seconds| created_at + TimeDelta::seconds(seconds));
        let error_code = code.map(str::to_owned);
        let node = code.map(|code| format!("at_{}", code.to_lowercase()));
        SessionActivity { created_at, closed_at, status, platform: PlatformId(1), error_code, node }
    }

    #[test]
    fn days_without_sessions_are_days() {
        let all = [
            came(1, Some(40), Status::Completed, None),
            came(1, Some(20), Status::Completed, None),
            came(1, Some(90), Status::Completed, None),
            came(1, Some(9), Status::Error, Some("NO_DATA")),
            came(3, Some(9), Status::Error, Some("ACCOUNT_LOCKED")),
            came(3, Some(9), Status::PartialComplete, Some("NO_DATA")),
            came(3, Some(9), Status::Terminated, None),
            came(3, None, Status::Running, None),
            came(9, None, Status::Running, None),
        ];
        let first = DateTime::<Utc>::UNIX_EPOCH.date_naive();
        let overview = of(&all, first, 4, vec![], false);
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
        let failures = failures.map(|(why, count)| (why.to_owned(), count));
        assert_eq!(overview.failures, failures);
        assert_eq!(of(&[], first, 1, vec![], false).median, None);
        let place = |node: &str, why: &str| (PlatformId(1), node.to_owned(), why.to_owned());
        assert_eq!(
            nodes(&all),
            [
                (place("at_no_data", "NO_DATA"), 2),
                (place("at_account_locked", "ACCOUNT_LOCKED"), 1)
            ]
        );
    }
}
