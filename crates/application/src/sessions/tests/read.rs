//! Reading, ending, notifying again and erasing.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    error_code::ErrorCode,
    frame_ancestors::FrameAncestor,
    id::SessionId,
    notification::{Channel, MAX_NOTIFICATIONS},
    request::{ListQuery, PageRequest},
    session::{Change, Event, Session, Status},
};
use memory_store::MemoryStore;
use ports::{
    StoreError,
    driving::{LookupService as _, NotifyError, RecordingView, SessionError, SessionService as _},
    recording::{RecordingOutcome, RecordingQueue as _},
    session_store::{CommitError, IdempotencyKey, InsertOutcome, SessionStore},
};
use testkit::sample;
use uuid::Uuid;

use super::use_cases;
use crate::{
    advance::SessionEngine,
    definition_statistics::PlatformHealthReader,
    sessions::{LookupUseCases, SessionUseCases},
    testing::{FakePlaces, World},
};

#[tokio::test]
async fn a_session_of_another_key_does_not_exist() {
    let world = World::new().await;
    let partners = use_cases(&world);
    let (id, other) = (world.session().await, sample::key(world.team));
    assert!(partners.read(&world.key, id).await.is_ok());
    let missing = |result: Result<(), SessionError>| matches!(result, Err(SessionError::NotFound));
    assert!(missing(partners.read(&other, id).await.map(drop)));
    assert!(missing(partners.timeline(&other, id).await.map(drop)));
    assert!(missing(partners.recording(&other, id).await.map(drop)));
    assert!(missing(partners.attestation(&other, id).await.map(drop)));
    assert!(missing(partners.terminate(&other, id).await.map(drop)));
    assert!(missing(partners.erase(&other, id).await.map(drop)));
    assert!(matches!(partners.notify_again(&other, id).await, Err(NotifyError::NotFound)));
    assert_eq!(world.read(id).await.status(), Status::Created);
}

#[tokio::test(start_paused = true)]
async fn the_url_of_a_stream_changes_once_a_minute() {
    let world = World::new().await;
    let partners = use_cases(&world);
    let id = world.session().await;
    world.run(id).await;
    let url = async || partners.read(&world.key, id).await.unwrap().stream_url.unwrap();
    let first = url().await;
    world.clock.forward(TimeDelta::seconds(59));
    assert_eq!(url().await, first);
    world.clock.forward(TimeDelta::seconds(1));
    assert_ne!(url().await, first);
    assert!(first.starts_with(&format!("https://avouch.test/watch/{id}?pass=")), "{first}");
}

#[tokio::test]
async fn terminating_twice_is_like_terminating_once() {
    let world = World::new().await;
    let partners = use_cases(&world);
    let id = world.session().await;
    let first = partners.terminate(&world.key, id).await.unwrap();
    assert_eq!(first.status(), Status::Terminated);
    assert_eq!(partners.terminate(&world.key, id).await.unwrap(), first);
    let timeline = partners.timeline(&world.key, id).await.unwrap();
    let events: Vec<_> = timeline.iter().map(|entry| entry.event.as_str()).collect();
    assert_eq!(events, ["SessionCreated", "TerminatedByPartner"]);
    let query = ListQuery { status: None, page: PageRequest { limit: 10, offset: 0 } };
    let (listed, total) = partners.list(&world.key, query).await.unwrap();
    assert_eq!((listed[0].id, total), (id, 1));
}

