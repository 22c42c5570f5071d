//! Polls, creation, lists and sweeps on a database with many sessions, beside one with few, measured
//! alternately in the same run. `cargo xtask bench growth`; `GROWTH_SESSIONS` sets the number.
#![expect(clippy::expect_used, reason = "a benchmark panics to fail")]

use std::{
    future::Future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant, UNIX_EPOCH},
};

use chrono::{DateTime, TimeDelta};
use domain::{
    api_key::KeyHash,
    id::{ApiKeyId, PlatformId, SessionId, TeamId},
    request::{ListQuery, PageRequest},
    session::Event,
};
use ports::{
    catalogue::Catalogue as _,
    key_store::{KeyStore as _, TeamStore as _},
    session_store::{
        BrowserLeases as _, SessionQueries as _, SessionRetention as _, SessionStore as _,
    },
};
use store::{Encryption, Store};
use system::encryption::XChaChaCipher;
use testkit::sample::{self, noon};
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

const FEW: u64 = 1_000;
/// The keys among which the sessions are divided equally.
const KEYS: u64 = 1_000;
/// Requests at once: as many as a busy process has, and few enough that the time is not that of a queue.
const CLIENTS: usize = 8;
const REQUESTS: usize = 4_000;
const SWEEPS: usize = 200;
const ROUNDS: usize = 3;
/// Rows that one statement writes while a database is filled.
const FILL_BATCH: u64 = 250_000;

#[tokio::main]
async fn main() {
    let server = std::env::var("TEST_DATABASE_URL").expect("TEST_DATABASE_URL, a superuser's URL");
    let many = std::env::var("GROWTH_SESSIONS")
        .map_or(1_000_000, |text| text.parse().expect("GROWTH_SESSIONS, a number"));
    let began = Instant::now();
    let (few, many) = (Filled::new(&server, FEW).await, Filled::new(&server, many).await);
    println!("filled in {:.0} s: {}; {}", began.elapsed().as_secs_f64(), few.size, many.size);
    for round in 1..=ROUNDS {
        println!("round {round}");
        compare("poll", &few, &many, REQUESTS, Filled::poll).await;
        compare("create", &few, &many, REQUESTS, Filled::create).await;
        compare("list", &few, &many, REQUESTS, Filled::list).await;
        compare("timeline", &few, &many, REQUESTS, Filled::timeline).await;
        compare("sweep", &few, &many, SWEEPS, Filled::sweep).await;
        compare("find what to erase", &few, &many, SWEEPS, Filled::find_unerased).await;
        compare("delete nothing", &few, &many, SWEEPS, Filled::delete_none).await;
    }
}

/// A database with a number of sessions.
struct Filled {
    store: Store,
    platform: PlatformId,
    owners: Vec<(ApiKeyId, KeyHash)>,
    /// Some of the sessions, each with the place of its owner.
    sessions: Vec<(SessionId, usize)>,
    /// Its number of sessions and of bytes.
    size: String,
}

