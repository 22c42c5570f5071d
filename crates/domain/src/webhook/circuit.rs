//! Slows down what is sent to a receiver that does not answer, and says when its owner has to know.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

/// Failures in a row after which a receiver is given pauses. More than one delivery has attempts in
/// its own schedule, with the default of retries, so that a single one is never held up.
const PATIENCE: u32 = 10;
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

/// A receiver that has failed for so long is shown as failing.
pub const FAILING_AFTER: TimeDelta = TimeDelta::hours(24);

/// How a receiver has answered lately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndpointHealth {
    /// Attempts in a row that failed.
    pub failures: u32,
    /// The first of them.
    pub failing_since: Option<DateTime<Utc>>,
    /// Nothing is sent before this.
    pub paused_until: Option<DateTime<Utc>>,
}

impl EndpointHealth {
    /// Whether something may be sent now.
    #[must_use]
    pub fn open(&self, now: DateTime<Utc>) -> bool {
        self.paused_until.is_none_or(|until| until <= now)
    }

    /// Whether it is being tried out after a pause, with one delivery at a time.
    #[must_use]
    pub const fn is_half_open(&self) -> bool {
        self.failures >= PATIENCE
    }

    /// Whether the owner has to be told.
    #[must_use]
    pub fn failing(&self, now: DateTime<Utc>) -> bool {
        self.failing_since.is_some_and(|since| now - since >= FAILING_AFTER)
    }
}

/// Failures in a row with some more that came together. Calls that hang end last, one after the
/// other, whatever was answered meanwhile: however many there are, they lead to the first pause, and
/// from then on one step further.
#[must_use]
pub fn count_failure(failures: u32, more: u32) -> u32 {
    failures.saturating_add(more).min(failures.saturating_add(1).max(PATIENCE))
}

/// The pause after so many failures in a row: none for the first few, then twice as long each time,
/// up to a minute. What is owed waits meanwhile; no attempt of it is used up.
#[must_use]
pub fn open_duration(failures: u32) -> Option<Duration> {
    let steps = failures.checked_sub(PATIENCE)?.min(16);
    Some(SHORTEST.saturating_mul(1 << steps).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_from_a_second_to_a_minute() {
        let pauses = |failures: [u32; 8]| failures.map(|n| open_duration(n).map(|d| d.as_secs()));
        assert_eq!(
            pauses([0, 9, 10, 11, 15, 16, 17, u32::MAX]),
            [None, None, Some(1), Some(2), Some(32), Some(60), Some(60), Some(60)]
        );
    }

    #[test]
    fn many_failures_at_once_are_one_step() {
        let counts = [(0, 3), (3, 7), (3, 500), (10, 500), (11, 1), (11, 0)];
        assert_eq!(
            counts.map(|(before, more)| count_failure(before, more)),
            [3, 10, 10, 11, 12, 11]
        );
    }

    #[test]
    fn a_receiver_is_failing_after_a_day() {
        let since = DateTime::from_timestamp(1_767_268_800, 0).unwrap();
        let health = EndpointHealth { failures: 3, failing_since: Some(since), paused_until: None };
        assert!(!health.failing(since + FAILING_AFTER - TimeDelta::milliseconds(1)));
        assert!(health.failing(since + FAILING_AFTER));
        assert!(!EndpointHealth::default().failing(since));
    }

    #[test]
    fn nothing_is_sent_during_a_pause() {
        let until = DateTime::from_timestamp(1_767_268_800, 0).unwrap();
        let health = EndpointHealth { paused_until: Some(until), ..EndpointHealth::default() };
        assert!(!health.open(until - TimeDelta::milliseconds(1)));
        assert!(health.open(until) && EndpointHealth::default().open(until));
    }
}
