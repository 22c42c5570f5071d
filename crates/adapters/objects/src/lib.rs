//! Where recordings are kept: objects of a bucket or files of a folder; and how films are made.

mod ffmpeg;
mod links;
mod recording_file;
mod segment;

use std::{fmt, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use chrono::TimeDelta;
use domain::{
    id::{BrowserId, SessionId},
    recording::RecordedItem,
};
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::{
    ObjectStore, ObjectStoreExt as _,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
    local::LocalFileSystem,
    path::Path,
};
use ports::{StoreError, recording::RecordingVault};
use uuid::Uuid;

pub use self::{ffmpeg::Ffmpeg, links::LinkSigner, recording_file::RecordingFiles};
use ports::encryption::Cipher;

/// What a session's browser showed, until it has ended.
const SEGMENTS: &str = "reels";
const RECORDINGS: &str = "recordings";
/// Parts of one session; a recorder keeps far fewer.
const MAX_SEGMENTS: usize = 4096;

/// Where objects are.
#[derive(Clone, PartialEq, Eq)]
pub enum ObjectStorage {
    Folder(PathBuf),
    Bucket {
        /// `s3://bucket/prefix`
        url: String,
        /// The usual ones, `AWS_ACCESS_KEY_ID` and so on.
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

/// Without the variables: there is a secret in them.
impl fmt::Debug for ObjectStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "{}", folder.display()),
            Self::Bucket { url, .. } => f.write_str(url),
        }
    }
}

