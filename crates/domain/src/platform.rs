//! A platform as the lookup shows it.

use chrono::{DateTime, Utc};

use crate::{api_key::Environment, id::PlatformId};

/// What partners choose from. Made of the newest published definition.
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

/// A platform as it stands beside a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlatformSummary {
    pub id: PlatformId,
    pub name: String,
    pub display_name: String,
    pub icon: String,
    pub login_url: String,
}
