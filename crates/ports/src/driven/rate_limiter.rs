//! The rate limiter, which counts requests per key, team and address.

use std::net::IpAddr;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    id::{ApiKeyId, TeamId},
    rate::{RateLimit, RateWindow},
};

/// Counts requests in windows of fixed length. A window begins with its first request.
///
/// Counting never fails: an implementation that cannot count for all processes counts for its own
/// process, and logs this. Every implementation passes `testkit::rate_limiter_contract!`.
#[async_trait]
pub trait RateLimiter: Send + Sync {
    /// Counts one request against each charge in one atomic step, and returns the windows in the
    /// same order. Two concurrent requests MUST be counted as two.
    async fn charge(&self, charges: &[Charge], now: DateTime<Utc>) -> Vec<RateWindow>;
}

/// A request that is counted against a subject's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    pub subject: Subject,
    pub limit: RateLimit,
}

/// The subject whose requests are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// All requests with a key; a rotated key is the same subject.
    Key(ApiKeyId),
    /// The requests with a key that create sessions.
    Creation(ApiKeyId),
    /// The requests with any key of a team that create sessions.
    TeamCreation(TeamId),
    /// Requests without a valid key. An IPv6 address represents its /64 network.
    Address(IpAddr),
    /// Requests from an address for an account link, or to sign in at an identity provider. An IPv6
    /// address represents its /64 network.
    SignIns(IpAddr),
    /// Links that a team has sent to one applicant: the first half of the SHA-256 hash of their
    /// address or number.
    Recipient(TeamId, [u8; 16]),
    /// Mails with account links to one address: the first half of its SHA-256 hash.
    Mails([u8; 16]),
}
