//! What becomes of a delivery after an attempt.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::Backoff;

/// The longest that a receiver may ask for with `Retry-After`.
pub const LONGEST_WAIT: Duration = Duration::from_secs(3600);
/// A delivery that is still owed after this is given up on, whatever its receiver did.
pub const MOST_AGE: TimeDelta = TimeDelta::days(7);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Delivered,
    RetryAt(DateTime<Utc>),
    /// Given up on; kept, and can be sent again by hand.
    Exhausted,
}

/// What counts of an answer. No code: there was none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    pub code: Option<u16>,
    pub retry_after: Option<Duration>,
}

/// How far a delivery has come when an attempt ends.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Attempts since it was owed, or sent again by hand; this one included.
    pub tries: u32,
    /// Attempts after the first that it has.
    pub retries: u8,
    /// When it began to be owed, or was sent again.
    pub since: DateTime<Utc>,
}

impl Effort {
    /// Only 2xx is a success; 410 ends it; everything else, a redirect included, is tried again
    /// after the wait of the schedule, or a longer one that the receiver asks for.
    #[must_use]
    pub fn judge(
        &self,
        reply: Reply,
        backoff: Backoff,
        chance: u16,
        now: DateTime<Utc>,
    ) -> Verdict {
        match reply.code {
            Some(200..=299) => return Verdict::Delivered,
            Some(410) => return Verdict::Exhausted,
            Some(_) | None => (),
        }
        if self.tries > u32::from(self.retries) || now - self.since >= MOST_AGE {
            return Verdict::Exhausted;
        }
        let asked = reply.retry_after.unwrap_or_default().min(LONGEST_WAIT);
        let wait = backoff.after(self.tries, chance).max(asked);
        // No wait is longer than hours.
        Verdict::RetryAt(now + TimeDelta::from_std(wait).unwrap_or(TimeDelta::hours(6)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIDDLE: u16 = 32_768;

    fn noon() -> DateTime<Utc> {
        DateTime::from_timestamp(1_767_268_800, 0).unwrap()
    }

    fn judged(tries: u32, code: Option<u16>, retry_after: Option<u64>) -> Verdict {
        let effort = Effort { tries, retries: 3, since: noon() };
        let reply = Reply { code, retry_after: retry_after.map(Duration::from_secs) };
        effort.judge(reply, Backoff::default(), MIDDLE, noon())
    }

    /// In seconds, to the nearest.
    fn wait(verdict: Verdict) -> i64 {
        let Verdict::RetryAt(at) = verdict else { panic!("{verdict:?} is no retry") };
        (at - noon() + TimeDelta::milliseconds(500)).num_seconds()
    }

    #[test]
    fn three_retries_are_four_attempts() {
        assert_eq!([1, 2, 3].map(|tries| wait(judged(tries, None, None))), [5, 30, 180]);
        assert_eq!(judged(4, None, None), Verdict::Exhausted);
    }

    #[test]
    fn only_2xx_is_a_success() {
        for code in [200, 204, 299] {
            assert_eq!(judged(1, Some(code), None), Verdict::Delivered, "{code}");
        }
        for code in [100, 199, 300, 301, 307, 400, 404, 409, 429, 500, 503] {
            assert_eq!(wait(judged(1, Some(code), None)), 5, "{code}");
        }
        assert_eq!(judged(1, Some(410), None), Verdict::Exhausted);
    }

    #[test]
    fn a_receiver_may_ask_for_a_longer_wait_of_up_to_an_hour() {
        let asked = |seconds| wait(judged(2, Some(503), Some(seconds)));
        assert_eq!([1, 120, 3600, 86_400].map(asked), [30, 120, 3600, 3600]);
    }

    #[test]
    fn nothing_is_owed_for_more_than_a_week() {
        let effort = Effort { tries: 1, retries: 10, since: noon() - MOST_AGE };
        let reply = Reply { code: Some(500), retry_after: None };
        let verdict = effort.judge(reply, Backoff::default(), MIDDLE, noon());
        assert_eq!(verdict, Verdict::Exhausted);
    }
}
