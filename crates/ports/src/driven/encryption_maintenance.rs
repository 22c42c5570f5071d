//! The maintenance of the keys and rows that are encrypted at rest.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{Reencrypted, StoreError};

/// The tables whose rows data keys encrypt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncryptedTable {
    Sessions,
    Notices,
    Attempts,
    Contacts,
    Drafts,
}

impl EncryptedTable {
    pub const ALL: [Self; 5] =
        [Self::Sessions, Self::Notices, Self::Attempts, Self::Contacts, Self::Drafts];

    /// Returns what messages to operators call one of the rows.
    #[must_use]
    pub const fn row_name(self) -> &'static str {
        match self {
            Self::Sessions => "session",
            Self::Notices => "body of a delivery",
            Self::Attempts => "answer to delivery",
            Self::Contacts => "receiver",
            Self::Drafts => "draft",
        }
    }
}

/// Maintains the data keys of teams and what they encrypt. Other processes may read and write at the
/// same time.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait EncryptionMaintenance: Send + Sync {
    /// Encrypts up to `limit` data keys after number `after` with the deployment's current key, if
    /// another one encrypted them. No other row is written.
    async fn rewrap_data_keys(
        &self,
        after: Option<i64>,
        limit: u16,
    ) -> Result<Reencrypted<i64>, StoreError>;

    /// Gives each team that has a data key a new one, which encrypts from then on; in other
    /// processes within a minute. Returns the number of teams.
    async fn replace_data_keys(&self) -> Result<usize, StoreError>;

    /// Encrypts up to `limit` rows of a table after the row `after` with the newest keys of their
    /// teams, if they are plaintext or of an earlier key. A row that changes in the meantime is left
    /// as it became.
    async fn encrypt_rows(
        &self,
        table: EncryptedTable,
        after: Option<Uuid>,
        limit: u16,
    ) -> Result<Reencrypted<Uuid>, StoreError>;

    /// Destroys data keys that a newer one replaced before `before` and with which no row is
    /// encrypted. Returns their number.
    async fn drop_data_keys(&self, before: DateTime<Utc>) -> Result<usize, StoreError>;
}
