//! Conversions between integers, floating-point numbers and times.

use std::time::Duration;

use chrono::TimeDelta;

/// The longest time that a distribution gives.
const MAX_SECONDS: f64 = 30.0 * 86_400.0;

/// Returns the nearest floating-point number.
#[must_use]
pub(crate) fn float(number: u64) -> f64 {
    let half = |bits: u64| f64::from(u32::try_from(bits & 0xffff_ffff).unwrap_or(u32::MAX));
    half(number >> 32) * 4_294_967_296.0 + half(number)
}

#[must_use]
pub(crate) fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// Returns a time in whole milliseconds, from 0 to 30 days.
#[must_use]
pub(crate) fn seconds(seconds: f64) -> TimeDelta {
    let time = Duration::from_secs_f64(seconds.clamp(0.0, MAX_SECONDS));
    let millis = i64::try_from(time.as_millis()).unwrap_or_default();
    TimeDelta::milliseconds(millis)
}

/// Returns a time in seconds; 0 for a negative one.
#[must_use]
pub(crate) fn in_seconds(time: TimeDelta) -> f64 {
    time.to_std().unwrap_or_default().as_secs_f64()
}

/// Returns the smallest integer that is not less; 0 for a negative number.
#[must_use]
pub(crate) fn ceiling(number: f64) -> u64 {
    Duration::from_secs_f64(number.ceil().clamp(0.0, 1e15)).as_secs()
}

/// Returns a part of a whole; 0 if there is no whole.
#[must_use]
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { float(part) / float(whole) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_converted_exactly() {
        for number in [0, 1, 4_294_967_295, 4_294_967_296, 9_007_199_254_740_991] {
            assert_eq!(ceiling(float(number).min(1e15)), number.min(1_000_000_000_000_000));
        }
        assert_eq!(seconds(1.5), TimeDelta::milliseconds(1500));
        assert_eq!(seconds(-1.0), TimeDelta::zero());
        assert_eq!(seconds(f64::MAX), TimeDelta::days(30));
    }
}
