//! Examines what a process keeps on disk: the data folder and the secret key.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use ports::{
    deployment_keys::RecordedFingerprint,
    diagnostic::{Diagnosis, Diagnostic},
    random::RandomSource as _,
};
use rustix::fs::statvfs;

use crate::{
    clock::SystemRandom,
    secret_key::{KeyAgreementError, SecretKeys},
};

/// Free bytes below which an operator should know, and below which a database cannot work for long.
const NOTED_FREE_BYTES: u64 = 2 << 30;
const MIN_FREE_BYTES: u64 = 100 << 20;

/// Examines whether the data folder can be written, and has space.
pub struct DataFolderDiagnostic {
    pub folder: PathBuf,
}

#[async_trait]
impl Diagnostic for DataFolderDiagnostic {
    fn subject(&self) -> &'static str {
        "data folder"
    }

    async fn examine(&self) -> Vec<Diagnosis> {
        let folder = self.folder.display();
        let metadata = match fs::metadata(&self.folder) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return vec![Diagnosis::ok(format!("{folder} is made at the first start"))];
            }
            Err(error) => {
                let advice = "give the service's user access to data_dir";
                return vec![Diagnosis::failed(format!("{folder}: {error}"), advice)];
            }
        };
        if let Err(error) = write_once(&self.folder) {
            let advice = "give the service's user write access to data_dir";
            return vec![Diagnosis::failed(format!("{folder} cannot be written: {error}"), advice)];
        }
        let mut found = vec![Diagnosis::ok(format!("{folder} can be written"))];
        if metadata.mode() & 0o077 != 0 {
            let detail = format!("other users of this machine have access to {folder}");
            found.push(Diagnosis::warning(detail, "chmod 700 on the folder"));
        }
        found.extend(space(&self.folder));
        found
    }
}

/// Creates a file and deletes it again.
fn write_once(folder: &Path) -> io::Result<()> {
    let path = folder.join(format!("doctor-{:x}", SystemRandom.new_id()));
    let opened = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let written = opened.and_then(|mut file| io::Write::write_all(&mut file, b"doctor"));
    let removed = fs::remove_file(&path);
    written.and(removed)
}

fn space(folder: &Path) -> Option<Diagnosis> {
    let status = statvfs(folder).ok()?;
    let free = status.f_bavail.saturating_mul(status.f_frsize);
    let detail = format!("{} MiB are free", free >> 20);
    let advice = "provide more space: recordings, mails and an embedded database are written there";
    Some(if free < MIN_FREE_BYTES {
        Diagnosis::failed(detail, advice)
    } else if free < NOTED_FREE_BYTES {
        Diagnosis::warning(detail, advice)
    } else {
        Diagnosis::ok(detail)
    })
}

/// Examines whether the secret key is the one that the database belongs to.
pub struct SecretKeyDiagnostic {
    /// The folder of `secret.key`.
    pub folder: PathBuf,
    pub database: Arc<dyn RecordedFingerprint>,
    /// Whether the operator has configured keys that encrypt before this one.
    pub has_own_keys: bool,
}

#[async_trait]
impl Diagnostic for SecretKeyDiagnostic {
    fn subject(&self) -> &'static str {
        "secret key"
    }

    async fn examine(&self) -> Vec<Diagnosis> {
        let keys = SecretKeys::read(&self.folder).map_err(KeyAgreementError::from);
        let Ok(recorded) = self.database.recorded_fingerprint().await else {
            let advice = "repair the database first";
            return vec![Diagnosis::warning("not compared with that of the database", advice)];
        };
        let compared = keys.and_then(|keys| keys.compare(recorded.as_deref()));
        let source = if self.has_own_keys { "seal_keys encrypt; secret.key: " } else { "" };
        vec![match compared {
            Ok(line) => Diagnosis::ok(format!("{source}{line}")),
            Err(error) => {
                let advice = "see secret.key under Security in the operator's guide; do not create \
                              a new key";
                Diagnosis::error("not usable", &error, advice)
            }
        }]
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use ports::{
        StoreError,
        diagnostic::DiagnosisState::{Failed, Ok as Fine, Warning},
    };

    use super::*;

    #[tokio::test]
    async fn a_data_folder_is_private_and_writable() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("data");
        let examine = async |folder: &Path| {
            let folder = folder.to_owned();
            let found = DataFolderDiagnostic { folder }.examine().await;
            found.into_iter().map(|found| found.state).max().unwrap()
        };
        assert_eq!(examine(&folder).await, Fine, "it is made at the first start");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(examine(&folder).await, Fine);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing remains");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(examine(&folder).await, Warning);
        fs::write(parent.path().join("file"), "").unwrap();
        assert_eq!(examine(&parent.path().join("file")).await, Failed);
    }

    #[tokio::test]
    async fn a_key_is_compared_with_that_of_the_database() {
        struct Recorded(Result<Option<Vec<u8>>, ()>);
        #[async_trait]
        impl RecordedFingerprint for Recorded {
            async fn recorded_fingerprint(&self) -> Result<Option<Vec<u8>>, StoreError> {
                self.0.clone().map_err(|()| StoreError::new("connect", "refused"))
            }
        }
        let folder = tempfile::tempdir().unwrap();
        for (recorded, state) in
            [(Ok(None), Fine), (Ok(Some(vec![7; 8])), Failed), (Err(()), Warning)]
        {
            let diagnostic = SecretKeyDiagnostic {
                folder: folder.path().to_owned(),
                database: Arc::new(Recorded(recorded)),
                has_own_keys: true,
            };
            assert_eq!(diagnostic.examine().await[0].state, state);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "no key is made");
    }
}
