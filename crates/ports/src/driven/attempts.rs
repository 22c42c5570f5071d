//! How soon somebody may try again to sign in.

use std::net::IpAddr;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{attempts::Delays, id::SignInId};

/// Counts attempts to sign in, and says when the next one may be made.
///
/// Counting never fails: what cannot count for all processes counts for its own, and says so.
/// Whatever implements this passes `testkit::attempts_contract!`.
#[async_trait]
pub trait AttemptLimiter: Send + Sync {
    /// Counts an attempt as a wrong one. Of two at once that may not both be made one is refused.
    ///
    /// # Errors
    /// It comes too soon, and is not counted; the moment from which on the next one may be made.
    async fn attempt(
        &self,
        target: AttemptTarget,
        delays: Delays,
        now: DateTime<Utc>,
    ) -> Result<(), DateTime<Utc>>;

    /// Takes back an attempt that was counted and turned out to be right, or was not made.
    async fn undo_attempt(&self, target: AttemptTarget, now: DateTime<Utc>);
}

/// What attempts are counted against. An account is the first half of the SHA-256 hash of its
/// address, whether anybody has it or not; an IPv6 address stands for its /64 network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttemptTarget {
    /// Any account, from a network.
    Network(IpAddr),
    /// An account, from a network.
    AccountFrom([u8; 16], IpAddr),
    /// An account, from all browsers that it does not know.
    Account([u8; 16]),
    /// An account, from a browser that it knows: the first half of the SHA-256 hash of its token.
    Browser([u8; 16]),
    /// The person who is signed in.
    SignIn(SignInId),
}
