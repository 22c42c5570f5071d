//! The store of suppressions: mailboxes that receive no more mails of a team.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::notification::Mailbox;

use crate::StoreError;

/// Stores suppressions.
#[async_trait]
pub trait SuppressionStore: Send + Sync {
    async fn is_suppressed(&self, mailbox: &Mailbox) -> Result<bool, StoreError>;

    /// Suppresses mails from `at` on. A repeated call changes nothing, nor does one for a team that
    /// does not exist.
    async fn suppress(&self, mailbox: &Mailbox, at: DateTime<Utc>) -> Result<(), StoreError>;

    /// Removes a suppression.
    async fn unsuppress(&self, mailbox: &Mailbox) -> Result<(), StoreError>;
}
