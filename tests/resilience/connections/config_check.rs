//! `avouch config check`: reports every error at once, and no secret.

use std::{fs, process::Command};

use acceptance::{free_port, service::binary};
use testkit::redis::RedisServer;

use super::TlsServer;

/// Runs the check with these settings only; returns the exit code, the table, and the last line.
fn check(settings: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut command = Command::new(binary());
    command.env_clear().env("PATH", path).envs(settings.iter().copied());
    let output = command.args(["config", "check"]).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (table, complaint) = (text(&output.stdout), text(&output.stderr));
    println!("{:?}\n{table}{complaint}", output.status.code());
    for secret in ["geheim", "whsec"] {
        assert!(!table.contains(secret) && !complaint.contains(secret), "{table}{complaint}");
    }
    (output.status.code(), table, complaint)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_valid_configuration_is_reported_and_nothing_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let (code, table, _) = check(&[("AVOUCH_DATA_DIR", &data)]);
    assert_eq!(code, Some(0));
    let schema = "pending migrations, applied at the start: ";
    for part in ["settings", "is made at the first start", schema, "secret.key", "recordings"] {
        assert!(table.contains(part), "{table}");
    }
    assert!(!folder.path().join("data").exists(), "nothing is made");

    let secured = TlsServer::start().await;
    let redis = RedisServer::start_tls(&secured.authority.valid(&["127.0.0.1"]));
    let (data, roots) = (secured.data().display().to_string(), secured.file("ours.pem"));
    let (url, cache) = (secured.verified(), redis.url());
    let mut settings = vec![
        ("AVOUCH_DATA_DIR", data.as_str()),
        ("AVOUCH_DATABASE_URL", &url),
        ("AVOUCH_REDIS_URL", &cache),
        ("AVOUCH_REDIS_ROOTS", &roots),
        // Kubernetes sets these for a service that is called avouch.
        ("AVOUCH_SERVICE_HOST", "10.0.0.1"),
        ("AVOUCH_PORT_8080_TCP_ADDR", "10.0.0.1"),
    ];
    let (code, table, _) = check(&settings);
    assert_eq!(code, Some(0));
    assert!(table.contains("TLSv1.3, at localhost"), "{table}");
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    let made: i64 = secured.client().await.query_one(tables, &[]).await.unwrap().get(0);
    assert_eq!(made, 0, "nothing is migrated");
    assert!(!secured.data().exists(), "no data folder is created");

    // A process without the key of a database that has one.
    secured.team(&url, &[]).unwrap();
    let (code, table, _) = check(&settings);
    assert!(code == Some(0) && table.contains("as in the database"), "{table}");
    assert!(table.contains("that of this release"), "{table}");
    fs::remove_file(secured.data().join("secret.key")).unwrap();
    let (code, table, _) = check(&settings);
    assert!(code == Some(1) && table.contains("copy the file from another process"), "{table}");
    settings.push(("AVOUCH_DATABASE_SECONDS", "3"));
    let (_, _, complaint) = check(&settings);
    assert!(complaint.contains("has 2 errors"), "{complaint}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_error_is_reported_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let [database, redis, mail, bucket] = [(); 4].map(|()| free_port());
    let database = format!("postgres://ada:geheim@127.0.0.1:{database}/avouch");
    let redis = format!("redis://:geheim@127.0.0.1:{redis}");
    let mail = format!("smtp://ada:geheim@127.0.0.1:{mail}");
    let bucket = format!("http://127.0.0.1:{bucket}");
    let unreachable = [
        ("AVOUCH_DATA_DIR", data.as_str()),
        ("AVOUCH_DATABASE_URL", &database),
        ("AVOUCH_REDIS_URL", &redis),
        ("AVOUCH_SMTP_URL", &mail),
        ("AVOUCH_STORAGE_URL", "s3://bucket/prefix"),
        ("AWS_ACCESS_KEY_ID", "ada"),
        ("AWS_SECRET_ACCESS_KEY", "geheim"),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ENDPOINT", &bucket),
    ];
    let (code, table, complaint) = check(&unreachable);
    assert_eq!(code, Some(1));
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    assert!(complaint.contains("has 4 errors"), "{complaint}");
    for what in ["database", "redis", "mail", "recordings"] {
        let told = table.lines().any(|line| line.starts_with(what) && line.contains("error"));
        assert!(told, "{what}: {table}");
    }
    let (code, table, complaint) = check(&[
        ("AVOUCH_DATA_DIR", &data),
        ("AVOUCH_DATABSE_URL", "postgres://ada:geheim@db"),
        ("AVOUCH_LISTEN", "here"),
        ("AVOUCH_DATABASE_URL", "postgres://ada:geheim@db?sslmode=on"),
        ("AVOUCH_DATABASE_POOL_SECONDS", "0"),
        ("AVOUCH_REDIS_URL", "http://:geheim@cache"),
        ("AVOUCH_SEAL_KEYS_FILE", "/nowhere/keys"),
    ]);
    assert_eq!(code, Some(1));
    assert!(complaint.contains("has 6 errors"), "{complaint}");
    for part in [
        "AVOUCH_DATABSE_URL is no setting",
        "listen must",
        "sslmode must",
        "database_pool_seconds must be 1 to 60",
        "rediss://",
        "AVOUCH_SEAL_KEYS_FILE: /nowhere/keys cannot be read",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
}
