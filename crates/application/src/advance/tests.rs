//! Transitions under races, and how a session is erased.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    error_code::ErrorCode,
    id::{BrowserId, SessionId},
    session::{Event, History, Session, State, Status},
};
use futures_util::{FutureExt as _, future::join_all};
use memory_store::MemoryStore;
use ports::{
    clock::Clock,
    delivery_log::{DeliveryFilter, DeliveryLog as _, DeliveryScope},
    driving::SessionError,
    session_store::SessionStore as _,
};
use testkit::sample::{INSTANCE, lease, noon};
use tokio::time::Instant;
use uuid::Uuid;

use super::{AdvanceError, MAX_COMMIT_ATTEMPTS, MAX_COMMIT_TIME, SessionEngine};
use crate::testing::{DatabaseCondition, World};

const ROUNDS: usize = 40;
const TASKS: usize = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_endings_one_takes_effect_and_is_delivered_once_to_each_webhook() {
    let world = World::new().await;
    world.webhook().await;
    world.webhook().await;
    for _ in 0..ROUNDS {
        let id = world.session().await;
        let endings = (0..TASKS).map(|task| {
            let engine = world.engine.clone();
            let event = match task % 3 {
                0 => Event::TerminatedByPartner,
                1 => Event::ApplicantCancelled,
                _ => Event::Expired,
            };
            tokio::spawn(async move { engine.advance(id, None, event).await })
        });
        let results = join_all(endings).await;
        let status = world.read(id).await.status();
        for result in results {
            match result.unwrap() {
                Ok(session) => assert_eq!(session.status(), status),
                Err(AdvanceError::Rejected(_)) => (),
                Err(error) => panic!("{error}"),
            }
        }
        let find = DeliveryFilter { of: DeliveryScope::Session(id), state: None, limit: 100 };
        assert_eq!(world.store.find_deliveries(&find).await.unwrap().len(), 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_many_browsers_is_started() {
    let world = World::new().await;
    for _ in 0..ROUNDS {
        let id = world.session().await;
        let starts = (0..TASKS).map(|_| {
            let (engine, lease) = (world.engine.clone(), lease());
            tokio::spawn(async move {
                let started = engine.advance(id, None, Event::BrowserRequested { lease }).await;
                started.map(|_| lease)
            })
        });
        let started = join_all(starts).await.into_iter().filter_map(|start| start.unwrap().ok());
        let started: Vec<_> = started.collect();
        assert_eq!(started.len(), 1);
        assert_eq!(
            world.read(id).await.state,
            State::Initializing { lease: started[0], history: History::default() }
        );
    }
}

#[tokio::test]
async fn a_transition_is_decided_anew_when_another_one_came_first() {
    let world = World::new().await;
    let id = world.session().await;
    let (engine, rival) = beside_a_rival(&world, id, 3);
    let session = engine.advance(id, None, Event::TerminatedByPartner).await.unwrap();
    assert_eq!((session.status(), rival.left()), (Status::Terminated, 0));
    assert_eq!(session.version.0, 5, "three transitions came first");
}

#[tokio::test]
async fn a_session_that_others_always_change_first_is_busy() {
    let world = World::new().await;
    let id = world.session().await;
    let (engine, rival) = beside_a_rival(&world, id, usize::MAX);
    let result = engine.advance(id, None, Event::TerminatedByPartner).await;
    assert!(matches!(result, Err(AdvanceError::Busy)));
    assert_eq!(usize::MAX - rival.left(), MAX_COMMIT_ATTEMPTS);
    assert!(matches!(SessionError::from(AdvanceError::Busy), SessionError::Busy));
}

#[tokio::test(start_paused = true)]
async fn a_failure_whose_result_is_lost_leaves_the_offer_of_another_attempt() {
    let world = World::new().await;
    let id = world.session().await;
    let lease = world.run(id).await;
    world.database.set(DatabaseCondition::LosesCommitResults);
    let retry_until = Some(noon() + TimeDelta::minutes(10));
    let failed = Event::Failed { why: ErrorCode::MfaTimeout, node: None, retry_until };
    let session = world.engine.advance_with_retries(id, lease.browser, failed).await.unwrap();
    assert!(session.state.offered_retry().is_some(), "{:?}", session.state);
    assert_eq!(world.read(id).await, session);
}

#[tokio::test(start_paused = true)]
async fn a_transition_that_the_store_never_takes_fails_in_the_end() {
    let world = World::new().await;
    let id = world.session().await;
    let lease = world.run(id).await;
    world.database.set(DatabaseCondition::Fails);
    let (began, given) = (Instant::now(), Event::CollectionStarted);
    let result = world.engine.advance_with_retries(id, lease.browser, given).await;
    assert!(matches!(result, Err(AdvanceError::Store(_))));
    assert!((MAX_COMMIT_TIME..MAX_COMMIT_TIME * 2).contains(&began.elapsed()));
}

#[tokio::test]
async fn a_transition_that_changes_nothing_wakes_nobody() {
    let world = World::new().await;
    let id = world.session().await;
    world.apply(id, [Event::TerminatedByPartner]).await;
    let wakeups = &world.engine.wakeups;
    assert!(wakeups.jobs.notified().now_or_never().is_some());
    assert!(wakeups.deliveries.notified().now_or_never().is_some());
    let before = world.read(id).await;
    assert_eq!(world.apply(id, [Event::TerminatedByPartner]).await, before);
    assert!(wakeups.jobs.notified().now_or_never().is_none());
}

#[tokio::test]
async fn a_browser_that_the_session_has_lost_moves_it_no_more() {
    let world = World::new().await;
    let id = world.session().await;
    let lost = lease();
    world.apply(id, [Event::BrowserRequested { lease: lost }, Event::BrowserLost]).await;
    world.apply(id, [Event::BrowserRequested { lease: lease() }]).await;
    let late = world.engine.advance(id, Some(lost.browser), Event::BrowserStarted).await;
    assert!(matches!(late, Err(AdvanceError::Rejected(_))));
}

#[tokio::test]
async fn a_transition_reaches_those_who_are_connected() {
    let world = World::new().await;
    let id = world.session().await;
    let live = world.engine.hub.find_or_create(id);
    world.apply(id, [Event::ApplicantCancelled]).await;
    let shown = live.state.borrow().session.as_ref().map(Session::status);
    assert_eq!(shown, Some(Status::Cancelled));
}

#[tokio::test]
async fn only_a_closed_session_is_erased_and_only_once() {
    let world = World::new().await;
    let id = world.invited().await;
    let open = world.engine.erase(id).await.unwrap();
    assert_eq!(open.erased_at, None);
    world.apply(id, [Event::ApplicantCancelled]).await;
    let erased = world.engine.erase(id).await.unwrap();
    assert!(erased.erased_at.is_some() && erased.terms.receiver.is_none());
    assert_eq!(world.engine.erase(id).await.unwrap(), erased);
}

#[tokio::test]
async fn a_session_that_does_not_exist_is_neither_moved_nor_erased() {
    let world = World::new().await;
    let id = SessionId::from_uuid(Uuid::nil());
    let moved = world.engine.advance(id, None, Event::Expired).await;
    assert!(matches!(moved, Err(AdvanceError::NotFound)));
    let erased = world.engine.erase(id).await;
    assert!(matches!(SessionError::from(erased.unwrap_err()), SessionError::NotFound));
}

/// An engine whose transitions are overtaken by others, between reading and committing.
fn beside_a_rival(world: &World, id: SessionId, times: usize) -> (SessionEngine, Arc<Rival>) {
    let (store, remaining) = (world.store.clone(), AtomicUsize::new(times));
    let rival = Arc::new(Rival { store, id, remaining });
    let engine = SessionEngine {
        sessions: world.store.clone(),
        leases: world.store.clone(),
        clock: rival.clone(),
        hub: world.engine.hub.clone(),
        wakeups: world.engine.wakeups.clone(),
        traces: world.engine.traces.clone(),
    };
    (engine, rival)
}

/// A clock that moves a session each time it is asked: the engine asks after it has read.
struct Rival {
    store: Arc<MemoryStore>,
    id: SessionId,
    remaining: AtomicUsize,
}

impl Rival {
    fn left(&self) -> usize {
        self.remaining.load(Ordering::Relaxed)
    }

    async fn overtake(&self) {
        let session = self.store.find_unscoped(self.id).await.unwrap().unwrap();
        let mut moved = session.clone();
        moved.version = session.version.next();
        let browser = BrowserId::from_u128(moved.version.0.unsigned_abs().into());
        let lease = domain::session::Lease { browser, node: INSTANCE, region: None };
        let event = Event::BrowserRequested { lease };
        let change = domain::session::Change {
            session: moved,
            effects: domain::session::Effects::default(),
            event: event.name(),
            node: None,
            at: noon(),
        };
        self.store.commit(&change, noon()).await.unwrap();
    }
}

impl Clock for Rival {
    fn now(&self) -> DateTime<Utc> {
        let counted = self
            .remaining
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if counted.is_ok() {
            self.overtake().now_or_never().unwrap();
        }
        noon()
    }
}
