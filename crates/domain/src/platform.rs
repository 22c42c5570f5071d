//! Platforms, as lookups and sessions show them.

use chrono::{DateTime, Utc};

use crate::{
    api_key::Environment,
    id::{PlatformId, SessionId},
    session::DefinitionVersion,
};

/// The path of the icon of platforms without one of their own, which the service itself serves.
pub const NEUTRAL_ICON: &str = "/icons/platform.svg";

impl PlatformId {
    /// Returns the platform of sessions in which authors try out what is not published. Partners
    /// cannot choose it.
    #[must_use]
    pub const fn of_drafts(environment: Environment) -> Self {
        match environment {
            Environment::Development => Self(-1),
            Environment::Production => Self(-2),
        }
    }

    /// Returns whether it is that of such sessions.
    #[must_use]
    pub const fn is_of_drafts(self) -> bool {
        self.0 < 0
    }
}

/// A platform that partners can choose, described by its newest published definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Platform {
    pub id: PlatformId,
    pub environment: Environment,
    pub name: String,
    pub display_name: String,
    pub description: String,
    pub icon: String,
    pub login_url: String,
    pub is_active: bool,
    /// The version that new sessions run.
    pub version: String,
    /// The version that a share of new sessions runs instead.
    pub canary: Option<Canary>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl Platform {
    /// Returns what new sessions run.
    #[must_use]
    pub fn active_versions(&self) -> ActiveVersions {
        ActiveVersions { version: self.version.clone(), canary: self.canary.clone() }
    }

    /// Returns whether new sessions run a version as it would be published now: as the version of the
    /// platform, or as that of this share.
    #[must_use]
    pub fn runs(&self, version: &str, canary: Option<CanaryShare>) -> bool {
        match canary {
            None => self.version == version,
            Some(share) => {
                let tried = self.canary.as_ref();
                tried.is_some_and(|tried| tried.version == version && tried.share == share)
            }
        }
    }
}

/// The versions that new sessions of a platform run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveVersions {
    /// The version of the platform.
    pub version: String,
    /// The version that a share of new sessions runs instead.
    pub canary: Option<Canary>,
}

/// A change of the versions that new sessions of a platform run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionChange {
    /// Those before, if the change holds for them alone.
    pub from: Option<ActiveVersions>,
    pub to: ActiveVersions,
}

/// A version that is tried with a share of new sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canary {
    pub version: String,
    pub share: CanaryShare,
}

/// The share of new sessions that run a version: 1 to 99 percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CanaryShare(u8);

impl CanaryShare {
    #[must_use]
    pub fn percent(percent: u8) -> Option<Self> {
        (1..=99).contains(&percent).then_some(Self(percent))
    }

    #[must_use]
    pub const fn as_percent(self) -> u8 {
        self.0
    }

    /// Returns whether a session is one of the share. The answer for a session is always the same.
    #[must_use]
    pub fn includes(self, session: SessionId) -> bool {
        session.as_uuid().as_u128() % 100 < u128::from(self.0)
    }
}

/// A published definition of a platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedVersion {
    pub definition: DefinitionVersion,
    pub published_at: DateTime<Utc>,
}

/// The parts of a platform that are shown with a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlatformSummary {
    pub id: PlatformId,
    pub name: String,
    pub display_name: String,
    pub icon: String,
    pub login_url: String,
}
