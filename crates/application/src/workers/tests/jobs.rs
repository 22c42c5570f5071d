//! Jobs: browsers are started in their turn and released, failures are retried and given up.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    api_key::{ApiKey, KeyHash},
    error_code::ErrorCode,
    fairness::Quotas,
    id::{ApiKeyId, InstanceId, PlatformId, SessionId, TeamId},
    session::{Event, History, Job, Lease, Session, State, Status},
    workflow::Definition,
};
use ports::{
    StoreError,
    browser::StartError,
    clock::Clock as _,
    key_store::{KeyStore, StoredKey},
    outbox::{ClaimOutcome, Outbox, OutboxClaim},
    session_store::{BrowserLeases as _, SessionStore as _},
};
use serde_json::json;
use testkit::sample::{INSTANCE, OTHER_INSTANCE};
use tokio::{sync::Notify, time::Instant};

use super::{run_for, seconds};
use crate::{
    advance::BROWSER_LEASE_TTL,
    browser_turns::{BrowserTurns, START_RETRY_DELAY},
    draining::Draining,
    fakes::NamingRedactor,
    testing::{DatabaseCondition, FakePlaces, FakePool, FakeVault, Script, World},
    workers::{BrowserStarter, JobExecutor, OutboxWorker, Worker as _, jobs::JOB_LEASE_TTL},
};

