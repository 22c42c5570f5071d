//! The contract of [`ports::delivery_log::DeliveryLog`].

use chrono::TimeDelta;
use domain::{
    id::{DeliveryId, SessionId},
    webhook::DeliveryDecision,
};
use ports::delivery_log::{DeliveryFilter, DeliveryScope, DeliveryState, TimeRange};
use uuid::Uuid;

use super::{
    Backend,
    deliveries::{add, claim, ended_session, settle},
    inserted, team_fixture,
};
use crate::sample::noon;

/// Enough writes that the two processes conflict.
const WRITES: usize = 200;

pub async fn returns_deliveries_with_their_attempts(backend: &Backend) {
    let home = team_fixture(backend).await;
    let hook = add(backend, &home).await;
    let session = ended_session(backend, &home).await;
    let pending = claim(backend, noon()).await.remove(0);
    let due = noon() + TimeDelta::seconds(5);
    assert!(settle(backend, &pending, DeliveryDecision::RetryAt(due)).await);

    let (found, attempts) = backend.log.delivery(pending.id).await.unwrap().unwrap();
    assert_eq!((found.webhook, found.session, found.test), (hook.id, session, false));
    assert_eq!((found.state, found.due), (DeliveryState::Pending, Some(due)));
    assert_eq!((found.created_at, attempts.len()), (noon(), 1));
    let first = &attempts[0];
    assert_eq!((first.number, first.at, first.took_ms, first.status), (1, noon(), 7, None));
    assert_eq!((first.error.as_deref(), first.answer.as_str()), (Some("connect"), ""));
    assert_eq!(first.sent, "a: b\n");
    let body = backend.log.delivery_body(pending.id).await.unwrap();
    assert_eq!(body.as_deref(), Some(pending.body.as_str()));

    let second = claim(backend, due).await.remove(0);
    assert!(settle(backend, &second, DeliveryDecision::Exhausted).await);
    let (found, attempts) = backend.log.delivery(pending.id).await.unwrap().unwrap();
    assert_eq!((found.state, found.due), (DeliveryState::Exhausted, None));
    assert_eq!(attempts.iter().map(|one| one.number).collect::<Vec<_>>(), [1, 2]);
    let nothing = DeliveryId::from_uuid(Uuid::new_v4());
    assert_eq!(backend.log.delivery(nothing).await.unwrap(), None);
    assert_eq!(backend.log.delivery_body(nothing).await.unwrap(), None);
}

pub async fn finds_deliveries_by_webhook_session_and_state(backend: &Backend) {
    let home = team_fixture(backend).await;
    let (hook, other) = (add(backend, &home).await, add(backend, &home).await);
    let session = ended_session(backend, &home).await;
    for delivery in claim(backend, noon()).await {
        if delivery.webhook.id == hook.id {
            assert!(settle(backend, &delivery, DeliveryDecision::Delivered).await);
        }
    }
    ended_session(backend, &home).await;
    let find = async |of, state| {
        let find = DeliveryFilter { of, state, limit: 10 };
        let found = backend.log.find_deliveries(&find).await.unwrap();
        found.into_iter().map(|one| (one.webhook, one.state)).collect::<Vec<_>>()
    };
    let (done, open) = (DeliveryState::Delivered, DeliveryState::Pending);
    assert_eq!(find(DeliveryScope::Webhook(hook.id), None).await.len(), 2);
    assert_eq!(find(DeliveryScope::Webhook(hook.id), Some(done)).await, [(hook.id, done)]);
    assert_eq!(find(DeliveryScope::Webhook(hook.id), Some(open)).await, [(hook.id, open)]);
    assert_eq!(find(DeliveryScope::Webhook(other.id), Some(open)).await.len(), 2);
    assert_eq!(find(DeliveryScope::Webhook(hook.id), Some(DeliveryState::Exhausted)).await, []);
    assert_eq!(find(DeliveryScope::Session(session), None).await.len(), 2);
    let few = DeliveryFilter { of: DeliveryScope::Webhook(hook.id), state: None, limit: 1 };
    assert_eq!(backend.log.find_deliveries(&few).await.unwrap().len(), 1);
}

pub async fn resends_a_delivery(backend: &Backend) {
    let home = team_fixture(backend).await;
    add(backend, &home).await;
    ended_session(backend, &home).await;
    let first = claim(backend, noon()).await.remove(0);
    let later = noon() + TimeDelta::hours(1);
    assert!(settle(backend, &first, DeliveryDecision::Exhausted).await);
    assert!(backend.log.send_again(first.id, later).await.unwrap());
    assert!(claim(backend, later - TimeDelta::microseconds(1)).await.is_empty());
    let again = claim(backend, later).await.remove(0);
    assert_eq!((again.id, &again.body, again.attempts), (first.id, &first.body, 0));
    assert!(settle(backend, &again, DeliveryDecision::Delivered).await);
    let (found, attempts) = backend.log.delivery(first.id).await.unwrap().unwrap();
    assert_eq!((found.state, attempts.len()), (DeliveryState::Delivered, 2));
    let nothing = DeliveryId::from_uuid(Uuid::new_v4());
    assert!(!backend.log.send_again(nothing, later).await.unwrap());
}

