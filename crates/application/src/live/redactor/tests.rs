//! What the veil lets through, moment by moment.

use std::{sync::Arc, time::Duration};

use ports::browser::{Frame, PageState, Viewport};
use tokio::time::Instant;

use super::{HOLD_BACK, REDACTION_TAIL, RedactedFrame, Redactor};
use crate::fakes::NamingRedactor;

const LETTER: &[u8] = b"an image";
const TICK: Duration = Duration::from_millis(50);

fn veil() -> Redactor {
    Redactor::new(Arc::new(NamingRedactor))
}

fn frame(seq: u64) -> Arc<Frame> {
    let viewport = Viewport { width: 64, height: 32 };
    Arc::new(Frame { seq, jpeg: LETTER.to_vec(), origin: "https://a.test".into(), viewport })
}

fn told(covers: &[[f32; 4]], focused: Option<u8>) -> PageState {
    PageState { redaction_rects: covers.to_vec(), focused, ..PageState::default() }
}

/// What becomes of a frame that comes at this moment.
fn seen(veil: &mut Redactor, at: Instant) -> RedactedFrame {
    veil.frame(frame(1), at);
    assert_eq!(veil.take(at + HOLD_BACK - TICK), None, "it is held back");
    veil.take(at + HOLD_BACK).unwrap().1
}

#[test]
fn a_picture_with_nothing_to_hide_is_seen_late_and_as_it_is() {
    assert_eq!(seen(&mut veil(), Instant::now()), RedactedFrame::Frame(frame(1)));
}

#[test]
fn what_is_told_a_moment_after_the_picture_covers_it() {
    let (mut veil, now) = (veil(), Instant::now());
    veil.frame(frame(1), now);
    veil.scene(&told(&[[20.0, 8.0, 24.0, 16.0]], None), now + HOLD_BACK - TICK);
    let Some((_, RedactedFrame::Frame(covered))) = veil.take(now + HOLD_BACK) else {
        panic!("seen")
    };
    assert_eq!(covered.jpeg, b"an image without [[20.0, 8.0, 24.0, 16.0]]");
}

#[test]
fn what_is_gone_a_moment_before_the_picture_still_covers_it() {
    let (mut veil, now) = (veil(), Instant::now());
    veil.scene(&told(&[[0.0, 0.0, 64.0, 32.0]], None), now);
    veil.scene(&told(&[], None), now + TICK);
    let RedactedFrame::Frame(covered) = seen(&mut veil, now + TICK * 2) else { panic!("seen") };
    assert_ne!(covered.jpeg, LETTER);
    assert_eq!(seen(&mut veil, now + TICK * 2 + HOLD_BACK * 2), RedactedFrame::Frame(frame(1)));
}

#[test]
fn nothing_is_seen_around_a_wait() {
    let (mut veil, now) = (veil(), Instant::now());
    veil.waiting(true, now + TICK * 2);
    // Taken a moment before the wait was known.
    assert_eq!(seen(&mut veil, now + TICK), RedactedFrame::Hidden(frame(1)));
    assert_eq!(seen(&mut veil, now + TICK * 40), RedactedFrame::Hidden(frame(1)));
    let over = now + TICK * 60;
    veil.waiting(false, over);
    assert_eq!(seen(&mut veil, over + REDACTION_TAIL - TICK), RedactedFrame::Hidden(frame(1)));
    assert_eq!(seen(&mut veil, over + REDACTION_TAIL + TICK), RedactedFrame::Frame(frame(1)));
}

#[test]
fn a_page_that_stands_still_is_seen_once_the_wait_is_well_over() {
    let (mut veil, now) = (veil(), Instant::now());
    veil.waiting(true, now);
    assert_eq!(seen(&mut veil, now), RedactedFrame::Hidden(frame(1)));
    assert_eq!(veil.due(), None);
    let over = now + TICK * 40;
    veil.waiting(false, over);
    assert_eq!(veil.due(), Some(over + REDACTION_TAIL));
    assert_eq!(veil.take(over + REDACTION_TAIL), None);
    let (_, again) = veil.take(over + REDACTION_TAIL + HOLD_BACK).unwrap();
    assert_eq!(again, RedactedFrame::Frame(frame(1)));
}

#[test]
fn writing_where_no_field_is_known_closes_the_veil_until_the_next_site_or_wait() {
    let (mut veil, now) = (veil(), Instant::now());
    veil.scene(&told(&[[0.0, 0.0, 8.0, 8.0]], Some(0)), now);
    veil.frame(frame(1), now);
    veil.text_input(now);
    assert!(
        matches!(veil.take(now + HOLD_BACK), Some((_, RedactedFrame::Frame(_)))),
        "the field is covered"
    );
    let later = now + HOLD_BACK * 4;
    veil.scene(&told(&[], None), later);
    veil.text_input(later);
    assert_eq!(seen(&mut veil, later + TICK), RedactedFrame::Hidden(frame(1)));
    let elsewhere = Frame { origin: "https://b.test".into(), ..Frame::clone(&frame(2)) };
    let after = later + REDACTION_TAIL * 3;
    veil.frame(Arc::new(elsewhere.clone()), after);
    assert_eq!(
        veil.take(after + HOLD_BACK).unwrap().1,
        RedactedFrame::Hidden(Arc::new(elsewhere.clone()))
    );
    veil.frame(Arc::new(elsewhere.clone()), after + REDACTION_TAIL * 2);
    let (_, seen) = veil.take(after + REDACTION_TAIL * 2 + HOLD_BACK).unwrap();
    assert_eq!(seen, RedactedFrame::Frame(Arc::new(elsewhere)));
}

#[test]
fn what_is_written_before_its_field_is_known_closes_nothing() {
    let (mut veil, now) = (veil(), Instant::now());
    let later = now + HOLD_BACK * 2;
    assert!(matches!(seen(&mut veil, now), RedactedFrame::Frame(_)));
    veil.text_input(later);
    veil.frame(frame(2), later + TICK);
    veil.scene(&told(&[[0.0, 0.0, 8.0, 8.0]], Some(0)), later + TICK * 2);
    assert!(matches!(veil.take(later + TICK + HOLD_BACK), Some((_, RedactedFrame::Frame(_)))));
}

#[test]
fn a_picture_that_cannot_be_taken_apart_is_not_seen_where_something_is_to_be_covered() {
    let (mut veil, now) = (veil(), Instant::now());
    veil.scene(&told(&[[0.0, 0.0, 8.0, 8.0]], None), now);
    let odd = Arc::new(Frame { jpeg: vec![1, 2, 3], ..Frame::clone(&frame(1)) });
    veil.frame(odd.clone(), now);
    assert_eq!(veil.take(now + HOLD_BACK).unwrap().1, RedactedFrame::Hidden(odd));
}

#[test]
fn pictures_that_come_too_quickly_replace_one_another_and_the_last_one_stays() {
    let (mut veil, now) = (veil(), Instant::now());
    for seq in 0..200 {
        veil.frame(frame(seq), now + Duration::from_millis(seq * 5));
    }
    let mut all = vec![];
    while let Some((_, RedactedFrame::Frame(frame))) = veil.take(now + HOLD_BACK * 10) {
        all.push(frame.seq);
    }
    assert!((5..=8).contains(&all.len()), "{all:?}");
    assert_eq!(all.last(), Some(&199));
}
