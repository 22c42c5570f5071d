//! Recordings: what is kept while a session runs, the film made of it, and how far that has come.

use std::ops::Range;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    id::{BrowserId, SessionId},
    recording::{RecordedItem, Recording},
};

use crate::StoreError;

/// How far the recording of a session that ended in ERROR has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordingState {
    Pending,
    InProgress,
    Kept,
    /// There will be none, and why, for the partner.
    Failed(String),
    Erased,
}

/// The right to make a session's film.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingClaim {
    pub session: SessionId,
    /// Counts from 1; also the fence against a lost claim.
    pub attempt: i32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordingOutcome {
    Kept,
    Failed(String),
    RetryAt(DateTime<Utc>),
}

/// The queue of films to be made, filled by the session store in its own writes.
#[async_trait]
pub trait RecordingQueue: Send + Sync {
    /// How far a session's recording has come; `None` where there never was one.
    async fn recording(&self, session: SessionId) -> Result<Option<RecordingState>, StoreError>;

    /// Leases up to `limit` films that are due. A lease that runs out is handed out again.
    async fn claim_recordings(
        &self,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
    ) -> Result<Vec<RecordingClaim>, StoreError>;

    /// Keeps a claim until then. `false`: it was lost.
    async fn renew_recording(
        &self,
        claim: &RecordingClaim,
        until: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Ends a claim. Answers `false`, and changes nothing, when the claim was lost to a later one
    /// or the recording was erased in the meantime.
    async fn complete_recording(
        &self,
        claim: &RecordingClaim,
        verdict: RecordingOutcome,
    ) -> Result<bool, StoreError>;
}

/// Where recordings are kept. What is kept of a session that runs can be read with the service's
/// own key alone.
#[async_trait]
pub trait RecordingVault: Send + Sync {
    /// Keeps the next part of what a browser showed. Parts count from 0.
    async fn append(
        &self,
        session: SessionId,
        browser: BrowserId,
        part: u32,
        shots: &[RecordedItem],
    ) -> Result<(), StoreError>;

    /// Deletes one part again.
    async fn delete_part(
        &self,
        session: SessionId,
        browser: BrowserId,
        part: u32,
    ) -> Result<(), StoreError>;

    /// All that was kept of a session, one reel for each browser, in the order they began.
    async fn segments(&self, session: SessionId) -> Result<Vec<Vec<RecordedItem>>, StoreError>;

    /// Puts a session's film in the place of what was kept of it.
    async fn store_recording(&self, session: SessionId, mp4: Vec<u8>) -> Result<(), StoreError>;

    /// Deletes what was kept of a session while it ran.
    async fn delete_segments(&self, session: SessionId) -> Result<(), StoreError>;

    /// Deletes everything of a session, its film too.
    async fn delete_all(&self, session: SessionId) -> Result<(), StoreError>;

    /// A link to a session's film that works until then, for whoever has it.
    async fn link(&self, session: SessionId, lifetime: TimeDelta) -> Result<String, StoreError>;

    /// Sessions of which something is kept that is no film, up to `limit`.
    async fn unfinished(&self, limit: usize) -> Result<Vec<SessionId>, StoreError>;
}

/// Recordings behind signed links, for whoever has the link.
#[async_trait]
pub trait SharedRecordings: Send + Sync {
    /// Opens the recording that a link leads to. `None`: the link was not signed by this service or
    /// has expired, or the recording was deleted.
    async fn open(
        &self,
        name: &str,
        expires: i64,
        signature: &str,
    ) -> Result<Option<Box<dyn RecordingFile>>, StoreError>;
}

/// An MP4 file that is read piece by piece.
#[async_trait]
pub trait RecordingFile: Send + Sync {
    /// The number of bytes.
    fn length(&self) -> u64;

    /// Reads the first bytes of a range that lies within the file: at least one, at most 1 MiB.
    async fn read(&self, range: Range<u64>) -> Result<Vec<u8>, StoreError>;
}

/// Makes films.
#[async_trait]
pub trait Encoder: Send + Sync {
    /// An MP4 file (H.264, its index first) with the film's chapters.
    async fn encode(&self, film: Recording) -> Result<Vec<u8>, EncodeError>;
}

#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// Another try would end the same way.
    #[error("the film cannot be made: {0}")]
    Impossible(String),
    #[error("the film was not made: {0}")]
    Failed(String),
}
