//! What the unit tests of this crate share: an in-memory world with a team, a key and a platform,
//! and fakes for everything outside.

mod browser;
mod database;
mod outside;
mod sources;
mod spans;

use std::sync::Arc;

use chrono::TimeDelta;
use domain::{
    api_key::{ApiKey, Environment},
    id::{PlatformId, SessionId, TeamId},
    notification::{Channel, Invitation},
    request::Contact,
    session::{Change, Event, Lease, Session},
    webhook::Webhook,
    workflow::Definition,
};
use memory_store::MemoryStore;
use ports::{
    catalogue::Catalogue as _,
    key_store::{KeyStore as _, TeamStore as _},
    session_store::SessionStore as _,
    webhook_store::WebhookStore as _,
};
use testkit::sample::{self, noon};
use tokio_util::task::TaskTracker;

pub(crate) use self::{
    browser::{FakeBrowser, FakePool},
    database::{DatabaseCondition, FakeDatabase},
    outside::{
        FakeAttestor, FakeEncoder, FakeLimiter, FakeMailer, FakeNotifier, FakePlaces, FakeVault,
        Script,
    },
    sources::{Counting, PlainTokens, TestClock},
    spans::KeptSpans,
};
use crate::{
    advance::{SessionEngine, Wakeups},
    api_keys::ApiKeyText,
    attestations::Attestations,
    fakes::TextReader,
    live::{SessionDevices, SessionHub},
    session_traces::SessionTraces,
    settings::Addresses,
    urls::Urls,
};

/// One process on an in-memory store.
pub(crate) struct World {
    pub(crate) store: Arc<MemoryStore>,
    /// The store, as the engine reaches it.
    pub(crate) database: Arc<FakeDatabase>,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) random: Arc<Counting>,
    pub(crate) tokens: Arc<PlainTokens>,
    pub(crate) engine: Arc<SessionEngine>,
    pub(crate) attestor: Arc<FakeAttestor>,
    pub(crate) tasks: TaskTracker,
    pub(crate) team: TeamId,
    pub(crate) key: ApiKey,
    pub(crate) key_text: ApiKeyText,
    pub(crate) platform: PlatformId,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with_definition(sample::definition("sample", "1.0.0")).await
    }

    pub(crate) async fn with_definition(definition: Definition) -> Self {
        let store = Arc::new(MemoryStore::new());
        let database = Arc::new(FakeDatabase::new(store.clone()));
        let clock = Arc::new(TestClock::new());
        let engine = Arc::new(SessionEngine {
            sessions: database.clone(),
            leases: database.clone(),
            clock: clock.clone(),
            hub: Arc::new(SessionHub::default()),
            wakeups: Wakeups::default(),
            traces: SessionTraces::default(),
        });
        let team = TeamId::from_u128(0x7EA);
        store.add_team(team, "Lender", noon()).await.unwrap();
        let key = sample::key(team);
        let key_text = ApiKeyText::new(Environment::Development, [7; 32]);
        store.add_key(&key, &key_text.hash(), "test", noon()).await.unwrap();
        let (platform, _) = store.publish(&definition, None, noon()).await.unwrap();
        Self {
            store,
            database,
            clock,
            random: Arc::default(),
            tokens: Arc::default(),
            engine,
            attestor: Arc::default(),
            tasks: TaskTracker::new(),
            team,
            key,
            key_text,
            platform,
        }
    }

    pub(crate) fn urls(&self) -> Arc<Urls> {
        let addresses = Addresses { public: "https://avouch.test".into(), ..Addresses::default() };
        Arc::new(Urls { addresses, tokens: self.tokens.clone(), clock: self.clock.clone() })
    }

    pub(crate) fn devices(&self) -> Arc<SessionDevices> {
        Arc::new(SessionDevices {
            store: self.store.clone(),
            tokens: self.tokens.clone(),
            random: self.random.clone(),
            clock: self.clock.clone(),
        })
    }

    pub(crate) fn attestations(&self) -> Arc<Attestations> {
        Arc::new(Attestations {
            attestor: self.attestor.clone(),
            store: self.store.clone(),
            reader: Arc::new(TextReader),
            keys: self.store.clone(),
        })
    }

    /// Inserts a session that was created now.
    pub(crate) async fn session(&self) -> SessionId {
        self.insert(|_| ()).await
    }

    /// Inserts a session whose link the service sends by mail.
    pub(crate) async fn invited(&self) -> SessionId {
        self.insert(|session| {
            let channel = Channel::Email;
            session.terms.invitation = Some(Invitation { channel, sender: None, template: None });
            session.terms.receiver =
                Some(Contact { email: Some("ada@example.com".into()), ..Contact::default() });
        })
        .await
    }

    pub(crate) async fn insert(&self, change: impl FnOnce(&mut Session)) -> SessionId {
        use ports::clock::Clock as _;
        let mut session = sample::opening(self.key.id, self.platform).session;
        session.created_at = self.clock.now();
        session.expires_at = self.clock.now() + TimeDelta::hours(72);
        change(&mut session);
        let opening: Change = session.opening();
        self.store.insert(&opening, None).await.unwrap();
        opening.session.id
    }

    /// Applies events, one after the other.
    pub(crate) async fn apply(
        &self,
        id: SessionId,
        events: impl IntoIterator<Item = Event>,
    ) -> Session {
        for event in events {
            self.engine.advance(id, None, event).await.unwrap();
        }
        self.read(id).await
    }

    /// Moves a session to the phase in which its workflow runs.
    pub(crate) async fn run(&self, id: SessionId) -> Lease {
        let lease = sample::lease();
        self.apply(id, running(lease)).await;
        lease
    }

    pub(crate) async fn read(&self, id: SessionId) -> Session {
        self.store.find_unscoped(id).await.unwrap().unwrap()
    }

    pub(crate) async fn webhook(&self) -> Webhook {
        let webhook = sample::webhook(self.team);
        self.store.add_webhook(&webhook, &[], noon()).await.unwrap();
        webhook
    }
}

/// The events that lead a fresh session to a running workflow.
pub(crate) fn running(lease: Lease) -> [Event; 5] {
    let workflow =
        domain::session::DefinitionVersion { version: "1.0.0".into(), sha256: "00".repeat(32) };
    [
        Event::BrowserRequested { lease },
        Event::BrowserStarted,
        Event::ApplicantConnected,
        Event::WorkflowOpened,
        Event::WorkflowLoaded { workflow },
    ]
}
