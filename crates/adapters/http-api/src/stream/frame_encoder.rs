//! Encodes frames for one viewer: the changed blocks, quantized as coarsely as the connection
//! requires, and in full quality once the page stops changing.

use std::{collections::VecDeque, mem, sync::Arc, time::Duration};

use jpeg_delta::{Canvas, IncrementalDecoder, JpegImage, QuantScale, Update};
use ports::browser::Frame;
use tokio::time::Instant;

/// The maximum number of unacknowledged frames; with more of them a slow viewer would see outdated
/// frames.
const MAX_UNACKNOWLEDGED: usize = 2;
/// The time without a change after which coarse blocks are sent in full quality.
const REFINE_DELAY: Duration = Duration::from_millis(200);
/// The maximum time between two frames of one movement.
const MOVEMENT_GAP: Duration = Duration::from_millis(150);
/// The part of all blocks (one in so many) that must change for a movement to be sent coarsely.
const LARGE_CHANGE_DIVISOR: u32 = 4;
/// Bounds of the mean time from sending a frame until it is drawn: above `SLOW` the next frame is
/// coarser, below `SWIFT` finer.
const SLOW_DELAY: Duration = Duration::from_millis(250);
const FAST_DELAY: Duration = Duration::from_millis(120);
/// The quantization of each step, as a multiple of the frame's own in sixteenths.
const SCALES: [u8; 4] = [16, 32, 56, 96];
/// The minimum step of quantization during a movement.
const MOVEMENT_STEP: usize = 2;
/// The minimum time between two complete frames that are sent on request.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

const HEADER_MESSAGE: u8 = 1;
const FRAME_MESSAGE: u8 = 2;
const FLAG_FULL: u8 = 1;
const FLAG_COMPLETE_JPEGS: u8 = 2;

#[derive(Default)]
pub(super) struct FrameEncoder {
    canvas: Canvas,
    /// The JPEG header that the viewer puts before the entropy-coded data of each tile.
    header: Vec<u8>,
    decoder: IncrementalDecoder,
    /// The newest frame that was sent to the viewer.
    last: Option<Arc<Frame>>,
    seq: u32,
    unacknowledged: VecDeque<(u32, Instant)>,
    /// The moving average of the time from sending a frame until it is drawn.
    mean_delay: Duration,
    step: usize,
    last_frame_at: Option<Instant>,
    /// When coarse blocks are to be sent in full quality.
    refine_at: Option<Instant>,
    last_refresh: Option<Instant>,
}

impl FrameEncoder {
    pub(super) fn has_capacity(&self) -> bool {
        self.unacknowledged.len() < MAX_UNACKNOWLEDGED
    }

    pub(super) const fn refine_time(&self) -> Option<Instant> {
        self.refine_at
    }

    /// Returns the messages that take the viewer from the last frame to this one.
    pub(super) fn frame(&mut self, frame: Arc<Frame>, now: Instant) -> Vec<Vec<u8>> {
        let mut decoder = mem::take(&mut self.decoder);
        let messages = if let Ok(image) = decoder.decode(&frame.jpeg) {
            self.encode(&frame, image, now)
        } else {
            // A JPEG of a kind that cannot be split into blocks; the viewer's browser may be able
            // to decode it.
            self.last_frame_at = Some(now);
            self.canvas.clear();
            let mut message = self.message(&frame, FLAG_FULL | FLAG_COMPLETE_JPEGS, (0, 0), now);
            append(&mut message, &frame.jpeg);
            vec![message]
        };
        self.decoder = decoder;
        self.last = Some(frame);
        messages
    }

