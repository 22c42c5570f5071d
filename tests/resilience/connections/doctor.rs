//! `avouch doctor`: examines all that the service depends on, within half a minute, leaves nothing behind, and
//! shows no secret.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use acceptance::{free_port, service::binary};
use serde_json::Value;
use testkit::redis::RedisServer;

use super::TlsServer;

/// Longer than the bound of the command, for the start of the process on a busy machine.
const MAX_DURATION: Duration = Duration::from_secs(32);

/// Runs the command with these settings only; returns whether it succeeded, and its standard output.
fn doctor(temporary: &Path, settings: &[(&str, &str)], format: &str) -> (bool, String) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut command = Command::new(binary());
    command.env_clear().env("PATH", path).env("TMPDIR", temporary).envs(settings.iter().copied());
    let began = Instant::now();
    let output = command.args(["doctor", "--format", format]).output().unwrap();
    let took = began.elapsed();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (report, complaint) = (text(&output.stdout), text(&output.stderr));
    println!("{:?} in {took:?}\n{report}{complaint}", output.status.code());
    assert!(took < MAX_DURATION, "{took:?}");
    for secret in ["geheim", "whsec"] {
        assert!(!report.contains(secret) && !complaint.contains(secret), "{report}{complaint}");
    }
    assert_eq!(fs::read_dir(temporary).unwrap().count(), 0, "nothing of a browser remains");
    (output.status.success(), report)
}

/// Returns the worst status of each subject.
fn statuses(report: &str) -> Vec<(String, String)> {
    let report: Value = serde_json::from_str(report).unwrap();
    let mut all: Vec<(String, String)> = vec![];
    for check in report["checks"].as_array().unwrap() {
        let [subject, status] = ["subject", "status"].map(|name| check[name].as_str().unwrap());
        assert!(status == "ok" || check["advice"].is_string(), "{check}");
        let rank = |status: &str| ["ok", "warning", "failed"].iter().position(|it| *it == status);
        match all.iter_mut().find(|(known, _)| known == subject) {
            Some((_, worst)) if rank(worst) < rank(status) => status.clone_into(worst),
            Some(_) => (),
            None => all.push((subject.to_owned(), status.to_owned())),
        }
    }
    all
}

fn status(report: &str, subject: &str) -> String {
    let all = statuses(report);
    let found = all.iter().find(|(known, _)| known == subject);
    found.unwrap_or_else(|| panic!("{subject}: {all:?}")).1.clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_that_works_passes_and_nothing_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let (passed, report) = doctor(temporary.path(), &[("AVOUCH_DATA_DIR", &data)], "json");
    assert!(passed);
    let subjects: Vec<_> = statuses(&report).into_iter().map(|(subject, _)| subject).collect();
    assert_eq!(
        subjects,
        [
            "settings",
            "database",
            "data folder",
            "secret key",
            "certificate",
            "sandbox",
            "browser",
            "egress",
            "mail",
            "recordings",
            "redis",
            "attestor",
            "public url",
        ]
    );
    assert!(report.contains("Chrome/") && report.contains("in its sandbox"), "{report}");
    assert!(!folder.path().join("data").exists(), "nothing is made");

    let secured = TlsServer::start().await;
    let redis = RedisServer::start_tls(&secured.authority.valid(&["127.0.0.1"]));
    let (data, roots) = (secured.data().display().to_string(), secured.file("ours.pem"));
    let (url, cache) = (secured.verified(), redis.url());
    let settings = [
        ("AVOUCH_DATA_DIR", data.as_str()),
        ("AVOUCH_DATABASE_URL", &url),
        ("AVOUCH_REDIS_URL", &cache),
        ("AVOUCH_REDIS_ROOTS", &roots),
        ("AVOUCH_PUBLIC_URL", "https://avouch.example"),
    ];
    let (passed, report) = doctor(temporary.path(), &settings, "json");
    assert!(passed);
    assert!(report.contains("migrations are pending"), "{report}");
    for (subject, expected) in
        [("database", "warning"), ("redis", "ok"), ("public url", "warning"), ("secret key", "ok")]
    {
        assert_eq!(status(&report, subject), expected, "{subject}");
    }
    // The command migrates, and creates the key; a deployment without that key does not start.
    secured.team(&url, &[]).unwrap();
    let (passed, report) = doctor(temporary.path(), &settings, "json");
    assert!(passed && status(&report, "database") == "ok", "{report}");
    assert!(report.contains("as in the database"), "{report}");
    fs::remove_file(secured.data().join("secret.key")).unwrap();
    let (passed, report) = doctor(temporary.path(), &settings, "json");
    assert!(!passed && status(&report, "secret key") == "failed", "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_that_does_not_work_is_told_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let data = file.display().to_string();
    let [database, redis, mail, bucket, proxy, attestor] = [(); 6].map(|()| free_port());
    let database = format!("postgres://ada:geheim@127.0.0.1:{database}/avouch");
    let redis = format!("redis://:geheim@127.0.0.1:{redis}");
    let mail = format!("smtp://ada:geheim@127.0.0.1:{mail}");
    let bucket = format!("http://127.0.0.1:{bucket}");
    let proxy = format!("http://ada:geheim@127.0.0.1:{proxy}");
    let attestor = format!("tls://geheim@127.0.0.1:{attestor}");
    let key = "ab".repeat(32);
    let settings = [
        ("AVOUCH_DATA_DIR", data.as_str()),
        ("AVOUCH_DATABASE_URL", &database),
        ("AVOUCH_REDIS_URL", &redis),
        ("AVOUCH_SMTP_URL", &mail),
        ("AVOUCH_STORAGE_URL", "s3://bucket/prefix"),
        ("AVOUCH_BROWSER", "/nowhere/chromium"),
        ("AVOUCH_EGRESS_PROXY", &proxy),
        ("AVOUCH_EGRESS_ALLOW", "169.254.0.0/16"),
        ("AVOUCH_ATTESTOR_URL", &attestor),
        ("AVOUCH_ATTESTOR_KEY", &key),
        ("AVOUCH_PUBLIC_URL", "http://avouch.example"),
        ("AWS_ACCESS_KEY_ID", "ada"),
        ("AWS_SECRET_ACCESS_KEY", "geheim"),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ENDPOINT", &bucket),
        ("AVOUCH_INSTANCE_LISTEN", "127.0.0.1:8443"),
        ("AVOUCH_INSTANCE_CERT", "/nowhere/cert.pem"),
        ("AVOUCH_INSTANCE_KEY", "/nowhere/key.pem"),
        ("AVOUCH_INSTANCE_ROOTS", "/nowhere/roots.pem"),
        ("AVOUCH_DATABSE_URL", "postgres://ada:geheim@db"),
    ];
    let (passed, report) = doctor(temporary.path(), &settings, "json");
    assert!(!passed);
    for (subject, found) in statuses(&report) {
        let expected = match subject.as_str() {
            "settings" | "secret key" => "warning",
            _ => "failed",
        };
        assert_eq!(found, expected, "{subject}");
    }
    let (passed, report) = doctor(temporary.path(), &settings, "text");
    assert!(!passed);
    assert!(report.contains("what to do: start it, or correct redis_url"), "{report}");

    // Settings that cannot be read have no meaning: nothing else is examined.
    let (passed, report) = doctor(temporary.path(), &[("AVOUCH_LISTEN", "here")], "json");
    assert!(!passed && statuses(&report).len() == 1, "{report}");
}
