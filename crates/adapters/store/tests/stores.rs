//! The stores against the one contract: SQLite in a file, PostgreSQL in a database of its own.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

use std::sync::Arc;

use diesel::{Connection as _, SqliteConnection, connection::SimpleConnection as _};
use domain::{
    api_key::KeyHash,
    id::TeamId,
    session::{Event, Job},
    webhook::Webhook,
};
use ports::{
    catalogue::Catalogue as _,
    delivery::{DeliveryQueue as _, HealthUpdate},
    key_store::{KeyStore as _, TeamStore as _},
    outbox::Outbox as _,
    session_store::SessionStore as _,
    store_load::{Queue, StoreLoad as _},
    webhook_store::WebhookStore as _,
};
use store::Store;
use system::encryption::XChaChaCipher;
use testkit::{
    contract::Backend,
    sample::{self, INSTANCE, OTHER_INSTANCE, noon},
};

const LEASE: chrono::TimeDelta = chrono::TimeDelta::seconds(90);

mod sqlite {
    testkit::stores_contract!(super::sqlite());
}

mod postgres {
    testkit::stores_contract!(super::postgres());
}

/// Single reads over a connection that is shared.
mod postgres_lane {
    testkit::stores_contract!(super::postgres_lane());
}

async fn sqlite() -> Backend {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("store.db").display());
    backend(&url, open(&url).await, Box::new(folder)).await
}

async fn postgres() -> Backend {
    let url = database().await;
    backend(&url, open(&url).await, Box::new(())).await
}

async fn postgres_lane() -> Backend {
    let url = database().await;
    backend(&url, open(&url).await.with_pipelined_connection(), Box::new(())).await
}

async fn database() -> String {
    let server = std::env::var("TEST_DATABASE_URL").unwrap_or_else(|_| {
        panic!("TEST_DATABASE_URL must name a PostgreSQL server: run `cargo xtask test`")
    });
    let name = format!("test_{}", uuid::Uuid::new_v4().simple());
    connect(&server).await.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    let mut url = url::Url::parse(&server).unwrap();
    url.set_path(&name);
    url.to_string()
}

async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn open(url: &str) -> Store {
    Store::open(url, Arc::new(XChaChaCipher::new(&[7; 32]))).await.unwrap()
}

async fn backend(url: &str, store: Store, guard: Box<dyn std::any::Any + Send + Sync>) -> Backend {
    let store = Arc::new(store);
    Backend {
        sessions: store.clone(),
        partner_sessions: store.clone(),
        team_sessions: store.clone(),
        leases: store.clone(),
        session_retention: store.clone(),
        outbox: store.clone(),
        instances: store.clone(),
        regions: store.clone(),
        attestations: store.clone(),
        recordings: store.clone(),
        notifications: store.clone(),
        deliveries: store.clone(),
        log: store.clone(),
        other_log: Arc::new(open(url).await),
        teams: store.clone(),
        keys: store.clone(),
        key_verification: store.clone(),
        users: store.clone(),
        subjects: store.clone(),
        members: store.clone(),
        second_factors: store.clone(),
        sign_ins: store.clone(),
        held_forms: store.clone(),
        account_links: store.clone(),
        notices: store.clone(),
        invitations: store.clone(),
        audit: store.clone(),
        contacts: store.clone(),
        templates: store.clone(),
        brands: store.clone(),
        drafts: store.clone(),
        suppressions: store.clone(),
        devices: store.clone(),
        passkeys: store.clone(),
        browsers: store.clone(),
        webhooks: store.clone(),
        catalogue: store.clone(),
        statistics: store,
        guard,
    }
}

/// The service and a command of the operator, on a database that neither has seen.
#[tokio::test(flavor = "multi_thread")]
async fn who_starts_at_the_same_time_finds_a_schema() {
    for _ in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let sqlite = format!("sqlite://{}", folder.path().join("store.db").display());
        for url in [sqlite, database().await] {
            let url: &'static str = url.leak();
            let openings = [tokio::spawn(open(url)), tokio::spawn(open(url))];
            for opening in openings {
                opening.await.unwrap().ping().await.unwrap();
            }
        }
    }
}

