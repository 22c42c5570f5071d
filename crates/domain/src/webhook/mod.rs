//! What partners are told about a closed session, and how often it is tried.

mod backoff;
mod circuit;
mod payload;
mod retry;

use std::time::Duration;

use chrono::{DateTime, Utc};

pub use self::{
    backoff::Backoff,
    circuit::{EndpointHealth, FAILING_AFTER, count_failure, open_duration},
    payload::{payload, test_payload, wire_time},
    retry::{AttemptContext, DeliveryDecision, MAX_DELIVERY_AGE, MAX_RETRY_DELAY, ResponseSummary},
};
use crate::{
    id::{TeamId, WebhookId},
    secret::Secret,
};

/// A webhook as its team configured it. The URL has been checked when it was configured.
#[derive(Clone)]
pub struct Webhook {
    pub id: WebhookId,
    pub team: TeamId,
    pub url: String,
    pub header: Option<WebhookHeader>,
    /// The key of the signature, in the `whsec_…` form of Standard Webhooks.
    pub secret: Secret,
    /// The key before the last rotation, which signs too while it is valid.
    pub retiring: Option<RetiringSecret>,
    pub timeout: Duration,
    pub retries: u8,
    /// While it is not, it is told nothing: new sessions owe it nothing, and what it is owed waits.
    pub active: bool,
}

/// A secret on its way out.
#[derive(Clone)]
pub struct RetiringSecret {
    pub secret: Secret,
    pub until: DateTime<Utc>,
}

/// The header a receiver knows us by; its value is a secret.
#[derive(Clone)]
pub struct WebhookHeader {
    pub name: String,
    pub value: Secret,
}

impl Webhook {
    /// The secrets that sign at a moment, the newest first.
    pub fn secrets(&self, now: DateTime<Utc>) -> impl Iterator<Item = &Secret> {
        let retiring = self.retiring.iter().filter(move |old| now < old.until);
        std::iter::once(&self.secret).chain(retiring.map(|old| &old.secret))
    }

    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
    pub const DEFAULT_RETRIES: u8 = 3;
    pub const MAX_RETRIES: u8 = 10;
    /// Named keys of one webhook.
    pub const MAX_KEYS: usize = 100;
}
