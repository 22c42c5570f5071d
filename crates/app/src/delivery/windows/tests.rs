//! Windows without calls.

use std::sync::LazyLock;

use super::*;
use uuid::Uuid;

fn hook(number: u128) -> WebhookId {
    WebhookId::from_uuid(Uuid::from_u128(number))
}

fn now() -> Instant {
    static NOW: LazyLock<Instant> = LazyLock::new(Instant::now);
    *NOW
}

fn room(windows: &mut Windows<()>, webhook: WebhookId) -> u16 {
    let ask = windows.ask(DateTime::UNIX_EPOCH, None).unwrap();
    ask.room.iter().find(|room| room.webhook == webhook).map_or(ask.each, |room| room.most)
}

fn call(windows: &mut Windows<()>, webhook: WebhookId, how: Landing, took: Duration) {
    windows.took(webhook, (), now());
    windows.next(webhook, now()).unwrap();
    windows.landed(webhook, how, took);
}

#[test]
fn who_answers_is_sent_more_and_who_hangs_keeps_one_place() {
    let (mut windows, able, dead) = (Windows::default(), hook(1), hook(2));
    let refusing = hook(3);
    assert_eq!(room(&mut windows, able), FIRST);
    for _ in 0..1000 {
        call(&mut windows, able, Landing::Success, QUICK);
        call(&mut windows, dead, Landing::Overrun, QUICK);
        call(&mut windows, refusing, Landing::Refused, Duration::ZERO);
    }
    assert_eq!((room(&mut windows, able), room(&mut windows, dead)), (MOST, 1));
    assert_eq!(room(&mut windows, refusing), FIRST);
    windows.took(dead, (), now());
    windows.next(dead, now()).unwrap();
    assert_eq!((room(&mut windows, able), room(&mut windows, dead)), (MOST, 0));
    windows.landed(dead, Landing::Success, QUICK);
    assert_eq!(room(&mut windows, dead), 2);
}

#[test]
fn who_answers_quickly_is_claimed_ahead_for() {
    let (mut windows, quick) = (Windows::default(), hook(1));
    for _ in 0..MOST {
        call(&mut windows, quick, Landing::Success, Duration::ZERO);
    }
    assert_eq!(room(&mut windows, quick), AHEAD * MOST);
    for _ in 0..AHEAD * MOST {
        windows.took(quick, (), now());
    }
    assert_eq!(room(&mut windows, quick), 0);
    let begun = std::iter::from_fn(|| windows.next(quick, now())).count();
    assert_eq!(begun, usize::from(MOST));
    windows.landed(quick, Landing::Success, Duration::ZERO);
    assert!(windows.next(quick, now()).is_some());
    assert!(windows.next(quick, now()).is_none());
    assert_eq!(room(&mut windows, quick), 1);
    // One that is slow once is not claimed ahead for until it is quick again.
    windows.landed(quick, Landing::Success, QUICK);
    assert_eq!(room(&mut windows, quick), 0);
}

#[test]
fn what_has_waited_for_too_long_is_let_go() {
    let (mut windows, slow) = (Windows::default(), hook(1));
    for _ in 0..2 * FIRST {
        windows.took(slow, (), now());
    }
    while windows.next(slow, now()).is_some() {}
    windows.landed(slow, Landing::Success, STALE);
    assert!(windows.next(slow, now() + STALE).is_none());
    assert_eq!((windows.flying(), windows.waiting), (u32::from(FIRST) - 1, 0));
}

#[test]
fn where_many_that_were_quick_hang_at_once_there_are_places_for_others() {
    let mut windows = Windows::default();
    for number in 0..100 {
        for _ in 0..MOST {
            call(&mut windows, hook(number), Landing::Success, Duration::ZERO);
        }
    }
    for number in (0..100).cycle().take(1000) {
        for _ in 0..room(&mut windows, hook(number)) {
            windows.took(hook(number), (), now());
        }
        while windows.next(hook(number), now()).is_some() {}
    }
    assert_eq!(room(&mut windows, hook(100)), FIRST);
}

#[test]
fn a_landing_rings_where_somebody_waits_for_the_place() {
    let (mut windows, owed, done) = (Windows::default(), hook(1), hook(2));
    let ask = windows.ask(DateTime::UNIX_EPOCH, None).unwrap();
    for (webhook, count) in [(owed, FIRST), (done, FIRST - 1)] {
        for _ in 0..count {
            windows.took(webhook, (), now());
        }
        while windows.next(webhook, now()).is_some() {}
    }
    assert!(!windows.note_starved(&ask, &HashMap::from([(owed, FIRST), (done, FIRST - 1)]), None));
    assert!(!windows.landed(done, Landing::Success, QUICK), "all that it is owed is under way");
    let page = Ask { after: Some(owed), ..ask.clone() };
    assert!(!windows.note_starved(&page, &HashMap::new(), None), "of a page that it is not on");
    assert!(windows.landed(owed, Landing::Success, QUICK), "there may be more");
    // What was given nothing for want of room, and has room by the time that this is known.
    let mut hanging = Windows::default();
    for _ in 0..FIRST {
        hanging.took(owed, (), now());
    }
    while hanging.next(owed, now()).is_some() {}
    let ask = hanging.ask(DateTime::UNIX_EPOCH, None).unwrap();
    hanging.landed(owed, Landing::Success, QUICK);
    assert!(hanging.note_starved(&ask, &HashMap::new(), None));
}

#[test]
fn there_are_only_so_many_places() {
    let mut windows = Windows::default();
    for number in 0..IN_ALL {
        windows.took(hook(number.into()), (), now());
        windows.next(hook(number.into()), now()).unwrap();
    }
    assert_eq!(windows.ask(DateTime::UNIX_EPOCH, None), None);
    assert!(windows.landed(hook(0), Landing::Success, Duration::ZERO), "somebody waits");
    assert_eq!(windows.ask(DateTime::UNIX_EPOCH, None).map(|ask| ask.limit), Some(1));
}

#[test]
fn few_are_remembered() {
    let mut windows = Windows::default();
    for number in 0..10_000 {
        call(&mut windows, hook(number), Landing::Success, Duration::ZERO);
    }
    assert!(windows.by.len() <= REMEMBERED + 1, "{}", windows.by.len());
    assert_eq!(windows.flying(), 0);
}
