//! Webhooks and their deliveries, and notifications to applicants.

pub(crate) mod claims;
pub(crate) mod health;
pub(crate) mod log;
pub(crate) mod notifications;
pub(crate) mod renew_batch;
pub(crate) mod settle_batch;
pub(crate) mod store;
pub(crate) mod suppressions;
pub(crate) mod webhooks;
