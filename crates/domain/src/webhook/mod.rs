//! What partners are told about a closed session, and how often it is tried.

mod backoff;
mod payload;

use std::time::Duration;

pub use self::{
    backoff::Backoff,
    payload::{payload, wire_time},
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
    pub header: Option<Header>,
    /// The key of the signature, in the `whsec_…` form of Standard Webhooks.
    pub secret: Secret,
    pub timeout: Duration,
    pub retries: u8,
    pub active: bool,
}

/// The header a receiver knows us by; its value is a secret.
#[derive(Clone)]
pub struct Header {
    pub name: String,
    pub value: Secret,
}

impl Webhook {
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
    pub const DEFAULT_RETRIES: u8 = 3;
    pub const MOST_RETRIES: u8 = 10;
}