#[tokio::test(start_paused = true)]
async fn a_browser_is_started_for_a_session_and_released_with_it() {
    let setup = Setup::new(1).await;
    let (id, lease) = setup.requested().await;
    setup.run(1).await;
    assert!(setup.has_browser(id).await);
    let spec = setup.pool.started.lock().unwrap().remove(0);
    assert_eq!((spec.id, spec.locale.language.as_str()), (lease.browser, "en-US"));
    assert!(spec.hosts.contains("sample.example"));
    assert_eq!(setup.turns.of_team(setup.world.team), (1, 0));
    setup.world.apply(id, [Event::TerminatedByPartner]).await;
    setup.run(1).await;
    assert!(setup.pool.released.lock().unwrap().contains(&lease.browser));
    assert_eq!(setup.turns.of_team(setup.world.team), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_session_waits_for_its_turn_and_gets_it() {
    let setup = Setup::new(1).await;
    let (first, _) = setup.requested().await;
    setup.run(1).await;
    let (second, _) = setup.requested().await;
    setup.run(1).await;
    assert_eq!(setup.read(second).await.status(), Status::Initializing);
    let place = setup.world.engine.hub.find(second).unwrap().state.borrow().place;
    assert_eq!(place, Some(1));
    setup.world.apply(first, [Event::TerminatedByPartner]).await;
    setup.run(10).await;
    assert!(setup.has_browser(second).await);
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_browser_is_being_started_is_not_withdrawn() {
    let setup = Setup::new(1).await;
    let (first, _) = setup.requested().await;
    setup.run(1).await;
    let (second, lease) = setup.requested().await;
    setup.world.engine.hub.publish(&setup.read(second).await);
    setup.run(1).await;
    assert_eq!(setup.place(second), Some(1));
    *setup.pool.start_time.lock().unwrap() = seconds(5);
    setup.world.apply(first, [Event::TerminatedByPartner]).await;
    setup.run(4).await;
    assert_eq!(setup.pool.started.lock().unwrap().len(), 2);
    assert_eq!(setup.place(second), None, "its turn has come");
    assert_eq!(setup.draining().drain(seconds(0), seconds(10)).await, 1);
    assert!(setup.has_browser(second).await);
    let state = setup.read(second).await.state;
    assert!(matches!(state, State::Live { history: History { losses: 0, .. }, .. }), "{state:?}");
    assert!(!setup.pool.released.lock().unwrap().contains(&lease.browser));
}

#[tokio::test(start_paused = true)]
async fn a_session_without_a_slot_is_handed_over_when_the_process_stops() {
    let setup = Setup::new(1).await;
    *setup.pool.start_time.lock().unwrap() = seconds(5);
    setup.pool.failures.push(StartError::NoRoom);
    let (id, _) = setup.requested().await;
    setup.world.engine.hub.publish(&setup.read(id).await);
    setup.run(1).await;
    assert_eq!(setup.draining().drain(seconds(0), seconds(10)).await, 0);
    let history = History { losses: 1, ..History::default() };
    assert_eq!(setup.read(id).await.state, State::Created { history });
    assert_eq!(setup.turns.of_team(setup.world.team), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_waiting_applicant_is_told_how_long_it_takes_once_sessions_have_ended() {
    let setup = Setup::new(1).await;
    let minutes = async || {
        let (running, _) = setup.requested().await;
        setup.run(1).await;
        let (waiting, _) = setup.requested().await;
        setup.run(1).await;
        let told = setup.world.engine.hub.find(waiting).unwrap().state.borrow().wait_minutes;
        setup.world.apply(waiting, [Event::TerminatedByPartner]).await;
        setup.run(66).await;
        setup.world.apply(running, [Event::TerminatedByPartner]).await;
        setup.run(1).await;
        told
    };
    for _ in 0..3 {
        assert_eq!(minutes().await, None);
    }
    assert_eq!(minutes().await, Some(2), "more than a minute");
}

#[tokio::test(start_paused = true)]
async fn a_session_waits_for_a_browser_only_so_long() {
    let setup = Setup::new(1).await;
    setup.requested().await;
    setup.run(1).await;
    let (waiting, _) = setup.requested().await;
    setup.run(70).await;
    assert_eq!(code(&setup.read(waiting).await), Some(ErrorCode::BrowserUnavailable));
    assert_eq!(setup.turns.of_team(setup.world.team), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn an_absent_applicant_is_passed_over_and_keeps_their_place() {
    let setup = Setup::with_room(1, 3).await;
    let (first, _) = setup.requested().await;
    setup.run(1).await;
    let (away, _) = setup.requested().await;
    setup.run(1).await;
    let (behind, _) = setup.requested().await;
    setup.run(1).await;
    let (last, _) = setup.requested().await;
    setup.run(1).await;
    assert_eq!([away, behind, last].map(|id| setup.place(id)), [Some(1), Some(2), Some(3)]);
    setup.leaves(away);
    setup.run(8).await;
    assert_eq!([behind, last].map(|id| setup.place(id)), [Some(1), Some(2)], "they move up");
    setup.world.apply(first, [Event::TerminatedByPartner]).await;
    setup.run(5).await;
    assert!(setup.has_browser(behind).await);
    assert_eq!(setup.read(away).await.status(), Status::Initializing);
    // Back again, they are served before those who came after them.
    setup.comes(away);
    setup.run(8).await;
    assert_eq!([away, last].map(|id| setup.place(id)), [Some(1), Some(2)]);
    setup.world.apply(behind, [Event::TerminatedByPartner]).await;
    setup.run(5).await;
    assert!(setup.has_browser(away).await);
    assert_eq!(setup.read(last).await.status(), Status::Initializing);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_moved_here_keeps_its_place() {
    let setup = Setup::with_room(1, 3).await;
    let (first, _) = setup.requested().await;
    setup.run(1).await;
    let since = setup.world.clock.now();
    let (moved, lease) = (setup.world.session().await, testkit::sample::lease());
    let there = Lease { node: OTHER_INSTANCE, ..testkit::sample::lease() };
    setup.world.apply(moved, [Event::BrowserRequested { lease: there }]).await;
    setup.run(1).await;
    let (later, _) = setup.requested().await;
    setup.run(1).await;
    assert_eq!(setup.place(later), Some(1));
    setup.world.apply(moved, [Event::WaitMoved { to: lease, since }]).await;
    // Its page has not been connected here yet.
    setup.run(4).await;
    setup.comes(moved);
    setup.run(8).await;
    assert_eq!([moved, later].map(|id| setup.place(id)), [Some(1), Some(2)]);
    setup.world.apply(first, [Event::TerminatedByPartner]).await;
    setup.run(5).await;
    assert!(setup.has_browser(moved).await);
    assert_eq!(setup.read(later).await.status(), Status::Initializing);
}

#[tokio::test(start_paused = true)]
async fn a_free_browser_is_not_started_for_an_absent_applicant() {
    let setup = Setup::new(1).await;
    let (id, _) = setup.requested().await;
    setup.leaves(id);
    setup.run(30).await;
    assert!(setup.pool.started.lock().unwrap().is_empty());
    assert!(setup.world.engine.hub.find(id).is_none());
    setup.comes(id);
    setup.run(4).await;
    assert!(setup.has_browser(id).await);
}

#[tokio::test(start_paused = true)]
async fn a_place_is_kept_for_an_absent_applicant_as_long_as_a_session_may_wait() {
    let setup = Setup::new(1).await;
    let (id, _) = setup.requested().await;
    setup.leaves(id);
    setup.run(55).await;
    assert_eq!(setup.read(id).await.status(), Status::Initializing);
    setup.run(10).await;
    let history = History { absences: 1, ..History::default() };
    assert_eq!(setup.read(id).await.state, State::Created { history });
    assert_eq!(setup.turns.of_team(setup.world.team), (0, 0));
    assert!(setup.pool.started.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_applicant_who_comes_back_while_the_browser_starts_is_shown_it() {
    let setup = Setup::new(1).await;
    *setup.pool.start_time.lock().unwrap() = seconds(5);
    let (id, _) = setup.requested().await;
    setup.run(1).await;
    setup.leaves(id);
    assert!(setup.world.engine.hub.find(id).is_none());
    setup.comes(id);
    setup.run(6).await;
    assert!(setup.has_browser(id).await);
}

#[tokio::test(start_paused = true)]
async fn a_browser_that_starts_slowly_keeps_its_lease() {
    let setup = Setup::new(1).await;
    *setup.pool.start_time.lock().unwrap() = seconds(50);
    let (id, _) = setup.requested().await;
    setup.run(1).await;
    for _ in 0..9 {
        setup.run(5).await;
        let now = setup.world.clock.now();
        assert_eq!(setup.world.store.find_due(now, 10).await.unwrap(), []);
        // A lease that is not renewed ends soon.
        let later = now + BROWSER_LEASE_TTL;
        assert_eq!(setup.world.store.find_due(later, 10).await.unwrap().len(), 1);
    }
    setup.run(5).await;
    assert!(setup.has_browser(id).await);
    assert_eq!(setup.pool.started.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_browser_whose_lease_was_not_renewed_while_it_started_is_not_used() {
    let setup = Setup::of(opening(), 1, 1).await;
    *setup.pool.start_time.lock().unwrap() = seconds(30);
    let (id, lease) = setup.requested().await;
    setup.run(1).await;
    setup.world.database.set(DatabaseCondition::IsSilent);
    setup.run(35).await;
    assert_eq!(setup.pool.started.lock().unwrap().len(), 1);
    assert!(setup.pool.browser.visited().is_empty(), "another instance may have the session");
    assert!(!setup.shows_browser(id));
    assert!(setup.pool.released.lock().unwrap().contains(&lease.browser));
    assert_eq!(setup.turns.of_team(setup.world.team), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_browser_is_used_no_longer_than_the_start_has_renewed_its_lease() {
    let setup = Setup::of(opening(), 1, 1).await;
    *setup.pool.start_time.lock().unwrap() = seconds(10);
    let (id, _) = setup.requested().await;
    setup.run(1).await;
    setup.world.database.set(DatabaseCondition::IsSilent);
    setup.run(11).await;
    assert_eq!(setup.pool.browser.visited().len(), 1);
    assert!(setup.shows_browser(id));
    setup.run(6).await;
    assert!(!setup.shows_browser(id), "16 s after the renewal");
}

#[tokio::test(start_paused = true)]
async fn a_start_outlasts_a_short_failure_of_the_store() {
    let setup = Setup::of(opening(), 1, 1).await;
    *setup.pool.start_time.lock().unwrap() = seconds(30);
    let (id, _) = setup.requested().await;
    setup.run(8).await;
    setup.world.database.set(DatabaseCondition::Fails);
    setup.run(10).await;
    setup.world.database.set(DatabaseCondition::Works);
    setup.run(14).await;
    assert!(setup.has_browser(id).await);
}

#[tokio::test(start_paused = true)]
async fn a_browser_that_is_up_after_its_session_has_ended_is_not_used() {
    let setup = Setup::of(opening(), 1, 1).await;
    *setup.pool.start_time.lock().unwrap() = seconds(30);
    let (id, _) = setup.requested().await;
    setup.run(1).await;
    setup.world.apply(id, [Event::TerminatedByPartner]).await;
    setup.run(35).await;
    assert!(setup.pool.browser.visited().is_empty());
    assert!(!setup.shows_browser(id));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_finds_the_queue_full_fails() {
    let setup = Setup::new(0).await;
    setup.requested().await;
    setup.run(1).await;
    let (second, _) = setup.requested().await;
    setup.run(1).await;
    assert_eq!(code(&setup.read(second).await), Some(ErrorCode::BrowserUnavailable));
}

#[tokio::test(start_paused = true)]
async fn a_start_is_retried_and_fails_the_session_in_the_end() {
    let setup = Setup::new(1).await;
    let (id, _) = setup.requested().await;
    for _ in 0..4 {
        setup.pool.failures.push(StartError::Unavailable("broken".into()));
    }
    setup.run(14).await;
    assert!(setup.has_browser(id).await, "the fifth start");
    setup.world.apply(id, [Event::TerminatedByPartner]).await;
    setup.run(1).await;

    let cases: [(fn() -> StartError, ErrorCode); 3] = [
        (|| StartError::Unavailable("broken".into()), ErrorCode::BrowserUnavailable),
        (|| StartError::NoEgress, ErrorCode::ProxyUnavailable),
        (|| StartError::Elsewhere, ErrorCode::GeoMismatch),
    ];
    for (error, expected) in cases {
        let (id, _) = setup.requested().await;
        for _ in 0..5 {
            setup.pool.failures.push(error());
        }
        setup.run(15).await;
        assert_eq!(code(&setup.read(id).await), Some(expected));
    }
}

#[tokio::test(start_paused = true)]
async fn a_browser_without_a_slot_waits_on() {
    let setup = Setup::new(1).await;
    let (id, _) = setup.requested().await;
    setup.pool.failures.push(StartError::NoRoom);
    setup.run(1).await;
    assert_eq!(setup.read(id).await.status(), Status::Initializing);
    assert_eq!(setup.turns.of_team(setup.world.team), (0, 1));
    setup.run(3).await;
    assert!(setup.has_browser(id).await);
}

#[tokio::test(start_paused = true)]
async fn a_browser_that_was_released_before_it_was_up_is_no_failure() {
    let setup = Setup::new(1).await;
    let (id, _) = setup.requested().await;
    setup.pool.failures.push(StartError::Released);
    setup.run(10).await;
    assert_eq!(setup.read(id).await.status(), Status::Initializing);
    assert_eq!(setup.pool.started.lock().unwrap().len(), 1);
    assert_eq!(setup.turns.of_team(setup.world.team), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn no_browser_is_started_for_a_session_that_has_ended() {
    let setup = Setup::new(1).await;
    let (id, _) = setup.requested().await;
    setup.world.apply(id, [Event::TerminatedByPartner]).await;
    setup.run(1).await;
    assert!(setup.pool.started.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_platform_without_a_definition_fails_the_session() {
    let setup = Setup::new(1).await;
    let (id, lease) = setup.requested().await;
    let mut orphan = setup.read(id).await;
    orphan.terms.platform = PlatformId(99);
    let claim = claim(&orphan, lease, 1);
    let catalogue = Arc::new(memory_store::MemoryStore::new());
    let browsers = BrowserStarter { catalogue, ..setup.starter() };
    let outcome = browsers.start(&claim, lease).await.unwrap();
    assert_eq!(outcome, ClaimOutcome::Done);
    assert_eq!(code(&setup.read(id).await), Some(ErrorCode::WorkflowNotFound));
}

#[tokio::test(start_paused = true)]
async fn jobs_for_another_process_are_left_to_it() {
    let setup = Setup::new(1).await;
    let id = setup.world.session().await;
    let lease = Lease { node: OTHER_INSTANCE, ..testkit::sample::lease() };
    setup.world.apply(id, [Event::BrowserRequested { lease }]).await;
    setup.run(5).await;
    assert!(setup.pool.started.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_job_that_fails_is_retried_later_and_later() {
    let setup = Setup::new(1).await;
    let id = setup.world.session().await;
    setup.world.run(id).await;
    setup.vault.failures.push(());
    setup.vault.failures.push(());
    setup.vault.segments.lock().unwrap().insert(id, vec![]);
    setup.world.apply(id, [Event::TerminatedByPartner]).await;
    setup.run(2).await;
    assert!(setup.vault.segments.lock().unwrap().contains_key(&id), "one second, then two");
    setup.run(3).await;
    assert!(!setup.vault.segments.lock().unwrap().contains_key(&id));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_always_fails_is_given_up() {
    let setup = Setup::new(1).await;
    let (id, lease) = setup.requested().await;
    let outcomes = Arc::new(FakeOutbox::default());
    let executor = JobExecutor { outbox: outcomes.clone(), ..setup.executor() };
    let session = setup.read(id).await;
    for attempt in [1, 19, 200] {
        setup.vault.failures.push(());
        let claim = OutboxClaim { job: Job::ForgetRecording, ..claim(&session, lease, attempt) };
        executor.execute(&claim).await;
    }
    let now = setup.world.engine.clock.now();
    assert_eq!(
        *outcomes.outcomes.lock().unwrap(),
        [
            ClaimOutcome::RetryAt(now + TimeDelta::seconds(1)),
            ClaimOutcome::RetryAt(now + TimeDelta::hours(1)),
            ClaimOutcome::Buried,
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_start_is_not_given_up_because_its_session_has_waited() {
    let setup = Setup::new(1).await;
    let (id, lease) = setup.requested().await;
    let outbox = Arc::new(FakeOutbox::default());
    let executor = JobExecutor { outbox: outbox.clone(), ..setup.executor() };
    let session = setup.read(id).await;
    setup.world.database.set(DatabaseCondition::Fails);
    executor.execute(&claim(&session, lease, 25)).await;
    let retry = ClaimOutcome::RetryAt(setup.world.clock.now() + START_RETRY_DELAY);
    assert_eq!(*outbox.outcomes.lock().unwrap(), [retry]);
}

#[tokio::test(start_paused = true)]
async fn a_start_that_always_fails_ends_with_the_lease() {
    let setup = Setup::new(1).await;
    let (id, lease) = setup.requested().await;
    let browsers = BrowserStarter { keys: Arc::new(FailingKeys), ..setup.starter() };
    let claim = claim(&setup.read(id).await, lease, 1);
    for _ in 0..7 {
        assert!(browsers.start(&claim, lease).await.is_err());
        tokio::time::sleep(seconds(3)).await;
    }
    let now = setup.world.clock.now();
    assert_eq!(setup.world.store.find_due(now, 10).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_job_of_an_unknown_session_is_done() {
    let setup = Setup::new(1).await;
    let (id, lease) = setup.requested().await;
    let outbox = Arc::new(FakeOutbox::default());
    let executor = JobExecutor { outbox: outbox.clone(), ..setup.executor() };
    let mut session = setup.read(id).await;
    session.id = SessionId::from_uuid(uuid::Uuid::nil());
    executor.execute(&claim(&session, lease, 1)).await;
    assert_eq!(*outbox.outcomes.lock().unwrap(), [ClaimOutcome::Done]);
}

#[tokio::test(start_paused = true)]
async fn a_session_waits_on_although_the_results_of_its_job_cannot_be_recorded_for_some_seconds() {
    let setup = Setup::new(1).await;
    let (first, _) = setup.requested().await;
    setup.run(1).await;
    let (second, _) = setup.requested().await;
    let outbox = Arc::new(UnrecordedOutbox {
        store: setup.world.store.clone(),
        failures: Script::default(),
    });
    for _ in 0..3 {
        outbox.failures.push(());
    }
    let executor = Arc::new(JobExecutor { outbox: outbox.clone(), ..setup.executor() });
    let jobs = OutboxWorker { outbox, executor, ..setup.jobs() };
    // More than the lease of its browser, and less than that of its job.
    run_for(&jobs, seconds(30)).await;
    assert_eq!(setup.place(second), Some(1));
    assert!(setup.world.store.find_due(setup.world.clock.now(), 10).await.unwrap().is_empty());
    setup.world.apply(first, [Event::TerminatedByPartner]).await;
    run_for(&jobs, seconds(10)).await;
    assert!(setup.has_browser(second).await);
}

#[tokio::test(start_paused = true)]
async fn recording_a_result_is_given_up_before_the_lease_of_the_job_ends() {
    let setup = Setup::new(1).await;
    let (id, lease) = setup.requested().await;
    let outbox = Arc::new(FakeOutbox::default());
    for _ in 0..1000 {
        outbox.failures.push(());
    }
    let executor = JobExecutor { outbox: outbox.clone(), ..setup.executor() };
    let claim = OutboxClaim { job: Job::ForgetRecording, ..claim(&setup.read(id).await, lease, 1) };
    let began = Instant::now();
    executor.execute(&claim).await;
    let tried = outbox.outcomes.lock().unwrap().len();
    assert!(tried > 10, "{tried}");
    assert!(began.elapsed() < JOB_LEASE_TTL.to_std().unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_failed_claim_is_retried() {
    let setup = Setup::new(1).await;
    let (id, lease) = setup.requested().await;
    let outbox = Arc::new(FakeOutbox::default());
    outbox.failures.push(());
    outbox.claims.push(claim(&setup.read(id).await, lease, 1));
    let jobs = OutboxWorker { outbox: outbox.clone(), ..setup.jobs() };
    run_for(&jobs, seconds(1)).await;
    assert_eq!(setup.pool.started.lock().unwrap().len(), 1);
    assert_eq!(jobs.name(), "jobs");
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_key_is_unknown_is_left_alone() {
    let setup = Setup::new(1).await;
    let (id, lease) = setup.requested().await;
    let keys = Arc::new(memory_store::MemoryStore::new());
    assert!(keys.key(setup.world.key.id).await.unwrap().is_none());
    let browsers = BrowserStarter { keys, ..setup.starter() };
    let claim = claim(&setup.read(id).await, lease, 1);
    assert!(browsers.start(&claim, lease).await.is_err());
    assert!(setup.pool.started.lock().unwrap().is_empty());
}

/// A worker of jobs, with room for so many browsers.
struct Setup {
    world: World,
    pool: Arc<FakePool>,
    vault: Arc<FakeVault>,
    turns: Arc<BrowserTurns>,
}

impl Setup {
    async fn new(browsers: usize) -> Self {
        Self::with_room(browsers, 1).await
    }

    async fn with_room(browsers: usize, waiting_per_team: usize) -> Self {
        Self::of(waiting(), browsers, waiting_per_team).await
    }

    async fn of(definition: Definition, browsers: usize, waiting_per_team: usize) -> Self {
        let quotas =
            Quotas { total: browsers, per_team: browsers, development: browsers, waiting_per_team };
        Self {
            world: World::with_definition(definition).await,
            pool: Arc::default(),
            vault: Arc::default(),
            turns: Arc::new(BrowserTurns::new(quotas)),
        }
    }

    /// A session whose applicant is at the page.
    async fn requested(&self) -> (SessionId, Lease) {
        let (id, lease) = (self.world.session().await, testkit::sample::lease());
        self.world.apply(id, [Event::BrowserRequested { lease }]).await;
        self.comes(id);
        (id, lease)
    }

    fn comes(&self, id: SessionId) {
        self.world.engine.hub.change(id, |state| state.present = true);
    }

    fn leaves(&self, id: SessionId) {
        let hub = &self.world.engine.hub;
        hub.change(id, |state| state.present = false);
        hub.remove_if_unused(id);
    }

    fn place(&self, id: SessionId) -> Option<u32> {
        self.world.engine.hub.find(id)?.state.borrow().place
    }

    fn shows_browser(&self, id: SessionId) -> bool {
        let live = self.world.engine.hub.find(id);
        live.is_some_and(|live| live.state.borrow().browser.is_some())
    }

    async fn has_browser(&self, id: SessionId) -> bool {
        self.shows_browser(id) && matches!(self.read(id).await.state, State::Live { .. })
    }

    async fn read(&self, id: SessionId) -> Session {
        self.world.store.find_unscoped(id).await.unwrap().unwrap()
    }

    fn starter(&self) -> BrowserStarter {
        BrowserStarter {
            engine: self.world.engine.clone(),
            catalogue: self.world.store.clone(),
            keys: self.world.store.clone(),
            places: Arc::new(FakePlaces),
            pool: self.pool.clone(),
            turns: self.turns.clone(),
            attestations: self.world.attestations(),
            vault: self.vault.clone(),
            recordings: self.world.store.clone(),
            frames: Arc::new(NamingRedactor),
            queue_timeout: TimeDelta::minutes(1),
            author: None,
            drafts: Arc::default(),
            statistics: Arc::default(),
            tasks: self.world.tasks.clone(),
        }
    }

    fn executor(&self) -> JobExecutor {
        JobExecutor {
            outbox: self.world.store.clone(),
            clock: self.world.clock.clone(),
            pool: self.pool.clone(),
            turns: self.turns.clone(),
            vault: self.vault.clone(),
            browsers: self.starter(),
        }
    }

    fn draining(&self) -> Draining {
        Draining {
            engine: self.world.engine.clone(),
            turns: self.turns.clone(),
            node: INSTANCE,
            mover: None,
        }
    }

    fn jobs(&self) -> OutboxWorker {
        OutboxWorker {
            node: INSTANCE,
            outbox: self.world.store.clone(),
            clock: self.world.clock.clone(),
            wakeup: Arc::new(Notify::new()),
            executor: Arc::new(self.executor()),
            tasks: self.world.tasks.clone(),
        }
    }

    async fn run(&self, time: u64) {
        run_for(&self.jobs(), seconds(time)).await;
    }
}

/// A workflow that waits for the applicant to sign in.
fn waiting() -> Definition {
    let mut document = json!(testkit::sample::definition("sample", "1.0.0"));
    document["signals"] = json!({ "in": { "selector": "#in" } });
    document["start"] = json!("signIn");
    document["nodes"]["signIn"] = json!({
        "type": "awaitUser", "kind": "login", "textKey": "signIn", "timeoutSeconds": 600,
        "until": ["in"], "next": "end", "onTimeout": { "fail": "USER_INPUT_TIMEOUT" },
    });
    document["texts"] = json!({ "en": { "signIn": "Sign in" } });
    serde_json::from_value(document).unwrap()
}

/// The same workflow, which opens a page before.
fn opening() -> Definition {
    let mut document = json!(waiting());
    document["start"] = json!("open");
    document["nodes"]["open"] = json!({
        "type": "goto", "url": "https://sample.example/login", "next": "signIn",
        "onFail": { "fail": "PLATFORM_UNAVAILABLE" },
    });
    serde_json::from_value(document).unwrap()
}

fn claim(session: &Session, lease: Lease, attempt: i32) -> OutboxClaim {
    OutboxClaim { entry: 1, session: session.id, job: Job::StartBrowser { lease }, attempt }
}

fn code(session: &Session) -> Option<ErrorCode> {
    session.state.error_code()
}

/// Keys that cannot be read.
struct FailingKeys;

#[async_trait]
impl KeyStore for FailingKeys {
    async fn add_key(
        &self,
        _: &ApiKey,
        _: &KeyHash,
        _: &str,
        _: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        Err(StoreError::new("add a key", "broken"))
    }

    async fn keys(&self, _: TeamId) -> Result<Vec<StoredKey>, StoreError> {
        Err(StoreError::new("read keys", "broken"))
    }

    async fn key(&self, _: ApiKeyId) -> Result<Option<ApiKey>, StoreError> {
        Err(StoreError::new("read a key", "broken"))
    }

    async fn rotate_key(&self, _: ApiKeyId, _: &KeyHash) -> Result<bool, StoreError> {
        Err(StoreError::new("rotate a key", "broken"))
    }

    async fn revoke_key(&self, _: ApiKeyId, _: DateTime<Utc>) -> Result<bool, StoreError> {
        Err(StoreError::new("revoke a key", "broken"))
    }
}

/// The outbox of the store, which fails to record results as its script says.
struct UnrecordedOutbox {
    store: Arc<memory_store::MemoryStore>,
    failures: Script<()>,
}

#[async_trait]
impl Outbox for UnrecordedOutbox {
    async fn claim(
        &self,
        node: InstanceId,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
    ) -> Result<Vec<OutboxClaim>, StoreError> {
        self.store.claim(node, now, lease, limit).await
    }

    async fn complete(
        &self,
        claim: &OutboxClaim,
        outcome: ClaimOutcome,
    ) -> Result<bool, StoreError> {
        match self.failures.next() {
            Some(()) => Err(StoreError::new("complete a job", "broken")),
            None => self.store.complete(claim, outcome).await,
        }
    }

    async fn delete_orphans(
        &self,
        node: InstanceId,
        before: DateTime<Utc>,
    ) -> Result<usize, StoreError> {
        self.store.delete_orphans(node, before).await
    }
}

/// An outbox that fails as its script says, and keeps the outcomes.
#[derive(Default)]
struct FakeOutbox {
    failures: Script<()>,
    claims: Script<OutboxClaim>,
    outcomes: Mutex<Vec<ClaimOutcome>>,
}

#[async_trait]
impl Outbox for FakeOutbox {
    async fn claim(
        &self,
        _: InstanceId,
        _: DateTime<Utc>,
        _: TimeDelta,
        _: u16,
    ) -> Result<Vec<OutboxClaim>, StoreError> {
        match self.failures.next() {
            Some(()) => Err(StoreError::new("claim jobs", "broken")),
            None => Ok(self.claims.next().into_iter().collect()),
        }
    }

    async fn complete(&self, _: &OutboxClaim, outcome: ClaimOutcome) -> Result<bool, StoreError> {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
        match self.failures.next() {
            Some(()) => Err(StoreError::new("complete a job", "broken")),
            None => Ok(true),
        }
    }

    async fn delete_orphans(&self, _: InstanceId, _: DateTime<Utc>) -> Result<usize, StoreError> {
        Ok(0)
    }
}
