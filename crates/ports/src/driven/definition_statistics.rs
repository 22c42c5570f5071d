//! The statistics of definitions: how many runs matched what, by hour.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{definition_health::Counts, id::PlatformId};

use crate::StoreError;

/// The counts of one version of a platform's definition in one hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HourCounts {
    pub platform: PlatformId,
    pub version: String,
    /// The beginning of the hour.
    pub hour: DateTime<Utc>,
    pub counts: Counts,
}

#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait DefinitionStatistics: Send + Sync {
    /// Adds counts to those that are stored.
    async fn add_counts(&self, counts: &[HourCounts]) -> Result<(), StoreError>;

    /// Returns the counts of each version of a platform in the hours from `since` on: those before
    /// `recent`, and those from then on.
    async fn counts(
        &self,
        platform: PlatformId,
        since: DateTime<Utc>,
        recent: DateTime<Utc>,
    ) -> Result<Vec<VersionCounts>, StoreError>;

    /// Removes the counts of the hours before a time.
    async fn remove_counts(&self, before: DateTime<Utc>) -> Result<(), StoreError>;
}

/// The counts of one version before and after a time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VersionCounts {
    pub version: String,
    pub earlier: Counts,
    pub recent: Counts,
}
