//! The release before can use the schema of this one: PostgreSQL plans each statement that it sends,
//! and the results have the types that it reads.
//!
//! The statements are in `migrations/statements-RELEASE.jsonl`; `cargo xtask record-release` writes them.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

use std::{collections::BTreeMap, fs, path::PathBuf};

use serde_json::Value;
use store::{DatabaseUrl, MigrationLimits, Migrator, Timeouts};
use tokio_postgres::{Client, error::DbError, types::Type};

#[tokio::test(flavor = "multi_thread")]
async fn the_release_before_can_use_this_schema() {
    let (client, release) = (migrated().await, Release::newest());
    assert!(release.statements.len() > 200, "{}", release.statements.len());
    let faults = release.faults(&client).await;
    assert!(faults.is_empty(), "release {} fails:\n{}", release.name, faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_the_release_before_cannot_use_is_noticed() {
    let release = Release::newest();
    for (change, part) in [
        ("ALTER TABLE brands DROP COLUMN colour", "does not exist"),
        ("ALTER TABLE webhooks RENAME COLUMN url TO address", "does not exist"),
        ("ALTER TABLE sessions ALTER COLUMN version TYPE bigint", "instead of"),
        ("DROP TABLE suppressions", "does not exist"),
        ("ALTER TABLE users DROP CONSTRAINT users_email_key", "ON CONFLICT"),
    ] {
        let client = migrated().await;
        client.batch_execute(change).await.unwrap();
        let faults = release.faults(&client).await;
        assert!(faults.iter().any(|fault| fault.contains(part)), "{change}: {faults:?}");
    }
}

/// What a release sends.
struct Release {
    name: String,
    statements: Vec<Value>,
}

impl Release {
    /// Reads the release that was recorded last.
    fn newest() -> Self {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../migrations");
        let list = fs::read_to_string(folder.join("releases.tsv")).unwrap();
        let name = list.lines().last().unwrap().split('\t').next().unwrap().to_owned();
        let file = folder.join(format!("statements-{name}.jsonl"));
        let lines = fs::read_to_string(file).unwrap();
        let statements = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Self { name, statements }
    }

    /// Returns why statements cannot be planned, or have other results than the release reads.
    async fn faults(&self, client: &Client) -> Vec<String> {
        let types = types(client).await;
        let mut faults = Vec::new();
        for statement in &self.statements {
            let text = statement.get("sql").and_then(Value::as_str).unwrap();
            let parameters = strings(statement.get("parameters").unwrap());
            let parameters: Vec<_> =
                parameters.iter().map(|name| types.get(name).unwrap().clone()).collect();
            let prepared = match client.prepare_typed(text, &parameters).await {
                Ok(prepared) => prepared,
                Err(error) => {
                    faults.push(format!("{}: {text}", message(&error)));
                    continue;
                }
            };
            if let Err(error) = plan(client, text, &parameters).await {
                faults.push(format!("{}: {text}", message(&error)));
            }
            let columns = prepared.columns().iter();
            let columns: Vec<_> = columns
                .map(|column| format!("{} {}", column.name(), column.type_().name()))
                .collect();
            let expected = statement.get("columns").unwrap().as_array().unwrap();
            let expected: Vec<_> =
                expected.iter().map(|column| strings(column).join(" ")).collect();
            if columns != expected {
                faults.push(format!("{columns:?} instead of {expected:?}: {text}"));
            }
        }
        faults
    }
}

/// Has a statement planned: only then does PostgreSQL look for the unique index of `ON CONFLICT`.
async fn plan(
    client: &Client,
    text: &str,
    parameters: &[Type],
) -> Result<(), tokio_postgres::Error> {
    let types: Vec<_> = parameters.iter().map(Type::name).collect();
    let nulls = vec!["NULL"; types.len()].join(", ");
    let (types, nulls) = match types.len() {
        0 => (String::new(), String::new()),
        _ => (format!("({})", types.join(", ")), format!("({nulls})")),
    };
    let plan = format!(
        "PREPARE released{types} AS {text}; SET plan_cache_mode = force_generic_plan;
         EXPLAIN EXECUTE released{nulls}; DEALLOCATE released"
    );
    let planned = client.batch_execute(&plan).await;
    if planned.is_err() {
        client.batch_execute("DEALLOCATE ALL").await?;
    }
    planned
}

fn message(error: &tokio_postgres::Error) -> &str {
    error.as_db_error().map_or("no answer", DbError::message)
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// Returns the built-in types by name.
async fn types(client: &Client) -> BTreeMap<String, Type> {
    let rows = client.query("SELECT typname::text, oid FROM pg_type", &[]).await.unwrap();
    let types = rows.iter().map(|row| (row.get(0), Type::from_oid(row.get(1))));
    types.filter_map(|(name, known)| Some((name, known?))).collect()
}

/// Connects to a new database with the schema of this release.
async fn migrated() -> Client {
    let server = std::env::var("TEST_DATABASE_URL").unwrap_or_else(|_| {
        panic!("TEST_DATABASE_URL must name a PostgreSQL server: run `cargo xtask test`")
    });
    let name = format!("test_{}", uuid::Uuid::new_v4().simple());
    connect(&server).await.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    let mut url = url::Url::parse(&server).unwrap();
    url.set_path(&name);
    let parsed: DatabaseUrl = url.as_str().parse().unwrap();
    let migrator = Migrator::new(&parsed, Timeouts::default());
    migrator.apply(MigrationLimits::default()).await.unwrap();
    connect(url.as_str()).await
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
