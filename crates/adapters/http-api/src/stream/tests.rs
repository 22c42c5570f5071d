//! How much a viewer is sent, and when.

use std::{sync::Arc, time::Duration};

use jpeg_encoder::{ColorType, Encoder};
use ports::browser::{Frame, Viewport};
use tokio::time::Instant;

use super::frame_encoder::FrameEncoder;

const HEAD: u8 = 1;
const PICTURE: u8 = 2;
const A: &str = "https://a.test";

#[test]
fn what_did_not_change_is_not_sent_again() {
    let (mut cast, now) = (FrameEncoder::default(), Instant::now());
    assert_eq!(kinds(&cast.picture(frame(0, A), now)), [HEAD, PICTURE]);
    assert!(cast.picture(frame(0, A), now).is_empty());
    let elsewhere = cast.picture(frame(0, "https://b.test"), now);
    assert_eq!(kinds(&elsewhere), [PICTURE], "the host that is shown");
}

#[test]
fn two_pictures_are_on_their_way_at_most() {
    let (mut cast, now) = (FrameEncoder::default(), Instant::now());
    cast.picture(frame(0, A), now);
    assert!(cast.has_room());
    cast.picture(frame(1, A), now);
    assert!(!cast.has_room());
    cast.drawn(1, now);
    assert!(cast.has_room());
}

#[test]
fn a_slow_viewer_gets_less_and_then_all_of_it() {
    let (swift, slow) = (sent(Duration::from_millis(20)), sent(Duration::from_millis(500)));
    assert!(slow.0 * 3 < swift.0 * 2, "slow: {slow:?}, swift: {swift:?}");
    assert!(slow.1 > 0 && swift.1 == 0, "slow: {slow:?}, swift: {swift:?}");
}

#[test]
fn a_movement_is_sent_coarse_and_settles() {
    let (mut cast, mut now) = (FrameEncoder::default(), Instant::now());
    cast.picture(frame(0, A), now);
    assert_eq!(cast.settles_at(), None);
    now += Duration::from_millis(100);
    let moved = size(&cast.picture(frame(200, A), now));
    assert_eq!(cast.settles_at(), Some(now + Duration::from_millis(200)));
    let settled = size(&cast.settle(now));
    assert!(moved > 0 && settled > moved, "{moved} and then {settled} bytes");
    assert_eq!((cast.settles_at(), kinds(&cast.settle(now))), (None, vec![]));
}

#[test]
fn a_viewer_who_could_not_draw_gets_everything_once_a_second() {
    let (mut cast, mut now) = (FrameEncoder::default(), Instant::now());
    let first = cast.picture(frame(0, A), now);
    assert_eq!(size(&cast.refresh(now)), size(&first));
    assert!(cast.refresh(now).is_empty());
    now += Duration::from_secs(1);
    assert_eq!(size(&cast.refresh(now)), size(&first));
}

#[test]
fn a_picture_of_another_kind_is_passed_on_whole() {
    let jpeg = b"not one of ours".to_vec();
    let frame = Arc::new(Frame { jpeg: jpeg.clone(), ..(*frame(0, A)).clone() });
    let messages = FrameEncoder::default().picture(frame, Instant::now());
    assert_eq!(messages.len(), 1);
    assert!(messages.iter().all(|message| message.starts_with(&[PICTURE, 3])));
    assert!(messages.iter().all(|message| message.ends_with(&jpeg)));
}

/// Bytes of the last of some pictures, each drawn after so long, and of what follows when the
/// page stands still.
fn sent(drawn_after: Duration) -> (usize, usize) {
    let (mut cast, mut now) = (FrameEncoder::default(), Instant::now());
    let mut last = 0;
    for at in 0..12 {
        last = size(&cast.picture(frame(at * 20, A), now));
        cast.drawn(u32::MAX, now + drawn_after);
        now += Duration::from_secs(1);
    }
    (last, size(&cast.settle(now)))
}

fn kinds(messages: &[Vec<u8>]) -> Vec<u8> {
    messages.iter().filter_map(|message| message.first().copied()).collect()
}

fn size(messages: &[Vec<u8>]) -> usize {
    messages.iter().map(Vec::len).sum()
}

/// A page that was scrolled by so many pixels.
fn frame(scrolled: u32, origin: &str) -> Arc<Frame> {
    let line = |x: u32, y: u32| (x / 3 * 7 + (y + scrolled) / 4 * 13) % 17 < 5;
    let shade = |(x, y)| if line(x, y) { [20, 30, 60] } else { [240, 240, 250] };
    let places = (0..200).flat_map(|y| (0..320).map(move |x| (x, y)));
    let rgb: Vec<u8> = places.flat_map(shade).collect();
    let mut jpeg = vec![];
    Encoder::new(&mut jpeg, 80).encode(&rgb, 320, 200, ColorType::Rgb).unwrap();
    Arc::new(Frame { seq: 1, jpeg, origin: origin.into(), viewport: Viewport::default() })
}
