//! What of a session's pictures others than the applicant may see. Pure: time is handed in.
//!
//! Nothing of a picture is seen from before the applicant is waited for until well after; at other
//! times all but what may hold something that was written. A picture and the news of what is on the
//! page come by different ways, so a picture is held back for a moment, and covered with everything
//! that was told around its time.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use mosaic::{JpegImage, QuantScale};
use ports::browser::{Frame, Scene};
use tokio::time::Instant;

/// How long a picture is held back; what is told of the page comes sooner.
const HOLD: Duration = Duration::from_millis(400);
/// A picture this long after a wait may still be one of the page that was waited on.
const AFTERMATH: Duration = Duration::from_secs(1);
/// Pictures that come quicker than this replace one another.
const PACE: Duration = Duration::from_millis(200);

type Places = Vec<[f32; 4]>;

/// One session's veil.
#[derive(Default)]
pub(crate) struct Veil {
    held: VecDeque<(Instant, Arc<Frame>)>,
    /// What was told of the page, and since when; the last one holds still.
    told: VecDeque<(Instant, Places)>,
    /// Since when nothing may be seen.
    closed: Option<Instant>,
    /// From and until when nothing was to be seen, before that.
    before: VecDeque<(Instant, Instant)>,
    /// Since when the applicant has written where we know no field.
    blind: Option<Instant>,
    focused: bool,
    origin: String,
    /// The newest picture, where it was not to be seen, and when it may be: a page that stands
    /// still sends no other.
    again: Option<(Instant, Arc<Frame>)>,
}

/// What may be seen of a picture.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Seen {
    Frame(Arc<Frame>),
    /// Nothing; the frame tells the size alone.
    Covered(Arc<Frame>),
}

impl Veil {
    pub(crate) fn scene(&mut self, scene: &Scene, now: Instant) {
        self.focused = scene.focused.is_some();
        // What was written a moment ago was written there: news of a field takes its time.
        self.blind.take_if(|since| self.focused && now - *since < HOLD);
        if self.told.back().is_none_or(|(_, covers)| *covers != scene.covers) {
            self.told.push_back((now, scene.covers.clone()));
        }
    }

    /// Whether the applicant is being waited for.
    pub(crate) fn waiting(&mut self, waiting: bool, now: Instant) {
        if waiting {
            self.closed.get_or_insert(now);
        } else {
            let closed = self.closed.take();
            // Whatever was written unseen, the page has gone on since.
            let blind = self.blind.take_if(|_| closed.is_some());
            self.reopen(closed, now);
            self.reopen(blind, now);
        }
    }

    /// The applicant wrote something.
    pub(crate) fn written(&mut self, now: Instant) {
        if !self.focused {
            self.blind.get_or_insert(now);
        }
    }

    pub(crate) fn frame(&mut self, frame: Arc<Frame>, now: Instant) {
        if self.origin != frame.origin {
            let blind = self.blind.take();
            self.reopen(blind, now);
            self.origin.clone_from(&frame.origin);
        }
        self.again = None;
        let crowded = self.held.iter().nth_back(1).is_some_and(|(at, _)| now - *at < PACE);
        if crowded {
            self.held.pop_back();
        }
        self.held.push_back((now, frame));
    }

    /// When the next picture may be seen.
    pub(crate) fn due(&self) -> Option<Instant> {
        let held = self.held.front().map(|(at, _)| *at + HOLD);
        let again = self.again.as_ref().filter(|_| !self.is_shut()).map(|(at, _)| *at);
        held.or(again)
    }

    /// The next picture whose time has come, with the moment it was taken.
    pub(crate) fn take(&mut self, now: Instant) -> Option<(Instant, Seen)> {
        if self.held.is_empty() && !self.is_shut() {
            let again = self.again.take_if(|(at, _)| *at <= now);
            self.held.extend(again.map(|(_, frame)| (now, frame)));
        }
        if self.held.front().is_none_or(|(at, _)| *at + HOLD > now) {
            return None;
        }
        let (at, frame) = self.held.pop_front()?;
        let seen = if self.was_closed(at) {
            if self.held.is_empty() {
                self.again = Some((self.opens(at), frame.clone()));
            }
            Seen::Covered(frame)
        } else {
            let covers = self.covers(at);
            covered(&frame, &covers).map_or_else(|| Seen::Covered(frame.clone()), Seen::Frame)
        };
        self.forget(at);
        Some((at, seen))
    }

    /// Everything that was covered at some moment around this one.
    fn covers(&self, at: Instant) -> Places {
        let from = at.checked_sub(HOLD).unwrap_or(at);
        let ends = self.told.iter().skip(1).map(|(since, _)| Some(*since)).chain([None]);
        let around = self.told.iter().zip(ends);
        let around = around
            .filter(|((since, _), end)| *since <= at + HOLD && end.is_none_or(|end| end >= from));
        around.flat_map(|((_, covers), _)| covers).copied().collect()
    }

    fn was_closed(&self, at: Instant) -> bool {
        self.closed.is_some_and(|since| since <= at + HOLD)
            || self.blind.is_some_and(|since| since <= at)
            || self.before.iter().any(|(from, until)| *from <= at + HOLD && at < *until + AFTERMATH)
    }

    /// When a picture that was taken then may be seen at the soonest, as far as is known now.
    fn opens(&self, at: Instant) -> Instant {
        self.before.back().map_or(at, |(_, until)| *until + AFTERMATH)
    }

    /// Pictures from a moment after this one may be seen again, for all that was known since `since`.
    fn reopen(&mut self, since: Option<Instant>, now: Instant) {
        let Some(since) = since else { return };
        self.before.push_back((since, now));
        if let Some((at, _)) = &mut self.again {
            *at = now + AFTERMATH;
        }
    }

    const fn is_shut(&self) -> bool {
        self.closed.is_some() || self.blind.is_some()
    }

    /// Forgets what no later picture needs.
    fn forget(&mut self, at: Instant) {
        while self.before.front().is_some_and(|(_, until)| *until + AFTERMATH < at) {
            self.before.pop_front();
        }
        while self.told.get(1).is_some_and(|(since, _)| *since + HOLD < at) {
            self.told.pop_front();
        }
    }
}

/// The frame with these places covered; `None` where its picture is of a kind that is not taken
/// apart.
fn covered(frame: &Arc<Frame>, covers: &[[f32; 4]]) -> Option<Arc<Frame>> {
    if covers.is_empty() {
        return Some(frame.clone());
    }
    let picture = JpegImage::decode(&frame.jpeg).ok()?;
    let scale = f32::from(picture.width()) / f32::from(frame.viewport.width.max(1));
    let areas = covers.iter().map(|place| {
        let [left, top, width, height] = place.map(|number| number * scale);
        // A frame's own border and what is drawn just beside it belong to it.
        let (right, bottom) = (left + width + 4.0, top + height + 4.0);
        let (left, top) = (whole(left - 4.0), whole(top - 4.0));
        picture.mcus_covering(
            left,
            top,
            whole(right).saturating_sub(left),
            whole(bottom).saturating_sub(top),
        )
    });
    let areas = areas.collect::<Vec<_>>();
    let left = picture.redacted(&areas);
    let jpeg = left.crop(left.full_area(), QuantScale::UNCHANGED);
    Some(Arc::new(Frame { jpeg, ..Frame::clone(frame) }))
}

/// A place in pixels.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of a number that was brought into range"
)]
fn whole(number: f32) -> u16 {
    number.clamp(0.0, 16384.0) as u16
}

#[cfg(test)]
mod tests;
