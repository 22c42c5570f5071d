//! The call that tells a receiver.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::delivery::Delivery;

/// Makes one POST and reports; never retries, never follows a redirect.
#[async_trait]
pub trait WebhookSender: Send + Sync {
    async fn send(&self, delivery: &Delivery, now: DateTime<Utc>) -> WebhookRequest;
}

/// One POST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookRequest {
    /// The headers that were sent, `name: value` a line; no values that are secrets.
    pub sent: String,
    pub answer: WebhookResponse,
}

/// What a receiver answered, or why it did not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookResponse {
    Status {
        code: u16,
        /// The first 2 KiB of the body, as text.
        body: String,
        retry_after: Option<Duration>,
    },
    Failed(FailureCause),
}

/// Why there was no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureCause {
    /// The name has no address.
    Dns,
    /// The address of the webhook is none that could be called.
    Url,
    /// Egress is not permitted there.
    Blocked,
    Tls,
    /// No connection.
    Connect,
    /// Not within the webhook's time.
    Timeout,
    /// What came was no answer in HTTP, or its head was too long.
    Http,
    /// The answer broke off.
    Body,
    /// There was no call: its headers could not be made of what the webhook has.
    Request,
}

impl FailureCause {
    /// The word in logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Url => "url",
            Self::Blocked => "blocked",
            Self::Tls => "tls",
            Self::Connect => "connect",
            Self::Timeout => "timeout",
            Self::Http => "http",
            Self::Body => "body",
            Self::Request => "request",
        }
    }
}
