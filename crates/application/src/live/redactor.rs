//! Decides what everyone but the applicant may see of a session's frames. Pure: the caller passes
//! the time.
//!
//! A frame is hidden wholly from shortly before the session waits for the applicant until well after
//! the wait. At other times the areas that may show entered text are covered. Frames and page states
//! arrive independently of each other, so a frame is held back for a moment, and covered with every
//! area that was reported around its time.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use ports::browser::{Frame, FrameRedactor, PageState};
use tokio::time::Instant;

/// How long a frame is held back. The page state of its time arrives sooner.
const HOLD_BACK: Duration = Duration::from_millis(400);
/// How long after a wait a frame may still show the page on which the applicant acted.
const REDACTION_TAIL: Duration = Duration::from_secs(1);
/// Frames that arrive in shorter intervals replace one another.
const MIN_FRAME_INTERVAL: Duration = Duration::from_millis(200);

type Rects = Vec<[f32; 4]>;

/// The redactor of one stream of frames.
pub(crate) struct Redactor {
    frames: Arc<dyn FrameRedactor>,
    held: VecDeque<(Instant, Arc<Frame>)>,
    /// The areas to cover, and since when; the last entry is in force.
    rect_history: VecDeque<(Instant, Rects)>,
    /// Since when frames are hidden.
    hidden_since: Option<Instant>,
    /// The times in which frames were hidden before.
    hidden_spans: VecDeque<(Instant, Instant)>,
    /// Since when the applicant has entered text where no field is known.
    typing_unseen_since: Option<Instant>,
    focused: bool,
    origin: String,
    /// The newest frame, if it was hidden, and when it may be shown: a page that does not change
    /// sends no other frame.
    retry: Option<(Instant, Arc<Frame>)>,
}

/// What may be seen of a frame.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RedactedFrame {
    Frame(Arc<Frame>),
    /// Nothing: only the size of the frame may be used.
    Hidden(Arc<Frame>),
}

impl Redactor {
    pub(crate) fn new(frames: Arc<dyn FrameRedactor>) -> Self {
        Self {
            frames,
            held: VecDeque::new(),
            rect_history: VecDeque::new(),
            hidden_since: None,
            hidden_spans: VecDeque::new(),
            typing_unseen_since: None,
            focused: false,
            origin: String::new(),
            retry: None,
        }
    }

    /// Takes in a page state.
    pub(crate) fn scene(&mut self, scene: &PageState, now: Instant) {
        self.focused = scene.focused.is_some();
        // Text that was entered a moment ago was entered into this field: its page state was on the
        // way.
        self.typing_unseen_since.take_if(|since| self.focused && now - *since < HOLD_BACK);
        if self.rect_history.back().is_none_or(|(_, rects)| *rects != scene.redaction_rects) {
            self.rect_history.push_back((now, scene.redaction_rects.clone()));
        }
    }

    /// Takes in whether the session waits for the applicant.
    pub(crate) fn waiting(&mut self, waiting: bool, now: Instant) {
        if waiting {
            self.hidden_since.get_or_insert(now);
        } else {
            let hidden = self.hidden_since.take();
            // The page has changed since the applicant entered text where no field was known.
            let typing = self.typing_unseen_since.take_if(|_| hidden.is_some());
            self.end_hiding(hidden, now);
            self.end_hiding(typing, now);
        }
    }

    /// Takes in that the applicant entered text.
    pub(crate) fn text_input(&mut self, now: Instant) {
        if !self.focused {
            self.typing_unseen_since.get_or_insert(now);
        }
    }

    /// Takes in a frame.
    pub(crate) fn frame(&mut self, frame: Arc<Frame>, now: Instant) {
        if self.origin != frame.origin {
            let typing = self.typing_unseen_since.take();
            self.end_hiding(typing, now);
            self.origin.clone_from(&frame.origin);
        }
        self.retry = None;
        let is_early =
            self.held.iter().nth_back(1).is_some_and(|(at, _)| now - *at < MIN_FRAME_INTERVAL);
        if is_early {
            self.held.pop_back();
        }
        self.held.push_back((now, frame));
    }

