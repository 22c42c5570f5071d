//! How long a process drains, and how long data is kept.

use std::{ops::RangeInclusive, time::Duration};

use chrono::TimeDelta;

/// The least and the most time of draining.
pub(super) fn drain_times(
    bounded: &mut impl FnMut(&str, &str, RangeInclusive<u64>) -> u64,
) -> (Duration, Duration) {
    let most = bounded("drain_seconds", "600", 0..=86_400);
    let least = bounded("drain_min_seconds", "5", 0..=600).min(most);
    (Duration::from_secs(least), Duration::from_secs(most))
}

/// The time after which applicants' data is erased, and the time after which sessions are deleted.
pub(super) fn retentions(
    bounded: &mut impl FnMut(&str, &str, RangeInclusive<u64>) -> u64,
) -> (TimeDelta, TimeDelta) {
    let data = bounded("retention_days", "30", 1..=3650);
    let session = bounded("session_retention_days", &data.max(365).to_string(), data..=3650);
    let days = |days: u64, default| TimeDelta::days(i64::try_from(days).unwrap_or(default));
    (days(data, 30), days(session, 365))
}
