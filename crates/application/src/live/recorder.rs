//! Records what a session's browser shows, redacted, for as long as it runs.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    id::{BrowserId, SessionId},
    recording::{RecordedContent, RecordedItem},
};
use ports::{
    StoreError,
    browser::{Browser, Cover, FrameRedactor, Viewport},
    clock::Clock,
    recording::{RecordingQueue, RecordingState, RecordingVault},
    session_store::SessionStore,
};
use tokio::{sync::mpsc, time::Instant};

use super::{hub::LiveSession, redacted_stream::RedactedStream, redactor::RedactedFrame};
use crate::workers::log_error;

/// How often recorded frames are stored; a segment of [`MAX_SEGMENT_BYTES`] is stored sooner.
const SEGMENT_INTERVAL: Duration = Duration::from_secs(2);
const MAX_SEGMENT_BYTES: usize = 1 << 20;
/// How long storing a segment may take. It is written again as a whole, with what was recorded since.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of frames that wait while the storage is not available; beyond that, the recording has a gap.
const MAX_WAITING_BYTES: usize = 2 << 20;
/// How often the last segment is attempted after the browser has ended: for five minutes at least.
const LAST_ATTEMPTS: u32 = 150;
/// Bytes stored of one browser. Of a longer recording, the last part is kept.
const MAX_RECORDING_BYTES: usize = 64 << 20;

/// The recorder of one browser.
pub(crate) struct Recorder {
    pub(crate) sessions: Arc<dyn SessionStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) frames: Arc<dyn FrameRedactor>,
    pub(crate) vault: Arc<dyn RecordingVault>,
    pub(crate) recordings: Arc<dyn RecordingQueue>,
    pub(crate) session: SessionId,
    pub(crate) browser: BrowserId,
}

/// The frames that are not stored yet, and the segments that are.
#[derive(Default)]
struct FrameBuffer {
    items: Vec<RecordedItem>,
    /// Bytes of the frames in `items`.
    size: usize,
    last: Vec<u8>,
    /// The size of the page in the last frame, where the frame was covered wholly.
    covered: Option<Viewport>,
    /// Whether the last attempt to store a segment failed.
    is_failing: bool,
    /// The size of each stored segment, from number `first` on.
    segments: std::collections::VecDeque<usize>,
    first: u32,
}

impl Recorder {
    /// Records until the run drops its end of `nodes`.
    pub(crate) async fn record(
        self,
        live: Arc<LiveSession>,
        browser: Arc<dyn Browser>,
        mut nodes: mpsc::Receiver<String>,
    ) {
        let mut stream = RedactedStream::new(live, browser, self.frames.clone());
        let mut buffer = FrameBuffer::default();
        let mut interval = tokio::time::interval(SEGMENT_INTERVAL);
        let mut has_ended = false;
        loop {
            tokio::select! {
                node = nodes.recv() => match node {
                    Some(node) => buffer.push(self.clock.now(), RecordedContent::Node(node)),
                    None => break,
                },
                frame = stream.next(), if !has_ended => match frame {
                    Some((at, frame)) => buffer.add(self.frames.as_ref(), self.time_of(at), &frame),
                    None => has_ended = true,
                },
                _ = interval.tick() => self.store(&mut buffer).await,
            }
            if buffer.size > MAX_SEGMENT_BYTES && !buffer.is_failing {
                self.store(&mut buffer).await;
            }
        }
        buffer.push(self.clock.now(), RecordedContent::End);
        for _ in 0..LAST_ATTEMPTS {
            self.store(&mut buffer).await;
            if !buffer.is_failing {
                break;
            }
            tokio::time::sleep(SEGMENT_INTERVAL).await;
        }
        self.delete_if_unwanted().await;
    }

    /// Returns the time of a moment that has just passed.
    fn time_of(&self, at: Instant) -> DateTime<Utc> {
        let ago = TimeDelta::from_std(Instant::now() - at).unwrap_or_default();
        self.clock.now() - ago
    }

