//! The clock of a deployment, which all of its processes have in common: that of the database.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use ports::clock::{AdjustableClock, Clock};
use rustix::time::{ClockId, clock_gettime};

/// A clock that is set by a reference, and in between goes by the time since this machine was booted, which
/// nobody sets.
pub struct DeploymentClock {
    /// The time at which the machine was booted by this clock, in microseconds since 1970.
    booted_at: AtomicI64,
}

impl DeploymentClock {
    /// Returns a clock that shows this time now.
    #[must_use]
    pub fn set_to(time: DateTime<Utc>) -> Self {
        Self { booted_at: AtomicI64::new(time.timestamp_micros().saturating_sub(since_boot())) }
    }
}

/// Returns the microseconds since the machine was booted, with those for which it was suspended.
fn since_boot() -> i64 {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or_default());
    let time = seconds
        .saturating_add(Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or_default()));
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

impl Clock for DeploymentClock {
    fn now(&self) -> DateTime<Utc> {
        let micros = self.booted_at.load(Ordering::Relaxed).saturating_add(since_boot());
        DateTime::from_timestamp_micros(micros).unwrap_or(DateTime::<Utc>::MAX_UTC)
    }
}

impl AdjustableClock for DeploymentClock {
    fn advance(&self, by: TimeDelta) {
        let micros = by.num_microseconds().unwrap_or_default();
        self.booted_at.fetch_add(micros, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_goes_on_from_the_time_that_it_was_set_to() {
        let start = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        let clock = DeploymentClock::set_to(start);
        let shown = clock.now();
        assert!(shown >= start && shown < start + TimeDelta::seconds(10), "{shown}");
        std::thread::sleep(Duration::from_millis(20));
        assert!(clock.now() >= shown + TimeDelta::milliseconds(20));
        for hours in [2, -1] {
            let before = clock.now();
            clock.advance(TimeDelta::hours(hours));
            let moved = clock.now() - before - TimeDelta::hours(hours);
            assert!(moved >= TimeDelta::zero() && moved < TimeDelta::seconds(10), "{moved}");
        }
    }
}
