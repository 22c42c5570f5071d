//! Who wants no more mails.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::notification::Mailbox;

use crate::StoreError;

/// Keeps the mailboxes that get no mails.
#[async_trait]
pub trait SuppressionStore: Send + Sync {
    async fn is_suppressed(&self, mailbox: &Mailbox) -> Result<bool, StoreError>;

    /// From `at` on; once more changes nothing, nor does it for a team that is not there.
    async fn suppress(&self, mailbox: &Mailbox, at: DateTime<Utc>) -> Result<(), StoreError>;

    /// Takes that back.
    async fn unsuppress(&self, mailbox: &Mailbox) -> Result<(), StoreError>;
}
