//! The cost of ending a session with one webhook, for the store alone: changes that share statements,
//! compared with a transaction for each in the same run. `cargo xtask bench ending`.
#![expect(clippy::expect_used, reason = "a benchmark panics to fail")]

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use domain::{
    api_key::KeyHash,
    id::{ApiKeyId, PlatformId, TeamId},
    session::{Change, Event},
};
use ports::{
    catalogue::Catalogue as _,
    key_store::{KeyStore as _, TeamStore as _},
    session_store::SessionStore as _,
    webhook_store::WebhookStore as _,
};
use store::Store;
use system::encryption::XChaChaCipher;
use testkit::sample::{self, noon};
use tokio_postgres::{Client, NoTls};

const SESSIONS: u32 = 10_000;
const CLIENTS: usize = 64;
/// A figure and its baseline are measured alternately, and the median counts.
const ROUNDS: usize = 3;

#[tokio::main]
async fn main() {
    let server = std::env::var("TEST_DATABASE_URL").expect("TEST_DATABASE_URL, a superuser's URL");
    let client = connect(&server).await;
    let name = format!("bench_{}", uuid::Uuid::new_v4().simple());
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("a database");
    let mut url = url::Url::parse(&server).expect("a URL");
    url.set_path(&name);
    let single = Store::open(url.as_str(), Arc::new(XChaChaCipher::new(&[7; 32])));
    let single = single.await.expect("a store");
    let home = home(&single).await;
    let shared = single.with_pipelined_connection();
    let client = connect(url.as_str()).await;
    // Without the extension there are no figures about statements.
    let _ = client.batch_execute("CREATE EXTENSION pg_stat_statements").await;

    for (name, store) in [("shared statements", &shared), ("a transaction each", &single)] {
        ended(store, home, 500).await;
        let mut rounds = vec![];
        for _ in 0..ROUNDS {
            rounds.push(measured(&client, store, home).await);
        }
        rounds.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
        let Some(figures) = rounds.get(ROUNDS / 2) else { continue };
        println!(
            "{name}: {:.0} ends/s; for each: {:.2} statements, {:.1} WAL records, {:.0} bytes of \
             WAL, {:.3} ms of PostgreSQL's CPU",
            figures.per_second, figures.statements, figures.records, figures.bytes, figures.cpu_ms
        );
    }
}

/// A key with a platform, whose team has one webhook.
async fn home(store: &Store) -> (ApiKeyId, PlatformId) {
    let team = TeamId::from_u128(1);
    store.add_team(team, "Lender", noon()).await.expect("a team");
    let key = sample::key(team);
    store.add_key(&key, &KeyHash([1; 32]), "Backend", noon()).await.expect("a key");
    store.add_webhook(&sample::webhook(team), &[], noon()).await.expect("a webhook");
    let definition = sample::definition("sample", "1.0.0");
    let (platform, _) = store.publish(&definition, None, noon()).await.expect("a platform");
    (key.id, platform)
}

struct Figures {
    per_second: f64,
    statements: f64,
    records: f64,
    bytes: f64,
    cpu_ms: f64,
}

/// Ends sessions, and returns what one end costs.
async fn measured(client: &Client, store: &Store, home: (ApiKeyId, PlatformId)) -> Figures {
    let changes = created(store, home, SESSIONS).await;
    client.batch_execute("CHECKPOINT").await.expect("a checkpoint");
    let before = counters(client).await;
    let began = Instant::now();
    commit(store, changes).await;
    let seconds = began.elapsed().as_secs_f64();
    // Sessions of PostgreSQL report their statistics after a second without a statement at most.
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    let after = counters(client).await;
    let count = f64::from(SESSIONS);
    let [statements, records, bytes, cpu_ms] =
        std::array::from_fn(|at| (after.get(at).zip(before.get(at))).map_or(0.0, |(a, b)| a - b))
            .map(|sum: f64| sum / count);
    Figures { per_second: count / seconds, statements, records, bytes, cpu_ms }
}

async fn ended(store: &Store, home: (ApiKeyId, PlatformId), count: u32) {
    commit(store, created(store, home, count).await).await;
}

/// Creates sessions, and returns the changes that end them.
async fn created(store: &Store, home: (ApiKeyId, PlatformId), count: u32) -> Vec<Change> {
    let openings: Vec<_> = (0..count).map(|_| sample::opening(home.0, home.1)).collect();
    let ends = openings.iter().map(|opening| {
        let mut change = sample::transition(&opening.session, Event::TerminatedByPartner);
        change.at = std::time::SystemTime::now().into();
        change
    });
    let ends = ends.collect();
    in_parallel(openings, async |opening| {
        store.clone().insert(&opening, None).await.expect("a new session");
    })
    .await;
    ends
}

async fn commit(store: &Store, changes: Vec<Change>) {
    in_parallel(changes, async |change| {
        let session = store.find_unscoped(change.session.id).await.expect("a read");
        assert!(session.is_some(), "it was created");
        store.commit(&change, noon()).await.expect("an end");
    })
    .await;
}

/// Does something with each of the changes, with [`CLIENTS`] at a time.
async fn in_parallel(changes: Vec<Change>, work: impl AsyncFn(Change)) {
    let next = AtomicUsize::new(0);
    let clients = (0..CLIENTS).map(|_| async {
        while let Some(change) = changes.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(change.clone()).await;
        }
    });
    futures_util::future::join_all(clients).await;
}

/// Returns the statements, the records and bytes of the write-ahead log, and the milliseconds of CPU
/// of the server's processes so far.
async fn counters(client: &Client) -> [f64; 4] {
    let wal = "SELECT wal_records::float8, wal_bytes::float8 FROM pg_stat_wal";
    let wal = client.query_one(wal, &[]).await.expect("statistics");
    let calls = "SELECT coalesce(sum(calls), 0)::float8 FROM pg_stat_statements s \
                 JOIN pg_database d ON d.oid = s.dbid AND d.datname = current_database()";
    let calls = client.query_one(calls, &[]).await.map_or(f64::NAN, |row| row.get(0));
    let pids = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()";
    let pids = client.query(pids, &[]).await.expect("processes");
    let cpu = pids.iter().map(|row| cpu_ms(row.get(0))).sum();
    [calls, wal.get(0), wal.get(1), cpu]
}

/// Returns the CPU time of a process on this machine; 0 elsewhere.
fn cpu_ms(pid: i32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // After the name in parentheses: utime and stime are the 12th and 13th, in ticks of 10 ms.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    fields.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() * 10.0
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("a connection");
    tokio::spawn(connection);
    client
}
