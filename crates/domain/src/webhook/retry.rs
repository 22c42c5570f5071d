//! What becomes of a delivery after an attempt.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::Backoff;

/// The longest that a receiver may ask for with `Retry-After`.
pub const MAX_RETRY_DELAY: Duration = Duration::from_secs(3600);
/// A delivery that is still owed after this is given up on, whatever its receiver did.
pub const MAX_DELIVERY_AGE: TimeDelta = TimeDelta::days(7);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryDecision {
    Delivered,
    RetryAt(DateTime<Utc>),
    /// Given up on; kept, and can be sent again by hand.
    Exhausted,
}

/// What counts of an answer. No code: there was none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseSummary {
    pub code: Option<u16>,
    pub retry_after: Option<Duration>,
}

/// How far a delivery has come when an attempt ends.
#[derive(Debug, Clone, Copy)]
pub struct AttemptContext {
    /// Attempts since it was owed, or sent again by hand; this one included.
    pub tries: u32,
    /// Attempts after the first that it has.
    pub retries: u8,
    /// When it began to be owed, or was sent again.
    pub since: DateTime<Utc>,
}

impl AttemptContext {
    /// Only 2xx is a success; 410 ends it; everything else, a redirect included, is tried again
    /// after the wait of the schedule, or a longer one that the receiver asks for.
    #[must_use]
    pub fn decide(
        &self,
        reply: ResponseSummary,
        backoff: Backoff,
        chance: u16,
        now: DateTime<Utc>,
    ) -> DeliveryDecision {
        match reply.code {
            Some(200..=299) => return DeliveryDecision::Delivered,
            Some(410) => return DeliveryDecision::Exhausted,
            Some(_) | None => (),
        }
        if self.tries > u32::from(self.retries) || now - self.since >= MAX_DELIVERY_AGE {
            return DeliveryDecision::Exhausted;
        }
        let asked = reply.retry_after.unwrap_or_default().min(MAX_RETRY_DELAY);
        let wait = backoff.after(self.tries, chance).max(asked);
        // No wait is longer than hours.
        DeliveryDecision::RetryAt(now + TimeDelta::from_std(wait).unwrap_or(TimeDelta::hours(6)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIDDLE: u16 = 32_768;

    fn noon() -> DateTime<Utc> {
        DateTime::from_timestamp(1_767_268_800, 0).unwrap()
    }

    fn judged(tries: u32, code: Option<u16>, retry_after: Option<u64>) -> DeliveryDecision {
        let effort = AttemptContext { tries, retries: 3, since: noon() };
        let reply = ResponseSummary { code, retry_after: retry_after.map(Duration::from_secs) };
        effort.decide(reply, Backoff::default(), MIDDLE, noon())
    }

    /// In seconds, to the nearest.
    fn wait(verdict: DeliveryDecision) -> i64 {
        let DeliveryDecision::RetryAt(at) = verdict else { panic!("{verdict:?} is no retry") };
        (at - noon() + TimeDelta::milliseconds(500)).num_seconds()
    }

    #[test]
    fn three_retries_are_four_attempts() {
        assert_eq!([1, 2, 3].map(|tries| wait(judged(tries, None, None))), [5, 30, 180]);
        assert_eq!(judged(4, None, None), DeliveryDecision::Exhausted);
    }

    #[test]
    fn only_2xx_is_a_success() {
        for code in [200, 204, 299] {
            assert_eq!(judged(1, Some(code), None), DeliveryDecision::Delivered, "{code}");
        }
        for code in [100, 199, 300, 301, 307, 400, 404, 409, 429, 500, 503] {
            assert_eq!(wait(judged(1, Some(code), None)), 5, "{code}");
        }
        assert_eq!(judged(1, Some(410), None), DeliveryDecision::Exhausted);
    }

    #[test]
    fn a_receiver_may_ask_for_a_longer_wait_of_up_to_an_hour() {
        let asked = |seconds| wait(judged(2, Some(503), Some(seconds)));
        assert_eq!([1, 120, 3600, 86_400].map(asked), [30, 120, 3600, 3600]);
    }

    #[test]
    fn nothing_is_owed_for_more_than_a_week() {
        let effort = AttemptContext { tries: 1, retries: 10, since: noon() - MAX_DELIVERY_AGE };
        let reply = ResponseSummary { code: Some(500), retry_after: None };
        let verdict = effort.decide(reply, Backoff::default(), MIDDLE, noon());
        assert_eq!(verdict, DeliveryDecision::Exhausted);
    }
}
