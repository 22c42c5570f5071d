//! Stores recordings as objects of a bucket or files of a folder, and encodes them.

mod diagnostic;
mod ffmpeg;
mod links;
mod recording_file;
mod segment;

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use chrono::TimeDelta;
use domain::{
    id::{BrowserId, SessionId},
    recording::RecordedItem,
};
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::{
    ObjectStore, ObjectStoreExt as _, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
    local::LocalFileSystem,
    path::Path,
};
use ports::{StoreError, recording::RecordingVault};
use uuid::Uuid;

pub use self::{
    diagnostic::StorageDiagnostic, ffmpeg::Ffmpeg, links::LinkSigner,
    recording_file::RecordingFiles,
};
use ports::encryption::Cipher;

/// How long each request to a bucket is repeated, before whoever made it does so later: with its last attempt,
/// for which the library allows 30 s, it ends before the lease of a job, of 90 s.
const RETRY_TIMEOUT: Duration = Duration::from_secs(45);
/// Segments are stored until the session has ended.
const SEGMENTS: &str = "reels";
const RECORDINGS: &str = "recordings";
/// The maximum number of segments of one session; a recorder writes far fewer.
const MAX_SEGMENTS: usize = 4096;

/// The location of the objects.
#[derive(Clone, PartialEq, Eq)]
pub enum ObjectStorage {
    Folder(PathBuf),
    Bucket {
        /// `s3://bucket/prefix`
        url: String,
        /// The standard variables, `AWS_ACCESS_KEY_ID` and so on.
        variables: Vec<(String, String)>,
    },
}

impl ObjectStorage {
    /// Parses `file://FOLDER` or `s3://BUCKET/PREFIX`; `None` for anything else. A bucket takes its
    /// credentials from those of the variables whose names start with `AWS_`.
    pub fn parse(url: &str, variables: impl Iterator<Item = (String, String)>) -> Option<Self> {
        match url.split_once("://")? {
            (_, "") => None,
            ("file", folder) => Some(Self::Folder(folder.into())),
            ("s3", _) => {
                let variables = variables.filter(|(name, _)| name.starts_with("AWS_")).collect();
                Some(Self::Bucket { url: url.to_owned(), variables })
            }
            _ => None,
        }
    }
}

/// Omits the variables, which contain a secret.
impl fmt::Debug for ObjectStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "{}", folder.display()),
            Self::Bucket { url, .. } => f.write_str(url),
        }
    }
}

/// Stores segments and recordings as objects.
pub struct ObjectVault {
    objects: Arc<dyn ObjectStore>,
    prefix: Path,
    cipher: Arc<dyn Cipher>,
    links: LinkSigner,
}

impl ObjectVault {
    /// Opens the storage; `cipher` encrypts everything that is stored.
    ///
    /// # Errors
    /// The folder cannot be created, or the configuration of the bucket is incomplete.
    pub fn open(
        storage: &ObjectStorage,
        cipher: Arc<dyn Cipher>,
        links: LinkSigner,
    ) -> Result<Self, StoreError> {
        match storage {
            ObjectStorage::Folder(folder) => {
                let plaintext = LocalFileSystem::new_with_prefix(folder);
                let objects = plaintext.map_err(failed("open the folder of recordings"))?;
                let objects = Arc::new(objects.with_automatic_cleanup(true));
                Ok(Self { objects, prefix: Path::default(), cipher, links })
            }
            ObjectStorage::Bucket { url, variables } => {
                // Has no effect if the process has a default provider already.
                let _ = rustls::crypto::ring::default_provider().install_default();
                let known = variables.iter().filter_map(|(name, value)| {
                    Some((name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>().ok()?, value))
                });
                let builder = known.fold(AmazonS3Builder::new(), |builder, (key, value)| {
                    builder.with_config(key, value)
                });
                let retry = RetryConfig { retry_timeout: RETRY_TIMEOUT, ..RetryConfig::default() };
                let built = builder.with_url(url).with_retry(retry).build();
                let bucket = Arc::new(built.map_err(failed("open the bucket of recordings"))?);
                let parsed = url::Url::parse(url).map_err(failed("read the bucket's URL"))?;
                let prefix = Path::from_url_path(parsed.path());
                let prefix = prefix.map_err(failed("read the bucket's URL"))?;
                Ok(Self { objects: bucket, prefix, cipher, links })
            }
        }
    }

    /// Checks that the storage responds, without writing.
    ///
    /// # Errors
    /// It is unreachable, or its objects may not be listed.
    pub async fn check(&self) -> Result<(), StoreError> {
        let mut listed = self.objects.list(Some(&self.at(&[RECORDINGS])));
        listed.try_next().await.map(drop).map_err(failed("list recordings"))
    }

    fn at(&self, parts: &[&str]) -> Path {
        parts.iter().fold(self.prefix.clone(), |path, part| path.join(*part))
    }

    fn segments_path(&self, session: SessionId) -> Path {
        self.at(&[SEGMENTS, &session.to_string()])
    }

    fn segment_path(&self, session: SessionId, browser: BrowserId, part: u32) -> Path {
        // Zero-padded, so that the order of names is the order of parts.
        self.at(&[SEGMENTS, &session.to_string(), &browser.to_string(), &format!("{part:08}")])
    }

    fn recording_path(&self, session: SessionId) -> Path {
        self.at(&[RECORDINGS, &recording_name(session)])
    }

    async fn put(&self, path: &Path, bytes: Vec<u8>) -> Result<(), StoreError> {
        let put = self.objects.put(path, Bytes::from(bytes).into()).await;
        put.map(drop).map_err(failed("store a recording"))
    }

