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
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinHandle,
    time::Instant,
};

use super::{hub::LiveSession, redacted_stream::RedactedStream, redactor::RedactedFrame};
use crate::workers::log_error;

/// How often recorded frames are stored; a segment of [`MAX_SEGMENT_BYTES`] is stored sooner.
const SEGMENT_INTERVAL: Duration = Duration::from_secs(2);
const MAX_SEGMENT_BYTES: usize = 1 << 20;
/// Bytes of frames that wait while the storage is not available; beyond that, the recording has a gap.
const MAX_WAITING_BYTES: usize = 2 << 20;
/// How long the last segment is attempted after the browser has ended.
const LAST_TIMEOUT: Duration = Duration::from_secs(300);
/// Recorders that wait for the storage after their browser has ended, in this process.
static LATE_RECORDERS: Semaphore = Semaphore::const_new(64);
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
        let mut storing = None;
        loop {
            // The storage is never waited for here: what has to be redacted would be learned too late.
            tokio::select! {
                node = nodes.recv() => match node {
                    Some(node) => buffer.push(self.clock.now(), RecordedContent::Node(node)),
                    None => break,
                },
                frame = stream.next(), if !has_ended => match frame {
                    Some((at, frame)) => buffer.add(self.frames.as_ref(), self.time_of(at), &frame),
                    None => has_ended = true,
                },
                stored = finished(&mut storing) => buffer.finish(stored),
                _ = interval.tick(), if storing.is_none() => storing = self.begin(&mut buffer),
            }
            if buffer.size > MAX_SEGMENT_BYTES && !buffer.is_failing && storing.is_none() {
                storing = self.begin(&mut buffer);
            }
            buffer.bound();
        }
        drop(stream);
        buffer.push(self.clock.now(), RecordedContent::End);
        self.store_last(buffer, storing).await;
        self.delete_if_unwanted().await;
    }

    /// Stores what is left. While the storage is not available, attempts are repeated for a time.
    async fn store_last(&self, mut buffer: FrameBuffer, mut storing: Option<Storing>) {
        let until = Instant::now() + LAST_TIMEOUT;
        let mut late = None;
        loop {
            if storing.is_some() {
                let stored = finished(&mut storing).await;
                buffer.finish(stored);
            }
            if buffer.items.is_empty() {
                return;
            }
            if buffer.is_failing {
                late = late.or_else(|| LATE_RECORDERS.try_acquire().ok());
                let is_over = late.is_none() || Instant::now() >= until;
                if is_over || self.is_unwanted().await.unwrap_or(false) {
                    tracing::warn!(session.id = %self.session, "the end of a recording was not stored");
                    return;
                }
                tokio::time::sleep(SEGMENT_INTERVAL).await;
            }
            storing = self.begin(&mut buffer);
        }
    }

    /// Returns the time of a moment that has just passed.
    fn time_of(&self, at: Instant) -> DateTime<Utc> {
        let ago = TimeDelta::from_std(Instant::now() - at).unwrap_or_default();
        self.clock.now() - ago
    }

    /// Begins to store what was recorded, in a task of its own, if there is anything.
    fn begin(&self, buffer: &mut FrameBuffer) -> Option<Storing> {
        if buffer.items.is_empty() {
            return None;
        }
        let (vault, session, browser) = (self.vault.clone(), self.session, self.browser);
        let (segment, first) = (buffer.next_segment(), buffer.first);
        let size = std::mem::take(&mut buffer.size);
        let outdated = buffer.outdated(size);
        let items = Arc::new(std::mem::take(&mut buffer.items));
        let stored = items.clone();
        let task = tokio::spawn(async move {
            vault.append(session, browser, segment, &stored).await?;
            for part in first..first.saturating_add(outdated) {
                if let Err(error) = vault.delete_part(session, browser, part).await {
                    let what =
                        "failed to delete a segment of a recording; the next cleanup deletes it";
                    log_error(&error, what);
                }
            }
            Ok(())
        });
        Some(Storing { task, items, size, outdated })
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

/// A segment that is being stored.
struct Storing {
    task: JoinHandle<Result<(), StoreError>>,
    items: Arc<Vec<RecordedItem>>,
    /// Bytes of the frames in `items`.
    size: usize,
    /// Segments that are deleted with it, from the first one on.
    outdated: u32,
}

/// A segment, and whether it was stored.
struct Stored {
    items: Arc<Vec<RecordedItem>>,
    size: usize,
    outdated: u32,
    result: Result<(), StoreError>,
}

/// Waits for the segment that is being stored, if there is one, and takes it. A call can be dropped half-way
/// without losing anything.
async fn finished(storing: &mut Option<Storing>) -> Stored {
    let Some(Storing { task, .. }) = storing else { return std::future::pending().await };
    let ended = task.await;
    let result = ended.unwrap_or_else(|error| Err(StoreError::new("store a segment", error)));
    let Some(Storing { items, size, outdated, .. }) = storing.take() else {
        return std::future::pending().await;
    };
    Stored { items, size, outdated, result }
}

impl FrameBuffer {
    /// Takes note of a segment that was stored; the items of one that was not are stored later.
    fn finish(&mut self, Stored { items, size, outdated, result }: Stored) {
        if let Err(error) = &result {
            if !self.is_failing {
                log_error(error, "failed to store a segment of a recording, retrying");
            }
            let items = Arc::try_unwrap(items).unwrap_or_else(|shared| (*shared).clone());
            let newer = std::mem::replace(&mut self.items, items);
            self.items.extend(newer);
            self.size += size;
            self.bound();
        } else {
            self.segments.push_back(size);
            for _ in 0..outdated {
                self.segments.pop_front();
                self.first += 1;
            }
        }
        self.is_failing = result.is_err();
    }

    /// Returns how many of the first segments are too old once one of this size is added.
    fn outdated(&self, size: usize) -> u32 {
        let mut total = self.segments.iter().sum::<usize>().saturating_add(size);
        let mut count = 0;
        for segment in &self.segments {
            if total <= MAX_RECORDING_BYTES {
                break;
            }
            total -= segment;
            count += 1;
        }
        count
    }

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
        let (size, excess) = (self.size, self.size.saturating_sub(MAX_WAITING_BYTES));
        if excess == 0 {
            return;
        }
        let mut dropped = 0;
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
