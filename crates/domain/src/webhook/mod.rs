//! Webhooks: their configuration, the body of a delivery, and the rules of retries.

mod backoff;
mod circuit;
mod payload;
mod redacted;
mod retry;

use std::time::Duration;

use chrono::{DateTime, Utc};

pub use self::{
    backoff::Backoff,
    circuit::{EndpointHealth, FAILING_AFTER, count_failure, open_duration},
    payload::{payload, test_payload, wire_time},
    redacted::redacted,
    retry::{AttemptContext, DeliveryDecision, MAX_DELIVERY_AGE, MAX_RETRY_DELAY, ResponseSummary},
};
use crate::{
    id::{TeamId, WebhookId},
    secret::Secret,
};

/// A webhook as its team configured it. The URL was checked when it was configured.
#[derive(Clone)]
pub struct Webhook {
    pub id: WebhookId,
    pub team: TeamId,
    pub url: String,
    pub header: Option<WebhookHeader>,
    /// The signing key, in the `whsec_…` form of Standard Webhooks.
    pub secret: Secret,
    /// The key before the last rotation, which also signs while it is valid.
    pub retiring: Option<RetiringSecret>,
    pub timeout: Duration,
    pub retries: u8,
    /// An inactive webhook gets no deliveries: new sessions create none for it, and its pending
    /// deliveries wait.
    pub active: bool,
}

/// A rotated secret that is valid until a time.
#[derive(Clone)]
pub struct RetiringSecret {
    pub secret: Secret,
    pub until: DateTime<Utc>,
}

/// The header that authenticates the service to the webhook endpoint; its value is a secret.
#[derive(Clone)]
pub struct WebhookHeader {
    pub name: String,
    pub value: Secret,
}

impl Webhook {
    /// Returns the secrets that sign at `now`, the newest first.
    pub fn secrets(&self, now: DateTime<Utc>) -> impl Iterator<Item = &Secret> {
        let retiring = self.retiring.iter().filter(move |old| now < old.until);
        std::iter::once(&self.secret).chain(retiring.map(|old| &old.secret))
    }

    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
    pub const DEFAULT_RETRIES: u8 = 3;
    pub const MAX_RETRIES: u8 = 10;
    /// The maximum number of named keys of one webhook.
    pub const MAX_KEYS: usize = 100;
}
