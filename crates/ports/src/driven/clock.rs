//! The current time.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};

use crate::StoreError;

/// Tells the current time.
pub trait Clock: Send + Sync {
    /// Returns the current time in whole microseconds, the precision that every store keeps.
    fn now(&self) -> DateTime<Utc>;
}

/// A clock that is set.
pub trait AdjustableClock: Clock {
    /// Sets the clock forward by this, or back if it is negative.
    fn advance(&self, by: TimeDelta);
}

/// The clock that all processes of a deployment go by.
#[async_trait]
pub trait ReferenceClock: Send + Sync {
    async fn read_clock(&self) -> Result<DateTime<Utc>, StoreError>;
}
