//! The call that tells a receiver.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::delivery::Delivery;

/// Makes one POST and reports; never retries, never follows a redirect.
#[async_trait]
pub trait WebhookSender: Send + Sync {
    async fn send(&self, delivery: &Delivery, now: DateTime<Utc>) -> Call;
}

/// One POST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The headers that were sent, `name: value` a line; no values that are secrets.
    pub sent: String,
    pub answer: Answer,
}

/// What a receiver answered, or why it did not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Status {
        code: u16,
        /// The first 2 KiB of the body, as text.
        body: String,
        retry_after: Option<Duration>,
    },
    /// No answer; the class of what went wrong, such as `timeout` or `connect`.
    Failed(&'static str),
}
