//! What of a session's pictures others than the applicant may see. Pure: time is handed in.
//!
//! Nothing of a picture is seen from before the applicant is waited for until well after; at other
//! times all but what may hold something that was written. A picture and the news of what is on the
//! page come by different ways, so a picture is held back for a moment, and covered with everything
//! that was told around its time.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use ports::browser::{Frame, FrameRedactor, PageState};
use tokio::time::Instant;

/// How long a picture is held back; what is told of the page comes sooner.
const HOLD_BACK: Duration = Duration::from_millis(400);
/// A picture this long after a wait may still be one of the page that was waited on.
const REDACTION_TAIL: Duration = Duration::from_secs(1);
/// Pictures that come quicker than this replace one another.
const MIN_FRAME_INTERVAL: Duration = Duration::from_millis(200);

type Rects = Vec<[f32; 4]>;

/// One session's veil.
pub(crate) struct Redactor {
    frames: Arc<dyn FrameRedactor>,
    held: VecDeque<(Instant, Arc<Frame>)>,
    /// What was told of the page, and since when; the last one holds still.
    rect_history: VecDeque<(Instant, Rects)>,
    /// Since when nothing may be seen.
    hidden_since: Option<Instant>,
    /// From and until when nothing was to be seen, before that.
    hidden_spans: VecDeque<(Instant, Instant)>,
    /// Since when the applicant has written where we know no field.
    typing_unseen_since: Option<Instant>,
    focused: bool,
    origin: String,
    /// The newest picture, where it was not to be seen, and when it may be: a page that stands
    /// still sends no other.
    retry: Option<(Instant, Arc<Frame>)>,
}

/// What may be seen of a picture.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RedactedFrame {
    Frame(Arc<Frame>),
    /// Nothing; the frame tells the size alone.
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

    pub(crate) fn scene(&mut self, scene: &PageState, now: Instant) {
        self.focused = scene.focused.is_some();
        // What was written a moment ago was written there: news of a field takes its time.
        self.typing_unseen_since.take_if(|since| self.focused && now - *since < HOLD_BACK);
        if self.rect_history.back().is_none_or(|(_, covers)| *covers != scene.redaction_rects) {
            self.rect_history.push_back((now, scene.redaction_rects.clone()));
        }
    }

    /// Whether the applicant is being waited for.
    pub(crate) fn waiting(&mut self, waiting: bool, now: Instant) {
        if waiting {
            self.hidden_since.get_or_insert(now);
        } else {
            let closed = self.hidden_since.take();
            // Whatever was written unseen, the page has gone on since.
            let blind = self.typing_unseen_since.take_if(|_| closed.is_some());
            self.end_hiding(closed, now);
            self.end_hiding(blind, now);
        }
    }

    /// The applicant wrote something.
    pub(crate) fn text_input(&mut self, now: Instant) {
        if !self.focused {
            self.typing_unseen_since.get_or_insert(now);
        }
    }

    pub(crate) fn frame(&mut self, frame: Arc<Frame>, now: Instant) {
        if self.origin != frame.origin {
            let blind = self.typing_unseen_since.take();
            self.end_hiding(blind, now);
            self.origin.clone_from(&frame.origin);
        }
        self.retry = None;
        let crowded =
            self.held.iter().nth_back(1).is_some_and(|(at, _)| now - *at < MIN_FRAME_INTERVAL);
        if crowded {
            self.held.pop_back();
        }
        self.held.push_back((now, frame));
    }

    /// When the next picture may be seen.
    pub(crate) fn due(&self) -> Option<Instant> {
        let held = self.held.front().map(|(at, _)| *at + HOLD_BACK);
        let again = self.retry.as_ref().filter(|_| !self.is_hidden()).map(|(at, _)| *at);
        held.or(again)
    }

    /// The next picture whose time has come, with the moment it was taken.
    pub(crate) fn take(&mut self, now: Instant) -> Option<(Instant, RedactedFrame)> {
        if self.held.is_empty() && !self.is_hidden() {
            let again = self.retry.take_if(|(at, _)| *at <= now);
            self.held.extend(again.map(|(_, frame)| (now, frame)));
        }
        if self.held.front().is_none_or(|(at, _)| *at + HOLD_BACK > now) {
            return None;
        }
        let (at, frame) = self.held.pop_front()?;
        let seen = if self.was_hidden(at) {
            if self.held.is_empty() {
                self.retry = Some((self.visible_from(at), frame.clone()));
            }
            RedactedFrame::Hidden(frame)
        } else {
            let covers = self.covers(at);
            self.redacted(&frame, &covers)
                .map_or_else(|| RedactedFrame::Hidden(frame.clone()), RedactedFrame::Frame)
        };
        self.forget(at);
        Some((at, seen))
    }

    /// Everything that was covered at some moment around this one.
    fn covers(&self, at: Instant) -> Rects {
        let from = at.checked_sub(HOLD_BACK).unwrap_or(at);
        let ends = self.rect_history.iter().skip(1).map(|(since, _)| Some(*since)).chain([None]);
        let around = self.rect_history.iter().zip(ends);
        let around = around.filter(|((since, _), end)| {
            *since <= at + HOLD_BACK && end.is_none_or(|end| end >= from)
        });
        around.flat_map(|((_, covers), _)| covers).copied().collect()
    }

    fn was_hidden(&self, at: Instant) -> bool {
        self.hidden_since.is_some_and(|since| since <= at + HOLD_BACK)
            || self.typing_unseen_since.is_some_and(|since| since <= at)
            || self
                .hidden_spans
                .iter()
                .any(|(from, until)| *from <= at + HOLD_BACK && at < *until + REDACTION_TAIL)
    }

    /// When a picture that was taken then may be seen at the soonest, as far as is known now.
    fn visible_from(&self, at: Instant) -> Instant {
        self.hidden_spans.back().map_or(at, |(_, until)| *until + REDACTION_TAIL)
    }

    /// Pictures from a moment after this one may be seen again, for all that was known since `since`.
    fn end_hiding(&mut self, since: Option<Instant>, now: Instant) {
        let Some(since) = since else { return };
        self.hidden_spans.push_back((since, now));
        if let Some((at, _)) = &mut self.retry {
            *at = now + REDACTION_TAIL;
        }
    }

    /// The frame with these areas covered; `None` where its image cannot be redacted.
    fn redacted(&self, frame: &Arc<Frame>, areas: &[[f32; 4]]) -> Option<Arc<Frame>> {
        if areas.is_empty() {
            return Some(frame.clone());
        }
        let jpeg = self.frames.redact(frame, areas)?;
        Some(Arc::new(Frame { jpeg, ..Frame::clone(frame) }))
    }

    const fn is_hidden(&self) -> bool {
        self.hidden_since.is_some() || self.typing_unseen_since.is_some()
    }

    /// Forgets what no later picture needs.
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
