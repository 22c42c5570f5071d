//! The exponential backoff between two attempts of a delivery.

use std::{str::FromStr, time::Duration};

/// The upper bound of the delay between two attempts.
const MAX_DELAY: Duration = Duration::from_secs(6 * 3600);

/// A delay that grows by a factor with each attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    base: Duration,
    factor: u32,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { base: Duration::from_secs(5), factor: 6 }
    }
}

impl Backoff {
    /// Returns the delay after the `attempt`-th attempt (counted from 1), with a jitter of up to
    /// a fifth: `jitter` 0 gives 80 % of the delay, 65,535 gives 120 %.
    #[must_use]
    pub fn after(self, attempt: u32, jitter: u16) -> Duration {
        let growth = self.factor.checked_pow(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
        let delay = self.base.saturating_mul(growth).min(MAX_DELAY);
        let jitter = f64::from(jitter) / f64::from(u16::MAX);
        delay.mul_f64(0.8 + 0.4 * jitter).min(MAX_DELAY)
    }
}

impl FromStr for Backoff {
    type Err = InvalidBackoff;

    /// Reads `SECONDSxFACTOR`: `5x6` is a delay of five seconds before the first retry, and six
    /// times the previous delay before each further one.
    fn from_str(text: &str) -> Result<Self, InvalidBackoff> {
        let (base, factor) = text.split_once('x').ok_or(InvalidBackoff)?;
        let base: u64 = base.parse().map_err(|_| InvalidBackoff)?;
        let factor: u32 = factor.parse().map_err(|_| InvalidBackoff)?;
        let in_range = (1..=3600).contains(&base) && (1..=100).contains(&factor);
        in_range.then_some(Self { base: Duration::from_secs(base), factor }).ok_or(InvalidBackoff)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a backoff reads SECONDSxFACTOR with 1 to 3600 seconds and a factor of 1 to 100, as 5x6")]
pub struct InvalidBackoff;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_up_to_six_hours() {
        let middle = |attempt| Backoff::default().after(attempt, 32_768).as_secs_f64().round();
        assert_eq!((1..=5).map(middle).collect::<Vec<_>>(), [5.0, 30.0, 180.0, 1080.0, 6480.0]);
        assert!(Backoff::default().after(40, u16::MAX) <= MAX_DELAY);
    }

    #[test]
    fn jitter_changes_the_delay_by_at_most_a_fifth() {
        let at = |jitter| Backoff::default().after(2, jitter).as_secs_f64();
        assert!((at(0) - 24.0).abs() < 0.001 && (at(u16::MAX) - 36.0).abs() < 0.001);
    }

    #[test]
    fn the_text_form_is_parsed_within_its_bounds() {
        assert_eq!("5x6".parse(), Ok(Backoff::default()));
        for bad in ["", "5", "0x6", "5x0", "x", "-1x2", "5x6x7"] {
            assert_eq!(bad.parse::<Backoff>(), Err(InvalidBackoff), "{bad}");
        }
    }
}
