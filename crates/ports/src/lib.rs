//! The ports of the hexagonal architecture: the driving ports, through which the outside uses the
//! service, and the driven ports, through which the use cases reach the outside.
//!
//! **Invariant:** no port names a technology. No signature contains a connection, a transaction or
//! an HTTP request: a write that must be atomic is one method that takes one value.

pub mod driven;
pub mod driving;

use std::error::Error;

pub use self::driven::*;

/// A failure of the store that the caller did not cause; a retry may succeed.
#[derive(Debug, thiserror::Error)]
#[error("the store failed to {action}")]
pub struct StoreError {
    action: &'static str,
    #[source]
    source: Box<dyn Error + Send + Sync>,
}

/// The result of encrypting a batch of records with the newest key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reencrypted<Id> {
    /// The number of records that were encrypted.
    pub changed: usize,
    /// The records that no key decrypts.
    pub unreadable: Vec<Id>,
    /// The last record of the batch, if there may be more after it.
    pub next: Option<Id>,
}

impl StoreError {
    pub fn new(action: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { action, source: source.into() }
    }
}
