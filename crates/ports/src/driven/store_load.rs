//! What a process reads of the store for its metrics: how far its queues are behind, and how many of
//! its connections are used.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::id::InstanceId;

use crate::StoreError;

/// The number up to which the due entries of a queue are counted, so that a long queue does not
/// make the statement slow.
pub const MAX_COUNTED: u32 = 10_000;

/// Reads the load of the store.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait StoreLoad: Send + Sync {
    /// Returns for each [`Queue`] its entries that are due at a time and that nobody has claimed, in
    /// one bounded statement. Of the jobs these are the ones that this instance can carry out.
    async fn backlogs(
        &self,
        node: InstanceId,
        now: DateTime<Utc>,
    ) -> Result<Vec<Backlog>, StoreError>;

    /// Returns how many connections of the pool are in use now.
    fn connections_in_use(&self) -> usize;
}

/// A queue in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Queue {
    Jobs,
    /// Deliveries to endpoints that are called.
    Deliveries,
    /// Deliveries to endpoints that have failed ten times in a row: their circuit is open, and they
    /// get one delivery at a time.
    PausedDeliveries,
    Notifications,
    Recordings,
    /// Mails to members: account links and notices.
    AccountMails,
}

impl Queue {
    pub const ALL: [Self; 6] = [
        Self::Jobs,
        Self::Deliveries,
        Self::PausedDeliveries,
        Self::Notifications,
        Self::Recordings,
        Self::AccountMails,
    ];

    /// Returns the name in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::Deliveries => "deliveries",
            Self::PausedDeliveries => "paused_deliveries",
            Self::Notifications => "notifications",
            Self::Recordings => "recordings",
            Self::AccountMails => "account_mails",
        }
    }
}

/// The due entries of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    pub queue: Queue,
    /// At most [`MAX_COUNTED`].
    pub due: u32,
    /// Since when the oldest of them is due.
    pub due_since: Option<DateTime<Utc>>,
}
