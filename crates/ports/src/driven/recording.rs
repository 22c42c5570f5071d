//! Recordings: their segments, their queue, their encoding, and their storage.

use std::ops::Range;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    id::{BrowserId, SessionId},
    recording::{RecordedItem, Recording},
};

use crate::StoreError;

/// The state of the recording of a session that ended in ERROR.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordingState {
    Pending,
    InProgress,
    Kept,
    /// The recording failed, for a reason that the partner reads.
    Failed(String),
    Erased,
}

/// A claim of a session's recording to be encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingClaim {
    pub session: SessionId,
    /// The number of the attempt, from 1. It is also the fence against a lost claim.
    pub attempt: i32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordingOutcome {
    Kept,
    Failed(String),
    RetryAt(DateTime<Utc>),
}

/// The queue of recordings to be encoded, which the session store fills in its own writes.
#[async_trait]
pub trait RecordingQueue: Send + Sync {
    /// Returns the state of a session's recording; `None` if there never was one.
    async fn recording(&self, session: SessionId) -> Result<Option<RecordingState>, StoreError>;

    /// Leases up to `limit` due recordings. A recording whose lease expires is leased again.
    async fn claim_recordings(
        &self,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
    ) -> Result<Vec<RecordingClaim>, StoreError>;

    /// Extends a claim. Returns `false` if it was lost.
    async fn renew_recording(
        &self,
        claim: &RecordingClaim,
        until: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Ends a claim. Returns `false`, and changes nothing, if the claim was lost to a later one or
    /// the recording was erased in the meantime.
    async fn complete_recording(
        &self,
        claim: &RecordingClaim,
        outcome: RecordingOutcome,
    ) -> Result<bool, StoreError>;
}

/// The storage of recordings. The segments of a running session are encrypted with the service's own
/// key.
#[async_trait]
pub trait RecordingVault: Send + Sync {
    /// Stores the next part of a browser's segment. Parts are numbered from 0.
    async fn append(
        &self,
        session: SessionId,
        browser: BrowserId,
        part: u32,
        items: &[RecordedItem],
    ) -> Result<(), StoreError>;

    /// Deletes one part of a segment.
    async fn delete_part(
        &self,
        session: SessionId,
        browser: BrowserId,
        part: u32,
    ) -> Result<(), StoreError>;

    /// Returns the segments of a session, one per browser, in the order of their start.
    async fn segments(&self, session: SessionId) -> Result<Vec<Vec<RecordedItem>>, StoreError>;

    /// Stores the recording of a session in place of its segments.
    async fn store_recording(&self, session: SessionId, mp4: Vec<u8>) -> Result<(), StoreError>;

    /// Deletes the segments of a session.
    async fn delete_segments(&self, session: SessionId) -> Result<(), StoreError>;

    /// Deletes the segments and the recording of a session.
    async fn delete_all(&self, session: SessionId) -> Result<(), StoreError>;

    /// Returns a link to a session's recording, which is valid for `lifetime` and gives access to
    /// any holder.
    async fn link(&self, session: SessionId, lifetime: TimeDelta) -> Result<String, StoreError>;

    /// Returns up to `limit` sessions that have segments.
    async fn unfinished(&self, limit: usize) -> Result<Vec<SessionId>, StoreError>;
}

/// Recordings behind signed links, which give access to any holder.
#[async_trait]
pub trait SharedRecordings: Send + Sync {
    /// Opens the recording of a link. `None` if the link was not signed by this service or has
    /// expired, or if the recording was deleted.
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

/// Encodes recordings.
#[async_trait]
pub trait Encoder: Send + Sync {
    /// Encodes a recording as an MP4 file (H.264, with its index first) with chapters.
    async fn encode(&self, recording: Recording) -> Result<Vec<u8>, EncodeError>;
}

#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// A retry would fail too.
    #[error("the recording cannot be encoded: {0}")]
    Impossible(String),
    #[error("failed to encode the recording: {0}")]
    Failed(String),
    /// What is to be encoded, or was, cannot be read or stored now.
    #[error("the storage of recordings is not available: {0}")]
    Unavailable(String),
}
