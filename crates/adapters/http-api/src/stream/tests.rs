//! What the encoder sends to a viewer, and when.

use std::{sync::Arc, time::Duration};

use jpeg_encoder::{ColorType, Encoder};
use ports::browser::{Frame, Viewport};
use tokio::time::Instant;

use super::frame_encoder::FrameEncoder;

const HEADER_MESSAGE: u8 = 1;
const FRAME_MESSAGE: u8 = 2;
const A: &str = "https://a.test";

#[test]
fn an_unchanged_frame_is_not_sent_again() {
    let (mut encoder, now) = (FrameEncoder::default(), Instant::now());
    assert_eq!(kinds(&encoder.frame(frame(0, A), now)), [HEADER_MESSAGE, FRAME_MESSAGE]);
    assert!(encoder.frame(frame(0, A), now).is_empty());
    let other_origin = encoder.frame(frame(0, "https://b.test"), now);
    assert_eq!(kinds(&other_origin), [FRAME_MESSAGE], "the host that is shown");
}

#[test]
fn at_most_two_frames_are_unacknowledged() {
    let (mut encoder, now) = (FrameEncoder::default(), Instant::now());
    encoder.frame(frame(0, A), now);
    assert!(encoder.has_capacity());
    encoder.frame(frame(1, A), now);
    assert!(!encoder.has_capacity());
    encoder.acknowledge(1, now);
    assert!(encoder.has_capacity());
}

#[test]
fn a_slow_viewer_gets_coarse_frames_and_then_full_quality() {
    let (fast, slow) = (sent(Duration::from_millis(20)), sent(Duration::from_millis(500)));
    assert!(slow.0 * 3 < fast.0 * 2, "slow: {slow:?}, fast: {fast:?}");
    assert!(slow.1 > 0 && fast.1 == 0, "slow: {slow:?}, fast: {fast:?}");
}

#[test]
fn a_movement_is_sent_coarsely_and_then_refined() {
    let (mut encoder, mut now) = (FrameEncoder::default(), Instant::now());
    encoder.frame(frame(0, A), now);
    assert_eq!(encoder.refine_time(), None);
    now += Duration::from_millis(100);
    let moved = size(&encoder.frame(frame(200, A), now));
    assert_eq!(encoder.refine_time(), Some(now + Duration::from_millis(200)));
    let refined = size(&encoder.refine(now));
    assert!(moved > 0 && refined > moved, "{moved} and then {refined} bytes");
    assert_eq!((encoder.refine_time(), kinds(&encoder.refine(now))), (None, vec![]));
}

#[test]
fn a_complete_frame_is_sent_on_request_once_a_second() {
    let (mut encoder, mut now) = (FrameEncoder::default(), Instant::now());
    let first = encoder.frame(frame(0, A), now);
    assert_eq!(size(&encoder.refresh(now)), size(&first));
    assert!(encoder.refresh(now).is_empty());
    now += Duration::from_secs(1);
    assert_eq!(size(&encoder.refresh(now)), size(&first));
}

#[test]
fn a_jpeg_of_another_kind_is_sent_unchanged() {
    let jpeg = b"not a decodable image".to_vec();
    let frame = Arc::new(Frame { jpeg: jpeg.clone(), ..(*frame(0, A)).clone() });
    let messages = FrameEncoder::default().frame(frame, Instant::now());
    assert_eq!(messages.len(), 1);
    assert!(messages.iter().all(|message| message.starts_with(&[FRAME_MESSAGE, 3])));
    assert!(messages.iter().all(|message| message.ends_with(&jpeg)));
}

/// Returns the bytes of the last of several frames, each acknowledged after this time, and of the
/// refinement that follows.
fn sent(drawn_after: Duration) -> (usize, usize) {
    let (mut encoder, mut now) = (FrameEncoder::default(), Instant::now());
    let mut last = 0;
    for at in 0..12 {
        last = size(&encoder.frame(frame(at * 20, A), now));
        encoder.acknowledge(u32::MAX, now + drawn_after);
        now += Duration::from_secs(1);
    }
    (last, size(&encoder.refine(now)))
}

fn kinds(messages: &[Vec<u8>]) -> Vec<u8> {
    messages.iter().filter_map(|message| message.first().copied()).collect()
}

fn size(messages: &[Vec<u8>]) -> usize {
    messages.iter().map(Vec::len).sum()
}

/// A frame of a page that was scrolled by this many pixels.
fn frame(scrolled: u32, origin: &str) -> Arc<Frame> {
    let line = |x: u32, y: u32| (x / 3 * 7 + (y + scrolled) / 4 * 13) % 17 < 5;
    let shade = |(x, y)| if line(x, y) { [20, 30, 60] } else { [240, 240, 250] };
    let places = (0..200).flat_map(|y| (0..320).map(move |x| (x, y)));
    let rgb: Vec<u8> = places.flat_map(shade).collect();
    let mut jpeg = vec![];
    Encoder::new(&mut jpeg, 80).encode(&rgb, 320, 200, ColorType::Rgb).unwrap();
    Arc::new(Frame { seq: 1, jpeg, origin: origin.into(), viewport: Viewport::default() })
}
