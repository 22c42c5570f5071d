//! Platforms, as lookups and sessions show them.

use chrono::{DateTime, Utc};

use crate::{api_key::Environment, id::PlatformId};

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
    /// The version of the newest definition.
    pub version: String,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
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