/// Recordings as objects.
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
    /// The folder cannot be made, or what is said of the bucket is not enough to reach it.
    pub fn open(
        storage: &ObjectStorage,
        cipher: Arc<dyn Cipher>,
        links: LinkSigner,
    ) -> Result<Self, StoreError> {
        match storage {
            ObjectStorage::Folder(folder) => {
                let opened = LocalFileSystem::new_with_prefix(folder);
                let objects = opened.map_err(failed("open the folder of recordings"))?;
                let objects = Arc::new(objects.with_automatic_cleanup(true));
                Ok(Self { objects, prefix: Path::default(), cipher, links })
            }
            ObjectStorage::Bucket { url, variables } => {
                // Does nothing where the process has chosen already.
                let _ = rustls::crypto::ring::default_provider().install_default();
                let known = variables.iter().filter_map(|(name, value)| {
                    Some((name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>().ok()?, value))
                });
                let builder = known.fold(AmazonS3Builder::new(), |builder, (key, value)| {
                    builder.with_config(key, value)
                });
                let built = builder.with_url(url).build();
                let bucket = Arc::new(built.map_err(failed("open the bucket of recordings"))?);
                let parsed = url::Url::parse(url).map_err(failed("read the bucket's URL"))?;
                let prefix = Path::from_url_path(parsed.path());
                let prefix = prefix.map_err(failed("read the bucket's URL"))?;
                Ok(Self { objects: bucket, prefix, cipher, links })
            }
        }
    }

    /// Whether the storage answers; nothing is written.
    ///
    /// # Errors
    /// It cannot be reached, or we may not list what is there.
    pub async fn check(&self) -> Result<(), StoreError> {
        let mut listed = self.objects.list(Some(&self.at(&[RECORDINGS])));
        listed.try_next().await.map(drop).map_err(failed("list recordings"))
    }

    fn at(&self, parts: &[&str]) -> Path {
        parts.iter().fold(self.prefix.clone(), |path, part| path.join(*part))
    }

    fn reels_of(&self, session: SessionId) -> Path {
        self.at(&[SEGMENTS, &session.to_string()])
    }

    fn part(&self, session: SessionId, browser: BrowserId, part: u32) -> Path {
        // With zeros before it, so that the order of names is that of parts.
        self.at(&[SEGMENTS, &session.to_string(), &browser.to_string(), &format!("{part:08}")])
    }

    fn film(&self, session: SessionId) -> Path {
        self.at(&[RECORDINGS, &film_name(session)])
    }

    async fn put(&self, path: &Path, bytes: Vec<u8>) -> Result<(), StoreError> {
        let put = self.objects.put(path, Bytes::from(bytes).into()).await;
        put.map(drop).map_err(failed("keep a recording"))
    }

    /// Deletes an object that may not be there: some servers' answers to that cannot be read, so it
    /// is asked for first.
    async fn delete_if_there(&self, path: &Path) -> Result<(), StoreError> {
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
        shots: &[RecordedItem],
    ) -> Result<(), StoreError> {
        let path = self.part(session, browser, part);
        let sealed = self.cipher.encrypt(&place(session, browser, part), &segment::write(shots));
        self.put(&path, sealed.map_err(failed("seal a recording"))?).await
    }

    async fn delete_part(
        &self,
        session: SessionId,
        browser: BrowserId,
        part: u32,
    ) -> Result<(), StoreError> {
        self.delete_if_there(&self.part(session, browser, part)).await
    }

    async fn segments(&self, session: SessionId) -> Result<Vec<Vec<RecordedItem>>, StoreError> {
        let folder = self.reels_of(session);
        let listed = self.objects.list(Some(&folder)).take(MAX_SEGMENTS).try_collect::<Vec<_>>();
        let mut parts = listed.await.map_err(failed("list a recording"))?;
        parts.sort_unstable_by(|a, b| a.location.cmp(&b.location));
        // Browsers are named in the order of their time.
        let mut reels: Vec<(BrowserId, Vec<RecordedItem>)> = vec![];
        for meta in parts {
            let mut names = meta.location.parts().rev();
            let part = names.next().and_then(|name| name.as_ref().parse().ok());
            let browser = names.next().and_then(|name| name.as_ref().parse::<Uuid>().ok());
            let (Some(part), Some(browser)) = (part, browser.map(BrowserId::from_uuid)) else {
                continue;
            };
            let got = self.objects.get(&meta.location).await;
            let sealed = got.map_err(failed("read a recording"))?.bytes().await;
            let sealed = sealed.map_err(failed("read a recording"))?;
            let opened = self.cipher.decrypt(&place(session, browser, part), &sealed);
            let opened = opened.map_err(failed("open a recording"))?;
            let shots = segment::read(&opened)
                .ok_or_else(|| StoreError::new("read a recording", "a part of it is broken"))?;
            match reels.last_mut() {
                Some((last, reel)) if *last == browser => reel.extend(shots),
                _ => reels.push((browser, shots)),
            }
        }
        Ok(reels.into_iter().map(|(_, reel)| reel).collect())
    }

    async fn store_recording(&self, session: SessionId, mp4: Vec<u8>) -> Result<(), StoreError> {
        let sealed = recording_file::encrypt(self.cipher.as_ref(), session, &mp4);
        self.put(&self.film(session), sealed.map_err(failed("encrypt a film"))?).await
    }

    async fn delete_segments(&self, session: SessionId) -> Result<(), StoreError> {
        let listed = self.objects.list(Some(&self.reels_of(session)));
        let parts = listed.map_ok(|meta| meta.location).try_collect::<Vec<_>>().await;
        for part in parts.map_err(failed("list a recording"))? {
            self.delete(&part).await?;
        }
        Ok(())
    }

    async fn delete_all(&self, session: SessionId) -> Result<(), StoreError> {
        self.delete_segments(session).await?;
        self.delete_if_there(&self.film(session)).await
    }

    async fn link(&self, session: SessionId, lifetime: TimeDelta) -> Result<String, StoreError> {
        Ok(self.links.to(session, lifetime))
    }

    async fn unfinished(&self, limit: usize) -> Result<Vec<SessionId>, StoreError> {
        let listed = self.objects.list_with_delimiter(Some(&self.at(&[SEGMENTS]))).await;
        let folders = listed.map_err(failed("list recordings"))?.common_prefixes;
        let names = folders.iter().filter_map(|folder| folder.filename()?.parse().ok());
        Ok(names.take(limit).collect())
    }
}

/// The name that a film goes by.
fn film_name(session: SessionId) -> String {
    format!("{session}.mp4")
}

/// What a part is sealed with: it opens in its own place alone.
fn place(session: SessionId, browser: BrowserId, part: u32) -> String {
    format!("reels/{session}/{browser}/{part}")
}

fn failed<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    action: &'static str,
) -> impl Fn(E) -> StoreError {
    move |error| StoreError::new(action, error)
}
