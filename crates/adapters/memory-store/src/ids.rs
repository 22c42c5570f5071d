//! The identifiers that the store makes itself.

use chrono::{DateTime, Utc};
use uuid::{Builder, Uuid};

/// Makes identifiers that count upwards.
#[derive(Default)]
pub(crate) struct IdSequence(u64);

impl IdSequence {
    /// Returns a new identifier that sorts by the millisecond, then by the order of creation (RFC
    /// 9562, section 5.7, with a counter in the place of the random bits).
    pub(crate) fn next_at(&mut self, at: DateTime<Utc>) -> Uuid {
        self.0 = self.0.saturating_add(1);
        let millis = u64::try_from(at.timestamp_millis()).unwrap_or(0);
        let mut counter = [0; 10];
        for (place, byte) in counter.iter_mut().skip(2).zip(self.0.to_be_bytes()) {
            *place = byte;
        }
        Builder::from_unix_timestamp_millis(millis, &counter).into_uuid()
    }
}
