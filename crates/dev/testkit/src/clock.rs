//! A fake clock.

use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use ports::clock::Clock;

/// A clock that stands still until it is set forward.
pub struct FakeClock {
    now: Mutex<DateTime<Utc>>,
}

impl FakeClock {
    #[must_use]
    pub const fn at(now: DateTime<Utc>) -> Self {
        Self { now: Mutex::new(now) }
    }

    pub fn forward(&self, by: TimeDelta) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) += by;
    }
}

impl Clock for FakeClock {
    fn now(&self) -> DateTime<Utc> {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