    async fn store(&self, buffer: &mut FrameBuffer) {
        if buffer.items.is_empty() {
            return;
        }
        let stored = self.append(buffer).await;
        if let Err(error) = &stored
            && !buffer.is_failing
        {
            log_error(error, "failed to store a segment of a recording, retrying");
        }
        buffer.is_failing = stored.is_err();
        if buffer.is_failing {
            buffer.bound();
            return;
        }
        let size = std::mem::take(&mut buffer.size);
        buffer.items.clear();
        buffer.segments.push_back(size);
        while buffer.segments.iter().sum::<usize>() > MAX_RECORDING_BYTES
            && buffer.segments.len() > 1
        {
            let dropped = self.vault.delete_part(self.session, self.browser, buffer.first).await;
            if let Err(error) = dropped {
                log_error(
                    &error,
                    "failed to delete a segment of a recording; the next cleanup deletes it",
                );
            }
            buffer.segments.pop_front();
            buffer.first += 1;
        }
    }

    async fn append(&self, buffer: &FrameBuffer) -> Result<(), StoreError> {
        let (segment, items) = (buffer.next_segment(), &buffer.items);
        let append = self.vault.append(self.session, self.browser, segment, items);
        let late = |_| StoreError::new("store a segment", "the storage does not answer in time");
        tokio::time::timeout(STORE_TIMEOUT, append).await.map_err(late)?
    }

    /// Deletes the segments if the session needs none, or has its recording already: they may have been
    /// deleted before the last one was stored.
    async fn delete_if_unwanted(&self) {
        let unwanted = self.is_unwanted().await.unwrap_or_else(|error| {
            log_error(&error, "failed to read the session of a recording");
            false
        });
        if unwanted && let Err(error) = self.vault.delete_segments(self.session).await {
            log_error(&error, "failed to delete a recording; the next cleanup deletes it");
        }
    }

    async fn is_unwanted(&self) -> Result<bool, StoreError> {
        let Some(session) = self.sessions.find_unscoped(self.session).await? else {
            return Ok(true);
        };
        if !session.is_worth_recording() {
            return Ok(true);
        }
        // Another attempt may follow. While the recording is made, all segments are deleted afterwards.
        let recording = self.recordings.recording(self.session).await?;
        Ok(matches!(
            recording,
            Some(RecordingState::Kept | RecordingState::Failed(_) | RecordingState::Erased)
        ))
    }
}

impl FrameBuffer {
    fn push(&mut self, at: DateTime<Utc>, what: RecordedContent) {
        if let RecordedContent::Picture(jpeg) = &what {
            self.size += jpeg.len();
        }
        self.items.push(RecordedItem { at, what });
    }

    fn add(&mut self, frames: &dyn FrameRedactor, at: DateTime<Utc>, frame: &RedactedFrame) {
        let covered = match frame {
            RedactedFrame::Frame(_) => None,
            RedactedFrame::Hidden(frame) => Some(frame.viewport),
        };
        // While the applicant enters text, one grey frame follows the other.
        if covered.is_some() && self.covered == covered {
            return;
        }
        self.covered = covered;
        if let Some(jpeg) = reencoded(frames, frame)
            && self.last != jpeg
        {
            self.last.clone_from(&jpeg);
            self.push(at, RecordedContent::Picture(jpeg));
        }
    }

    /// Drops the oldest frames where too many wait.
    fn bound(&mut self) {
        let mut dropped = 0;
        let (size, excess) = (self.size, self.size.saturating_sub(MAX_WAITING_BYTES));
        self.items.retain(|item| match &item.what {
            RecordedContent::Picture(jpeg) if dropped < excess => {
                dropped += jpeg.len();
                false
            }
            RecordedContent::Picture(_) | RecordedContent::Node(_) | RecordedContent::End => true,
        });
        self.size = size.saturating_sub(dropped);
        if dropped > 0 {
            tracing::warn!(
                "{dropped} bytes of frames were not stored in time; a recording has a gap"
            );
        }
    }

    fn next_segment(&self) -> u32 {
        self.first + u32::try_from(self.segments.len()).unwrap_or(u32::MAX - self.first)
    }
}

/// Returns the frame as a JPEG that this process encoded: bytes that a page's browser made are not
/// stored.
fn reencoded(frames: &dyn FrameRedactor, frame: &RedactedFrame) -> Option<Vec<u8>> {
    match frame {
        RedactedFrame::Frame(frame) => frames.reencode(frame, Cover::Nothing),
        RedactedFrame::Hidden(frame) => frames.reencode(frame, Cover::Everything),
    }
}
