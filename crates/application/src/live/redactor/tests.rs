//! What the redactor shows of frames, moment by moment.

use std::{sync::Arc, time::Duration};

use ports::browser::{Frame, PageState, Viewport};
use tokio::time::Instant;

use super::{HOLD_BACK, REDACTION_TAIL, RedactedFrame, Redactor};
use crate::fakes::NamingRedactor;

const IMAGE: &[u8] = b"an image";
const TICK: Duration = Duration::from_millis(50);

fn redactor() -> Redactor {
    Redactor::new(Arc::new(NamingRedactor))
}

fn frame(seq: u64) -> Arc<Frame> {
    let viewport = Viewport { width: 64, height: 32 };
    Arc::new(Frame { seq, jpeg: IMAGE.to_vec(), origin: "https://a.test".into(), viewport })
}

fn page(rects: &[[f32; 4]], focused: Option<u8>) -> PageState {
    PageState { redaction_rects: rects.to_vec(), focused, ..PageState::default() }
}

/// Returns what is shown of a frame that arrives at this moment.
fn shown(redactor: &mut Redactor, at: Instant) -> RedactedFrame {
    redactor.frame(frame(1), at);
    assert_eq!(redactor.take(at + HOLD_BACK - TICK), None, "it is held back");
    redactor.take(at + HOLD_BACK).unwrap().1
}

#[test]
fn a_frame_with_nothing_to_cover_is_shown_late_and_unchanged() {
    assert_eq!(shown(&mut redactor(), Instant::now()), RedactedFrame::Frame(frame(1)));
}

#[test]
fn an_area_that_is_reported_shortly_after_a_frame_is_covered() {
    let (mut redactor, now) = (redactor(), Instant::now());
    redactor.frame(frame(1), now);
    redactor.scene(&page(&[[20.0, 8.0, 24.0, 16.0]], None), now + HOLD_BACK - TICK);
    let Some((_, RedactedFrame::Frame(covered))) = redactor.take(now + HOLD_BACK) else {
        panic!("it is hidden")
    };
    assert_eq!(covered.jpeg, b"an image without [[20.0, 8.0, 24.0, 16.0]]");
}

#[test]
fn an_area_that_is_gone_shortly_before_a_frame_is_still_covered() {
    let (mut redactor, now) = (redactor(), Instant::now());
    redactor.scene(&page(&[[0.0, 0.0, 64.0, 32.0]], None), now);
    redactor.scene(&page(&[], None), now + TICK);
    let RedactedFrame::Frame(covered) = shown(&mut redactor, now + TICK * 2) else {
        panic!("it is hidden")
    };
    assert_ne!(covered.jpeg, IMAGE);
    assert_eq!(
        shown(&mut redactor, now + TICK * 2 + HOLD_BACK * 2),
        RedactedFrame::Frame(frame(1))
    );
}

#[test]
fn frames_are_hidden_around_a_wait() {
    let (mut redactor, now) = (redactor(), Instant::now());
    redactor.waiting(true, now + TICK * 2);
    // It arrives shortly before the wait is known.
    assert_eq!(shown(&mut redactor, now + TICK), RedactedFrame::Hidden(frame(1)));
    assert_eq!(shown(&mut redactor, now + TICK * 40), RedactedFrame::Hidden(frame(1)));
    let over = now + TICK * 60;
    redactor.waiting(false, over);
    assert_eq!(shown(&mut redactor, over + REDACTION_TAIL - TICK), RedactedFrame::Hidden(frame(1)));
    assert_eq!(shown(&mut redactor, over + REDACTION_TAIL + TICK), RedactedFrame::Frame(frame(1)));
}

#[test]
fn a_page_that_does_not_change_is_shown_once_the_wait_is_well_over() {
    let (mut redactor, now) = (redactor(), Instant::now());
    redactor.waiting(true, now);
    assert_eq!(shown(&mut redactor, now), RedactedFrame::Hidden(frame(1)));
    assert_eq!(redactor.due(), None);
    let over = now + TICK * 40;
    redactor.waiting(false, over);
    assert_eq!(redactor.due(), Some(over + REDACTION_TAIL));
    assert_eq!(redactor.take(over + REDACTION_TAIL), None);
    let (_, again) = redactor.take(over + REDACTION_TAIL + HOLD_BACK).unwrap();
    assert_eq!(again, RedactedFrame::Frame(frame(1)));
}

#[test]
fn text_where_no_field_is_known_hides_frames_until_the_next_site_or_wait() {
    let (mut redactor, now) = (redactor(), Instant::now());
    redactor.scene(&page(&[[0.0, 0.0, 8.0, 8.0]], Some(0)), now);
    redactor.frame(frame(1), now);
    redactor.text_input(now);
    assert!(
        matches!(redactor.take(now + HOLD_BACK), Some((_, RedactedFrame::Frame(_)))),
        "the field is covered"
    );
    let later = now + HOLD_BACK * 4;
    redactor.scene(&page(&[], None), later);
    redactor.text_input(later);
    assert_eq!(shown(&mut redactor, later + TICK), RedactedFrame::Hidden(frame(1)));
    let elsewhere = Frame { origin: "https://b.test".into(), ..Frame::clone(&frame(2)) };
    let after = later + REDACTION_TAIL * 3;
    redactor.frame(Arc::new(elsewhere.clone()), after);
    assert_eq!(
        redactor.take(after + HOLD_BACK).unwrap().1,
        RedactedFrame::Hidden(Arc::new(elsewhere.clone()))
    );
    redactor.frame(Arc::new(elsewhere.clone()), after + REDACTION_TAIL * 2);
    let (_, seen) = redactor.take(after + REDACTION_TAIL * 2 + HOLD_BACK).unwrap();
    assert_eq!(seen, RedactedFrame::Frame(Arc::new(elsewhere)));
}

#[test]
fn text_that_arrives_before_its_field_is_known_hides_nothing() {
    let (mut redactor, now) = (redactor(), Instant::now());
    let later = now + HOLD_BACK * 2;
    assert!(matches!(shown(&mut redactor, now), RedactedFrame::Frame(_)));
    redactor.text_input(later);
    redactor.frame(frame(2), later + TICK);
    redactor.scene(&page(&[[0.0, 0.0, 8.0, 8.0]], Some(0)), later + TICK * 2);
    assert!(matches!(redactor.take(later + TICK + HOLD_BACK), Some((_, RedactedFrame::Frame(_)))));
}

#[test]
fn a_frame_that_cannot_be_redacted_is_hidden_where_an_area_is_to_be_covered() {
    let (mut redactor, now) = (redactor(), Instant::now());
    redactor.scene(&page(&[[0.0, 0.0, 8.0, 8.0]], None), now);
    let odd = Arc::new(Frame { jpeg: vec![1, 2, 3], ..Frame::clone(&frame(1)) });
    redactor.frame(odd.clone(), now);
    assert_eq!(redactor.take(now + HOLD_BACK).unwrap().1, RedactedFrame::Hidden(odd));
}

#[test]
fn frames_that_arrive_too_quickly_replace_one_another_and_the_last_one_stays() {
    let (mut redactor, now) = (redactor(), Instant::now());
    for seq in 0..200 {
        redactor.frame(frame(seq), now + Duration::from_millis(seq * 5));
    }
    let mut all = vec![];
    while let Some((_, RedactedFrame::Frame(frame))) = redactor.take(now + HOLD_BACK * 10) {
        all.push(frame.seq);
    }
    assert!((5..=8).contains(&all.len()), "{all:?}");
    assert_eq!(all.last(), Some(&199));
}
