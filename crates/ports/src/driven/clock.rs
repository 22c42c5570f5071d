//! The current time.

use chrono::{DateTime, Utc};

/// Tells the current time.
pub trait Clock: Send + Sync {
    /// Returns the current time in whole microseconds, the precision that every store keeps.
    fn now(&self) -> DateTime<Utc>;
}
