//! Stores the statistics of definitions, and warns of platforms that have changed.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{definition_health::names, id::PlatformId};
use ports::{
    StoreError, catalogue::Catalogue, clock::Clock, definition_statistics::DefinitionStatistics,
};
use tokio::sync::Mutex;

use super::{Worker, log_error};
use crate::definition_statistics::{PlatformHealthReader, RunStatistics, STATISTICS_RETENTION};

const STORE_INTERVAL: Duration = Duration::from_secs(5);
/// How often a platform is checked for what no longer matches.
const DRIFT_INTERVAL: TimeDelta = TimeDelta::minutes(1);
/// Platforms with a time series of their own; the log warns of the others as well.
const MAX_MEASURED_PLATFORMS: usize = 200;

/// Writes the counts of ended runs to the store. Where a signal or a field of a platform has ceased to
/// match, it logs a warning once.
pub struct StatisticsRecorder {
    pub runs: Arc<RunStatistics>,
    pub statistics: Arc<dyn DefinitionStatistics>,
    pub catalogue: Arc<dyn Catalogue>,
    pub clock: Arc<dyn Clock>,
    /// What was warned of, and when each platform was checked.
    pub watched: Mutex<WatchedPlatforms>,
}

/// What the recorder remembers of platforms.
#[derive(Default)]
pub struct WatchedPlatforms {
    pub(super) warned: HashSet<(PlatformId, String)>,
    checked: HashMap<PlatformId, DateTime<Utc>>,
    measured: HashSet<PlatformId>,
}

impl WatchedPlatforms {
    /// Returns whether a platform has a time series of its own.
    fn is_measured(&mut self, id: PlatformId) -> bool {
        let has_room = self.measured.len() < MAX_MEASURED_PLATFORMS;
        self.measured.contains(&id) || has_room && self.measured.insert(id)
    }
}

#[async_trait]
impl Worker for StatisticsRecorder {
    fn name(&self) -> &'static str {
        "statistics"
    }

    async fn run(&self) {
        loop {
            tokio::time::sleep(STORE_INTERVAL).await;
            if let Err(error) = self.store().await {
                log_error(&error, "failed to store the statistics of definitions, retrying");
            }
        }
    }
}

impl StatisticsRecorder {
    pub(crate) async fn store(&self) -> Result<(), StoreError> {
        let counts = self.runs.take();
        if counts.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.statistics.add_counts(&counts).await {
            self.runs.put_back(counts);
            return Err(error);
        }
        let platforms: BTreeSet<_> = counts.iter().map(|hour| hour.platform).collect();
        for platform in platforms {
            let now = self.clock.now();
            let mut watched = self.watched.lock().await;
            let checked = watched.checked.get(&platform);
            if checked.is_none_or(|checked| now - *checked >= DRIFT_INTERVAL) {
                watched.checked.insert(platform, now);
                self.warn_of_drift(platform, &mut watched).await?;
            }
        }
        self.statistics.remove_counts(self.clock.now() - STATISTICS_RETENTION).await
    }

    async fn warn_of_drift(
        &self,
        id: PlatformId,
        watched: &mut WatchedPlatforms,
    ) -> Result<(), StoreError> {
        let Some(platform) = self.catalogue.platform(id).await? else { return Ok(()) };
        let reader =
            PlatformHealthReader { statistics: self.statistics.clone(), clock: self.clock.clone() };
        let lost = names(&reader.health(&platform).await?.drift);
        let count = f64::from(u32::try_from(lost.len()).unwrap_or(u32::MAX));
        if watched.is_measured(id) {
            let platform = platform.name.clone();
            metrics::gauge!("avouch_definition_drift", "platform" => platform).set(count);
        }
        let warned = &mut watched.warned;
        // What matches again is warned of anew.
        warned.retain(|(of, item)| *of != id || lost.contains(item));
        for item in lost {
            if warned.insert((id, item.clone())) {
                let (name, version) = (&platform.name, &platform.version);
                tracing::warn!(
                    platform = name,
                    version,
                    "the {item} of platform {name} used to match and no longer does: the site may have changed"
                );
            }
        }
        Ok(())
    }
}
