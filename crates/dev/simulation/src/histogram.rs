//! Percentiles of times in bounded memory.

use chrono::TimeDelta;

use crate::numbers::{ceiling, count, float};

/// Buckets for each doubling of a time: a percentile is at most 1/64 too long.
const BUCKET_BITS: u32 = 6;

/// Times, counted in buckets whose width grows with the time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    sum: u64,
    max: u64,
}

/// What is reported of a number of times, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Percentiles {
    pub count: u64,
    pub mean: f64,
    pub p50: u64,
    pub p95: u64,
    pub p99: u64,
    pub max: u64,
}

impl Histogram {
    /// Counts a time; a negative one as 0.
    pub(crate) fn record(&mut self, time: TimeDelta) {
        let millis = u64::try_from(time.num_milliseconds()).unwrap_or(0);
        let bucket = bucket(millis);
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket.saturating_add(1), 0);
        }
        if let Some(counted) = self.buckets.get_mut(bucket) {
            *counted = counted.saturating_add(1);
        }
        self.count = self.count.saturating_add(1);
        self.sum = self.sum.saturating_add(millis);
        self.max = self.max.max(millis);
    }

    /// Returns the sum of all times, in seconds.
    pub(crate) fn total_seconds(&self) -> f64 {
        float(self.sum) / 1000.0
    }

    pub(crate) fn percentiles(&self) -> Percentiles {
        let mean = if self.count == 0 { 0.0 } else { float(self.sum) / float(self.count) };
        let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|part| self.percentile(part));
        Percentiles { count: self.count, mean, p50, p95, p99, max: self.max }
    }

    fn percentile(&self, part: f64) -> u64 {
        let rank = ceiling(float(self.count) * part);
        let mut counted = 0_u64;
        let bucket = self.buckets.iter().position(|count| {
            counted = counted.saturating_add(*count);
            counted >= rank && counted > 0
        });
        bucket.map_or(0, |bucket| longest(count(bucket)).min(self.max))
    }
}

fn bucket(millis: u64) -> usize {
    let shift = (u64::BITS - millis.leading_zeros()).saturating_sub(BUCKET_BITS + 1);
    let index = (u64::from(shift) << BUCKET_BITS).saturating_add(millis >> shift);
    usize::try_from(index).unwrap_or(usize::MAX)
}

/// Returns the longest time of a bucket.
fn longest(bucket: u64) -> u64 {
    let shift = (bucket >> BUCKET_BITS).saturating_sub(1);
    let first = bucket.saturating_sub(shift << BUCKET_BITS);
    (first.saturating_add(1) << shift).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_at_most_a_64th_too_long() {
        let mut times = Histogram::default();
        (1..=100_000).for_each(|millis| times.record(TimeDelta::milliseconds(millis)));
        let Percentiles { count, mean, p50, p95, p99, max } = times.percentiles();
        assert_eq!((count, max), (100_000, 100_000));
        assert!((mean - 50_000.5).abs() < 0.001);
        for (found, exact) in [(p50, 50_000), (p95, 95_000), (p99, 99_000)] {
            assert!(found >= exact && found <= exact + exact / 64, "{found} for {exact}");
        }
    }

    #[test]
    fn every_time_is_in_the_bucket_that_ends_with_it_or_later() {
        for millis in (0..5000).chain([u64::MAX / 2, 1 << 40]) {
            let end = longest(count(bucket(millis)));
            assert!(end >= millis && end - millis <= millis / 64, "{millis} in one until {end}");
        }
    }

    #[test]
    fn no_times_have_percentiles_of_zero() {
        assert_eq!(Histogram::default().percentiles(), Percentiles::default());
    }
}
