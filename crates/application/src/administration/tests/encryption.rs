//! The order and the failures of encrypting everything again.

use chrono::TimeDelta;
use mockall::{Sequence, predicate::eq};
use ports::{
    Reencrypted,
    driving::{DataKeys, EncryptionAdminService as _, ReencryptionCounts, ReencryptionError},
    encryption_maintenance::{EncryptedTable, MockEncryptionMaintenance},
    secret_key::{MockSecretKeyRotation, RotatedFingerprints, SecretKeyError},
};

use super::*;
use crate::administration::EncryptionAdministration;

#[tokio::test]
async fn everything_is_encrypted_in_batches_and_the_new_key_is_recorded_last() {
    let (mut maintenance, mut order) = (MockEncryptionMaintenance::new(), Sequence::new());
    for (after, changed, next) in [(None, 200, Some(200)), (Some(200), 3, None)] {
        maintenance
            .expect_rewrap_data_keys()
            .with(eq(after), eq(200))
            .times(1)
            .in_sequence(&mut order)
            .returning(move |_, _| Ok(batch(changed, vec![], next)));
    }
    maintenance.expect_replace_data_keys().times(1).in_sequence(&mut order).returning(|| Ok(7));
    for table in EncryptedTable::ALL {
        maintenance
            .expect_encrypt_rows()
            .with(eq(table), eq(None), eq(200))
            .times(1)
            .in_sequence(&mut order)
            .returning(|_, _, _| Ok(batch(2, vec![], None)));
    }
    maintenance
        .expect_drop_data_keys()
        .with(eq(noon() - TimeDelta::minutes(10)))
        .times(1)
        .in_sequence(&mut order)
        .returning(|_| Ok(1));
    let mut secret_key = MockSecretKeyRotation::new();
    secret_key.expect_record_current().times(1).in_sequence(&mut order).returning(|| Ok(()));

    let done = encryption(maintenance, secret_key).reencrypt(DataKeys::Replace).await.unwrap();
    assert_eq!(done, (ReencryptionCounts { reencrypted: 0, rewrapped: 203, encrypted: 10 }, 1));
}

#[tokio::test]
async fn data_keys_are_replaced_only_on_request() {
    let (mut maintenance, mut secret_key) = nothing_to_do();
    maintenance.expect_drop_data_keys().returning(|_| Ok(0));
    secret_key.expect_record_current().returning(|| Ok(()));
    let done = encryption(maintenance, secret_key).reencrypt(DataKeys::Keep).await.unwrap();
    assert_eq!(done, (ReencryptionCounts::default(), 0));
}

#[tokio::test]
async fn an_unreadable_data_key_stops_everything_that_depends_on_it() {
    let mut maintenance = MockEncryptionMaintenance::new();
    let rewrapped = maintenance.expect_rewrap_data_keys();
    rewrapped.returning(|_, _| Ok(batch(1, vec![4, 5], None)));
    // Neither data keys nor rows nor the secret key are touched: the mocks expect no such call.
    let encryption = encryption(maintenance, MockSecretKeyRotation::new());
    let error = encryption.reencrypt(DataKeys::Replace).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "0 resealed, 1 rewrapped, 0 encrypted, but no key opens what these have: data key 4, data \
         key 5"
    );
}

#[tokio::test]
async fn an_unreadable_row_keeps_replaced_keys_and_the_recorded_key() {
    let mut maintenance = MockEncryptionMaintenance::new();
    maintenance.expect_rewrap_data_keys().returning(|_, _| Ok(batch(0, vec![], None)));
    maintenance.expect_encrypt_rows().times(5).returning(|table, _, _| {
        let is_contact = table == EncryptedTable::Contacts;
        Ok(batch(1, is_contact.then(Uuid::nil).into_iter().collect(), None))
    });
    let encryption = encryption(maintenance, MockSecretKeyRotation::new());
    let error = encryption.reencrypt(DataKeys::Keep).await.unwrap_err();
    let ReencryptionError::Unreadable { done, records } = error else { panic!("{error:?}") };
    assert_eq!((done.encrypted, records), (5, vec![format!("receiver {}", Uuid::nil())]));
}

#[tokio::test]
async fn a_failure_of_the_store_ends_the_run_at_once() {
    let mut maintenance = MockEncryptionMaintenance::new();
    maintenance.expect_rewrap_data_keys().times(1).returning(|_, _| Err(broken()));
    let encryption = encryption(maintenance, MockSecretKeyRotation::new());
    let error = encryption.reencrypt(DataKeys::Replace).await.unwrap_err();
    assert!(matches!(error, ReencryptionError::Store(_)), "{error:?}");
}

#[test]
fn the_secret_key_is_rotated_or_the_reason_is_passed_on() {
    let rotated = RotatedFingerprints { current: "b".into(), earlier: "a".into() };
    let mut secret_key = MockSecretKeyRotation::new();
    let answer = rotated.clone();
    secret_key.expect_rotate().times(1).returning(move || Ok(answer.clone()));
    let pending = || Err(SecretKeyError::new("there is an earlier key"));
    secret_key.expect_rotate().times(1).returning(pending);
    let encryption = encryption(MockEncryptionMaintenance::new(), secret_key);
    assert_eq!(encryption.rotate_secret_key().unwrap(), rotated);
    let error = encryption.rotate_secret_key().unwrap_err();
    assert_eq!(error.to_string(), "there is an earlier key");
}

fn encryption(
    maintenance: MockEncryptionMaintenance,
    secret_key: MockSecretKeyRotation,
) -> EncryptionAdministration {
    let store = Arc::new(MemoryStore::new());
    EncryptionAdministration {
        maintenance: Arc::new(maintenance),
        webhooks: store.clone(),
        attestations: store.clone(),
        users: store,
        secret_key: Arc::new(secret_key),
        clock: Arc::new(FakeClock::at(noon())),
    }
}

/// Returns mocks of a store in which everything is current.
fn nothing_to_do() -> (MockEncryptionMaintenance, MockSecretKeyRotation) {
    let mut maintenance = MockEncryptionMaintenance::new();
    maintenance.expect_rewrap_data_keys().returning(|_, _| Ok(batch(0, vec![], None)));
    maintenance.expect_encrypt_rows().returning(|_, _, _| Ok(batch(0, vec![], None)));
    (maintenance, MockSecretKeyRotation::new())
}

fn batch<Id>(changed: usize, unreadable: Vec<Id>, next: Option<Id>) -> Reencrypted<Id> {
    Reencrypted { changed, unreadable, next }
}