#[tokio::test]
async fn ending_a_session_reads_it_once() {
    let world = World::new().await;
    let (id, other) = (world.session().await, sample::key(world.team));
    let store = Arc::new(CountedStore { store: world.store.clone(), reads: AtomicUsize::new(0) });
    let engine = SessionEngine {
        sessions: store.clone(),
        leases: world.store.clone(),
        clock: world.clock.clone(),
        hub: world.engine.hub.clone(),
        wakeups: world.engine.wakeups.clone(),
        traces: world.engine.traces.clone(),
    };
    // The queries of partners would find nothing.
    let sessions = Arc::new(MemoryStore::new());
    let partners = SessionUseCases { engine: Arc::new(engine), sessions, ..use_cases(&world) };
    let refused = partners.terminate(&other, id).await;
    assert!(matches!(refused, Err(SessionError::NotFound)));
    assert_eq!(store.reads.swap(0, Ordering::Relaxed), 1);
    let ended = partners.terminate(&world.key, id).await.unwrap();
    assert_eq!((ended.status(), ended.version.0), (Status::Terminated, 2));
    assert_eq!(store.reads.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn erasing_ends_an_open_session_first() {
    let world = World::new().await;
    let partners = use_cases(&world);
    let id = world.invited().await;
    let erased = partners.erase(&world.key, id).await.unwrap();
    assert_eq!(erased.status(), Status::Terminated);
    assert!(erased.erased_at.is_some() && erased.terms.receiver.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_link_is_sent_again_while_the_session_is_open() {
    let world = World::new().await;
    let partners = use_cases(&world);
    let plain = world.session().await;
    assert!(matches!(partners.notify_again(&world.key, plain).await, Err(NotifyError::NoChannel)));
    let id = world.invited().await;
    let soon = partners.notify_again(&world.key, id).await;
    assert!(matches!(soon, Err(NotifyError::TooSoon { retry_after: 60 })), "{soon:?}");
    world.clock.forward(TimeDelta::minutes(1));
    partners.notify_again(&world.key, id).await.unwrap();
    world.clock.forward(TimeDelta::minutes(1));
    let limited = partners.notify_again(&world.key, id).await;
    assert!(matches!(limited, Err(NotifyError::TooSoon { retry_after: 3600 })), "{limited:?}");
    world.apply(id, [Event::ApplicantCancelled]).await;
    assert!(matches!(partners.notify_again(&world.key, id).await, Err(NotifyError::Over)));
}

#[tokio::test(start_paused = true)]
async fn a_link_is_sent_only_so_often() {
    let world = World::new().await;
    let partners = crate::sessions::SessionUseCases { recipient_limit: None, ..use_cases(&world) };
    let id = world.invited().await;
    for _ in 1..MAX_NOTIFICATIONS {
        world.clock.forward(TimeDelta::minutes(1));
        partners.notify_again(&world.key, id).await.unwrap();
    }
    world.clock.forward(TimeDelta::minutes(1));
    assert!(matches!(partners.notify_again(&world.key, id).await, Err(NotifyError::NoMore)));
}

#[tokio::test]
async fn a_recording_goes_from_pending_to_a_link() {
    let world = World::new().await;
    let partners = use_cases(&world);
    let id = world.session().await;
    assert!(matches!(partners.recording(&world.key, id).await, Err(SessionError::NotFound)));
    world.run(id).await;
    world
        .apply(
            id,
            [Event::Failed { why: ErrorCode::UnexpectedPage, node: None, retry_until: None }],
        )
        .await;
    let status = async || partners.recording(&world.key, id).await.unwrap();
    assert_eq!(status().await, RecordingView::Pending);
    world.clock.forward(TimeDelta::seconds(10));
    let claim = claim(&world).await;
    assert_eq!(status().await, RecordingView::InProgress);
    let failed = RecordingOutcome::Failed("broken".into());
    assert!(world.store.complete_recording(&claim, failed).await.unwrap());
    assert_eq!(status().await, RecordingView::Failed("broken".into()));
    partners.erase(&world.key, id).await.unwrap();
    assert_eq!(status().await, RecordingView::Failed("The recording was erased.".into()));

    let id = world.session().await;
    world.run(id).await;
    world
        .apply(
            id,
            [Event::Failed { why: ErrorCode::UnexpectedPage, node: None, retry_until: None }],
        )
        .await;
    world.clock.forward(TimeDelta::seconds(10));
    let claim = self::claim(&world).await;
    assert!(world.store.complete_recording(&claim, RecordingOutcome::Kept).await.unwrap());
    let link = format!("https://vault.test/{id}?days=7");
    assert_eq!(partners.recording(&world.key, id).await.unwrap(), RecordingView::Completed(link));
}

#[tokio::test]
async fn lookups_list_what_the_deployment_has() {
    let world = World::new().await;
    let lookups = LookupUseCases {
        catalogue: world.store.clone(),
        templates: world.store.clone(),
        places: Arc::new(FakePlaces),
        channels: [Channel::Email].into(),
        health: PlatformHealthReader {
            statistics: world.store.clone(),
            clock: world.clock.clone(),
        },
    };
    let platforms = lookups.platforms(world.key.environment).await.unwrap();
    assert_eq!(platforms[0].platform.id, world.platform);
    let profile = platforms[0].profile.as_ref().unwrap();
    assert_eq!(profile.data_schema["type"], "object");
    assert_eq!(platforms[0].health.versions[0].1.runs, 0);
    assert_eq!(lookups.channels(), [Channel::Email]);
    assert!(lookups.email_templates(world.team).await.unwrap().is_empty());
    assert_eq!(lookups.countries().len(), 2);
    assert!(lookups.country("DE").is_some() && lookups.country("XX").is_none());
    let unknown = SessionId::from_uuid(Uuid::nil());
    assert!(use_cases(&world).read(&world.key, unknown).await.is_err());
}

async fn claim(world: &World) -> ports::recording::RecordingClaim {
    use ports::clock::Clock as _;
    let claims = world.store.claim_recordings(world.clock.now(), TimeDelta::minutes(1), 1);
    claims.await.unwrap().remove(0)
}

/// A store that counts how often a session is read.
struct CountedStore {
    store: Arc<MemoryStore>,
    reads: AtomicUsize,
}

#[async_trait]
impl SessionStore for CountedStore {
    async fn insert(
        &self,
        opening: &Change,
        idempotency: Option<&IdempotencyKey>,
    ) -> Result<InsertOutcome, StoreError> {
        self.store.insert(opening, idempotency).await
    }

    async fn find_unscoped(&self, id: SessionId) -> Result<Option<Session>, StoreError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.store.find_unscoped(id).await
    }

    async fn frame_ancestors_of(&self, id: SessionId) -> Result<Vec<FrameAncestor>, StoreError> {
        self.store.frame_ancestors_of(id).await
    }

    async fn commit(&self, change: &Change, alive_until: DateTime<Utc>) -> Result<(), CommitError> {
        self.store.commit(change, alive_until).await
    }
}
