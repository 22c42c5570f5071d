//! `secret.key` and the database that belongs to it: first starts, races, wrong and missing keys.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use ports::deployment_keys::MockDeploymentKeys;
use tempfile::TempDir;

use super::*;

#[tokio::test]
async fn the_first_start_creates_the_file_and_records_its_key() {
    let (folder, database) = (TempDir::new().unwrap(), MemoryDatabase::default());
    let stable_key = agree(folder.path(), &database).await;
    assert!(folder.path().join("secret.key").exists());
    // Another process with the same folder gets the same keys, and so does a later start.
    assert_eq!(agree(folder.path(), &database).await, stable_key);
    let keys = SecretKeys::read(folder.path()).unwrap();
    let recorded = database.record().unwrap().fingerprint;
    assert!(keys.compare(Some(&recorded)).unwrap().ends_with(", as in the database"));
    assert_eq!(stable_key, keys.derive("tokens"), "hashes from before the record stay valid");
}

#[tokio::test]
async fn of_two_first_starts_with_folders_of_their_own_one_is_refused() {
    let [one, two] = [(); 2].map(|()| TempDir::new().unwrap());
    let database = MemoryDatabase::default();
    let mut second = SecretKeys::read(two.path()).unwrap();
    agree(one.path(), &database).await;
    // The second process found no record, and lost the claim to the first one.
    let recorded = database.record().unwrap();
    let mut late = MockDeploymentKeys::new();
    late.expect_deployment_key().returning(|| Ok(None));
    late.expect_has_any_team().returning(|| Ok(false));
    late.expect_claim_deployment_key().returning(move |_| Ok(recorded.clone()));
    let error = second.agree(&late).await.map(drop).unwrap_err();
    assert!(matches!(error, KeyAgreementError::OtherKey { .. }), "{error}");
    assert!(!two.path().join("secret.key").exists());
}

#[tokio::test]
async fn of_two_first_starts_with_the_same_folder_one_reads_the_file_again() {
    let (folder, database) = (TempDir::new().unwrap(), MemoryDatabase::default());
    let mut second = SecretKeys::read(folder.path()).unwrap();
    fs::write(folder.path().join("secret.key"), [7; 32]).unwrap();
    assert!(second.agree(&database).await.unwrap() == Agreement::ReadAgain);
    assert_eq!(database.record(), None);
    assert_eq!(fs::read(folder.path().join("secret.key")).unwrap(), [7; 32]);
    agree(folder.path(), &database).await;
}

#[tokio::test]
async fn another_key_is_refused_and_named_by_its_fingerprint() {
    let (folder, database) = (TempDir::new().unwrap(), MemoryDatabase::default());
    agree(folder.path(), &database).await;
    let before = database.record();
    fs::write(folder.path().join("secret.key"), [9; 32]).unwrap();
    let mut keys = SecretKeys::read(folder.path()).unwrap();
    let error = keys.agree(&database).await.map(drop).unwrap_err().to_string();
    for fingerprint in [hex(&before.clone().unwrap().fingerprint), hex(&fingerprint(&[9; 32]))] {
        assert!(error.contains(&fingerprint), "{error}");
    }
    assert_eq!(database.record(), before);
}

#[tokio::test]
async fn a_missing_file_is_not_created_for_a_database_that_has_a_key_or_data() {
    let (folder, database) = (TempDir::new().unwrap(), MemoryDatabase::default());
    agree(folder.path(), &database).await;
    let elsewhere = TempDir::new().unwrap();
    let mut keys = SecretKeys::read(elsewhere.path()).unwrap();
    let error = keys.agree(&database).await.map(drop).unwrap_err().to_string();
    assert!(error.contains("and there is no") && error.contains("secret.key"), "{error}");
    // The database of an earlier version has data and no record.
    let mut unrecorded = MockDeploymentKeys::new();
    unrecorded.expect_deployment_key().returning(|| Ok(None));
    unrecorded.expect_has_any_team().returning(|| Ok(true));
    let error = keys.agree(&unrecorded).await.map(drop).unwrap_err();
    assert!(matches!(error, KeyAgreementError::Missing(_)), "{error}");
    assert!(!elsewhere.path().join("secret.key").exists());
}