/// An operator's command runs while the service writes.
pub async fn resends_while_another_process_writes(backend: &Backend) {
    let home = team_fixture(backend).await;
    let hook = add(backend, &home).await;
    ended_session(backend, &home).await;
    let pending = claim(backend, noon()).await.remove(0);
    let range = TimeRange { from: noon(), to: noon() + TimeDelta::seconds(1) };
    let serve = async {
        for _ in 0..WRITES {
            inserted(backend, &home).await;
        }
    };
    let operate = async {
        for _ in 0..WRITES {
            let log = &backend.other_log;
            assert!(log.send_again(pending.id, noon()).await.unwrap());
            log.send_exhausted_again(hook.id, range, noon(), 10).await.unwrap();
            log.delete_old_deliveries(noon(), 10).await.unwrap();
        }
    };
    tokio::join!(serve, operate);
}

pub async fn resends_a_pending_delivery_at_once(backend: &Backend) {
    let home = team_fixture(backend).await;
    add(backend, &home).await;
    ended_session(backend, &home).await;
    let first = claim(backend, noon()).await.remove(0);
    let due = noon() + TimeDelta::hours(5);
    assert!(settle(backend, &first, DeliveryDecision::RetryAt(due)).await);
    assert!(backend.log.send_again(first.id, noon()).await.unwrap());
    let again = claim(backend, noon()).await.remove(0);
    assert_eq!((again.id, again.attempts), (first.id, 0));
}

pub async fn resends_exhausted_deliveries_of_a_time_range(backend: &Backend) {
    let home = team_fixture(backend).await;
    let hook = add(backend, &home).await;
    for _ in 0..3 {
        ended_session(backend, &home).await;
    }
    let decisions =
        [DeliveryDecision::Exhausted, DeliveryDecision::Exhausted, DeliveryDecision::Delivered];
    for (delivery, decision) in claim(backend, noon()).await.iter().zip(decisions) {
        assert!(settle(backend, delivery, decision).await);
    }
    let again = async |from, to, limit| {
        let range = TimeRange { from: noon() + from, to: noon() + to };
        backend.log.send_exhausted_again(hook.id, range, noon(), limit).await.unwrap()
    };
    let (none, one) = (TimeDelta::zero(), TimeDelta::seconds(1));
    assert_eq!(again(one, one + one, 10).await, 0, "the range begins after them");
    assert_eq!(again(-one, none, 10).await, 0, "the range ends before them");
    assert_eq!(again(none, one, 1).await, 1);
    assert_eq!(again(none, one, 10).await, 1, "the rest");
    assert_eq!(claim(backend, noon()).await.len(), 2);
}

pub async fn enqueues_a_test_with_one_attempt(backend: &Backend) {
    let home = team_fixture(backend).await;
    let hook = add(backend, &home).await;
    let session = SessionId::from_uuid(Uuid::new_v4());
    let id = backend.log.enqueue_test(hook.id, session, "{}", noon()).await.unwrap();
    let pending = claim(backend, noon()).await.remove(0);
    assert_eq!((pending.id, pending.session, pending.body.as_str()), (id, session, "{}"));
    assert!(pending.is_test);
    let (found, _) = backend.log.delivery(id).await.unwrap().unwrap();
    assert!(found.test);
}

pub async fn deletes_old_deliveries_except_pending_ones(backend: &Backend) {
    let home = team_fixture(backend).await;
    add(backend, &home).await;
    ended_session(backend, &home).await;
    ended_session(backend, &home).await;
    let claimed = claim(backend, noon()).await;
    assert!(settle(backend, &claimed[0], DeliveryDecision::Delivered).await);
    assert_eq!(backend.log.delete_old_deliveries(noon(), 10).await.unwrap(), 0);
    let later = noon() + TimeDelta::days(30);
    assert_eq!(backend.log.delete_old_deliveries(later, 10).await.unwrap(), 1);
    assert_eq!(backend.log.delivery(claimed[0].id).await.unwrap(), None);
    assert!(backend.log.delivery(claimed[1].id).await.unwrap().is_some());
    assert_eq!(claim(backend, later).await.len(), 1, "its body still exists");
}
