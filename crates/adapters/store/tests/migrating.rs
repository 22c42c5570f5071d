//! Applying migrations: several processes at once, locks that are taken, time limits, and schemas of
//! other releases.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

use std::{
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};

use ports::StoreError;
use store::{
    DatabaseUrl, Migration, MigrationError, MigrationLimits, Migrator, SchemaPolicy, Store,
    Timeouts,
};
use system::encryption::XChaChaCipher;
use tempfile::TempDir;
use tokio_postgres::Client;

/// Limits under which a test does not wait for long.
const QUICK: MigrationLimits = MigrationLimits {
    migration: Duration::from_secs(20),
    lock: Duration::from_millis(200),
    attempts: 3,
    backoff: Duration::from_millis(100),
    turn: Duration::from_secs(20),
};
/// A migrator that waits longer than one attempt for a lock would hold others up for this long.
const MAX_HOLD: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn of_several_migrators_each_step_is_applied_by_one() {
    for _ in 0..3 {
        // An index could not be made concurrently while another migrator waits with a snapshot.
        for (place, last) in [(Place::sqlite(), None), (Place::postgres().await, Some(index()))] {
            let tasks: Vec<_> = (0..6)
                .map(|_| {
                    let (url, last) = (place.url.clone(), last.clone());
                    tokio::spawn(
                        async move { migrator(&url).with(last).apply(QUICK).await.unwrap() },
                    )
                })
                .collect();
            let mut applied = Vec::new();
            for task in tasks {
                applied.extend(task.await.unwrap());
            }
            applied.sort();
            let mut once = applied.clone();
            once.dedup();
            assert_eq!(applied, once, "each step once");
            assert!(applied.len() >= 27, "{applied:?}");
            assert_eq!(migrator(&place.url).status().await.unwrap().pending, [""; 0]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migrator_that_gets_no_lock_gives_up_and_leaves_nothing_while_others_write() {
    let place = Place::migrated().await;
    let mut other = place.client().await;
    let long = other.transaction().await.unwrap();
    long.execute("LOCK TABLE teams IN ROW EXCLUSIVE MODE", &[]).await.unwrap();

    let step = Migration::new(
        "9001_blocked",
        "CREATE TABLE before_it (id int); ALTER TABLE teams ADD COLUMN added text",
    );
    let writes = writes(&place);
    let began = Instant::now();
    let error = migrator(&place.url).with([step.clone()]).apply(QUICK).await.unwrap_err();
    let took = began.elapsed();
    let text = chain(&error);
    assert!(text.contains("9001_blocked got no lock in 3 attempts of 200 ms"), "{text}");
    assert!(text.contains("oldest open transactions are of process"), "{text}");
    assert!(!text.contains("LOCK TABLE"), "statements of others are not told: {text}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    let (count, longest) = writes.await;
    assert!(count > 20, "only {count} writes");
    assert!(longest < MAX_HOLD, "a write waited for {longest:?}");

    assert!(!place.has("to_regclass('before_it') IS NOT NULL").await, "all of it was rolled back");
    let pending = migrator(&place.url).with([step.clone()]).status().await.unwrap().pending;
    assert_eq!(pending, ["9001_blocked"]);
    long.rollback().await.unwrap();
    assert_eq!(migrator(&place.url).with([step]).apply(QUICK).await.unwrap(), ["9001_blocked"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_migration_is_applied_once_the_lock_is_free() {
    let place = Place::migrated().await;
    let mut other = place.client().await;
    let long = other.transaction().await.unwrap();
    long.execute("LOCK TABLE teams IN ROW EXCLUSIVE MODE", &[]).await.unwrap();
    let url = place.url.clone();
    let migrating = tokio::spawn(async move {
        let step = Migration::new("9001_blocked", "ALTER TABLE teams ADD COLUMN added text");
        let limits = MigrationLimits { attempts: 50, ..QUICK };
        migrator(&url).with([step]).apply(limits).await
    });
    let waits =
        "EXISTS (SELECT 1 FROM pg_locks WHERE relation = 'teams'::regclass AND NOT granted)";
    place.until(waits).await;
    long.commit().await.unwrap();
    assert_eq!(migrating.await.unwrap().unwrap(), ["9001_blocked"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_migrator_is_waited_for_no_longer_than_the_limit() {
    let place = Place::migrated().await;
    let other = place.client().await;
    other.execute("SELECT pg_advisory_lock(4852310117)", &[]).await.unwrap();
    let step = Migration::new("9001_next", "CREATE TABLE added (id int)");
    let limits = MigrationLimits { turn: Duration::from_millis(600), ..QUICK };
    let error = migrator(&place.url).with([step]).apply(limits).await.unwrap_err();
    assert!(matches!(cause(&error), MigrationError::Busy(_)), "{error:?}");
    // A process that lacks nothing does not wait.
    place.open(SchemaPolicy::Migrate(limits)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_migration_leaves_nothing_and_those_before_it_stay() {
    for (place, stay) in [(Place::sqlite(), false), (Place::postgres().await, true)] {
        migrator(&place.url).apply(QUICK).await.unwrap();
        let steps = || {
            let fine = Migration::new("9001_fine", "CREATE TABLE fine (id int);");
            let fails = "CREATE TABLE half (id int); INSERT INTO half VALUES (1); SELECT nothing;";
            [fine, Migration::new("9002_fails", fails)]
        };
        let error = migrator(&place.url).with(steps()).apply(QUICK).await.unwrap_err();
        let text = chain(&error);
        assert!(text.contains("9002_fails failed and was rolled back: "), "{text}");
        let pending = migrator(&place.url).with(steps()).status().await.unwrap().pending;
        // All migrations of SQLite are one transaction.
        let expected: &[&str] = if stay { &["9002_fails"] } else { &["9001_fine", "9002_fails"] };
        assert_eq!(pending, expected);
        if stay {
            assert!(!place.has("to_regclass('half') IS NOT NULL").await);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_takes_too_long_is_ended() {
    let place = Place::migrated().await;
    let step = Migration::new("9001_slow", "CREATE TABLE half (id int); SELECT pg_sleep(30)");
    let limits = MigrationLimits { migration: Duration::from_millis(400), ..QUICK };
    let began = Instant::now();
    let error = migrator(&place.url).with([step]).apply(limits).await.unwrap_err();
    assert!(matches!(cause(&error), MigrationError::TooLong { .. }), "{error:?}");
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(!place.has("to_regclass('half') IS NOT NULL").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_made_concurrently_holds_nobody_up_and_is_made_anew_after_a_failure() {
    let place = Place::migrated().await;
    let mut other = place.client().await;
    let long = other.transaction().await.unwrap();
    long.execute("LOCK TABLE teams IN ROW EXCLUSIVE MODE", &[]).await.unwrap();
    let writes = writes(&place);
    let limits = MigrationLimits { migration: Duration::from_millis(800), ..QUICK };
    let error = migrator(&place.url).with([index()]).apply(limits).await.unwrap_err();
    assert!(matches!(cause(&error), MigrationError::TooLong { .. }), "{error:?}");
    let (count, longest) = writes.await;
    assert!(count > 20 && longest < QUICK.lock, "{count} writes, the longest {longest:?}");
    let valid = "EXISTS (SELECT 1 FROM pg_index WHERE indisvalid \
                 AND indexrelid = to_regclass('teams_by_name'))";
    assert!(!place.has(valid).await);
    long.rollback().await.unwrap();
    assert_eq!(migrator(&place.url).with([index()]).apply(QUICK).await.unwrap(), ["9001_index"]);
    assert!(place.has(valid).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_may_not_migrate_is_opened_with_a_complete_schema_only() {
    for place in [Place::sqlite(), Place::postgres().await] {
        let Err(error) = place.open(SchemaPolicy::Require).await else { panic!("it was opened") };
        let text = chain(&error);
        assert!(text.contains("lacks") && text.contains("run `avouch migrate`"), "{text}");
        let pending = migrator(&place.url).status().await.unwrap().pending;
        assert!(pending.len() >= 27, "nothing was applied: {pending:?}");
        migrator(&place.url).apply(QUICK).await.unwrap();
        place.open(SchemaPolicy::Require).await.unwrap().ping().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_schema_of_a_newer_release_is_accepted() {
    for place in [Place::sqlite(), Place::postgres().await] {
        let newer = Migration::new("9001_newer", "CREATE TABLE newer (id int)");
        migrator(&place.url).with([newer]).apply(QUICK).await.unwrap();
        let status = migrator(&place.url).status().await.unwrap();
        assert_eq!((status.pending, status.newer), (vec![], vec!["9001".to_owned()]));
        for policy in [SchemaPolicy::Require, SchemaPolicy::Migrate(QUICK)] {
            place.open(policy).await.unwrap().ping().await.unwrap();
        }
    }
}

/// An empty database.
struct Place {
    url: DatabaseUrl,
    text: String,
    _folder: Option<TempDir>,
}

impl Place {
    fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("sqlite://{}", folder.path().join("store.db").display());
        Self { url: text.parse().unwrap(), text, _folder: Some(folder) }
    }

    async fn postgres() -> Self {
        let server = std::env::var("TEST_DATABASE_URL").unwrap_or_else(|_| {
            panic!("TEST_DATABASE_URL must name a PostgreSQL server: run `cargo xtask test`")
        });
        let name = format!("test_{}", uuid::Uuid::new_v4().simple());
        connect(&server).await.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        let mut url = url::Url::parse(&server).unwrap();
        url.set_path(&name);
        Self { url: url.as_str().parse().unwrap(), text: url.to_string(), _folder: None }
    }

    /// A PostgreSQL database with the schema of this release.
    async fn migrated() -> Self {
        let place = Self::postgres().await;
        migrator(&place.url).apply(QUICK).await.unwrap();
        place
    }

    async fn open(&self, policy: SchemaPolicy) -> Result<Store, StoreError> {
        let cipher = Arc::new(XChaChaCipher::new(&[7; 32]));
        Store::connect(&self.url, Timeouts::default(), policy, cipher).await
    }

    async fn client(&self) -> Client {
        connect(&self.text).await
    }

    async fn has(&self, condition: &str) -> bool {
        let client = self.client().await;
        client.query_one(&format!("SELECT {condition}"), &[]).await.unwrap().get(0)
    }

    async fn until(&self, condition: &str) {
        let ends = Instant::now() + Duration::from_secs(20);
        while !self.has(condition).await {
            assert!(Instant::now() < ends, "waited for {condition}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// A step that creates an index outside of a transaction.
fn index() -> Migration {
    let up = "-- avouch:concurrently\nDROP INDEX CONCURRENTLY IF EXISTS teams_by_name;\n\
              CREATE INDEX CONCURRENTLY teams_by_name ON teams (name);\n";
    Migration::new("9001_index", up)
}

fn migrator(url: &DatabaseUrl) -> Migrator<'_> {
    Migrator::new(url, Timeouts::default())
}

/// Writes to `teams` for three quarters of a second; returns how often, and the longest wait.
fn writes(place: &Place) -> impl Future<Output = (u32, Duration)> + use<> {
    let url = place.text.clone();
    let task = tokio::spawn(async move {
        let (client, began) = (connect(&url).await, Instant::now());
        let insert = "INSERT INTO teams (id, name, created_at) \
                      VALUES (gen_random_uuid(), 'one', now())";
        let (mut count, mut longest) = (0, Duration::ZERO);
        while began.elapsed() < Duration::from_millis(750) {
            let one = Instant::now();
            client.execute(insert, &[]).await.unwrap();
            longest = longest.max(one.elapsed());
            count += 1;
        }
        (count, longest)
    });
    async move { task.await.unwrap() }
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

fn cause(error: &StoreError) -> &MigrationError {
    error.source().and_then(|cause| cause.downcast_ref()).unwrap()
}

/// An error and its causes in one line.
fn chain(error: &dyn Error) -> String {
    let (mut line, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        line = format!("{line}: {error}");
        cause = error.source();
    }
    line
}
