//! What one viewer is sent of the page: what changed, as finely as the way there bears, and all of
//! it once the page stands still.

use std::{collections::VecDeque, mem, sync::Arc, time::Duration};

use jpeg_delta::{Canvas, IncrementalDecoder, JpegImage, QuantScale, Update};
use ports::browser::Frame;
use tokio::time::Instant;

/// Pictures on their way; with more of them a slow viewer would look into the past.
const MAX_UNACKNOWLEDGED: usize = 2;
/// How long the page must stand still before what was sent coarse is sent as it is.
const STILL_AFTER: Duration = Duration::from_millis(200);
/// A picture that comes this soon after another one belongs to one movement.
const MOVING: Duration = Duration::from_millis(150);
/// Of all units, the part that must change for a movement to be sent coarse: one in so many.
const LARGE_PART: u32 = 4;
/// From the sending of a picture to its being drawn: above the first the next is sent coarser,
/// below the second finer.
const SLOW: Duration = Duration::from_millis(250);
const SWIFT: Duration = Duration::from_millis(120);
/// Of the picture's own divisors, in sixteenths.
const LADDER: [u8; 4] = [16, 32, 56, 96];
/// Which step of it movements are sent with, where it is not coarser already.
const MOVEMENT: usize = 2;
/// Pictures are sent anew at most this often.
const REFRESH: Duration = Duration::from_secs(1);

const HEAD: u8 = 1;
const PICTURE: u8 = 2;
const WHOLE: u8 = 1;
const COMPLETE: u8 = 2;

#[derive(Default)]
pub(super) struct FrameEncoder {
    canvas: Canvas,
    /// What the viewer puts before the numbers of each tile.
    head: Vec<u8>,
    pictures: IncrementalDecoder,
    /// The newest frame that the viewer was told of.
    last: Option<Arc<Frame>>,
    seq: u32,
    on_their_way: VecDeque<(u32, Instant)>,
    /// A running mean of the time from sending to drawing.
    delay: Duration,
    step: usize,
    came: Option<Instant>,
    /// When what is coarse is to be sent as it is.
    settles: Option<Instant>,
    refreshed: Option<Instant>,
}

impl FrameEncoder {
    pub(super) fn has_room(&self) -> bool {
        self.on_their_way.len() < MAX_UNACKNOWLEDGED
    }

    pub(super) const fn settles_at(&self) -> Option<Instant> {
        self.settles
    }

    /// The messages that bring the viewer from the last frame to this one.
    pub(super) fn picture(&mut self, frame: Arc<Frame>, now: Instant) -> Vec<Vec<u8>> {
        let mut pictures = mem::take(&mut self.pictures);
        let messages = if let Ok(picture) = pictures.decode(&frame.jpeg) {
            self.follow(&frame, picture, now)
        } else {
            // Of a kind that we do not take apart; the viewer's browser may know it.
            self.came = Some(now);
            self.canvas.clear();
            let mut message = self.message(&frame, WHOLE | COMPLETE, (0, 0), now);
            append(&mut message, &frame.jpeg);
            vec![message]
        };
        self.pictures = pictures;
        self.last = Some(frame);
        messages
    }

    fn follow(&mut self, frame: &Frame, picture: &JpegImage, now: Instant) -> Vec<Vec<u8>> {
        let moving = self.came.replace(now).is_some_and(|came| now - came < MOVING);
        let elsewhere = self
            .last
            .as_ref()
            .is_none_or(|last| last.origin != frame.origin || last.viewport != frame.viewport);
        let large = moving
            && self.canvas.count_stale(picture) * LARGE_PART > picture.full_area().mcu_count();
        let step = if large { self.step.max(MOVEMENT) } else { self.step };
        let fineness =
            LADDER.get(step).copied().map_or(QuantScale::UNCHANGED, QuantScale::from_sixteenths);
        let update = self.canvas.update(picture, fineness);
        let update = update.or_else(|| elsewhere.then(Update::default));
        let messages = update.map(|update| self.tell((frame, picture), &update, fineness, now));
        if !self.canvas.is_coarse() {
            self.settles = None;
        } else if fineness > QuantScale::UNCHANGED || self.settles.is_none() {
            self.settles = Some(now + STILL_AFTER);
        }
        messages.unwrap_or_default()
    }

