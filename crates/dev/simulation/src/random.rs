//! Random numbers of a seed, and the distributions that the simulation draws from.

use chrono::TimeDelta;
use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{RngCore as _, SeedableRng as _},
};

use crate::numbers::seconds;

/// A source of random numbers. The same seed gives the same numbers in every release.
pub(crate) struct Random(Xoshiro256PlusPlus);

/// A log-normal distribution of times: half of them are below the median, and about 16 % above the
/// median times `e^sigma`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogNormal {
    pub median_seconds: f64,
    pub sigma: f64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Returns a number from 0 to 1, without 1, with 53 random bits.
    pub(crate) fn fraction(&mut self) -> f64 {
        let high = f64::from(self.0.next_u32() >> 5);
        let low = f64::from(self.0.next_u32() >> 6);
        (high * 67_108_864.0 + low) / 9_007_199_254_740_992.0
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.fraction() < probability
    }

    /// Returns a number below `bound`; 0 if that is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.0.next_u64() % bound).unwrap_or(0)
    }

    pub(crate) fn id(&mut self) -> u128 {
        u128::from(self.0.next_u64()) << 64 | u128::from(self.0.next_u64())
    }

    pub(crate) fn jitter(&mut self) -> u16 {
        u16::try_from(self.0.next_u32() >> 16).unwrap_or(0)
    }

    /// Returns a time between two events of a Poisson process, in seconds.
    pub(crate) fn exponential_seconds(&mut self, mean_seconds: f64) -> f64 {
        -(1.0 - self.fraction()).ln() * mean_seconds
    }

    pub(crate) fn exponential(&mut self, mean_seconds: f64) -> TimeDelta {
        seconds(self.exponential_seconds(mean_seconds))
    }

    /// Returns a time between 0 and `most`.
    pub(crate) fn uniform(&mut self, most: TimeDelta) -> TimeDelta {
        seconds(self.fraction() * most.to_std().unwrap_or_default().as_secs_f64())
    }

    pub(crate) fn log_normal(&mut self, times: LogNormal) -> TimeDelta {
        // Box and Muller's transformation.
        let radius = (-2.0 * (1.0 - self.fraction()).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * self.fraction()).cos();
        seconds(times.median_seconds * (times.sigma * normal).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::float;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            (0..100).map(|_| random.id()).collect::<Vec<_>>()
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
    }

    #[test]
    fn the_distributions_have_their_means() {
        let mut random = Random::new(1);
        let mean = |mut draw: Box<dyn FnMut() -> f64>| {
            (0..100_000).map(|_| draw()).sum::<f64>() / float(100_000)
        };
        let mut other = Random::new(2);
        let times = LogNormal { median_seconds: 10.0, sigma: 0.5 };
        let log_normal = mean(Box::new(move || {
            other.log_normal(times).to_std().unwrap_or_default().as_secs_f64()
        }));
        assert!((log_normal - 10.0 * (0.125_f64).exp()).abs() < 0.1, "{log_normal}");
        let exponential = mean(Box::new(move || random.exponential_seconds(3.0)));
        assert!((exponential - 3.0).abs() < 0.05, "{exponential}");
    }
}
