//! The throttling of attempts to sign in.

use std::net::IpAddr;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{attempts::Delays, id::SignInId};

/// Counts attempts to sign in, and decides when the next one is allowed.
///
/// Counting never fails: an implementation that cannot count for all processes counts for its own
/// process, and logs this. Every implementation passes `testkit::attempts_contract!`.
#[async_trait]
pub trait AttemptLimiter: Send + Sync {
    /// Counts an attempt as a wrong one. Of two concurrent attempts of which only one is allowed,
    /// one is refused.
    ///
    /// # Errors
    /// The attempt comes too early and is not counted; the error is the time from which the next
    /// one is allowed.
    async fn attempt(
        &self,
        target: AttemptTarget,
        delays: Delays,
        now: DateTime<Utc>,
    ) -> Result<(), DateTime<Utc>>;

    /// Takes back a counted attempt that was right or was not made.
    async fn undo_attempt(&self, target: AttemptTarget, now: DateTime<Utc>);
}

/// The target that attempts are counted against. An account is the first half of the SHA-256 hash
/// of its address, whether or not it exists; an IPv6 address represents its /64 network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttemptTarget {
    /// All accounts, from one network.
    Network(IpAddr),
    /// One account, from one network.
    AccountFrom([u8; 16], IpAddr),
    /// One account, from all unknown browsers.
    Account([u8; 16]),
    /// One account, from a known browser: the first half of the SHA-256 hash of its token.
    Browser([u8; 16]),
    /// The signed-in user.
    SignIn(SignInId),
}
