//! A number that changes over virtual time, with its mean and maximum of each hour.

use chrono::{DateTime, TimeDelta, Timelike as _, Utc};

use crate::numbers::{float, in_seconds};

/// What is reported of a number for one hour of the day.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct HourlyLevel {
    pub mean: f64,
    pub max: u64,
}

/// A number over one day.
pub(crate) struct Level {
    now: u64,
    changed_at: DateTime<Utc>,
    end: DateTime<Utc>,
    max: u64,
    /// For each hour, the sum of the number times the seconds for which it had this value.
    hours: Vec<(f64, u64)>,
}

impl Level {
    /// The number is 0 at `start`; its hours are counted for a day.
    pub(crate) fn new(start: DateTime<Utc>) -> Self {
        let end = start + TimeDelta::days(1);
        Self { now: 0, changed_at: start, end, max: 0, hours: vec![(0.0, 0); 24] }
    }

    pub(crate) fn add(&mut self, now: DateTime<Utc>) {
        self.pass(now);
        self.now = self.now.saturating_add(1);
        self.max = self.max.max(self.now);
        self.note_max(now);
    }

    pub(crate) fn subtract(&mut self, now: DateTime<Utc>) {
        self.pass(now);
        self.now = self.now.saturating_sub(1);
    }

    pub(crate) const fn max(&self) -> u64 {
        self.max
    }

    /// Returns the mean and the maximum of each hour of the day, once the day is over.
    pub(crate) fn by_hour(&self) -> Vec<HourlyLevel> {
        let hour = |(area, max): &(f64, u64)| HourlyLevel { mean: area / 3600.0, max: *max };
        self.hours.iter().map(hour).collect()
    }

    /// Adds up the time since the last change, hour by hour.
    fn pass(&mut self, now: DateTime<Utc>) {
        let until = now.min(self.end);
        while self.changed_at < until {
            let into_hour = self.changed_at.num_seconds_from_midnight() % 3600;
            let whole = self.changed_at - TimeDelta::seconds(into_hour.into());
            let whole = whole - TimeDelta::nanoseconds(self.changed_at.nanosecond().into());
            let next = (whole + TimeDelta::hours(1)).min(until);
            self.note_max(self.changed_at);
            let area = float(self.now) * in_seconds(next - self.changed_at);
            if let Some((sum, _)) = self.hour_of(self.changed_at) {
                *sum += area;
            }
            self.changed_at = next;
        }
    }

    fn note_max(&mut self, at: DateTime<Utc>) {
        let now = self.now;
        if at < self.end
            && let Some((_, max)) = self.hour_of(at)
        {
            *max = now.max(*max);
        }
    }

    fn hour_of(&mut self, at: DateTime<Utc>) -> Option<&mut (f64, u64)> {
        usize::try_from(at.hour()).ok().and_then(|hour| self.hours.get_mut(hour))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_has_the_mean_over_its_time() {
        let start = DateTime::from_timestamp(1_767_225_600, 0).unwrap();
        let mut level = Level::new(start);
        level.add(start + TimeDelta::minutes(30));
        level.add(start + TimeDelta::minutes(90));
        level.subtract(start + TimeDelta::minutes(120));
        level.subtract(start + TimeDelta::hours(25));
        let hours = level.by_hour();
        let first: Vec<_> = hours.iter().take(4).map(|hour| (hour.mean, hour.max)).collect();
        assert_eq!(first, [(0.5, 1), (1.5, 2), (1.0, 1), (1.0, 1)]);
        assert_eq!(level.max(), 2);
        assert_eq!(hours.last().copied(), Some(HourlyLevel { mean: 1.0, max: 1 }));
    }
}
