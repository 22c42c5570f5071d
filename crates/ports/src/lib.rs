//! What the rules need from the world, as traits; and what the world may answer.
//!
//! **Invariant:** no port names a technology. There is no connection, no transaction, no request
//! here: a write that must be whole is one method that takes one value.

pub mod account_links;
pub mod account_store;
pub mod attempts;
pub mod attestation_reader;
pub mod attestor;
pub mod audit_log;
pub mod brand_store;
pub mod browser;
pub mod catalogue;
pub mod clock;
pub mod contact_store;
pub mod credentials;
pub mod delivery;
pub mod delivery_log;
pub mod device_store;
pub mod driving;
pub mod encryption;
pub mod identity;
pub mod invitations;
pub mod key_store;
pub mod known_browsers;
pub mod notice_store;
pub mod notifier;
pub mod outbox;
pub mod passkeys;
pub mod places;
pub mod rate_limiter;
pub mod recording;
pub mod refusals;
pub mod session_store;
pub mod suppression_store;
pub mod template_store;
pub mod webhook_sender;
pub mod webhook_store;

use std::error::Error;

/// The store did not answer as promised. Nothing the caller did; worth a retry.
#[derive(Debug, thiserror::Error)]
#[error("the store failed to {action}")]
pub struct StoreError {
    action: &'static str,
    #[source]
    source: Box<dyn Error + Send + Sync>,
}

/// What became of a few things that were to be encrypted anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reencrypted<Id> {
    /// How many were.
    pub changed: usize,
    /// Those that no key opens.
    pub unreadable: Vec<Id>,
    /// The last one, where there may be more.
    pub next: Option<Id>,
}

impl StoreError {
    pub fn new(action: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { action, source: source.into() }
    }
}
