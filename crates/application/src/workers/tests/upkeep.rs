//! Sessions expire, old data is deleted, uses of keys are recorded.

use std::sync::Arc;

use chrono::TimeDelta;
use domain::{
    error_code::ErrorCode,
    id::SessionId,
    session::{Event, History, Lease, Outcome, State, Status},
};
use ports::{
    delivery_log::{DeliveryFilter, DeliveryLog as _, DeliveryScope},
    key_store::KeyStore as _,
    outbox::Outbox as _,
};
use testkit::sample::{INSTANCE, OTHER_INSTANCE, lease, noon};

use super::{run_for, seconds};
use crate::{
    advance::BROWSER_START_TTL,
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
    world.clock.forward(BROWSER_START_TTL - TimeDelta::seconds(2));
    sweep(&world, 1).await;
    assert_eq!(world.read(id).await.status(), Status::Initializing);
    sweep(&world, 2).await;
    assert_eq!(
        world.read(id).await.state,
        State::Created { history: History { losses: 1, ..History::default() } }
    );
}

/// No other attempt is offered to an applicant who has left the page.
#[tokio::test(start_paused = true)]
async fn a_failed_attempt_whose_applicant_is_gone_ends_the_session() {
    let world = World::new().await;
    let id = world.session().await;
    world.apply(id, [Event::BrowserRequested { lease: lease() }, Event::BrowserStarted]).await;
    let (why, retry_until) = (ErrorCode::MfaTimeout, Some(noon() + TimeDelta::minutes(10)));
    world.apply(id, [Event::Failed { why, node: None, retry_until }]).await;
    sweep(&world, 1).await;
    assert!(world.read(id).await.state.offered_retry().is_some());
    world.clock.forward(BROWSER_START_TTL);
    sweep(&world, 1).await;
    assert_eq!(world.read(id).await.state.outcome(), Some(&Outcome::Error { why }));
}

#[tokio::test(start_paused = true)]
async fn jobs_for_a_process_that_is_gone_are_dropped() {
    let world = World::new().await;
    let id = world.session().await;
    let lease = Lease { node: OTHER_INSTANCE, ..lease() };
    world.apply(id, [Event::BrowserRequested { lease }]).await;
    world.clock.forward(TimeDelta::minutes(11));
    sweep(&world, 1).await;
    let (now, ttl) = (world.engine.clock.now(), TimeDelta::minutes(1));
    let claims = world.store.claim(OTHER_INSTANCE, now, ttl, 8).await.unwrap();
    let jobs: Vec<_> = claims.iter().map(|claim| claim.job.name()).collect();
    assert_eq!(jobs, ["release_browser"], "the start is dropped; the loss asks for a release");
}

#[tokio::test(start_paused = true)]
async fn old_sessions_are_erased_in_batches() {
    let world = World::new().await;
    world.webhook().await;
    let mut sessions = vec![];
    for _ in 0..450 {
        let id = world.session().await;
        world.apply(id, [Event::ApplicantCancelled]).await;
        sessions.push(id);
    }
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
    }
}

async fn deliveries(world: &World, id: SessionId) -> usize {
    let find = DeliveryFilter { of: DeliveryScope::Session(id), state: None, limit: 10 };
    world.store.find_deliveries(&find).await.unwrap().len()
}
