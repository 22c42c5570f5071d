//! Logs refused access, with a bound on the lines of one class in a minute, so that a flood does
//! not fill the disk. The metrics count all refusals.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

pub use ports::refusals::RefusalClass as Class;
use ports::refusals::RefusalLog;
use tokio::time::Instant;

/// The maximum number of lines of one class in a minute.
const MAX_LINES_PER_MINUTE: u32 = 20;
const MINUTE: Duration = Duration::from_secs(60);

static COUNTED: RefusalCounts = RefusalCounts::new();

/// Counts a refusal, and returns whether it may be logged in this minute.
///
/// Needs a Tokio runtime: at the end of the minute, one line reports how many refusals were not
/// logged.
#[must_use]
pub fn has_room(class: Class) -> bool {
    metrics::counter!("avouch_refused_total", "class" => class.as_str()).increment(1);
    match COUNTED.count(class, Instant::now()) {
        LinePermit::Here => true,
        LinePermit::None => false,
        LinePermit::NoneFirst(until) => {
            tokio::spawn(async move {
                tokio::time::sleep_until(until).await;
                let (class, count) = (class.as_str(), COUNTED.take(class));
                tracing::warn!(class, count, "{count} more refusals were not logged");
            });
            false
        }
    }
}

/// The refusal log of the process.
pub struct ProcessRefusals;

impl RefusalLog for ProcessRefusals {
    fn may_log(&self, class: Class) -> bool {
        has_room(class)
    }
}

/// The refusal may be logged.
#[derive(Debug, PartialEq, Eq)]
enum LinePermit {
    Here,
    /// The first refusal without a line since the last report.
    NoneFirst(Instant),
    None,
}

struct MinuteCount {
    until: Option<Instant>,
    lines: u32,
    left_out: u64,
}

struct RefusalCounts([Mutex<MinuteCount>; Class::ALL.len()]);

impl RefusalCounts {
    const fn new() -> Self {
        Self(
            [const { Mutex::new(MinuteCount { until: None, lines: 0, left_out: 0 }) };
                Class::ALL.len()],
        )
    }

    fn of(&self, class: Class) -> Option<MutexGuard<'_, MinuteCount>> {
        let at = Class::ALL.iter().position(|one| *one == class)?;
        Some(self.0.get(at)?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn count(&self, class: Class, now: Instant) -> LinePermit {
        let Some(mut minute) = self.of(class) else { return LinePermit::Here };
        let until = match minute.until {
            Some(until) if now < until => until,
            _ => {
                minute.lines = 0;
                now + MINUTE
            }
        };
        minute.until = Some(until);
        if minute.lines < MAX_LINES_PER_MINUTE {
            minute.lines += 1;
            return LinePermit::Here;
        }
        minute.left_out += 1;
        if minute.left_out == 1 { LinePermit::NoneFirst(until) } else { LinePermit::None }
    }

    /// Returns how many refusals were not logged since the last call, and resets the count.
    fn take(&self, class: Class) -> u64 {
        self.of(class).map_or(0, |mut minute| std::mem::take(&mut minute.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_one_class_has_a_bound_and_is_counted() {
        let (counts, start) = (RefusalCounts::new(), Instant::now());
        for minute in 0..3 {
            let now = start + MINUTE * minute;
            let rooms: Vec<_> = (0..1000).map(|_| counts.count(Class::Key, now)).collect();
            let lines = rooms.iter().filter(|room| **room == LinePermit::Here).count();
            assert_eq!(lines, 20);
            let first = rooms.iter().filter(|room| **room == LinePermit::NoneFirst(now + MINUTE));
            assert_eq!(first.count(), 1, "one line tells of the others");
            assert_eq!(counts.take(Class::Key), 980);
        }
        assert_eq!(counts.count(Class::Form, start), LinePermit::Here, "another class");
        assert_eq!(counts.take(Class::Key), 0);
    }

    #[test]
    fn who_comes_before_the_others_were_told_of_is_told_of_with_them() {
        let (counts, start) = (RefusalCounts::new(), Instant::now());
        for _ in 0..=MAX_LINES_PER_MINUTE {
            counts.count(Class::Limit, start);
        }
        let next = start + MINUTE;
        let rooms: Vec<_> =
            (0..=MAX_LINES_PER_MINUTE).map(|_| counts.count(Class::Limit, next)).collect();
        assert_eq!(rooms.last(), Some(&LinePermit::None));
        assert_eq!(counts.take(Class::Limit), 2);
    }
}
