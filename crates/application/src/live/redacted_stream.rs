//! A session's pictures for others than its applicant: through the veil, late, and few.

use std::sync::Arc;

use ports::browser::{Browser, FrameRedactor};
use tokio::time::Instant;

use super::{
    hub::{LiveSession, LiveState},
    redactor::{RedactedFrame, Redactor},
};

/// What one onlooker has of one browser. Dropping a call half-way loses nothing.
pub(crate) struct RedactedStream {
    room: Arc<LiveSession>,
    browser: Arc<dyn Browser>,
    inside: tokio::sync::watch::Receiver<LiveState>,
    written: tokio::sync::watch::Receiver<()>,
    veil: Redactor,
    frame: u64,
    scene: u64,
}

impl RedactedStream {
    pub(crate) fn new(
        room: Arc<LiveSession>,
        browser: Arc<dyn Browser>,
        frames: Arc<dyn FrameRedactor>,
    ) -> Self {
        let (inside, written) = (room.state.subscribe(), room.text_input.subscribe());
        let mut veil = Redactor::new(frames);
        // Nobody knows what was written before.
        veil.waiting(true, Instant::now());
        let mut me = Self { room, browser, inside, written, veil, frame: 0, scene: 0 };
        me.look();
        me
    }

    /// Whether this is still the browser to look at.
    pub(crate) fn is_of(&self, browser: &Arc<dyn Browser>) -> bool {
        Arc::ptr_eq(&self.browser, browser)
    }

    /// The next picture, and when it was taken. `None` when the browser ended.
    pub(crate) async fn next(&mut self) -> Option<(Instant, RedactedFrame)> {
        loop {
            if let Some(seen) = self.veil.take(Instant::now()) {
                return Some(seen);
            }
            let due = self.veil.due();
            let at = due.unwrap_or_else(Instant::now);
            tokio::select! {
                biased;
                _ = self.inside.changed() => self.look(),
                _ = self.written.changed() => self.veil.text_input(Instant::now()),
                scene = self.browser.scene(self.scene) => {
                    let scene = scene?;
                    self.scene = scene.seq;
                    self.veil.scene(&scene, Instant::now());
                }
                frame = self.browser.frame(self.frame) => {
                    let frame = frame?;
                    self.frame = frame.seq;
                    self.veil.frame(frame, Instant::now());
                }
                () = tokio::time::sleep_until(at), if due.is_some() => (),
            }
        }
    }

    fn look(&mut self) {
        let inside = self.room.state.borrow();
        let session = inside.session.as_ref();
        let waiting = session.is_none_or(|session| session.state.ask().is_some());
        self.veil.waiting(waiting, Instant::now());
    }
}