impl Filled {
    async fn new(server: &str, sessions: u64) -> Self {
        let client = connect(server).await;
        let name = format!("bench_{}", Uuid::new_v4().simple());
        client.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("a database");
        let mut url = url::Url::parse(server).expect("a URL");
        url.set_path(&name);
        let store = Store::open(url.as_str(), Arc::new(XChaChaCipher::new(&[7; 32])));
        // The rows are multiplied: what is encrypted could be read in its own row only.
        let store = store.await.expect("a store").with_encryption(Encryption::Prepare);
        let client = connect(url.as_str()).await;
        let platform = first_session(&store).await;
        fill(&client, sessions).await;
        client.batch_execute("VACUUM (ANALYZE)").await.expect("statistics");
        let now = DateTime::from(std::time::SystemTime::now());
        while store.count_sessions(now, now - TimeDelta::days(1), 50).await.expect("counts") > 0 {}
        client.batch_execute("CHECKPOINT").await.expect("a checkpoint");
        let owners = "SELECT id::text, hash FROM api_keys WHERE label = 'growth' ORDER BY id";
        let owners = client.query(owners, &[]).await.expect("keys");
        let owners: Vec<(ApiKeyId, KeyHash)> = owners
            .iter()
            .map(|row| {
                let hash: Vec<u8> = row.get(1);
                (ApiKeyId::from_uuid(uuid(row.get(0))), KeyHash(hash.try_into().expect("32 bytes")))
            })
            .collect();
        let some = "SELECT s.id::text, s.owner::text FROM sessions s JOIN api_keys k ON k.id = s.owner \
                    WHERE k.label = 'growth' ORDER BY md5(s.id::text) LIMIT 20000";
        let some = if sessions > 100_000 {
            some.replace("FROM sessions s", "FROM sessions s TABLESAMPLE SYSTEM (0.5)")
        } else {
            some.to_owned()
        };
        let rows = client.query(&some, &[]).await.expect("sessions");
        let place = |owner: Uuid| {
            let owner = ApiKeyId::from_uuid(owner);
            owners.iter().position(|(id, _)| *id == owner).expect("an owner")
        };
        let sample = rows
            .iter()
            .map(|row| (SessionId::from_uuid(uuid(row.get(0))), place(uuid(row.get(1)))))
            .collect();
        let size = "SELECT pg_size_pretty(pg_database_size(current_database())), \
                    (SELECT count(*) FROM sessions)";
        let row = client.query_one(size, &[]).await.expect("a size");
        let size = format!("{} sessions, {}", row.get::<_, i64>(1), row.get::<_, String>(0));
        let store = store.with_pipelined_connection();
        Self { store, platform, owners, sessions: sample, size }
    }

    fn owner(&self, number: usize) -> &(ApiKeyId, KeyHash) {
        self.owners.get(number % self.owners.len()).expect("an owner")
    }

    async fn poll(&self, number: usize) {
        let (id, place) = self.sessions.get(number % self.sessions.len()).expect("a session");
        let (_, hash) = self.owner(*place);
        let (_, found) = self.store.poll(hash, *id).await.expect("a poll").expect("a key");
        assert!(found.is_some(), "the key owns the session");
    }

    async fn create(&self, number: usize) {
        let mut opening = sample::opening(self.owner(number).0, self.platform);
        opening.session.id = new_id();
        self.store.insert(&opening, None).await.expect("a new session");
    }

    async fn list(&self, number: usize) {
        let query = ListQuery { status: None, page: PageRequest { limit: 20, offset: 0 } };
        self.store.list(self.owner(number).0, query).await.expect("a list");
    }

    async fn timeline(&self, number: usize) {
        let (id, place) = self.sessions.get(number % self.sessions.len()).expect("a session");
        let lines = self.store.timeline(self.owner(*place).0, *id).await.expect("a timeline");
        assert!(lines.is_some_and(|lines| !lines.is_empty()), "it has entries");
    }

    async fn sweep(&self, _: usize) {
        self.store.find_due(noon(), 200).await.expect("what is due");
    }

    async fn find_unerased(&self, _: usize) {
        self.store.find_unerased(DateTime::UNIX_EPOCH, None, 200).await.expect("what to erase");
    }

    async fn delete_none(&self, _: usize) {
        let none = self.store.delete_erased_sessions(DateTime::UNIX_EPOCH, 200).await;
        assert_eq!(none.expect("a deletion"), 0);
    }
}

fn uuid(text: &str) -> Uuid {
    text.parse().expect("an identifier")
}

/// Returns an identifier as the service gives it.
fn new_id() -> SessionId {
    let since = UNIX_EPOCH.elapsed().expect("a time after 1970");
    let milliseconds = u64::try_from(since.as_millis()).expect("64 bits");
    let random = Uuid::new_v4().into_bytes();
    let random = random.last_chunk().expect("ten bytes");
    SessionId::from_uuid(
        uuid::Builder::from_unix_timestamp_millis(milliseconds, random).into_uuid(),
    )
}

/// Saves a session that ended, whose rows are then multiplied.
async fn first_session(store: &Store) -> PlatformId {
    let team = TeamId::from_u128(1);
    store.add_team(team, "Lender", noon()).await.expect("a team");
    let key = sample::key(team);
    store.add_key(&key, &KeyHash([1; 32]), "Backend", noon()).await.expect("a key");
    let definition = sample::definition("sample", "1.0.0");
    let (platform, _) = store.publish(&definition, None, noon()).await.expect("a platform");
    let opening = sample::opening(key.id, platform);
    store.insert(&opening, None).await.expect("a session");
    let ended = sample::transition(&opening.session, Event::TerminatedByPartner);
    store.commit(&ended, noon()).await.expect("an end");
    platform
}

