//! Who may make how many requests.

use std::net::IpAddr;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    id::{ApiKeyId, TeamId},
    rate::{RateLimit, RateWindow},
};

/// Counts requests in windows of fixed length. A window begins with its first request.
///
/// Counting never fails: what cannot count for all processes counts for its own, and says so.
/// Whatever implements this passes `testkit::rate_limiter_contract!`.
#[async_trait]
pub trait RateLimiter: Send + Sync {
    /// Counts one request against each charge, in one step, and answers their windows in the same
    /// order. Two requests at once MUST be counted as two.
    async fn charge(&self, charges: &[Charge], now: DateTime<Utc>) -> Vec<RateWindow>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    pub subject: Subject,
    pub limit: RateLimit,
}

/// Whose requests are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// All requests with a key; a rotated key is the same subject.
    Key(ApiKeyId),
    /// The requests with a key that create sessions.
    Creation(ApiKeyId),
    /// The requests with any key of a team that create sessions.
    TeamCreation(TeamId),
    /// Requests without a valid key. An IPv6 address stands for its /64 network.
    Address(IpAddr),
    /// Requests from an address for a link to choose a password, or to sign in at a provider; of
    /// IPv6 as above.
    SignIns(IpAddr),
    /// Links that a team has sent to one applicant: the first half of the SHA-256 hash of the
    /// address or number they are sent to.
    Recipient(TeamId, [u8; 16]),
    /// Mails to one address with links to choose a password: the first half of its SHA-256 hash.
    Mails([u8; 16]),
}
