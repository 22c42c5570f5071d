//! `avouch admin reseal`: everything that is encrypted at rest, encrypted with the newest keys.

use chrono::{DateTime, TimeDelta, Utc};
use ports::{
    Reencrypted, StoreError, account_store::UserStore as _, attestor::AttestationStore as _,
    webhook_store::WebhookStore as _,
};
use serde_json::{Value, json};
use store::{Store, Table};

use crate::storage::{StartupError, error_chain};

const BATCH: u16 = 200;
/// Attestations are some hundred kilobytes each.
const FEW: u16 = 10;
/// A data key is destroyed so long after it was replaced: no process encrypts with it any more.
const REPLACED: TimeDelta = TimeDelta::minutes(10);

/// Goes through everything in batches, beside processes that serve. What no key opens is left as it
/// is, and named in the error.
pub(super) async fn reseal(
    store: &Store,
    new_data_keys: bool,
    now: DateTime<Utc>,
) -> Result<Value, StartupError> {
    let mut unreadable = vec![];
    let rewrapped =
        all("data key", &mut unreadable, async |after| store.rewrap_data_keys(after, BATCH).await);
    let rewrapped = rewrapped.await?;
    let readable = unreadable.is_empty();
    if readable && new_data_keys {
        store.replace_data_keys().await.map_err(error_chain)?;
    }
    let webhooks =
        all("webhook", &mut unreadable, async |after| store.reseal(after, BATCH).await).await?;
    let attestations = all("the attestation of", &mut unreadable, async |after| {
        store.reencrypt_attestations(after, FEW).await
    });
    let attestations = attestations.await?;
    let users = all("the codes of", &mut unreadable, async |after| {
        store.reencrypt_users(after, BATCH).await
    });
    let users = users.await?;
    let mut encrypted = 0;
    // Rows of a team whose key does not open cannot be read either.
    for table in Table::ALL.into_iter().filter(|_| readable) {
        encrypted += all(table.name(), &mut unreadable, async |after| {
            store.encrypt_rows(table, after, BATCH).await
        })
        .await?;
    }
    let resealed = webhooks + attestations + users;
    if unreadable.is_empty() {
        let destroyed = store.drop_data_keys(now - REPLACED).await.map_err(error_chain)?;
        return Ok(json!({
            "resealed": resealed,
            "rewrapped": rewrapped,
            "encrypted": encrypted,
            "destroyed": destroyed,
        }));
    }
    let which = unreadable.join(", ");
    Err(format!(
        "{resealed} resealed, {rewrapped} rewrapped, {encrypted} encrypted, \
         but no key opens what these have: {which}"
    )
    .into())
}

/// Takes batch after batch until there is no more; answers how many were changed.
async fn all<Id: std::fmt::Display>(
    kind: &str,
    unreadable: &mut Vec<String>,
    batch: impl AsyncFn(Option<Id>) -> Result<Reencrypted<Id>, StoreError>,
) -> Result<usize, StartupError> {
    let (mut changed, mut after) = (0, None);
    loop {
        let done = batch(after).await.map_err(error_chain)?;
        changed += done.changed;
        unreadable.extend(done.unreadable.iter().map(|id| format!("{kind} {id}")));
        after = done.next;
        if after.is_none() {
            return Ok(changed);
        }
    }
}
