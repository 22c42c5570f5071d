//! Concurrency limits without calls.

use std::sync::LazyLock;

use super::*;

fn hook(number: u128) -> WebhookId {
    WebhookId::from_u128(number)
}

fn now() -> Instant {
    static NOW: LazyLock<Instant> = LazyLock::new(Instant::now);
    *NOW
}

fn room(limits: &mut ConcurrencyLimits<()>, webhook: WebhookId) -> u16 {
    let ask = limits.ask(DateTime::UNIX_EPOCH, None).unwrap();
    ask.capacities.iter().find(|room| room.webhook == webhook).map_or(ask.each, |room| room.most)
}

fn call(
    limits: &mut ConcurrencyLimits<()>,
    webhook: WebhookId,
    result: CallResult,
    took: Duration,
) {
    limits.on_claimed(webhook, (), now());
    limits.next(webhook, now()).unwrap();
    limits.on_completed(webhook, result, took);
}

#[test]
fn the_limit_grows_with_successes_and_falls_to_one_on_timeouts() {
    let (mut limits, able, dead) = (ConcurrencyLimits::default(), hook(1), hook(2));
    let refusing = hook(3);
    assert_eq!(room(&mut limits, able), INITIAL_LIMIT);
    for _ in 0..1000 {
        call(&mut limits, able, CallResult::Success, QUICK_REPLY);
        call(&mut limits, dead, CallResult::Overloaded, QUICK_REPLY);
        call(&mut limits, refusing, CallResult::Refused, Duration::ZERO);
    }
    assert_eq!((room(&mut limits, able), room(&mut limits, dead)), (MAX_LIMIT, 1));
    assert_eq!(room(&mut limits, refusing), INITIAL_LIMIT);
    limits.on_claimed(dead, (), now());
    limits.next(dead, now()).unwrap();
    assert_eq!((room(&mut limits, able), room(&mut limits, dead)), (MAX_LIMIT, 0));
    limits.on_completed(dead, CallResult::Success, QUICK_REPLY);
    assert_eq!(room(&mut limits, dead), 2);
}

#[test]
fn deliveries_are_claimed_ahead_for_fast_endpoints() {
    let (mut limits, quick) = (ConcurrencyLimits::default(), hook(1));
    for _ in 0..MAX_LIMIT {
        call(&mut limits, quick, CallResult::Success, Duration::ZERO);
    }
    assert_eq!(room(&mut limits, quick), PREFETCH_FACTOR * MAX_LIMIT);
    for _ in 0..PREFETCH_FACTOR * MAX_LIMIT {
        limits.on_claimed(quick, (), now());
    }
    assert_eq!(room(&mut limits, quick), 0);
    let begun = std::iter::from_fn(|| limits.next(quick, now())).count();
    assert_eq!(begun, usize::from(MAX_LIMIT));
    limits.on_completed(quick, CallResult::Success, Duration::ZERO);
    assert!(limits.next(quick, now()).is_some());
    assert!(limits.next(quick, now()).is_none());
    assert_eq!(room(&mut limits, quick), 1);
    // After one slow response nothing is claimed ahead until a quick one.
    limits.on_completed(quick, CallResult::Success, QUICK_REPLY);
    assert_eq!(room(&mut limits, quick), 0);
}

#[test]
fn deliveries_claimed_ahead_are_dropped_before_their_lease_expires() {
    let (mut limits, slow) = (ConcurrencyLimits::default(), hook(1));
    for _ in 0..2 * INITIAL_LIMIT {
        limits.on_claimed(slow, (), now());
    }
    while limits.next(slow, now()).is_some() {}
    limits.on_completed(slow, CallResult::Success, PREFETCH_TTL);
    assert!(limits.next(slow, now() + PREFETCH_TTL).is_none());
    assert_eq!((limits.in_flight(), limits.waiting), (u32::from(INITIAL_LIMIT) - 1, 0));
}

#[test]
fn capacity_remains_for_others_when_many_fast_endpoints_hang() {
    let mut limits = ConcurrencyLimits::default();
    for number in 0..100 {
        for _ in 0..MAX_LIMIT {
            call(&mut limits, hook(number), CallResult::Success, Duration::ZERO);
        }
    }
    for number in (0..100).cycle().take(1000) {
        for _ in 0..room(&mut limits, hook(number)) {
            limits.on_claimed(hook(number), (), now());
        }
        while limits.next(hook(number), now()).is_some() {}
    }
    assert_eq!(room(&mut limits, hook(100)), INITIAL_LIMIT);
}

#[test]
fn a_completed_call_wakes_a_claim_that_needs_the_capacity() {
    let (mut limits, owed, done) = (ConcurrencyLimits::default(), hook(1), hook(2));
    let ask = limits.ask(DateTime::UNIX_EPOCH, None).unwrap();
    for (webhook, count) in [(owed, INITIAL_LIMIT), (done, INITIAL_LIMIT - 1)] {
        for _ in 0..count {
            limits.on_claimed(webhook, (), now());
        }
        while limits.next(webhook, now()).is_some() {}
    }
    assert!(!limits.note_claimed(
        &ask,
        &HashMap::from([(owed, INITIAL_LIMIT), (done, INITIAL_LIMIT - 1)]),
        None
    ));
    assert!(
        !limits.on_completed(done, CallResult::Success, QUICK_REPLY),
        "all that it is owed is under way"
    );
    let page = ClaimRequest { after: Some(owed), ..ask.clone() };
    assert!(!limits.note_claimed(&page, &HashMap::new(), None), "of a page that it is not on");
    assert!(limits.on_completed(owed, CallResult::Success, QUICK_REPLY), "there may be more");
    // An endpoint that got nothing for lack of capacity, and has room when that is known.
    let mut hanging = ConcurrencyLimits::default();
    for _ in 0..INITIAL_LIMIT {
        hanging.on_claimed(owed, (), now());
    }
    while hanging.next(owed, now()).is_some() {}
    let ask = hanging.ask(DateTime::UNIX_EPOCH, None).unwrap();
    hanging.on_completed(owed, CallResult::Success, QUICK_REPLY);
    assert!(hanging.note_claimed(&ask, &HashMap::new(), None));
}

#[test]
fn the_total_in_hand_is_bounded() {
    let mut limits = ConcurrencyLimits::default();
    for number in 0..MAX_IN_HAND {
        limits.on_claimed(hook(number.into()), (), now());
        limits.next(hook(number.into()), now()).unwrap();
    }
    assert_eq!(limits.ask(DateTime::UNIX_EPOCH, None), None);
    assert!(limits.on_completed(hook(0), CallResult::Success, Duration::ZERO), "somebody waits");
    assert_eq!(limits.ask(DateTime::UNIX_EPOCH, None).map(|ask| ask.limit), Some(1));
}

#[test]
fn idle_endpoints_are_forgotten() {
    let mut limits = ConcurrencyLimits::default();
    for number in 0..10_000 {
        call(&mut limits, hook(number), CallResult::Success, Duration::ZERO);
    }
    assert!(limits.by.len() <= MAX_IDLE_ENDPOINTS + 1, "{}", limits.by.len());
    assert_eq!(limits.in_flight(), 0);
}
