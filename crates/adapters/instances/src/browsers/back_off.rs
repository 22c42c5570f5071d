//! For how long a host is left out whose browsers do not start.

use std::time::{Duration, Instant};

/// The time after the first failure. It doubles with each further one.
const FIRST_BACK_OFF: Duration = Duration::from_secs(5);
const MAX_BACK_OFF: Duration = Duration::from_secs(60);

/// The failures of a host.
#[derive(Default)]
pub(super) struct BackOff {
    /// Failures since the last success.
    failures: u32,
    until: Option<Instant>,
}

impl BackOff {
    /// Records that a browser was started and set up.
    pub(super) fn record_success(&mut self) {
        *self = Self::default();
    }

    /// Records that none was, and returns for how long the host is left out.
    pub(super) fn record_failure(&mut self, now: Instant) -> Duration {
        let doublings = self.failures.min(10);
        let back_off = FIRST_BACK_OFF.saturating_mul(1 << doublings).min(MAX_BACK_OFF);
        self.failures = self.failures.saturating_add(1);
        self.until = now.checked_add(back_off);
        back_off
    }

    /// Returns until when the host is left out; `None` if it is not.
    pub(super) fn until(&self, now: Instant) -> Option<Instant> {
        self.until.filter(|until| *until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_fails_is_left_out_for_a_time_that_doubles_up_to_a_minute() {
        let (mut back_off, mut now) = (BackOff::default(), Instant::now());
        assert_eq!(back_off.until(now), None);
        for seconds in [5, 10, 20, 40, 60, 60] {
            let time = back_off.record_failure(now);
            assert_eq!(time, Duration::from_secs(seconds));
            assert_eq!(back_off.until(now), Some(now + time));
            now += time;
            assert_eq!(back_off.until(now), None);
        }
        back_off.record_failure(now);
        back_off.record_success();
        assert_eq!(back_off.until(now), None);
        assert_eq!(back_off.record_failure(now), FIRST_BACK_OFF);
    }
}
