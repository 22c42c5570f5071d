//! The circuit breaker of a webhook endpoint: pauses deliveries to an endpoint that does not
//! answer, and decides when its team has to be told.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

/// Consecutive failures after which the circuit opens. One delivery with the default number of
/// retries makes fewer attempts, so that the pauses never delay a single delivery.
const FAILURE_THRESHOLD: u32 = 10;
const MIN_OPEN_DURATION: Duration = Duration::from_secs(1);
const MAX_OPEN_DURATION: Duration = Duration::from_secs(60);

/// The time of continuous failure after which an endpoint is shown as failing.
pub const FAILING_AFTER: TimeDelta = TimeDelta::hours(24);

/// The recent failures of a webhook endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndpointHealth {
    /// Consecutive failed attempts.
    pub failures: u32,
    /// The time of the first of them.
    pub failing_since: Option<DateTime<Utc>>,
    /// The time before which no delivery is sent to the endpoint.
    pub paused_until: Option<DateTime<Utc>>,
}

impl EndpointHealth {
    /// Returns whether a delivery may be sent now.
    #[must_use]
    pub fn permits_delivery(&self, now: DateTime<Utc>) -> bool {
        self.paused_until.is_none_or(|until| until <= now)
    }

    /// Returns whether the endpoint is probed with one delivery at a time after a pause.
    #[must_use]
    pub const fn is_half_open(&self) -> bool {
        self.failures >= FAILURE_THRESHOLD
    }

    /// Returns whether the team has to be told that the endpoint fails.
    #[must_use]
    pub fn failing(&self, now: DateTime<Utc>) -> bool {
        self.failing_since.is_some_and(|since| now - since >= FAILING_AFTER)
    }
}

/// Adds failures that arrived together to the consecutive ones. Requests that time out end one
/// after the other, after all that were answered meanwhile: their number is capped so that they
/// lead to the first pause at most, and from then on count as one failure.
#[must_use]
pub fn count_failure(failures: u32, more: u32) -> u32 {
    failures.saturating_add(more).min(failures.saturating_add(1).max(FAILURE_THRESHOLD))
}

/// Returns the pause after a number of consecutive failures: none below the threshold, then one
/// second, doubled with each further failure up to a minute. Deliveries wait during a pause, and
/// it uses up none of their attempts.
#[must_use]
pub fn open_duration(failures: u32) -> Option<Duration> {
    let doublings = failures.checked_sub(FAILURE_THRESHOLD)?.min(16);
    Some(MIN_OPEN_DURATION.saturating_mul(1 << doublings).min(MAX_OPEN_DURATION))
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
    fn failures_that_arrive_together_advance_the_pause_by_one_step() {
        let counts = [(0, 3), (3, 7), (3, 500), (10, 500), (11, 1), (11, 0)];
        assert_eq!(
            counts.map(|(before, more)| count_failure(before, more)),
            [3, 10, 10, 11, 12, 11]
        );
    }

    #[test]
    fn an_endpoint_is_failing_after_a_day() {
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
        assert!(!health.permits_delivery(until - TimeDelta::milliseconds(1)));
        assert!(
            health.permits_delivery(until) && EndpointHealth::default().permits_delivery(until)
        );
    }
}
