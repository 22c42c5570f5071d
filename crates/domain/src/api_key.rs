//! API keys: their environment and their validity.

use std::str::FromStr;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{ApiKeyId, TeamId};

/// The platforms that a key can use: the sandbox ones, or the real ones.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Environment {
    Development,
    Production,
}

impl Environment {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Development => "development",
            Self::Production => "production",
        }
    }

    /// Returns the prefix of the keys of this environment.
    #[must_use]
    pub const fn key_prefix(self) -> &'static str {
        match self {
            Self::Development => "avk_dev_",
            Self::Production => "avk_live_",
        }
    }
}

impl FromStr for Environment {
    type Err = UnknownEnvironment;

    fn from_str(text: &str) -> Result<Self, UnknownEnvironment> {
        match text {
            "development" => Ok(Self::Development),
            "production" => Ok(Self::Production),
            _ => Err(UnknownEnvironment),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an environment is `development` or `production`")]
pub struct UnknownEnvironment;

/// The SHA-256 hash of a key. The key itself is not stored.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct KeyHash(pub [u8; 32]);

/// The stored record of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    pub id: ApiKeyId,
    pub team: TeamId,
    pub environment: Environment,
    pub expires_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
}

impl ApiKey {
    /// Returns whether a request with this key is served.
    #[must_use]
    pub fn opens(&self, now: DateTime<Utc>) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|expiry| now < expiry)
    }
}