/// Writes sessions that ended in the last 300 days, each with five entries of its timeline. Data of those
/// older than 30 days is erased.
async fn fill(client: &Client, sessions: u64) {
    let keys = format!(
        "INSERT INTO api_keys (id, team, environment, hash, created_at, label)
         SELECT gen_random_uuid(), team, 'production', sha256(n::text::bytea), created_at, 'growth'
         FROM api_keys, generate_series(1, {KEYS}) n;
         CREATE TEMPORARY TABLE growth_keys AS
             SELECT id, row_number() OVER (ORDER BY id) - 1 AS number FROM api_keys WHERE label = 'growth';
         CREATE UNIQUE INDEX ON growth_keys (number); ANALYZE growth_keys;"
    );
    client.batch_execute(&keys).await.expect("keys");
    let mut from = 0;
    while from < sessions {
        let to = (from + FILL_BATCH).min(sessions);
        let rows = format!(
            "CREATE TEMPORARY TABLE growth AS
               SELECT overlay(gen_random_uuid()::text PLACING substr(least_session_id(at)::text, 1, 13)
                              FROM 1 FOR 13)::uuid AS id, at, n
               FROM generate_series({from}::bigint, {to}::bigint - 1) n,
                    LATERAL (SELECT now() - interval '300 days'
                                    + n * (interval '300 days' / {sessions}) AS at) t;
             INSERT INTO sessions (id, owner, terms, state, status, progress, version, created_at,
                                   expires_at, closed_at, erased_at, platform)
               SELECT g.id, k.id, s.terms, s.state, s.status, s.progress, s.version, g.at,
                      g.at + interval '1 day', g.at + interval '5 minutes',
                      CASE WHEN g.at < now() - interval '30 days' THEN g.at + interval '30 days' END,
                      s.platform
               FROM growth g JOIN growth_keys k ON k.number = g.n % {KEYS},
                    (SELECT * FROM sessions LIMIT 1) s;
             INSERT INTO session_events (session, version, at, event, status)
               SELECT g.id, v, g.at + v * interval '1 minute', 'BrowserStarted', 'AWAITING_USER'
               FROM growth g, generate_series(1, 5) v;
             DROP TABLE growth;"
        );
        client.batch_execute(&rows).await.expect("sessions");
        from = to;
    }
}

/// Measures the same on both databases, one after the other, and prints the milliseconds.
async fn compare<'a, F: Future<Output = ()>>(
    name: &str,
    few: &'a Filled,
    many: &'a Filled,
    count: usize,
    work: impl Fn(&'a Filled, usize) -> F,
) {
    let [few, many] = [measured(few, count, &work).await, measured(many, count, &work).await];
    let ratio = many.1.as_secs_f64() / few.1.as_secs_f64();
    println!(
        "  {name}: p50 {:.2} ms, p99 {:.2} ms; with {FEW} sessions p50 {:.2} ms, p99 {:.2} ms; ratio of p99 \
         {ratio:.2}",
        many.0.as_secs_f64() * 1e3,
        many.1.as_secs_f64() * 1e3,
        few.0.as_secs_f64() * 1e3,
        few.1.as_secs_f64() * 1e3,
    );
}

/// Returns the median and the 99th percentile.
async fn measured<'a, F: Future<Output = ()>>(
    filled: &'a Filled,
    count: usize,
    work: &impl Fn(&'a Filled, usize) -> F,
) -> (Duration, Duration) {
    let (next, times) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(count)));
    let clients = (0..CLIENTS).map(|_| async {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let began = Instant::now();
            work(filled, number.wrapping_mul(7919)).await;
            times.lock().expect("no panic").push(began.elapsed());
        }
    });
    futures_util::future::join_all(clients).await;
    let mut times = times.into_inner().expect("no panic");
    times.sort_unstable();
    let at =
        |hundredths: usize| times.get(times.len() * hundredths / 100).copied().unwrap_or_default();
    (at(50), at(99))
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("a connection");
    tokio::spawn(connection);
    client
}
