//! The statistics of definitions.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    definition_health::{Counts, add},
    id::PlatformId,
};
use ports::{
    StoreError,
    definition_statistics::{DefinitionStatistics, HourCounts, VersionCounts},
};

use crate::MemoryStore;

/// The counts of each version of a platform, by hour.
pub(crate) type StatisticsRecords = BTreeMap<(PlatformId, String, DateTime<Utc>), Counts>;

#[async_trait]
impl DefinitionStatistics for MemoryStore {
    async fn add_counts(&self, counts: &[HourCounts]) -> Result<(), StoreError> {
        let statistics = &mut self.state().statistics;
        for hour in counts {
            let key = (hour.platform, hour.version.clone(), hour.hour);
            add(statistics.entry(key).or_default(), &hour.counts);
        }
        Ok(())
    }

    async fn counts(
        &self,
        platform: PlatformId,
        since: DateTime<Utc>,
        recent: DateTime<Utc>,
    ) -> Result<Vec<VersionCounts>, StoreError> {
        let mut versions = BTreeMap::<&String, VersionCounts>::new();
        let state = self.state();
        for ((of, version, hour), counts) in &state.statistics {
            if *of == platform && *hour >= since {
                let found = versions.entry(version).or_default();
                add(if *hour < recent { &mut found.earlier } else { &mut found.recent }, counts);
            }
        }
        let versions = versions
            .into_iter()
            .map(|(version, counts)| VersionCounts { version: version.clone(), ..counts });
        Ok(versions.collect())
    }

    async fn remove_counts(&self, before: DateTime<Utc>) -> Result<(), StoreError> {
        self.state().statistics.retain(|(_, _, hour), _| *hour >= before);
        Ok(())
    }
}