/// A newer version of the service may write jobs that an older process does not know.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_job_does_not_hold_up_others() {
    const UNKNOWN: &str = "INSERT INTO outbox (session, effect, due) \
                           SELECT session, '{\"effect\":\"unknown\"}', due FROM outbox";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db").display().to_string();
    let sqlite = open(&format!("sqlite://{path}")).await;
    with_pending_job(&sqlite).await;
    SqliteConnection::establish(&path).unwrap().batch_execute(UNKNOWN).unwrap();
    let url = database().await;
    let postgres = open(&url).await;
    with_pending_job(&postgres).await;
    connect(&url).await.batch_execute(UNKNOWN).await.unwrap();

    for store in [sqlite, postgres] {
        let claim = async |now| store.claim(INSTANCE, now, LEASE, 10).await.unwrap();
        for now in [noon(), noon() + LEASE] {
            let claims = claim(now).await;
            assert!(
                matches!(claims.as_slice(), [one] if matches!(one.job, Job::StartBrowser { .. }))
            );
        }
    }
}

/// What is due counts where a worker could claim it, and with the age of the oldest.
#[tokio::test(flavor = "multi_thread")]
async fn backlogs_are_what_workers_could_claim() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db").display().to_string();
    let sqlite = open(&format!("sqlite://{path}")).await;
    for store in [sqlite, open(&database().await).await] {
        let found = async |node, now| {
            let backlogs = store.backlogs(node, now).await.unwrap();
            assert_eq!(backlogs.len(), Queue::ALL.len());
            let some = backlogs.into_iter().filter(|backlog| backlog.due > 0);
            let mut some: Vec<_> =
                some.map(|backlog| (backlog.queue, backlog.due, backlog.due_since)).collect();
            some.sort_by_key(|(queue, ..)| queue.as_str());
            some
        };
        assert_eq!(found(INSTANCE, noon()).await, []);
        with_pending_job(&store).await;
        let job = (Queue::Jobs, 1, Some(noon()));
        assert_eq!(found(INSTANCE, noon()).await, [job]);
        assert_eq!(found(INSTANCE, noon() - LEASE).await, [], "it is not due yet");
        assert_eq!(found(OTHER_INSTANCE, noon()).await, [], "another instance cannot do it");
        store.claim(INSTANCE, noon(), LEASE, 10).await.unwrap();
        assert_eq!(found(INSTANCE, noon()).await, [], "it is claimed");
        store.claim(INSTANCE, noon() + LEASE, LEASE * 100, 10).await.unwrap();

        let webhook = sample::webhook(TeamId::from_u128(1));
        store.add_webhook(&webhook, &[], noon()).await.unwrap();
        let inactive = Webhook { active: false, ..sample::webhook(TeamId::from_u128(1)) };
        store.add_webhook(&inactive, &[], noon()).await.unwrap();
        let (platform, _) =
            store.publish(&sample::definition("sample", "1.0.0"), None, noon()).await.unwrap();
        let key = store.keys(webhook.team).await.unwrap().remove(0).key.id;
        let opening = sample::opening(key, platform);
        store.insert(&opening, None).await.unwrap();
        let ended = sample::transition(&opening.session, Event::TerminatedByPartner);
        store.commit(&ended, noon()).await.unwrap();
        let delivery = (Queue::Deliveries, 1, Some(noon()));
        assert_eq!(found(INSTANCE, noon()).await, [delivery]);
        let failures = HealthUpdate { webhook: webhook.id, failures: 10, success: false };
        store.note_health(&[failures], noon()).await.unwrap();
        let paused = (Queue::PausedDeliveries, 1, Some(noon()));
        assert_eq!(found(INSTANCE, noon() + LEASE).await, [paused], "also when a probe is due");
        assert!(store.connections_in_use() <= 16);
    }
}

async fn with_pending_job(store: &Store) {
    let team = TeamId::from_u128(1);
    store.add_team(team, "Lender", noon()).await.unwrap();
    let key = sample::key(team);
    store.add_key(&key, &KeyHash([1; 32]), "Backend", noon()).await.unwrap();
    let (platform, _) =
        store.publish(&sample::definition("sample", "1.0.0"), None, noon()).await.unwrap();
    let opening = sample::opening(key.id, platform);
    store.insert(&opening, None).await.unwrap();
    let event = Event::BrowserRequested { lease: sample::lease() };
    store.commit(&sample::transition(&opening.session, event), noon()).await.unwrap();
}