    /// Returns when the next frame may be taken.
    pub(crate) fn due(&self) -> Option<Instant> {
        let held = self.held.front().map(|(at, _)| *at + HOLD_BACK);
        let retry = self.retry.as_ref().filter(|_| !self.is_hidden()).map(|(at, _)| *at);
        held.or(retry)
    }

    /// Returns the next frame that has been held back long enough, and when it arrived.
    pub(crate) fn take(&mut self, now: Instant) -> Option<(Instant, RedactedFrame)> {
        if self.held.is_empty() && !self.is_hidden() {
            let retry = self.retry.take_if(|(at, _)| *at <= now);
            self.held.extend(retry.map(|(_, frame)| (now, frame)));
        }
        if self.held.front().is_none_or(|(at, _)| *at + HOLD_BACK > now) {
            return None;
        }
        let (at, frame) = self.held.pop_front()?;
        let redacted = if self.was_hidden(at) {
            if self.held.is_empty() {
                self.retry = Some((self.visible_from(at), frame.clone()));
            }
            RedactedFrame::Hidden(frame)
        } else {
            let rects = self.rects_around(at);
            self.redacted(&frame, &rects)
                .map_or_else(|| RedactedFrame::Hidden(frame.clone()), RedactedFrame::Frame)
        };
        self.forget(at);
        Some((at, redacted))
    }

    /// Returns all areas that were to be covered at some moment around this one.
    fn rects_around(&self, at: Instant) -> Rects {
        let from = at.checked_sub(HOLD_BACK).unwrap_or(at);
        let ends = self.rect_history.iter().skip(1).map(|(since, _)| Some(*since)).chain([None]);
        let around = self.rect_history.iter().zip(ends);
        let around = around.filter(|((since, _), end)| {
            *since <= at + HOLD_BACK && end.is_none_or(|end| end >= from)
        });
        around.flat_map(|((_, rects), _)| rects).copied().collect()
    }

    /// Returns whether a frame that arrived then is hidden.
    fn was_hidden(&self, at: Instant) -> bool {
        self.hidden_since.is_some_and(|since| since <= at + HOLD_BACK)
            || self.typing_unseen_since.is_some_and(|since| since <= at)
            || self
                .hidden_spans
                .iter()
                .any(|(from, until)| *from <= at + HOLD_BACK && at < *until + REDACTION_TAIL)
    }

    /// Returns when a frame that arrived then may be shown at the earliest, as far as is known now.
    fn visible_from(&self, at: Instant) -> Instant {
        self.hidden_spans.back().map_or(at, |(_, until)| *until + REDACTION_TAIL)
    }

    /// Ends a time in which frames were hidden. Frames that arrive well after `now` may be shown.
    fn end_hiding(&mut self, since: Option<Instant>, now: Instant) {
        let Some(since) = since else { return };
        self.hidden_spans.push_back((since, now));
        if let Some((at, _)) = &mut self.retry {
            *at = now + REDACTION_TAIL;
        }
    }

    /// Returns the frame with these areas covered; `None` if its image cannot be redacted.
    fn redacted(&self, frame: &Arc<Frame>, areas: &[[f32; 4]]) -> Option<Arc<Frame>> {
        if areas.is_empty() {
            return Some(frame.clone());
        }
        let jpeg = self.frames.redact(frame, areas)?;
        Some(Arc::new(Frame { jpeg, ..Frame::clone(frame) }))
    }

    /// Returns whether frames are hidden now.
    const fn is_hidden(&self) -> bool {
        self.hidden_since.is_some() || self.typing_unseen_since.is_some()
    }

    /// Drops entries that no later frame needs.
    fn forget(&mut self, at: Instant) {
        while self.hidden_spans.front().is_some_and(|(_, until)| *until + REDACTION_TAIL < at) {
            self.hidden_spans.pop_front();
        }
        while self.rect_history.get(1).is_some_and(|(since, _)| *since + HOLD_BACK < at) {
            self.rect_history.pop_front();
        }
    }
}

#[cfg(test)]
mod tests;
