//! What the rules need from the world, as traits; and what the world may answer.
//!
//! **Invariant:** no port names a technology. There is no connection, no transaction, no request
//! here: a write that must be whole is one method that takes one value.

pub mod driven;
pub mod driving;

use std::error::Error;

pub use self::driven::*;

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
