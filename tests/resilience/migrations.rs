//! `avouch migrate`, and the service on schemas of other releases.

use std::{
    process::{Command, Output},
    thread,
    time::{Duration, Instant},
};

use acceptance::{
    database::{Database, Kind},
    free_port, root,
    service::{Deployment, binary},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_postgres::Client;

/// The exit code of `migrate --check` if migrations are pending.
const PENDING: Option<i32> = Some(5);
/// How often two commands race.
const ROUNDS: usize = 5;

/// Returns the number of migrations of this release.
fn migrations() -> usize {
    let folder = std::fs::read_dir(root().join("migrations/postgres")).expect("the folder");
    folder.count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migrate_applies_what_is_missing_and_check_changes_nothing() {
    for kind in [Kind::Sqlite, Kind::Postgres] {
        let empty = Empty::new(kind).await;
        for _ in 0..2 {
            let checked = empty.run(&["migrate", "--check"]);
            assert_eq!(checked.status.code(), PENDING, "{checked:?}");
            assert_eq!(json_of(&checked)["pending"][0], "0001_first");
        }
        assert!(!empty.folder.path().join("data").exists(), "no data folder is created");
        let applied = empty.run(&["migrate"]);
        assert!(applied.status.success(), "{applied:?}");
        assert_eq!(json_of(&applied)["applied"][26], "0027_definition_drafts");
        assert_eq!(json_of(&empty.run(&["migrate"])), json!({ "applied": [], "newer": [] }));
        let checked = empty.run(&["migrate", "--check"]);
        assert!(checked.status.success(), "{checked:?}");
        assert_eq!(json_of(&checked), json!({ "pending": [], "newer": [] }));
        assert!(!empty.folder.path().join("data/secret.key").exists(), "no key is needed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_commands_at_once_each_migration_is_applied_by_one() {
    for kind in [Kind::Sqlite, Kind::Postgres].repeat(ROUNDS) {
        let empty = Empty::new(kind).await;
        let commands = [(); 2].map(|()| empty.command(&["migrate"]));
        let both = commands.map(|mut command| thread::spawn(move || command.output().unwrap()));
        let counts = both.map(|output| {
            let output = output.join().unwrap();
            assert!(output.status.success(), "{output:?}");
            json_of(&output)["applied"].as_array().unwrap().len()
        });
        assert_eq!(counts.iter().sum::<usize>(), migrations(), "{counts:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_not_up_yet_is_waited_for_within_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", free_port());
    let empty = Empty { folder, database: Database { url } };
    let began = Instant::now();
    let output = empty.run(&["migrate", "--wait", "2"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(began.elapsed() >= Duration::from_secs(2), "{:?}", began.elapsed());
    assert!(complaint(&output).contains("Connection refused"), "{output:?}");
    let output = empty.run(&["migrate", "--wait", "3601"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_may_not_migrate_refuses_to_start_without_a_migration() {
    for kind in [Kind::Sqlite, Kind::Postgres] {
        let empty = Empty::new(kind).await;
        for command in [&["serve"][..], &["admin", "create-team", "Lender"]] {
            let output = empty.command(command).env("AVOUCH_MIGRATE", "never").output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{output:?}");
            let complaint = complaint(&output);
            let lacks = format!("lacks {} migrations, 0001_first to ", migrations());
            assert!(complaint.contains(&lacks), "{complaint}");
            assert!(complaint.contains("run `avouch migrate`"), "{complaint}");
        }
        assert_eq!(empty.run(&["migrate", "--check"]).status.code(), PENDING);
        let mut check = empty.command(&["config", "check"]);
        let output = check.env("AVOUCH_MIGRATE", "never").output().unwrap();
        let table = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(1), "{table}");
        let pending = format!("pending migrations: {}; run `avouch migrate`", migrations());
        assert!(table.contains(&pending), "{table}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_runs_on_the_schema_of_a_newer_release() {
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    let newer = "INSERT INTO __diesel_schema_migrations (version) VALUES ('9001'); \
                 CREATE TABLE newer (id int); ALTER TABLE sessions ADD COLUMN newer text";
    deployment.database.execute(newer).await;
    for policy in ["at_start", "never"] {
        deployment.set("AVOUCH_MIGRATE", policy);
        deployment.run().await;
        let session = deployment.create(&json!({})).await;
        let id = session["sessionId"].as_str().unwrap();
        assert_eq!(deployment.session(id).await["status"], "CREATED");
        deployment.kill();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_does_not_migrate_needs_no_right_to_change_the_schema() {
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    let role = format!("service_{}", uuid::Uuid::new_v4().simple());
    let grants = format!(
        "CREATE ROLE {role} LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC;
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}"
    );
    deployment.database.execute(&grants).await;
    let owner = deployment.database.url.clone();
    let mut url = url::Url::parse(&owner).unwrap();
    url.set_username(&role).unwrap();
    deployment.set("AVOUCH_DATABASE_URL", url.to_string());
    deployment.set("AVOUCH_MIGRATE", "never");
    deployment.run().await;
    let session = deployment.create(&json!({})).await;
    let path = format!("browser-session/{}", session["sessionId"].as_str().unwrap());
    assert_eq!(deployment.partner.delete(&path).await.status, 200);
    let (client, connection) =
        tokio_postgres::connect(url.as_str(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    refused(&client, "CREATE TABLE a (id int)").await;
    refused(&client, "ALTER TABLE sessions ADD COLUMN a int").await;
    deployment.kill();
    deployment.database.execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
}

async fn refused(client: &Client, statement: &str) {
    let error = client.batch_execute(statement).await.unwrap_err();
    let code = error.code().map(tokio_postgres::error::SqlState::code);
    assert_eq!(code, Some("42501"), "{statement}: {error}");
}

/// An empty database, and a data folder that is not there yet.
struct Empty {
    folder: TempDir,
    database: Database,
}

impl Empty {
    async fn new(kind: Kind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut database = Database::new(kind, &folder).await;
        if kind == Kind::Sqlite {
            let file = folder.path().join("data/avouch.db");
            database = Database { url: format!("sqlite://{}", file.display()) };
        }
        Self { folder, database }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .env("AVOUCH_DATA_DIR", self.folder.path().join("data"))
            .env("AVOUCH_DATABASE_URL", &self.database.url)
            .env("AVOUCH_LISTEN", format!("127.0.0.1:{}", free_port()))
            .args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
