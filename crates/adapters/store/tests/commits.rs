//! What the end of a session writes that no port shows, and commits whose connection breaks before
//! their answer arrives.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use diesel::{Connection as _, RunQueryDsl as _, SqliteConnection, dsl::sql, sql_types::BigInt};
use domain::{
    api_key::KeyHash,
    id::{ApiKeyId, PlatformId, TeamId},
    session::{Event, Session},
};
use ports::{
    catalogue::Catalogue as _,
    delivery_log::{DeliveryFilter, DeliveryLog as _, DeliveryScope, StoredDelivery},
    key_store::{KeyStore as _, TeamStore as _},
    session_store::{CommitError, SessionQueries as _, SessionStore as _},
    webhook_store::WebhookStore as _,
};
use store::Store;
use system::encryption::XChaChaCipher;
use testkit::sample::{self, noon};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy},
    net::{TcpListener, TcpStream},
    sync::Notify,
};

#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_no_webhook_is_told_of_leaves_no_body() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db").display().to_string();
    let sqlite = Home::of(open(&format!("sqlite://{path}")).await).await;
    let notices = || {
        let mut conn = SqliteConnection::establish(&path).unwrap();
        diesel::select(sql::<BigInt>("(SELECT count(*) FROM notices)")).get_result(&mut conn)
    };
    sqlite.end().await.unwrap();
    assert_eq!(notices(), Ok(0));
    sqlite.add_webhook().await;
    sqlite.end().await.unwrap();
    assert_eq!(notices(), Ok(1));

    for is_pipelined in [false, true] {
        let url = database().await;
        let home = Home::of(store(&url, is_pipelined).await).await;
        let client = connect(&url).await;
        let notices = async || -> i64 {
            client.query_one("SELECT count(*) FROM notices", &[]).await.unwrap().get(0)
        };
        home.end().await.unwrap();
        assert_eq!(notices().await, 0, "pipelined: {is_pipelined}");
        home.add_webhook().await;
        home.end().await.unwrap();
        assert_eq!(notices().await, 1, "pipelined: {is_pipelined}");
    }
}

