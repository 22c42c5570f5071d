//! Sends deliveries to webhook endpoints.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::delivery::Delivery;

/// Makes one POST request and reports its result. It never retries and never follows a redirect.
#[async_trait]
pub trait WebhookSender: Send + Sync {
    async fn send(&self, delivery: &Delivery, now: DateTime<Utc>) -> WebhookRequest;
}

/// A POST request and its response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookRequest {
    /// The sent headers, one `name: value` per line, without secret values.
    pub sent: String,
    pub answer: WebhookResponse,
}

/// The response of an endpoint, or why there is none.
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

/// Why there was no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureCause {
    /// The host name has no address.
    Dns,
    /// The URL of the webhook cannot be requested.
    Url,
    /// The egress policy does not permit the address.
    Blocked,
    Tls,
    /// The connection failed.
    Connect,
    /// The webhook's timeout passed.
    Timeout,
    /// The response was not valid HTTP, or its head was too long.
    Http,
    /// The response ended early.
    Body,
    /// No request was sent: the webhook's configuration gives no valid headers.
    Request,
}

impl FailureCause {
    pub const ALL: [Self; 9] = [
        Self::Dns,
        Self::Url,
        Self::Blocked,
        Self::Tls,
        Self::Connect,
        Self::Timeout,
        Self::Http,
        Self::Body,
        Self::Request,
    ];

    /// Returns the name of the cause in logs and metrics.
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
