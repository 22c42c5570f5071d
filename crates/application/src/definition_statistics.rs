//! Statistics of definitions: counts the ends of runs in memory, and reads the health of platforms.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use domain::{
    definition_health::{
        Counts, Drift, RunEnd, RunFacts, VersionHealth, add, counts_of, drift, sum,
    },
    id::PlatformId,
    platform::Platform,
};
use ports::{
    StoreError,
    clock::Clock,
    definition_statistics::{DefinitionStatistics, HourCounts, VersionCounts},
    driving::PlatformHealth,
};

/// The time over which health is computed.
pub const HEALTH_PERIOD: TimeDelta = TimeDelta::hours(24);
/// The time before it with which it is compared.
const EARLIER_PERIOD: TimeDelta = TimeDelta::days(7);
/// How long counts are stored.
pub(crate) const STATISTICS_RETENTION: TimeDelta = TimeDelta::days(9);
/// Versions and hours that are counted in memory at most; those beyond are not counted.
const MAX_ENTRIES: usize = 10_000;

/// Sorted, so that processes that store counts at once take the locks of rows in the same order.
type Entries = BTreeMap<(PlatformId, String, DateTime<Utc>), Counts>;

/// The ends of runs since they were last written to the store. Those of a process that is killed are
/// lost.
#[derive(Default)]
pub struct RunStatistics(Mutex<Entries>);

impl RunStatistics {
    /// Counts a run that has ended.
    pub(crate) fn record(
        &self,
        (platform, version): (PlatformId, &str),
        (facts, end): (&RunFacts, &RunEnd),
        began: DateTime<Utc>,
        now: DateTime<Utc>,
    ) {
        let seconds = u32::try_from((now - began).num_seconds().max(0)).unwrap_or(u32::MAX);
        self.add(platform, version.to_owned(), now, &counts_of(facts, end, seconds));
    }

    fn add(&self, platform: PlatformId, version: String, at: DateTime<Utc>, counts: &Counts) {
        let Ok(hour) = at.duration_trunc(TimeDelta::hours(1)) else { return };
        let mut entries = self.entries();
        let key = (platform, version, hour);
        if entries.len() < MAX_ENTRIES || entries.contains_key(&key) {
            add(entries.entry(key).or_default(), counts);
        }
    }

    /// Takes all counts.
    pub(crate) fn take(&self) -> Vec<HourCounts> {
        let entries = std::mem::take(&mut *self.entries()).into_iter();
        let counts = entries.map(|((platform, version, hour), counts)| HourCounts {
            platform,
            version,
            hour,
            counts,
        });
        counts.collect()
    }

    /// Returns counts that could not be stored.
    pub(crate) fn put_back(&self, counts: Vec<HourCounts>) {
        for HourCounts { platform, version, hour, counts } in counts {
            self.add(platform, version, hour, &counts);
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the health of platforms.
#[derive(Clone)]
pub struct PlatformHealthReader {
    pub statistics: Arc<dyn DefinitionStatistics>,
    pub clock: Arc<dyn Clock>,
}

impl PlatformHealthReader {
    /// Returns the health of the versions that a platform's new sessions run, over 24 hours, and of
    /// others that ran in this time.
    pub(crate) async fn health(&self, platform: &Platform) -> Result<PlatformHealth, StoreError> {
        let recent = self.clock.now() - HEALTH_PERIOD;
        let since = recent - EARLIER_PERIOD;
        let all = self.statistics.counts(platform.id, since, recent).await?;
        let drift = drift_of(platform, &all);
        let mut versions: Vec<_> = all
            .iter()
            .filter(|version| !version.recent.is_empty())
            .map(|version| (version.version.clone(), VersionHealth::of(&version.recent)))
            .collect();
        let canary = platform.canary.as_ref().map(|canary| &canary.version);
        for active in [Some(&platform.version), canary].into_iter().flatten() {
            if !versions.iter().any(|(version, _)| version == active) {
                versions.push((active.clone(), VersionHealth::default()));
            }
        }
        Ok(PlatformHealth { since: recent, versions, drift })
    }
}

/// Compares the runs of the current version with those of all versions before.
fn drift_of(platform: &Platform, all: &[VersionCounts]) -> Vec<Drift> {
    let current = all.iter().find(|counts| counts.version == platform.version);
    let earlier = sum(all.iter().map(|counts| &counts.earlier));
    current.map(|current| drift(&current.recent, &earlier)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use testkit::sample::noon;

    use super::*;

    #[test]
    fn counts_that_could_not_be_stored_are_kept() {
        let statistics = RunStatistics::default();
        let facts = RunFacts::default();
        let run = |at| {
            let platform = (PlatformId(1), "1.0.0");
            statistics.record(platform, (&facts, &RunEnd::Succeeded), noon(), at);
        };
        run(noon() + TimeDelta::seconds(5));
        run(noon() + TimeDelta::minutes(59));
        run(noon() + TimeDelta::minutes(60));
        let taken = statistics.take();
        assert_eq!(taken.len(), 2, "two hours");
        assert_eq!(statistics.take(), []);
        statistics.put_back(taken.clone());
        run(noon() + TimeDelta::minutes(1));
        let again = statistics.take();
        let health = |counts: &[HourCounts]| {
            VersionHealth::of(&sum(counts.iter().map(|hour| &hour.counts))).runs
        };
        assert_eq!((health(&taken), health(&again)), (3, 4));
    }
}
