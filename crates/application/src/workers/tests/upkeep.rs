//! Sessions expire, old data is deleted, uses of keys are recorded.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    error_code::ErrorCode,
    frame_ancestors::FrameAncestor,
    id::SessionId,
    session::{Change, Event, History, Lease, Outcome, Session, State, Status},
};
use ports::{
    StoreError,
    delivery_log::{DeliveryFilter, DeliveryLog as _, DeliveryScope},
    key_store::KeyStore as _,
    outbox::{ClaimOutcome, Outbox as _},
    session_store::{BrowserLeases as _, CommitError, IdempotencyKey, InsertOutcome, SessionStore},
};
use testkit::sample::{INSTANCE, OTHER_INSTANCE, lease, noon};

use super::{run_for, seconds};
use crate::{
    advance::{BROWSER_LEASE_TTL, SessionEngine},
    api_keys::KeyUses,
    testing::World,
    workers::{KeyUseRecorder, Retention, SessionSweeper, Worker as _},
};

#[tokio::test(start_paused = true)]
async fn sessions_expire() {
    let world = World::new().await;
    let (old, young) = (world.session().await, world.session().await);
    world.clock.forward(TimeDelta::hours(71));
    let fresh = world.session().await;
    sweep(&world, 1).await;
    assert_eq!(world.read(old).await.status(), Status::Created);
    world.clock.forward(TimeDelta::hours(1));
    sweep(&world, 1).await;
    for id in [old, young] {
        let outcome = Outcome::Error { why: ErrorCode::SessionExpired };
        assert_eq!(world.read(id).await.state.outcome(), Some(&outcome));
    }
    assert_eq!(world.read(fresh).await.status(), Status::Created);
    assert_eq!(sweeper(&world).name(), "expired sessions");
}

