//! A session's frames for everyone but its applicant: redacted, delayed and thinned out.

use std::sync::Arc;

use ports::browser::{Browser, FrameRedactor};
use tokio::time::Instant;

use super::{
    hub::{LiveSession, LiveState},
    redactor::{RedactedFrame, Redactor},
};

/// The redacted frames of one browser for one reader. A call to [`Self::next`] can be dropped
/// half-way without losing anything.
pub(crate) struct RedactedStream {
    live: Arc<LiveSession>,
    browser: Arc<dyn Browser>,
    changes: tokio::sync::watch::Receiver<LiveState>,
    text_input: tokio::sync::watch::Receiver<()>,
    redactor: Redactor,
    frame: u64,
    scene: u64,
}

impl RedactedStream {
    pub(crate) fn new(
        live: Arc<LiveSession>,
        browser: Arc<dyn Browser>,
        frames: Arc<dyn FrameRedactor>,
    ) -> Self {
        let (changes, text_input) = (live.state.subscribe(), live.text_input.subscribe());
        let mut redactor = Redactor::new(frames);
        // The first frames may show text that was entered before the stream began.
        redactor.waiting(true, Instant::now());
        let mut stream = Self { live, browser, changes, text_input, redactor, frame: 0, scene: 0 };
        stream.take_in_state();
        stream
    }

    /// Returns whether this is the stream of that browser.
    pub(crate) fn is_of(&self, browser: &Arc<dyn Browser>) -> bool {
        Arc::ptr_eq(&self.browser, browser)
    }

    /// Returns the next frame, and when it was received; `None` once the browser has ended.
    pub(crate) async fn next(&mut self) -> Option<(Instant, RedactedFrame)> {
        loop {
            if let Some(frame) = self.redactor.take(Instant::now()) {
                return Some(frame);
            }
            let due = self.redactor.due();
            let at = due.unwrap_or_else(Instant::now);
            tokio::select! {
                biased;
                _ = self.changes.changed() => self.take_in_state(),
                _ = self.text_input.changed() => self.redactor.text_input(Instant::now()),
                scene = self.browser.page_state(self.scene) => {
                    let scene = scene?;
                    self.scene = scene.seq;
                    self.redactor.scene(&scene, Instant::now());
                }
                frame = self.browser.frame(self.frame) => {
                    let frame = frame?;
                    self.frame = frame.seq;
                    self.redactor.frame(frame, Instant::now());
                }
                () = tokio::time::sleep_until(at), if due.is_some() => (),
            }
        }
    }

    fn take_in_state(&mut self) {
        let state = self.live.state.borrow();
        let session = state.session.as_ref();
        let waiting = session.is_none_or(|session| session.state.ask().is_some());
        self.redactor.waiting(waiting, Instant::now());
    }
}
