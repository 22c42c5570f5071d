//! Encrypts everything that is encrypted at rest with the newest keys, and rotates the secret key.

use std::{fmt::Display, sync::Arc};

use async_trait::async_trait;
use chrono::TimeDelta;
use futures_util::future::BoxFuture;
use ports::{
    Reencrypted, StoreError,
    account_store::UserStore,
    attestor::AttestationStore,
    clock::Clock,
    driving::{DataKeys, EncryptionAdminService, ReencryptionCounts, ReencryptionError},
    encryption_maintenance::{EncryptedTable, EncryptionMaintenance},
    secret_key::{RotatedFingerprints, SecretKeyError, SecretKeyRotation},
    webhook_store::WebhookStore,
};

/// Records that are read and written at once.
const RECORD_BATCH: u16 = 200;
/// Attestations that are read and written at once: each has hundreds of kilobytes.
const ATTESTATION_BATCH: u16 = 10;
/// The time after which no process encrypts with a replaced data key.
const REPLACED_KEY_GRACE: TimeDelta = TimeDelta::minutes(10);

/// Implements [`EncryptionAdminService`].
pub struct EncryptionAdministration {
    pub maintenance: Arc<dyn EncryptionMaintenance>,
    pub webhooks: Arc<dyn WebhookStore>,
    pub attestations: Arc<dyn AttestationStore>,
    pub users: Arc<dyn UserStore>,
    pub secret_key: Arc<dyn SecretKeyRotation>,
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl EncryptionAdminService for EncryptionAdministration {
    async fn reencrypt(
        &self,
        data_keys: DataKeys,
    ) -> Result<(ReencryptionCounts, usize), ReencryptionError> {
        let started_at = self.clock.now();
        let mut unreadable = vec![];
        let rewrapped = in_batches("data key", &mut unreadable, |after| {
            self.maintenance.rewrap_data_keys(after, RECORD_BATCH)
        })
        .await?;
        let data_keys_open = unreadable.is_empty();
        if data_keys_open && data_keys == DataKeys::Replace {
            self.maintenance.replace_data_keys().await?;
        }
        let reencrypted = self.reencrypt_records(&mut unreadable).await?;
        // Rows of a team whose data key does not open are not readable.
        let encrypted = if data_keys_open { self.encrypt_rows(&mut unreadable).await? } else { 0 };
        let done = ReencryptionCounts { reencrypted, rewrapped, encrypted };
        if !unreadable.is_empty() {
            return Err(ReencryptionError::Unreadable { done, records: unreadable });
        }
        let destroyed = self.maintenance.drop_data_keys(started_at - REPLACED_KEY_GRACE).await?;
        self.secret_key.record_current().await?;
        Ok((done, destroyed))
    }

    fn rotate_secret_key(&self) -> Result<RotatedFingerprints, SecretKeyError> {
        self.secret_key.rotate()
    }
}

impl EncryptionAdministration {
    /// Encrypts what the deployment's keys encrypt. Returns the number of changed records.
    async fn reencrypt_records(&self, unreadable: &mut Vec<String>) -> Result<usize, StoreError> {
        let webhooks =
            in_batches("webhook", unreadable, |after| self.webhooks.reseal(after, RECORD_BATCH))
                .await?;
        let attestations = in_batches("the attestation of", unreadable, |after| {
            self.attestations.reencrypt_attestations(after, ATTESTATION_BATCH)
        })
        .await?;
        let users = in_batches("the codes of", unreadable, |after| {
            self.users.reencrypt_users(after, RECORD_BATCH)
        })
        .await?;
        Ok(webhooks + attestations + users)
    }

    /// Encrypts what the data keys of teams encrypt. Returns the number of changed rows.
    async fn encrypt_rows(&self, unreadable: &mut Vec<String>) -> Result<usize, StoreError> {
        let mut encrypted = 0;
        for table in EncryptedTable::ALL {
            encrypted += in_batches(table.row_name(), unreadable, |after| {
                self.maintenance.encrypt_rows(table, after, RECORD_BATCH)
            })
            .await?;
        }
        Ok(encrypted)
    }
}

/// Calls `batch` until there are no more records. Returns the number of changed records, and adds
/// the names of the unreadable ones.
async fn in_batches<'a, Id: Display>(
    kind: &str,
    unreadable: &mut Vec<String>,
    batch: impl Fn(Option<Id>) -> BoxFuture<'a, Result<Reencrypted<Id>, StoreError>>,
) -> Result<usize, StoreError> {
    let (mut changed, mut after) = (0, None);
    loop {
        let done = batch(after).await?;
        changed += done.changed;
        unreadable.extend(done.unreadable.iter().map(|id| format!("{kind} {id}")));
        after = done.next;
        if after.is_none() {
            return Ok(changed);
        }
    }
}
