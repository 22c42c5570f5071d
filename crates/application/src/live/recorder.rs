//! Records what a session's browser shows, with what is secret left out, for as long as it runs.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    id::{BrowserId, SessionId},
    recording::{RecordedContent, RecordedItem},
};
use ports::{
    browser::{Browser, Cover, FrameRedactor, Viewport},
    recording::RecordingVault,
};
use tokio::{sync::mpsc, time::Instant};

use super::{hub::LiveSession, redacted_stream::RedactedStream, redactor::RedactedFrame};
use crate::{advance::Core, workers::log_error};

/// What was seen is kept this often at the latest, and sooner where there is much of it.
const SEGMENT_INTERVAL: Duration = Duration::from_secs(2);
const MAX_SEGMENT_BYTES: usize = 1 << 20;
/// Bytes kept of one browser: of what is longer, the end.
const MAX_RECORDING_BYTES: usize = 64 << 20;

/// One browser's recorder.
pub(crate) struct Recorder {
    pub(crate) core: Arc<Core>,
    pub(crate) vault: Arc<dyn RecordingVault>,
    pub(crate) session: SessionId,
    pub(crate) browser: BrowserId,
}

/// What was seen and is not kept yet, and what is kept.
#[derive(Default)]
struct FrameBuffer {
    shots: Vec<RecordedItem>,
    size: usize,
    last: Vec<u8>,
    /// The size of the page in the last picture, where nothing else was to be seen of it.
    covered: Option<Viewport>,
    /// The size of each part that is kept, from `first` on.
    parts: std::collections::VecDeque<usize>,
    first: u32,
}

impl Recorder {
    /// Records until the workflow has let go of its end of `nodes`.
    pub(crate) async fn record(
        self,
        room: Arc<LiveSession>,
        browser: Arc<dyn Browser>,
        mut nodes: mpsc::Receiver<String>,
    ) {
        let mut discreet = RedactedStream::new(room, browser, self.core.frames.clone());
        let mut reel = FrameBuffer::default();
        let mut keep = tokio::time::interval(SEGMENT_INTERVAL);
        let mut dark = false;
        loop {
            tokio::select! {
                node = nodes.recv() => match node {
                    Some(node) => reel.push(self.core.clock.now(), RecordedContent::Node(node)),
                    None => break,
                },
                seen = discreet.next(), if !dark => match seen {
                    Some((at, seen)) => reel.see(self.core.frames.as_ref(), self.moment(at), &seen),
                    None => dark = true,
                },
                _ = keep.tick() => self.keep(&mut reel).await,
            }
            if reel.size > MAX_SEGMENT_BYTES {
                self.keep(&mut reel).await;
            }
        }
        reel.push(self.core.clock.now(), RecordedContent::End);
        self.keep(&mut reel).await;
        self.delete_if_unwanted().await;
    }

    /// The time of a moment that has just been.
    fn moment(&self, at: Instant) -> DateTime<Utc> {
        let ago = TimeDelta::from_std(Instant::now() - at).unwrap_or_default();
        self.core.clock.now() - ago
    }

    async fn keep(&self, reel: &mut FrameBuffer) {
        if reel.shots.is_empty() {
            return;
        }
        let part = reel.next_part();
        let (shots, size) = (std::mem::take(&mut reel.shots), std::mem::take(&mut reel.size));
        if let Err(error) = self.vault.append(self.session, self.browser, part, &shots).await {
            log_error(&error, "failed to store a part of a recording; the recording has a gap");
            return;
        }
        reel.parts.push_back(size);
        while reel.parts.iter().sum::<usize>() > MAX_RECORDING_BYTES && reel.parts.len() > 1 {
            let dropped = self.vault.delete_part(self.session, self.browser, reel.first).await;
            if let Err(error) = dropped {
                log_error(
                    &error,
                    "failed to delete a part of a recording; the next cleanup deletes it",
                );
            }
            reel.parts.pop_front();
            reel.first += 1;
        }
    }

    /// The order to forget may have come before the last part was kept.
    async fn delete_if_unwanted(&self) {
        let unwanted = match self.core.sessions.find_unscoped(self.session).await {
            Ok(session) => session.is_none_or(|session| !session.is_worth_recording()),
            Err(error) => {
                log_error(&error, "failed to read the session of a recording");
                false
            }
        };
        if unwanted && let Err(error) = self.vault.delete_segments(self.session).await {
            log_error(&error, "failed to delete a recording; the next cleanup deletes it");
        }
    }
}

impl FrameBuffer {
    fn push(&mut self, at: DateTime<Utc>, what: RecordedContent) {
        if let RecordedContent::Picture(jpeg) = &what {
            self.size += jpeg.len();
        }
        self.shots.push(RecordedItem { at, what });
    }

    fn see(&mut self, frames: &dyn FrameRedactor, at: DateTime<Utc>, seen: &RedactedFrame) {
        let covered = match seen {
            RedactedFrame::Frame(_) => None,
            RedactedFrame::Hidden(frame) => Some(frame.viewport),
        };
        // While somebody writes one grey picture follows the other.
        if covered.is_some() && self.covered == covered {
            return;
        }
        self.covered = covered;
        if let Some(jpeg) = reencoded(frames, seen)
            && self.last != jpeg
        {
            self.last.clone_from(&jpeg);
            self.push(at, RecordedContent::Picture(jpeg));
        }
    }

    fn next_part(&self) -> u32 {
        self.first + u32::try_from(self.parts.len()).unwrap_or(u32::MAX - self.first)
    }
}

/// What was seen as a JPEG of our own writing: bytes that a page's browser made go no further.
fn reencoded(frames: &dyn FrameRedactor, seen: &RedactedFrame) -> Option<Vec<u8>> {
    match seen {
        RedactedFrame::Frame(frame) => frames.reencode(frame, Cover::Nothing),
        RedactedFrame::Hidden(frame) => frames.reencode(frame, Cover::Everything),
    }
}
