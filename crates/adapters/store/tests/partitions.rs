//! The monthly partitions of the timeline: rows keep their place in them, and none is dropped while it
//! has a session.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

use std::{
    fs,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use chrono::{DateTime, TimeZone as _, Utc};
use ports::session_store::SessionRetention as _;
use store::{SchemaPolicy, Store, Timeouts};
use system::encryption::XChaChaCipher;
use tokio_postgres::Client;
use uuid::Uuid;

/// The last step before the timeline has partitions.
const BEFORE: &str = "0028_instances";
const FIXTURE: &str = "
    INSERT INTO teams (id, name, created_at) VALUES ('00000000-0000-0000-0000-000000000001', 'A', now());
    INSERT INTO api_keys (id, team, environment, hash, created_at)
        VALUES ('00000000-0000-0000-0000-000000000002', '00000000-0000-0000-0000-000000000001',
                'production', '\\x00', now());
    INSERT INTO platforms (id, name, environment, version, is_active, created_at, updated_at)
        VALUES (1, 'a', 'production', '1.0.0', true, now(), now());";

/// Applies a step: its statements one by one where they cannot be in a transaction.
async fn apply(client: &tokio_postgres::Client, step: &str) {
    let statements: Vec<&str> = match step.strip_prefix("-- avouch:concurrently\n") {
        Some(statements) => statements.split_terminator(";\n").collect(),
        None => vec![step],
    };
    for statement in statements {
        client.batch_execute(statement).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_timeline_that_exists_becomes_the_first_partition() {
    let database = Database::new().await;
    let steps = steps();
    let (before, after): (Vec<_>, Vec<_>) =
        steps.into_iter().partition(|(name, _)| name.as_str() <= BEFORE);
    for (_, up) in before {
        apply(&database.client, &up).await;
    }
    database.client.batch_execute(FIXTURE).await.unwrap();
    database.client.batch_execute("CREATE ROLE reader_of_timelines").await.ok();
    database.execute("GRANT SELECT ON session_events TO reader_of_timelines").await;
    let now = DateTime::<Utc>::from(std::time::SystemTime::now());
    for day in 0..400 {
        database.session(now - chrono::TimeDelta::days(day)).await;
    }
    let shown = "SELECT string_agg(session || event || version || at, ',' ORDER BY session) FROM session_events";
    let rows: String = database.one(shown).await;
    for (_, up) in after {
        apply(&database.client, &up).await;
    }
    assert_eq!(database.one::<String>(shown).await, rows);
    assert_eq!(database.count("session_events_first").await, 400);
    let may = "SELECT has_table_privilege('reader_of_timelines', 'session_events', 'SELECT')";
    assert!(database.one::<bool>(may).await, "rights are kept");
    database.session(now).await;
    assert_eq!(database.count("session_events_first").await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_are_created_ahead_and_dropped_when_no_session_is_left() {
    let database = Database::migrated().await;
    let store = database.store().await;
    let years = |year, month| Utc.with_ymd_and_hms(year, month, 15, 12, 0, 0).unwrap();
    let never = years(1990, 1);
    store.maintain_partitions(years(2040, 11), never).await.unwrap();
    assert_eq!(
        database.partitions().await,
        ["first", "rest", "204011", "204012", "204101"].map(str::to_owned)
    );
    store.maintain_partitions(years(2040, 11), never).await.unwrap();
    assert_eq!(database.partitions().await.len(), 5, "once");

    let last_moment = Utc.with_ymd_and_hms(2040, 11, 30, 23, 59, 59).unwrap();
    let first_moment = Utc.with_ymd_and_hms(2040, 12, 1, 0, 0, 0).unwrap();
    let old = database.session(last_moment).await;
    database.session(first_moment).await;
    for (partition, rows) in [("204011", 1), ("204012", 1), ("rest", 0)] {
        let table = format!("session_events_{partition}");
        assert_eq!(database.count(&table).await, rows, "{partition}");
    }

    // A year later, all months until October are too old, but November has a session.
    store.maintain_partitions(years(2041, 12), years(2041, 1)).await.unwrap();
    let kept = ["rest", "204011", "204012", "204101", "204112", "204201", "204202"];
    assert_eq!(database.partitions().await, kept.map(str::to_owned));
    database.execute(&format!("DELETE FROM sessions WHERE id = '{old}'")).await;
    store.maintain_partitions(years(2041, 12), years(2041, 1)).await.unwrap();
    let kept = ["rest", "204012", "204101", "204112", "204201", "204202"];
    assert_eq!(database.partitions().await, kept.map(str::to_owned));
    assert_eq!(database.count("session_events").await, 1);
    // Never those of now, whatever the period is.
    store.maintain_partitions(years(2041, 12), years(2050, 1)).await.unwrap();
    let kept = ["rest", "204012", "204112", "204201", "204202"];
    assert_eq!(database.partitions().await, kept.map(str::to_owned));
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_month_without_a_partition_are_moved_to_it() {
    let database = Database::migrated().await;
    let at = Utc.with_ymd_and_hms(2045, 6, 30, 12, 0, 0).unwrap();
    database.session(at).await;
    database.session(at + chrono::TimeDelta::days(1)).await;
    database.session(at + chrono::TimeDelta::days(90)).await;
    assert_eq!(database.count("session_events_rest").await, 3);
    let never = DateTime::UNIX_EPOCH;
    database.store().await.maintain_partitions(at, never).await.unwrap();
    for (partition, rows) in [("204506", 1), ("204507", 1), ("204508", 0), ("rest", 1)] {
        let table = format!("session_events_{partition}");
        assert_eq!(database.count(&table).await, rows, "{partition}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_transaction_delays_maintenance_and_nobody_else() {
    let database = Database::migrated().await;
    let store = database.store().await;
    let mut other = database.connect().await;
    let long = other.transaction().await.unwrap();
    long.query("SELECT count(*) FROM session_events", &[]).await.unwrap();
    let at = Utc.with_ymd_and_hms(2045, 6, 30, 12, 0, 0).unwrap();
    let maintenance = async {
        let began = Instant::now();
        store.maintain_partitions(at, at).await.unwrap();
        began.elapsed()
    };
    let writes = async {
        let mut longest = Duration::ZERO;
        for _ in 0..50 {
            let began = Instant::now();
            database.session(at).await;
            longest = longest.max(began.elapsed());
        }
        longest
    };
    let (took, longest) = tokio::join!(maintenance, writes);
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(longest < Duration::from_secs(2), "{longest:?}");
    assert_eq!(database.partitions().await, ["first", "rest"].map(str::to_owned));
    long.rollback().await.unwrap();
    store.maintain_partitions(at, at).await.unwrap();
    assert_eq!(database.count("session_events_204506").await, 50);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_processes_one_maintains_the_partitions() {
    let database = Database::migrated().await;
    let store = database.store().await;
    for round in 0..10 {
        let at = Utc.with_ymd_and_hms(2050 + round, 6, 30, 12, 0, 0).unwrap();
        let tasks: Vec<_> = (0..6)
            .map(|_| {
                let store = store.clone();
                tokio::spawn(async move { store.maintain_partitions(at, at).await })
            })
            .collect();
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        let names = database.partitions().await;
        let ahead = format!("{}08", 2050 + round);
        assert!(names.contains(&ahead), "{names:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_month_that_has_passed_stay_as_long_as_their_session() {
    let database = Database::migrated().await;
    let store = database.store().await;
    let old = Utc.with_ymd_and_hms(2045, 6, 30, 12, 0, 0).unwrap();
    let gone = database.session(old).await;
    database.session(old + chrono::TimeDelta::seconds(1)).await;
    database.execute(&format!("DELETE FROM sessions WHERE id = '{gone}'")).await;
    let later = old + chrono::TimeDelta::days(400);
    store.maintain_partitions(later, old).await.unwrap();
    assert_eq!(database.count("session_events_rest").await, 2, "they are not too old");
    store.maintain_partitions(later, later).await.unwrap();
    assert_eq!(database.count("session_events_rest").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_must_not_delete_from_the_timeline_does_not_maintain_it() {
    let database = Database::migrated().await;
    database.client.batch_execute("CREATE ROLE stranger_to_timelines").await.ok();
    let stranger =
        "SET SESSION AUTHORIZATION stranger_to_timelines; SELECT maintain_timeline(now(), now())";
    let refused = database.connect().await.batch_execute(stranger).await.unwrap_err();
    let code = refused.code().expect("an error of the database");
    assert_eq!(*code, tokio_postgres::error::SqlState::INSUFFICIENT_PRIVILEGE);
}

/// Returns the steps of the schema with their statements, in their order.
fn steps() -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../migrations/postgres");
    let mut folders: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    let step = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path.join("up.sql")).unwrap())
    };
    folders.into_iter().map(step).collect()
}

/// A new database.
struct Database {
    url: String,
    client: Client,
}

impl Database {
    async fn new() -> Self {
        let server = std::env::var("TEST_DATABASE_URL").unwrap_or_else(|_| {
            panic!("TEST_DATABASE_URL must name a PostgreSQL server: run `cargo xtask test`")
        });
        let name = format!("test_{}", Uuid::new_v4().simple());
        connect(&server).await.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        let mut url = url::Url::parse(&server).unwrap();
        url.set_path(&name);
        let client = connect(url.as_str()).await;
        Self { url: url.to_string(), client }
    }

    /// A database with the schema of this release, a team, a key and a platform.
    async fn migrated() -> Self {
        let database = Self::new().await;
        database.store().await;
        database.client.batch_execute(FIXTURE).await.unwrap();
        database
    }

    async fn store(&self) -> Store {
        let cipher = Arc::new(XChaChaCipher::new(&[7; 32]));
        let url = self.url.parse().unwrap();
        let policy = SchemaPolicy::default();
        Store::connect(&url, Timeouts::default(), policy, cipher).await.unwrap()
    }

    async fn connect(&self) -> Client {
        connect(&self.url).await
    }

    async fn execute(&self, sql: &str) {
        self.client.batch_execute(sql).await.unwrap();
    }

    async fn one<T: for<'a> tokio_postgres::types::FromSql<'a>>(&self, sql: &str) -> T {
        self.client.query_one(sql, &[]).await.unwrap().get(0)
    }

    async fn count(&self, table: &str) -> i64 {
        self.one(&format!("SELECT count(*) FROM {table}")).await
    }

    /// Returns what the names of the partitions end with: those without a bound first.
    async fn partitions(&self) -> Vec<String> {
        let sql = "SELECT substring(partition::text FROM 'session_events_(.*)') \
                   FROM timeline_partitions ORDER BY lower NULLS FIRST, upper";
        let rows = self.client.query(sql, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// Writes a session that was created at this moment, with one entry of its timeline.
    async fn session(&self, at: DateTime<Utc>) -> Uuid {
        let time = u64::try_from(at.timestamp_millis()).unwrap();
        let random = Uuid::new_v4().into_bytes();
        let random = random.last_chunk().unwrap();
        let id = uuid::Builder::from_unix_timestamp_millis(time, random).into_uuid();
        self.execute(&format!(
            "INSERT INTO sessions (id, owner, terms, state, status, progress, version, created_at,
                                   expires_at, platform)
             VALUES ('{id}', '00000000-0000-0000-0000-000000000002', '', '', 'CREATED', 0, 1, now(),
                     now(), 1);
             INSERT INTO session_events (session, version, at, event, status)
             VALUES ('{id}', 1, now(), 'SessionCreated', 'CREATED')"
        ))
        .await;
        id
    }
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
