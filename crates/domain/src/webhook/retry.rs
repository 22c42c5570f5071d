//! The decision after an attempt of a delivery: delivered, retry, or exhausted.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::Backoff;

/// The longest delay that an endpoint may request with `Retry-After`.
pub const MAX_RETRY_DELAY: Duration = Duration::from_secs(3600);
/// The age at which a pending delivery is exhausted, whatever its endpoint answers.
pub const MAX_DELIVERY_AGE: TimeDelta = TimeDelta::days(7);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryDecision {
    Delivered,
    RetryAt(DateTime<Utc>),
    /// No more automatic attempts. The delivery is kept and can be resent manually.
    Exhausted,
}

/// The parts of a response that decide on a retry. Without a `code` there was no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseSummary {
    pub code: Option<u16>,
    pub retry_after: Option<Duration>,
}

/// The state of a delivery when an attempt ends.
#[derive(Debug, Clone, Copy)]
pub struct AttemptContext {
    /// Attempts since the delivery was created or resent manually, this one included.
    pub tries: u32,
    /// Allowed attempts after the first.
    pub retries: u8,
    /// When the delivery was created or resent manually.
    pub since: DateTime<Utc>,
}

impl AttemptContext {
    /// Decides what happens after the attempt. Only 2xx is a success; 410 exhausts the delivery;
    /// any other result, a redirect included, is retried after the delay of the backoff, or a
    /// longer one that the endpoint requests.
    #[must_use]
    pub fn decide(
        &self,
        response: ResponseSummary,
        backoff: Backoff,
        jitter: u16,
        now: DateTime<Utc>,
    ) -> DeliveryDecision {
        match response.code {
            Some(200..=299) => return DeliveryDecision::Delivered,
            Some(410) => return DeliveryDecision::Exhausted,
            Some(_) | None => (),
        }
        if self.tries > u32::from(self.retries) || now - self.since >= MAX_DELIVERY_AGE {
            return DeliveryDecision::Exhausted;
        }
        let requested = response.retry_after.unwrap_or_default().min(MAX_RETRY_DELAY);
        let delay = backoff.after(self.tries, jitter).max(requested);
        // The conversion cannot fail: a delay is a few hours at most.
        DeliveryDecision::RetryAt(now + TimeDelta::from_std(delay).unwrap_or(TimeDelta::hours(6)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_JITTER: u16 = 32_768;

    fn noon() -> DateTime<Utc> {
        DateTime::from_timestamp(1_767_268_800, 0).unwrap()
    }

    fn decision(tries: u32, code: Option<u16>, retry_after: Option<u64>) -> DeliveryDecision {
        let attempt = AttemptContext { tries, retries: 3, since: noon() };
        let response = ResponseSummary { code, retry_after: retry_after.map(Duration::from_secs) };
        attempt.decide(response, Backoff::default(), NO_JITTER, noon())
    }

    /// Returns the delay of a retry, rounded to seconds.
    fn delay(decision: DeliveryDecision) -> i64 {
        let DeliveryDecision::RetryAt(at) = decision else { panic!("{decision:?} is not a retry") };
        (at - noon() + TimeDelta::milliseconds(500)).num_seconds()
    }

    #[test]
    fn three_retries_are_four_attempts() {
        assert_eq!([1, 2, 3].map(|tries| delay(decision(tries, None, None))), [5, 30, 180]);
        assert_eq!(decision(4, None, None), DeliveryDecision::Exhausted);
    }

    #[test]
    fn only_2xx_is_a_success() {
        for code in [200, 204, 299] {
            assert_eq!(decision(1, Some(code), None), DeliveryDecision::Delivered, "{code}");
        }
        for code in [100, 199, 300, 301, 307, 400, 404, 409, 429, 500, 503] {
            assert_eq!(delay(decision(1, Some(code), None)), 5, "{code}");
        }
        assert_eq!(decision(1, Some(410), None), DeliveryDecision::Exhausted);
    }

    #[test]
    fn an_endpoint_may_request_a_longer_delay_of_up_to_an_hour() {
        let requested = |seconds| delay(decision(2, Some(503), Some(seconds)));
        assert_eq!([1, 120, 3600, 86_400].map(requested), [30, 120, 3600, 3600]);
    }

    #[test]
    fn a_delivery_is_exhausted_after_a_week() {
        let attempt = AttemptContext { tries: 1, retries: 10, since: noon() - MAX_DELIVERY_AGE };
        let response = ResponseSummary { code: Some(500), retry_after: None };
        let decision = attempt.decide(response, Backoff::default(), NO_JITTER, noon());
        assert_eq!(decision, DeliveryDecision::Exhausted);
    }
}