    fn encode(&mut self, frame: &Frame, image: &JpegImage, now: Instant) -> Vec<Vec<u8>> {
        let is_moving = self
            .last_frame_at
            .replace(now)
            .is_some_and(|last_frame_at| now - last_frame_at < MOVEMENT_GAP);
        let view_changed = self
            .last
            .as_ref()
            .is_none_or(|last| last.origin != frame.origin || last.viewport != frame.viewport);
        let is_large = is_moving
            && self.canvas.count_stale(image) * LARGE_CHANGE_DIVISOR
                > image.full_area().mcu_count();
        let step = if is_large { self.step.max(MOVEMENT_STEP) } else { self.step };
        let scale =
            SCALES.get(step).copied().map_or(QuantScale::UNCHANGED, QuantScale::from_sixteenths);
        let update = self.canvas.update(image, scale);
        let update = update.or_else(|| view_changed.then(Update::default));
        let messages = update.map(|update| self.messages((frame, image), &update, scale, now));
        if !self.canvas.is_coarse() {
            self.refine_at = None;
        } else if scale > QuantScale::UNCHANGED || self.refine_at.is_none() {
            self.refine_at = Some(now + REFINE_DELAY);
        }
        messages.unwrap_or_default()
    }

    /// Returns the messages that replace coarse blocks by full quality.
    pub(super) fn refine(&mut self, now: Instant) -> Vec<Vec<u8>> {
        self.refine_at = None;
        let Some(frame) = self.last.clone() else { return vec![] };
        let decoder = mem::take(&mut self.decoder);
        let messages = decoder.last().and_then(|image| {
            let update = self.canvas.refine(image)?;
            Some(self.messages((&frame, image), &update, QuantScale::UNCHANGED, now))
        });
        self.decoder = decoder;
        messages.unwrap_or_default()
    }

    /// Returns the messages for a complete frame, for a viewer that could not draw one.
    pub(super) fn refresh(&mut self, now: Instant) -> Vec<Vec<u8>> {
        if self.last_refresh.is_some_and(|last| now - last < REFRESH_INTERVAL) {
            return vec![];
        }
        self.last_refresh = Some(now);
        self.canvas.clear();
        self.header.clear();
        self.last_frame_at = None;
        self.last.take().map(|frame| self.frame(frame, now)).unwrap_or_default()
    }

    /// Records that the viewer has drawn a frame, and with it all frames before it.
    pub(super) fn acknowledge(&mut self, seq: u32, now: Instant) {
        let mut elapsed = None;
        while let Some((first, sent)) = self.unacknowledged.front().copied() {
            if first > seq {
                break;
            }
            elapsed = Some(now - sent);
            self.unacknowledged.pop_front();
        }
        let Some(elapsed) = elapsed else { return };
        self.mean_delay = (self.mean_delay * 3 + elapsed) / 4;
        if self.mean_delay > SLOW_DELAY && self.step + 1 < SCALES.len() {
            self.step += 1;
            self.mean_delay = (SLOW_DELAY + FAST_DELAY) / 2;
        } else if self.mean_delay < FAST_DELAY {
            self.step = self.step.saturating_sub(1);
        }
    }

    fn messages(
        &mut self,
        (frame, image): (&Frame, &JpegImage),
        update: &Update,
        scale: QuantScale,
        now: Instant,
    ) -> Vec<Vec<u8>> {
        let mut messages = vec![];
        let header = image.header(scale);
        if !update.tiles.is_empty() && header != self.header {
            let bytes_after_size = u16::try_from(image.bytes_after_size()).unwrap_or_default();
            let mut message = vec![HEADER_MESSAGE];
            message.extend(bytes_after_size.to_le_bytes());
            message.extend(&header);
            messages.push(message);
            self.header = header;
        }
        let flags = if update.full { FLAG_FULL } else { 0 };
        let size = (image.width(), image.height());
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

    /// Returns the message of a frame up to its tiles.
    fn message(&mut self, frame: &Frame, flags: u8, size: (u16, u16), now: Instant) -> Vec<u8> {
        self.seq = self.seq.wrapping_add(1);
        self.unacknowledged.push_back((self.seq, now));
        let origin = frame.origin.as_bytes();
        let origin = origin.get(..origin.len().min(255)).unwrap_or_default();
        let mut message = vec![FRAME_MESSAGE, flags];
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