#[tokio::test(start_paused = true)]
async fn a_session_loses_a_browser_whose_lease_has_expired() {
    let world = World::new().await;
    let id = world.session().await;
    world.apply(id, [Event::BrowserRequested { lease: lease() }]).await;
    world.clock.forward(BROWSER_LEASE_TTL - TimeDelta::seconds(9));
    sweep(&world, 8).await;
    assert_eq!(world.read(id).await.status(), Status::Initializing);
    sweep(&world, 9).await;
    assert_eq!(
        world.read(id).await.state,
        State::Created { history: History { losses: 1, ..History::default() } }
    );
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_takes_only_browsers_whose_leases_are_not_renewed_then() {
    let world = World::new().await;
    let (renewed, left) = (world.session().await, world.session().await);
    let (kept, lost) = (lease(), lease());
    for (id, lease) in [(renewed, kept), (left, lost)] {
        world.apply(id, [Event::BrowserRequested { lease }]).await;
    }
    let set = async {
        tokio::time::sleep(seconds(2)).await;
        world.clock.forward(TimeDelta::hours(1));
        tokio::time::sleep(seconds(6)).await;
        let until = world.engine.clock.now() + BROWSER_LEASE_TTL;
        assert!(world.store.renew(renewed, kept.browser, until).await.unwrap());
        assert_eq!(world.read(left).await.status(), Status::Initializing, "it may be renewed");
    };
    let sweeper = sweeper(&world);
    tokio::join!(run_for(&sweeper, seconds(27)), set);
    assert_eq!(world.read(renewed).await.status(), Status::Initializing);
    assert_eq!(world.read(left).await.status(), Status::Created);
}

/// No other attempt is offered to an applicant who has left the page.
#[tokio::test(start_paused = true)]
async fn a_failed_attempt_whose_applicant_is_gone_ends_the_session() {
    let world = World::new().await;
    let id = world.session().await;
    world.apply(id, [Event::BrowserRequested { lease: lease() }, Event::BrowserStarted]).await;
    let (why, retry_until) = (ErrorCode::MfaTimeout, Some(noon() + TimeDelta::minutes(10)));
    world.apply(id, [Event::Failed { why, node: None, retry_until }]).await;
    sweep(&world, 8).await;
    assert!(world.read(id).await.state.offered_retry().is_some());
    world.clock.forward(BROWSER_LEASE_TTL);
    sweep(&world, 8).await;
    assert_eq!(world.read(id).await.state.outcome(), Some(&Outcome::Error { why }));
}

#[tokio::test(start_paused = true)]
async fn jobs_for_a_process_that_is_gone_are_dropped() {
    let world = World::new().await;
    let id = world.session().await;
    let lease = Lease { node: OTHER_INSTANCE, ..lease() };
    world.apply(id, [Event::BrowserRequested { lease }]).await;
    world.clock.forward(TimeDelta::minutes(11));
    sweep(&world, 8).await;
    let (now, ttl) = (world.engine.clock.now(), TimeDelta::minutes(1));
    let claims = world.store.claim(OTHER_INSTANCE, now, ttl, 8).await.unwrap();
    let jobs: Vec<_> = claims.iter().map(|claim| claim.job.name()).collect();
    assert_eq!(jobs, ["release_browser"], "the start is dropped; the loss asks for a release");
}

#[tokio::test(start_paused = true)]
async fn old_sessions_are_erased_in_batches() {
    let world = World::new().await;
    world.webhook().await;
    let sessions = cancelled_sessions(&world).await;
    let (open, young) = (world.session().await, world.session().await);
    world.clock.forward(TimeDelta::days(30) + TimeDelta::seconds(1));
    world.apply(young, [Event::ApplicantCancelled]).await;
    let retention = retention(&world);
    run_for(&retention, seconds(1)).await;
    for id in sessions {
        assert!(world.read(id).await.erased_at.is_some());
        assert_eq!(deliveries(&world, id).await, 1, "pending deliveries stay");
    }
    for id in [open, young] {
        assert_eq!(world.read(id).await.erased_at, None);
    }
    assert_eq!(deliveries(&world, young).await, 1);
    assert_eq!(retention.name(), "retention");
}

#[tokio::test(start_paused = true)]
async fn sessions_that_cannot_be_erased_hold_up_no_other() {
    let world = World::new().await;
    let mut sessions = cancelled_sessions(&world).await;
    sessions.sort_unstable();
    let erasable = sessions.split_off(400);
    let failing = FailingCommits { store: world.store.clone(), sessions: sessions.clone() };
    let engine = SessionEngine {
        sessions: Arc::new(failing),
        leases: world.store.clone(),
        clock: world.engine.clock.clone(),
        hub: world.engine.hub.clone(),
        wakeups: world.engine.wakeups.clone(),
        traces: world.engine.traces.clone(),
    };
    world.clock.forward(TimeDelta::days(31));
    run_for(&Retention { engine: Arc::new(engine), ..retention(&world) }, seconds(1)).await;
    for id in erasable {
        assert!(world.read(id).await.erased_at.is_some());
    }
    run_for(&retention(&world), seconds(1)).await;
    for id in sessions {
        assert!(world.read(id).await.erased_at.is_some(), "it is tried again");
    }
}

#[tokio::test(start_paused = true)]
async fn what_becomes_old_later_is_deleted_within_a_minute() {
    let world = World::new().await;
    let id = world.session().await;
    world.apply(id, [Event::ApplicantCancelled]).await;
    let retention = retention(&world);
    let closes = async {
        tokio::time::sleep(seconds(30)).await;
        world.clock.forward(TimeDelta::days(30) + TimeDelta::seconds(1));
    };
    tokio::join!(run_for(&retention, seconds(70)), closes);
    assert!(world.read(id).await.erased_at.is_some());
}

#[tokio::test(start_paused = true)]
async fn erased_sessions_are_deleted_after_their_own_period() {
    let world = World::new().await;
    let sessions = cancelled_sessions(&world).await;
    let retention = retention(&world);
    world.clock.forward(TimeDelta::days(365) - TimeDelta::hours(1));
    run_for(&retention, seconds(1)).await;
    let young = world.session().await;
    for id in &sessions {
        assert!(world.read(*id).await.erased_at.is_some());
    }
    // The erasure of their recordings, among others.
    let now = noon() + TimeDelta::days(365);
    for job in world.store.claim(INSTANCE, now, TimeDelta::minutes(1), 2_000).await.unwrap() {
        assert!(world.store.complete(&job, ClaimOutcome::Done).await.unwrap());
    }
    world.clock.forward(TimeDelta::hours(2));
    run_for(&retention, seconds(1)).await;
    for id in sessions {
        assert_eq!(world.store.find_unscoped(id).await.unwrap(), None);
    }
    assert_eq!(world.read(young).await.id, young);
}

#[tokio::test(start_paused = true)]
async fn the_last_use_of_a_key_is_recorded() {
    let world = World::new().await;
    let uses = Arc::new(KeyUses::default());
    let recorder = KeyUseRecorder { keys: world.store.clone(), uses: uses.clone() };
    let used_at = noon() + TimeDelta::minutes(5);
    uses.note(world.key.id, noon());
    uses.note(world.key.id, used_at);
    run_for(&recorder, seconds(11)).await;
    let stored = world.store.keys(world.team).await.unwrap().remove(0);
    let minute = used_at.timestamp() / 60 * 60;
    assert_eq!(stored.used_at.map(|at| at.timestamp()), Some(minute));
    assert_eq!(recorder.name(), "key uses");
}

/// Returns sessions that have ended: more than two batches.
async fn cancelled_sessions(world: &World) -> Vec<SessionId> {
    let mut sessions = vec![];
    for _ in 0..450 {
        let id = world.session().await;
        world.apply(id, [Event::ApplicantCancelled]).await;
        sessions.push(id);
    }
    sessions
}

/// A store that cannot save some sessions.
struct FailingCommits {
    store: Arc<dyn SessionStore>,
    sessions: Vec<SessionId>,
}

#[async_trait]
impl SessionStore for FailingCommits {
    async fn insert(
        &self,
        opening: &Change,
        idempotency: Option<&IdempotencyKey>,
    ) -> Result<InsertOutcome, StoreError> {
        self.store.insert(opening, idempotency).await
    }

    async fn find_unscoped(&self, id: SessionId) -> Result<Option<Session>, StoreError> {
        self.store.find_unscoped(id).await
    }

    async fn frame_ancestors_of(&self, id: SessionId) -> Result<Vec<FrameAncestor>, StoreError> {
        self.store.frame_ancestors_of(id).await
    }

    async fn commit(&self, change: &Change, alive_until: DateTime<Utc>) -> Result<(), CommitError> {
        if self.sessions.contains(&change.session.id) {
            return Err(StoreError::new("commit", "this session cannot be saved").into());
        }
        self.store.commit(change, alive_until).await
    }
}

fn sweeper(world: &World) -> SessionSweeper {
    SessionSweeper { engine: world.engine.clone(), outbox: world.store.clone(), node: INSTANCE }
}

async fn sweep(world: &World, time: u64) {
    run_for(&sweeper(world), seconds(time)).await;
}

fn retention(world: &World) -> Retention {
    Retention {
        engine: world.engine.clone(),
        devices: world.store.clone(),
        sessions: world.store.clone(),
        sign_ins: world.store.clone(),
        account_links: world.store.clone(),
        known_browsers: world.store.clone(),
        deliveries: world.store.clone(),
        retention: TimeDelta::days(30) - TimeDelta::hours(1),
        session_retention: TimeDelta::days(365),
    }
}

async fn deliveries(world: &World, id: SessionId) -> usize {
    let find = DeliveryFilter { of: DeliveryScope::Session(id), state: None, limit: 10 };
    world.store.find_deliveries(&find).await.unwrap().len()
}
