//! Records what a session's browser shows, with what is secret left out, for as long as it runs.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    id::{BrowserId, SessionId},
    recording::{Shot, Take},
};
use mosaic::{JpegImage, QuantScale};
use ports::{
    browser::{Browser, Viewport},
    recording::RecordingVault,
};
use tokio::{sync::mpsc, time::Instant};

use super::{discreet::Discreet, room::Room, veil::Seen};
use crate::{advance::Core, workers::log_error};

/// What was seen is kept this often at the latest, and sooner where there is much of it.
const KEEP_EVERY: Duration = Duration::from_secs(2);
const LARGE_PART: usize = 1 << 20;
/// Bytes kept of one browser: of what is longer, the end.
const MOST: usize = 64 << 20;

/// One browser's recorder.
pub(crate) struct Recorder {
    pub(crate) core: Arc<Core>,
    pub(crate) vault: Arc<dyn RecordingVault>,
    pub(crate) session: SessionId,
    pub(crate) browser: BrowserId,
}

/// What was seen and is not kept yet, and what is kept.
#[derive(Default)]
struct Reel {
    shots: Vec<Shot>,
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
        room: Arc<Room>,
        browser: Arc<dyn Browser>,
        mut nodes: mpsc::Receiver<String>,
    ) {
        let mut discreet = Discreet::new(room, browser);
        let mut reel = Reel::default();
        let mut keep = tokio::time::interval(KEEP_EVERY);
        let mut dark = false;
        loop {
            tokio::select! {
                node = nodes.recv() => match node {
                    Some(node) => reel.push(self.core.clock.now(), Take::Node(node)),
                    None => break,
                },
                seen = discreet.next(), if !dark => match seen {
                    Some((at, seen)) => reel.see(self.moment(at), &seen),
                    None => dark = true,
                },
                _ = keep.tick() => self.keep(&mut reel).await,
            }
            if reel.size > LARGE_PART {
                self.keep(&mut reel).await;
            }
        }
        reel.push(self.core.clock.now(), Take::End);
        self.keep(&mut reel).await;
        self.tidy().await;
    }

    /// The time of a moment that has just been.
    fn moment(&self, at: Instant) -> DateTime<Utc> {
        let ago = TimeDelta::from_std(Instant::now() - at).unwrap_or_default();
        self.core.clock.now() - ago
    }

    async fn keep(&self, reel: &mut Reel) {
        if reel.shots.is_empty() {
            return;
        }
        let part = reel.next_part();
        let (shots, size) = (std::mem::take(&mut reel.shots), std::mem::take(&mut reel.size));
        if let Err(error) = self.vault.keep(self.session, self.browser, part, &shots).await {
            log_error(&error, "failed to store a part of a recording; the recording has a gap");
            return;
        }
        reel.parts.push_back(size);
        while reel.parts.iter().sum::<usize>() > MOST && reel.parts.len() > 1 {
            let dropped = self.vault.drop_part(self.session, self.browser, reel.first).await;
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
    async fn tidy(&self) {
        let unwanted = match self.core.sessions.open(self.session).await {
            Ok(session) => session.is_none_or(|session| !session.is_worth_recording()),
            Err(error) => {
                log_error(&error, "failed to read the session of a recording");
                false
            }
        };
        if unwanted && let Err(error) = self.vault.drop_reels(self.session).await {
            log_error(&error, "failed to delete a recording; the next cleanup deletes it");
        }
    }
}

impl Reel {
    fn push(&mut self, at: DateTime<Utc>, what: Take) {
        if let Take::Picture(jpeg) = &what {
            self.size += jpeg.len();
        }
        self.shots.push(Shot { at, what });
    }

    fn see(&mut self, at: DateTime<Utc>, seen: &Seen) {
        let covered = match seen {
            Seen::Frame(_) => None,
            Seen::Covered(frame) => Some(frame.viewport),
        };
        // While somebody writes one grey picture follows the other.
        if covered.is_some() && self.covered == covered {
            return;
        }
        self.covered = covered;
        if let Some(jpeg) = developed(seen)
            && self.last != jpeg
        {
            self.last.clone_from(&jpeg);
            self.push(at, Take::Picture(jpeg));
        }
    }

    fn next_part(&self) -> u32 {
        self.first + u32::try_from(self.parts.len()).unwrap_or(u32::MAX - self.first)
    }
}

/// What was seen as a JPEG of our own writing: bytes that a page's browser made go no further.
fn developed(seen: &Seen) -> Option<Vec<u8>> {
    let (frame, covered) = match seen {
        Seen::Frame(frame) => (frame, false),
        Seen::Covered(frame) => (frame, true),
    };
    let picture = JpegImage::decode(&frame.jpeg).ok()?;
    let picture = if covered { picture.redacted(&[picture.full_area()]) } else { picture };
    Some(picture.crop(picture.full_area(), QuantScale::UNCHANGED))
}