#[tokio::test]
async fn a_rotated_key_decrypts_what_the_earlier_one_encrypted_and_is_recorded_at_last() {
    let (folder, database) = (TempDir::new().unwrap(), MemoryDatabase::default());
    let stable_key = agree(folder.path(), &database).await;
    let before = SecretKeys::read(folder.path()).unwrap();
    let none = EncryptionKeys::default();
    let encrypted = before.cipher("seal", &none).encrypt("column", b"value").unwrap();

    let rotated = before.rotate().unwrap();
    let after = SecretKeys::read(folder.path()).unwrap();
    assert_eq!(rotated.current, hex(&after.fingerprint()));
    assert_eq!(rotated.earlier, hex(&before.fingerprint()));
    assert!(matches!(after.rotate(), Err(KeyAgreementError::RotationPending(_))));
    assert_eq!(after.cipher("seal", &none).decrypt("column", &encrypted).unwrap(), b"value");
    assert_eq!(agree(folder.path(), &database).await, stable_key);
    assert_eq!(database.record().unwrap().fingerprint, before.fingerprint());

    after.record_current(&database, &stable_key).await.unwrap();
    assert_eq!(database.record().unwrap().fingerprint, after.fingerprint());
    let current = database.record();
    after.record_current(&database, &stable_key).await.unwrap();
    assert_eq!(database.record(), current, "a second call writes nothing");
    fs::remove_file(folder.path().join("secret.key.old")).unwrap();
    assert_eq!(agree(folder.path(), &database).await, stable_key);
}

#[tokio::test]
async fn a_damaged_record_is_refused() {
    let (folder, database) = (TempDir::new().unwrap(), MemoryDatabase::default());
    agree(folder.path(), &database).await;
    database.write(|record| record.encrypted_stable_key[30] ^= 1);
    let mut keys = SecretKeys::read(folder.path()).unwrap();
    assert!(matches!(keys.agree(&database).await, Err(KeyAgreementError::Cipher(_))));
}

#[test]
fn a_key_is_compared_without_creating_anything() {
    let folder = TempDir::new().unwrap();
    let keys = SecretKeys::read(folder.path()).unwrap();
    assert_eq!(keys.compare(None).unwrap(), "is made at the first start");
    assert!(keys.compare(Some(&[1; 16])).is_err());
    assert!(!folder.path().join("secret.key").exists());
    fs::write(folder.path().join("secret.key"), [7; 32]).unwrap();
    let keys = SecretKeys::read(folder.path()).unwrap();
    let own = hex(&fingerprint(&[7; 32]));
    assert_eq!(keys.compare(None).unwrap(), format!("fingerprint {own}"));
    assert!(keys.compare(Some(&[1; 16])).unwrap_err().to_string().contains(&own));
}

/// Opens a folder, and returns the stable key.
async fn agree(folder: &Path, database: &MemoryDatabase) -> [u8; 32] {
    let mut keys = SecretKeys::read(folder).unwrap();
    match keys.agree(database).await.unwrap() {
        Agreement::Agreed { stable_key } => stable_key,
        Agreement::ReadAgain => panic!("the file was created in the meantime"),
    }
}

/// A database without teams.
#[derive(Default)]
struct MemoryDatabase(Mutex<Option<DeploymentKey>>);

impl MemoryDatabase {
    fn record(&self) -> Option<DeploymentKey> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn write(&self, change: impl FnOnce(&mut DeploymentKey)) {
        change(self.0.lock().unwrap().as_mut().unwrap());
    }
}

#[async_trait]
impl DeploymentKeys for MemoryDatabase {
    async fn deployment_key(&self) -> Result<Option<DeploymentKey>, StoreError> {
        Ok(self.record())
    }

    async fn claim_deployment_key(&self, key: &DeploymentKey) -> Result<DeploymentKey, StoreError> {
        Ok(self.0.lock().unwrap().get_or_insert_with(|| key.clone()).clone())
    }

    async fn renew_deployment_key(
        &self,
        before: &DeploymentKey,
        key: &DeploymentKey,
    ) -> Result<bool, StoreError> {
        let mut record = self.0.lock().unwrap();
        let is_same = record.as_ref().is_some_and(|now| now.fingerprint == before.fingerprint);
        if is_same {
            *record = Some(key.clone());
        }
        Ok(is_same)
    }

    async fn has_any_team(&self) -> Result<bool, StoreError> {
        Ok(false)
    }
}