    /// Sends what is coarse as it is.
    pub(super) fn settle(&mut self, now: Instant) -> Vec<Vec<u8>> {
        self.settles = None;
        let Some(frame) = self.last.clone() else { return vec![] };
        let pictures = mem::take(&mut self.pictures);
        let messages = pictures.last().and_then(|picture| {
            let update = self.canvas.refine(picture)?;
            Some(self.tell((&frame, picture), &update, QuantScale::UNCHANGED, now))
        });
        self.pictures = pictures;
        messages.unwrap_or_default()
    }

    /// Sends everything once more, for a viewer who could not draw it.
    pub(super) fn refresh(&mut self, now: Instant) -> Vec<Vec<u8>> {
        if self.refreshed.is_some_and(|last| now - last < REFRESH) {
            return vec![];
        }
        self.refreshed = Some(now);
        self.canvas.clear();
        self.head.clear();
        self.came = None;
        self.last.take().map(|frame| self.picture(frame, now)).unwrap_or_default()
    }

    /// The viewer has drawn a picture, and with it all before it.
    pub(super) fn drawn(&mut self, seq: u32, now: Instant) {
        let mut took = None;
        while let Some((first, sent)) = self.on_their_way.front().copied() {
            if first > seq {
                break;
            }
            took = Some(now - sent);
            self.on_their_way.pop_front();
        }
        let Some(took) = took else { return };
        self.delay = (self.delay * 3 + took) / 4;
        if self.delay > SLOW && self.step + 1 < LADDER.len() {
            self.step += 1;
            self.delay = (SLOW + SWIFT) / 2;
        } else if self.delay < SWIFT {
            self.step = self.step.saturating_sub(1);
        }
    }

    fn tell(
        &mut self,
        (frame, picture): (&Frame, &JpegImage),
        update: &Update,
        fineness: QuantScale,
        now: Instant,
    ) -> Vec<Vec<u8>> {
        let mut messages = vec![];
        let head = picture.header(fineness);
        if !update.tiles.is_empty() && head != self.head {
            let behind = u16::try_from(picture.bytes_after_size()).unwrap_or_default();
            let mut message = vec![HEAD];
            message.extend(behind.to_le_bytes());
            message.extend(&head);
            messages.push(message);
            self.head = head;
        }
        let flags = if update.full { WHOLE } else { 0 };
        let size = (picture.width(), picture.height());
        let mut message = self.message(frame, flags, size, now);
        for tile in &update.tiles {
            for number in [tile.x, tile.y, tile.width, tile.height] {
                message.extend(number.to_le_bytes());
            }
            append(&mut message, &tile.entropy_coded);
        }
        messages.push(message);
        messages
    }

    /// A picture's message up to its tiles.
    fn message(&mut self, frame: &Frame, flags: u8, size: (u16, u16), now: Instant) -> Vec<u8> {
        self.seq = self.seq.wrapping_add(1);
        self.on_their_way.push_back((self.seq, now));
        let origin = frame.origin.as_bytes();
        let origin = origin.get(..origin.len().min(255)).unwrap_or_default();
        let mut message = vec![PICTURE, flags];
        message.extend(self.seq.to_le_bytes());
        for number in [frame.viewport.width, frame.viewport.height, size.0, size.1] {
            message.extend(number.to_le_bytes());
        }
        message.push(u8::try_from(origin.len()).unwrap_or(u8::MAX));
        message.extend(origin);
        message
    }
}

fn append(message: &mut Vec<u8>, bytes: &[u8]) {
    message.extend(u32::try_from(bytes.len()).unwrap_or_default().to_le_bytes());
    message.extend(bytes);
}