    /// Deletes an object that may be absent. Some servers' responses to deleting an absent object
    /// cannot be parsed, so its existence is checked first.
    async fn delete_if_exists(&self, path: &Path) -> Result<(), StoreError> {
        match self.objects.head(path).await {
            Ok(_) => self.delete(path).await,
            Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed("look for a recording")(error)),
        }
    }

    async fn delete(&self, path: &Path) -> Result<(), StoreError> {
        match self.objects.delete(path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed("delete a recording")(error)),
        }
    }
}

#[async_trait]
impl RecordingVault for ObjectVault {
    async fn append(
        &self,
        session: SessionId,
        browser: BrowserId,
        part: u32,
        items: &[RecordedItem],
    ) -> Result<(), StoreError> {
        let path = self.segment_path(session, browser, part);
        let ciphertext =
            self.cipher.encrypt(&context(session, browser, part), &segment::write(items));
        self.put(&path, ciphertext.map_err(failed("encrypt a recording"))?).await
    }

    async fn delete_part(
        &self,
        session: SessionId,
        browser: BrowserId,
        part: u32,
    ) -> Result<(), StoreError> {
        self.delete_if_exists(&self.segment_path(session, browser, part)).await
    }

    async fn segments(&self, session: SessionId) -> Result<Vec<Vec<RecordedItem>>, StoreError> {
        let folder = self.segments_path(session);
        let listed = self.objects.list(Some(&folder)).take(MAX_SEGMENTS).try_collect::<Vec<_>>();
        let mut parts = listed.await.map_err(failed("list a recording"))?;
        parts.sort_unstable_by(|a, b| a.location.cmp(&b.location));
        // Identifiers of browsers are ordered by time.
        let mut segments: Vec<(BrowserId, Vec<RecordedItem>)> = vec![];
        for meta in parts {
            let mut names = meta.location.parts().rev();
            let part = names.next().and_then(|name| name.as_ref().parse().ok());
            let browser = names.next().and_then(|name| name.as_ref().parse::<Uuid>().ok());
            let (Some(part), Some(browser)) = (part, browser.map(BrowserId::from_uuid)) else {
                continue;
            };
            let object = self.objects.get(&meta.location).await;
            let ciphertext = object.map_err(failed("read a recording"))?.bytes().await;
            let ciphertext = ciphertext.map_err(failed("read a recording"))?;
            let plaintext = self.cipher.decrypt(&context(session, browser, part), &ciphertext);
            let plaintext = plaintext.map_err(failed("decrypt a recording"))?;
            let items = segment::read(&plaintext)
                .ok_or_else(|| StoreError::new("read a recording", "a segment of it is damaged"))?;
            match segments.last_mut() {
                Some((last, segment)) if *last == browser => segment.extend(items),
                _ => segments.push((browser, items)),
            }
        }
        Ok(segments.into_iter().map(|(_, segment)| segment).collect())
    }

    async fn store_recording(&self, session: SessionId, mp4: Vec<u8>) -> Result<(), StoreError> {
        let ciphertext = recording_file::encrypt(self.cipher.as_ref(), session, &mp4);
        self.put(&self.recording_path(session), ciphertext.map_err(failed("encrypt a recording"))?)
            .await
    }

    async fn delete_segments(&self, session: SessionId) -> Result<(), StoreError> {
        let listed = self.objects.list(Some(&self.segments_path(session)));
        let parts = listed.map_ok(|meta| meta.location).try_collect::<Vec<_>>().await;
        for part in parts.map_err(failed("list a recording"))? {
            self.delete(&part).await?;
        }
        Ok(())
    }

    async fn delete_all(&self, session: SessionId) -> Result<(), StoreError> {
        self.delete_segments(session).await?;
        self.delete_if_exists(&self.recording_path(session)).await
    }

    async fn link(&self, session: SessionId, lifetime: TimeDelta) -> Result<String, StoreError> {
        Ok(self.links.link(session, lifetime))
    }

    async fn unfinished(&self, limit: usize) -> Result<Vec<SessionId>, StoreError> {
        let listed = self.objects.list_with_delimiter(Some(&self.at(&[SEGMENTS]))).await;
        let folders = listed.map_err(failed("list recordings"))?.common_prefixes;
        let names = folders.iter().filter_map(|folder| folder.filename()?.parse().ok());
        Ok(names.take(limit).collect())
    }
}

/// Returns the object name of a recording.
fn recording_name(session: SessionId) -> String {
    format!("{session}.mp4")
}

/// Returns the context of a segment's encryption, so that it can be decrypted only in its own
/// place.
fn context(session: SessionId, browser: BrowserId, part: u32) -> String {
    format!("reels/{session}/{browser}/{part}")
}

fn failed<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    action: &'static str,
) -> impl Fn(E) -> StoreError {
    move |error| StoreError::new(action, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storage_is_a_folder_or_a_bucket_with_its_variables() {
        let parse = |url| {
            let variables = ["AWS_REGION", "HOME"].map(|name| (name.to_owned(), "x".to_owned()));
            ObjectStorage::parse(url, variables.into_iter())
        };
        assert_eq!(
            parse("file:///var/objects"),
            Some(ObjectStorage::Folder("/var/objects".into()))
        );
        let url = "s3://bucket/prefix".to_owned();
        let variables = vec![("AWS_REGION".to_owned(), "x".to_owned())];
        assert_eq!(parse(&url), Some(ObjectStorage::Bucket { url: url.clone(), variables }));
        for url in ["", "file://", "s3://", "https://bucket", "bucket"] {
            assert_eq!(parse(url), None, "{url}");
        }
    }
}
