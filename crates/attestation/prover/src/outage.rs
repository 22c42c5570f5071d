//! How long orders wait for an attestor that is gone: long enough for a restart of its process.
//! Neither the attestor nor the platform's server has received anything by then, so that waiting is
//! not an attempt.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// How long an attestor may be gone before orders fail.
const OUTAGE_PATIENCE: Duration = Duration::from_secs(30);

/// The outage of an attestor, if there is one. All orders of a process share it: in a long outage
/// they wait together, and not each for the whole time after the one before it.
#[derive(Debug, Default)]
pub(crate) struct Outage(Mutex<Option<OutageTimes>>);

#[derive(Debug, Clone, Copy)]
struct OutageTimes {
    began: Instant,
    last_failure: Instant,
}

impl Outage {
    /// Records a connection that was attempted at one time and had failed at the other. Returns
    /// whether to try again.
    pub(crate) fn record_failure(&self, attempted: Instant, failed: Instant) -> bool {
        let mut current = self.lock();
        // An attestor that nobody has missed for that long may have been back in between.
        let known = current.filter(|outage| {
            attempted.saturating_duration_since(outage.last_failure) < OUTAGE_PATIENCE
        });
        let began = known.map_or(attempted, |outage| outage.began);
        *current = Some(OutageTimes { began, last_failure: failed });
        failed.saturating_duration_since(began) < OUTAGE_PATIENCE
    }

    /// Records that the attestor was reached.
    pub(crate) fn end(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<OutageTimes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Records a connection that failed at once, this many seconds after the first one.
    fn fails(outage: &Outage, first: Instant, seconds: u32) -> bool {
        let now = first + SECOND * seconds;
        outage.record_failure(now, now)
    }

    #[test]
    fn orders_wait_for_an_attestor_for_half_a_minute() {
        let (outage, first) = (Outage::default(), Instant::now());
        for (seconds, waits) in [(0, true), (1, true), (29, true), (30, false), (31, false)] {
            assert_eq!(fails(&outage, first, seconds), waits, "after {seconds} s");
        }
    }

    #[test]
    fn a_connection_counts_from_its_beginning() {
        let (outage, first) = (Outage::default(), Instant::now());
        assert!(outage.record_failure(first, first + SECOND * 15));
        assert!(!outage.record_failure(first + SECOND * 16, first + SECOND * 31));
    }

    #[test]
    fn later_orders_of_a_long_outage_do_not_wait() {
        let (outage, first) = (Outage::default(), Instant::now());
        assert!(fails(&outage, first, 0) && fails(&outage, first, 20));
        for seconds in (40..300).step_by(20) {
            assert!(!fails(&outage, first, seconds), "after {seconds} s");
        }
    }

    #[test]
    fn an_attestor_that_was_back_is_waited_for_again() {
        let (outage, first) = (Outage::default(), Instant::now());
        assert!(fails(&outage, first, 0) && fails(&outage, first, 29));
        assert!(!fails(&outage, first, 30));
        outage.end();
        assert!(fails(&outage, first, 31) && fails(&outage, first, 60));
        assert!(!fails(&outage, first, 61));
        assert!(fails(&outage, first, 91), "nobody has missed it for half a minute");
    }
}
