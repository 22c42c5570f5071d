//! Examines the storage of recordings.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use object_store::ObjectStoreExt as _;
use ports::{
    StoreError,
    clock::Clock,
    diagnostic::{Diagnosis, Diagnostic},
    encryption::Cipher,
};
use uuid::Uuid;

use crate::{LinkSigner, ObjectStorage, ObjectVault, failed};

/// How long the answers of a bucket are waited for.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);
/// The objects of examinations; recordings are elsewhere.
const PROBES: &str = "doctor";

/// Examines whether objects can be written, read and deleted, with one of its own.
pub struct StorageDiagnostic {
    pub storage: ObjectStorage,
    /// Encrypts nothing here; the vault needs one.
    pub cipher: Arc<dyn Cipher>,
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl Diagnostic for StorageDiagnostic {
    fn subject(&self) -> &'static str {
        "recordings"
    }

    async fn examine(&self) -> Vec<Diagnosis> {
        let place = format!("{:?}", self.storage);
        if let ObjectStorage::Folder(folder) = &self.storage
            && !folder.exists()
        {
            return vec![Diagnosis::ok(format!("{place} is made at the first start"))];
        }
        let tried = tokio::time::timeout(RESPONSE_TIMEOUT, self.try_out()).await;
        let advice = "correct storage_url and the variables AWS_…; the credentials need the rights to \
                      list, read, write and delete objects";
        vec![match tried {
            Ok(Ok(())) => Diagnosis::ok(format!("{place}: wrote, read and deleted an object")),
            Ok(Err(error)) => Diagnosis::error(&place, &error, advice),
            Err(_) => {
                let seconds = RESPONSE_TIMEOUT.as_secs();
                Diagnosis::failed(format!("{place}: no answer within {seconds} s"), advice)
            }
        }]
    }
}

impl StorageDiagnostic {
    async fn try_out(&self) -> Result<(), StoreError> {
        // Nothing is signed, so that any key will do.
        let links = LinkSigner::new(String::new(), &[0; 32], self.clock.clone());
        let vault = ObjectVault::open(&self.storage, self.cipher.clone(), links)?;
        vault.check().await?;
        let path = vault.at(&[PROBES, &Uuid::new_v4().to_string()]);
        let content = Bytes::from_static(b"doctor");
        let written = vault.objects.put(&path, content.clone().into()).await;
        written.map_err(failed("write an object"))?;
        let read = async { vault.objects.get(&path).await?.bytes().await };
        let read = read.await.map_err(failed("read an object"));
        // Also if it could not be read: nothing remains.
        vault.objects.delete(&path).await.map_err(failed("delete an object"))?;
        if read? == content { Ok(()) } else { Err(failed("read an object")("it has changed")) }
    }
}