/// They are inserted side by side into indexes (RFC 9562, section 5.7).
#[tokio::test(flavor = "multi_thread")]
async fn the_identifier_of_a_delivery_has_its_time_and_is_its_own() {
    for is_pipelined in [false, true] {
        let home = Home::of(store(&database().await, is_pipelined).await).await;
        home.add_webhook().await;
        home.add_webhook().await;
        let session = home.end().await.unwrap();
        let found = home.deliveries(&session).await;
        let [one, other] = found.as_slice() else { panic!("{found:?}") };
        assert_ne!(one.id, other.id);
        for delivery in [one, other] {
            let id = delivery.id.as_uuid();
            assert_eq!(id.get_variant(), uuid::Variant::RFC4122, "{id}");
            assert_eq!(id.get_version_num(), 7, "{id}");
            let (seconds, _) = id.get_timestamp().unwrap().to_unix();
            assert_eq!(i64::try_from(seconds).unwrap(), noon().timestamp(), "{id}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_is_lost_is_not_stale() {
    let (url, cut) = behind_a_proxy(&database().await).await;
    let home = Home::of(store(&url, true).await).await;
    home.add_webhook().await;
    home.end().await.unwrap();
    for _ in 0..3 {
        let session = home.session().await;
        cut.arm();
        cut.go_on.notify_one();
        home.end_of(&session).await.unwrap();
        assert!(!cut.is_armed(), "the answer was lost");
        assert_eq!(home.deliveries(&session).await.len(), 1);
        assert_eq!(home.timeline(&session).await, ["SessionCreated", "TerminatedByPartner"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_commit_whose_answer_is_lost_is_stale() {
    let (url, cut) = behind_a_proxy(&database().await).await;
    let home = Home::of(store(&url, true).await).await;
    home.end().await.unwrap();
    let session = home.session().await;
    home.end_of(&session).await.unwrap();
    cut.arm();
    cut.go_on.notify_one();
    let late = home.end_of(&session).await;
    assert!(!cut.is_armed(), "the answer was lost");
    assert!(matches!(late, Err(CommitError::Stale)), "{late:?}");
}

/// The row has no trace of the first change any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_is_lost_before_the_next_one_is_unknown() {
    let server = database().await;
    let (url, cut) = behind_a_proxy(&server).await;
    let home = Home::of(store(&url, true).await).await;
    let other = open(&server).await;
    home.end().await.unwrap();
    let session = home.session().await;
    let first = sample::transition(&session, Event::BrowserRequested { lease: sample::lease() });
    let second = sample::transition(&first.session, Event::TerminatedByPartner);
    cut.arm();
    let committing = home.store.commit(&first, noon());
    let overtaking = async {
        cut.reached.notified().await;
        other.commit(&second, noon()).await.unwrap();
        cut.go_on.notify_one();
    };
    let (first, ()) = tokio::join!(committing, overtaking);
    assert!(matches!(first, Err(CommitError::Store(_))), "{first:?}");
}

/// A team with a key and a platform.
struct Home {
    store: Store,
    team: TeamId,
    key: ApiKeyId,
    platform: PlatformId,
}

impl Home {
    async fn of(store: Store) -> Self {
        let team = TeamId::from_u128(1);
        store.add_team(team, "Lender", noon()).await.unwrap();
        let key = sample::key(team);
        store.add_key(&key, &KeyHash([1; 32]), "Backend", noon()).await.unwrap();
        let definition = sample::definition("sample", "1.0.0");
        let (platform, _) = store.publish(&definition, None, noon()).await.unwrap();
        Self { store, team, key: key.id, platform }
    }

    async fn add_webhook(&self) {
        self.store.add_webhook(&sample::webhook(self.team), &[], noon()).await.unwrap();
    }

    async fn session(&self) -> Session {
        let opening = sample::opening(self.key, self.platform);
        self.store.insert(&opening, None).await.unwrap();
        opening.session
    }

    async fn end(&self) -> Result<Session, CommitError> {
        let session = self.session().await;
        self.end_of(&session).await.map(|()| session)
    }

    async fn end_of(&self, session: &Session) -> Result<(), CommitError> {
        let ended = sample::transition(session, Event::TerminatedByPartner);
        self.store.commit(&ended, noon()).await
    }

    async fn deliveries(&self, session: &Session) -> Vec<StoredDelivery> {
        let of = DeliveryScope::Session(session.id);
        let filter = DeliveryFilter { of, state: None, limit: 10 };
        self.store.find_deliveries(&filter).await.unwrap()
    }

    async fn timeline(&self, session: &Session) -> Vec<String> {
        let lines = self.store.timeline(self.key, session.id).await.unwrap().unwrap();
        lines.into_iter().map(|entry| entry.event).collect()
    }
}

/// Closes the connection that the server answers next, without its answer.
#[derive(Default)]
struct Cut {
    armed: AtomicBool,
    /// Notified when the server has answered.
    reached: Notify,
    /// Awaited before the connection is closed.
    go_on: Notify,
}

impl Cut {
    fn arm(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }

    fn is_armed(&self) -> bool {
        self.armed.load(Ordering::SeqCst)
    }
}

/// Starts a proxy of the server of a URL, and returns the URL over the proxy.
async fn behind_a_proxy(url: &str) -> (String, Arc<Cut>) {
    let mut url = url::Url::parse(url).unwrap();
    let server = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap_or(5432));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    url.set_host(Some("127.0.0.1")).unwrap();
    url.set_port(Some(listener.local_addr().unwrap().port())).unwrap();
    let cut = Arc::<Cut>::default();
    let shared = cut.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(&server).await.unwrap();
            tokio::spawn(forward(client, server, shared.clone()));
        }
    });
    (url.to_string(), cut)
}

async fn forward(mut client: TcpStream, mut server: TcpStream, cut: Arc<Cut>) {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let answers = async {
        let mut buffer = vec![0; 65_536];
        while let Ok(count @ 1..) = from_server.read(&mut buffer).await {
            if cut.armed.swap(false, Ordering::SeqCst) {
                cut.reached.notify_one();
                cut.go_on.notified().await;
                return;
            }
            to_client.write_all(buffer.get(..count).unwrap()).await.unwrap();
        }
    };
    tokio::select! {
        _ = copy(&mut from_client, &mut to_server) => (),
        () = answers => (),
    }
}

async fn store(url: &str, is_pipelined: bool) -> Store {
    let store = open(url).await;
    if is_pipelined { store.with_pipelined_connection() } else { store }
}

async fn open(url: &str) -> Store {
    Store::open(url, Arc::new(XChaChaCipher::new(&[7; 32]))).await.unwrap()
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
