//! The scripts of `deploy/backup`: a database that is destroyed is restored to a time from a base backup
//! and the archive of its log, and the service goes on from there.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use acceptance::{
    database::Database,
    eventually,
    postgres::OwnPostgres,
    root,
    service::Deployment,
    webhook_endpoint::{Attempt, Endpoint, Reply},
};
use postgres_server::give_to_postgres;
use serde_json::{Value, json};
use tempfile::TempDir;

const TIMEOUT: Duration = Duration::from_secs(90);
const SCRIPTS: [&str; 4] = ["archive-wal.sh", "base-backup.sh", "prune.sh", "restore.sh"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_destroyed_database_is_restored_to_a_time_and_what_was_owed_then_is_delivered() {
    let (open, told) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let endpoint = {
        let (open, told) = (Arc::clone(&open), Arc::clone(&told));
        Endpoint::start(move |attempt| {
            let door = if attempt.path == "/early" { &told } else { &open };
            Reply::Status(if door.load(Ordering::SeqCst) { 204 } else { 503 })
        })
        .await
    };
    let backups = Backups::prepare();
    let server = backups.archived_server();
    let mut deployment = Deployment::on(Database { url: server.url.clone() });
    let secrets = register(&mut deployment, &endpoint);
    deployment.run().await;
    let kept = backups.keep_key(&deployment);

    // Before the base backup, after it, and after the time that is restored.
    let waiting = create(&deployment, "waiting").await;
    let mut known = vec![end(&deployment, "before").await];
    let backup = backups.base_backup(&server);
    known.push(end(&deployment, "after").await);
    let owed = attempted(&endpoint, &known).await;
    let time = now(&server).await;
    let unknown = end(&deployment, "unknown").await;
    told.store(true, Ordering::SeqCst);
    for id in known.iter().chain([&unknown]) {
        delivered(&endpoint, id, "/early").await;
    }
    archived(&server).await;

    deployment.kill();
    drop(server);
    fs::remove_dir_all(deployment.data()).unwrap();
    let before = endpoint.take();
    let server = backups.restore(&backup, &time);
    until_writable(&server).await;
    deployment.set("AVOUCH_DATABASE_URL", server.url.clone());
    deployment.set("AVOUCH_DATA_DIR", kept.path().display().to_string());
    open.store(true, Ordering::SeqCst);
    deployment.run().await;

    // What was owed at that time is delivered, also what was delivered after it: with the same identifier.
    for id in &known {
        for path in ["/early", "/late"] {
            let attempt = delivered(&endpoint, id, path).await;
            let name = (path.to_owned(), id.clone());
            assert_eq!(attempt.header("webhook-id"), owed[&name], "{path}");
            assert!(attempt.signed_with(&secrets[path]), "{path}: the signature");
            let body: Value = serde_json::from_str(&attempt.body).unwrap();
            assert_eq!(body["metadata"]["note"], "encrypted at rest", "{body}");
        }
    }
    assert!(before.iter().any(|attempt| attempt.field("sessionId") == unknown));
    let unknown_again = deployment.partner.get(&format!("browser-session/{unknown}")).await;
    assert_eq!(unknown_again.status, 404, "{}", unknown_again.body);
    let again = endpoint.take();
    assert!(again.iter().all(|attempt| attempt.field("sessionId") != unknown));
    // Encrypted values can be read, and sessions that were open go on.
    let session = deployment.session(&waiting).await;
    assert_eq!(
        (&session["status"], &session["externalReferenceId"]),
        (&json!("CREATED"), &json!("waiting"))
    );
    for id in [waiting, end(&deployment, "new").await] {
        deployment.partner.delete(&format!("browser-session/{id}")).await;
        delivered(&endpoint, &id, "/late").await;
    }
    backups.prune(&server);
}

#[test]
fn the_scripts_refuse_arguments_that_could_do_harm() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for name in ["archive", "data", "full", "backup"] {
        fs::create_dir(path(name)).unwrap();
    }
    for name in ["full/file", "backup/backup_manifest", "segment"] {
        fs::write(path(name), "content").unwrap();
    }
    fs::write(path("archive/000000010000000000000001"), "another content").unwrap();
    let refused = |script: &str, arguments: &[&str], expected: &str| {
        let file = root().join("deploy/backup").join(script);
        let output = Command::new("sh").arg(file).args(arguments).output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && complaint.contains(expected), "{script}: {complaint}");
    };
    let [archive, data, full, backup, segment] =
        ["archive", "data", "full", "backup", "segment"].map(path);
    for script in SCRIPTS {
        refused(script, &[], "usage: ");
    }
    refused("archive-wal.sh", &[&segment, "../name", &archive], "is no name");
    refused("archive-wal.sh", &[&segment, "000000010000000000000001", &archive], "another content");
    refused("archive-wal.sh", &[&segment, "000000010000000000000002", &path("none")], "no folder");
    refused("restore.sh", &[&backup, &archive, &full], "is not empty");
    refused("restore.sh", &[&full, &archive, &data], "is no base backup");
    refused("restore.sh", &[&backup, "/wal' and more", &data], "the archive's path");
    refused("restore.sh", &[&backup, "wal", &data], "the archive's path");
    for time in ["now", "2026-01-31", "2026-01-31T12:00:00", "2026-01-31T12:00:00Z'"] {
        refused("restore.sh", &[&backup, &archive, &data, time], "is no time");
    }
    refused("restore.sh", &[&backup, &archive, &data, "", "newest"], "timeline");
    for keep in ["0", "-1", "some"] {
        refused("prune.sh", &[&backup, &archive, keep], "KEEP");
    }
    assert_eq!(fs::read_dir(path("data")).unwrap().count(), 0, "nothing was written");
    let archived = fs::read_to_string(path("archive/000000010000000000000001")).unwrap();
    assert_eq!(archived, "another content");
}

/// The installed scripts, the base backups and the archive, in a folder of the database's user.
struct Backups {
    folder: TempDir,
}

impl Backups {
    fn prepare() -> Self {
        let folder = tempfile::tempdir().unwrap();
        give_to_postgres(folder.path()).unwrap();
        for name in SCRIPTS {
            let file = folder.path().join(name);
            fs::copy(root().join("deploy/backup").join(name), &file).unwrap();
            give_to_postgres(&file).unwrap();
        }
        for name in ["base", "wal"] {
            fs::create_dir(folder.path().join(name)).unwrap();
            give_to_postgres(&folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// A server that archives its log as the operator's guide describes it.
    fn archived_server(&self) -> OwnPostgres {
        let server = OwnPostgres::start();
        let command =
            format!("\"{}\" \"%p\" \"%f\" \"{}\"", self.text("archive-wal.sh"), self.text("wal"));
        let settings = format!("archive_mode = on\narchive_command = '{command}'\n");
        server.write("postgresql.auto.conf", &settings).unwrap();
        server.crash();
        server
    }

    fn base_backup(&self, server: &OwnPostgres) -> String {
        let printed = server.run_script(&self.path("base-backup.sh"), &[&self.text("base")]);
        let folder = printed.trim().to_owned();
        assert!(Path::new(&folder).join("backup_manifest").is_file(), "{folder}");
        folder
    }

    /// Restores to another server, and starts it.
    fn restore(&self, backup: &str, time: &str) -> OwnPostgres {
        let server = OwnPostgres::without_data();
        fs::create_dir(server.data()).unwrap();
        give_to_postgres(&server.data()).unwrap();
        let data = server.data().display().to_string();
        let arguments = [backup, &self.text("wal"), &data, time];
        println!("{}", server.run_script(&self.path("restore.sh"), &arguments).trim());
        server.run().unwrap();
        server
    }

    /// A second base backup is kept alone, with the log that it needs.
    fn prune(&self, server: &OwnPostgres) {
        let segments = || fs::read_dir(self.path("wal")).unwrap().count();
        let (backup, before) = (self.base_backup(server), segments());
        let arguments: [&str; 3] = [&self.text("base"), &self.text("wal"), "1"];
        server.run_script(&self.path("prune.sh"), &arguments);
        let left: Vec<_> = fs::read_dir(self.path("base")).unwrap().flatten().collect();
        assert_eq!(left.len(), 1, "{left:?}");
        assert_eq!(left[0].path().display().to_string(), backup);
        assert!(segments() < before, "the log before it is removed");
    }

    /// Copies `secret.key`, which is not in the database, to another folder of data.
    fn keep_key(&self, deployment: &Deployment) -> TempDir {
        let folder = tempfile::tempdir_in(self.folder.path()).unwrap();
        fs::copy(deployment.data().join("secret.key"), folder.path().join("secret.key")).unwrap();
        folder
    }
}

/// Registers two webhooks instead of the demo partner's; returns their secrets by path.
fn register(deployment: &mut Deployment, endpoint: &Endpoint) -> HashMap<&'static str, String> {
    deployment.set("AVOUCH_EGRESS_ALLOW", "127.0.0.1/32");
    deployment.set("AVOUCH_WEBHOOK_BACKOFF", "2x2");
    let team = deployment.team.clone();
    let listed = deployment.admin(&["list-webhooks", "--team", &team]);
    let demo = listed["webhooks"][0]["webhookId"].as_str().unwrap().to_owned();
    deployment.admin(&["set-webhook", &demo, "--active", "false"]);
    let secrets = ["/early", "/late"].map(|path| {
        let url = endpoint.url(&path[1..]);
        let new = ["create-webhook", "--team", &team, "--url", &url, "--retries", "10"];
        (path, deployment.admin(&new)["secret"].as_str().unwrap().to_owned())
    });
    HashMap::from(secrets)
}

async fn create(deployment: &Deployment, reference: &str) -> String {
    let body = json!({
        "externalReferenceId": reference,
        "receiverData": { "metadata": { "note": "encrypted at rest" } },
    });
    deployment.create(&body).await["sessionId"].as_str().unwrap().to_owned()
}

/// Creates a session and terminates it, so that it owes deliveries.
async fn end(deployment: &Deployment, reference: &str) -> String {
    let id = create(deployment, reference).await;
    let ended = deployment.partner.delete(&format!("browser-session/{id}")).await;
    assert_eq!(ended.at("/data/status"), "TERMINATED");
    id
}

/// Waits until each delivery was attempted, and returns its identifier by path and session.
async fn attempted(endpoint: &Endpoint, sessions: &[String]) -> HashMap<(String, String), String> {
    let mut found = HashMap::new();
    eventually("an attempt of each delivery", TIMEOUT, async || {
        found.extend(endpoint.take().into_iter().map(|attempt| {
            let name = (attempt.path.clone(), attempt.field("sessionId").to_owned());
            (name, attempt.header("webhook-id").to_owned())
        }));
        (found.len() == 2 * sessions.len()).then_some(())
    })
    .await;
    found
}

/// Waits until a session's delivery has arrived at a path where it is accepted.
async fn delivered(endpoint: &Endpoint, session: &str, path: &str) -> Attempt {
    eventually(&format!("{session} at {path}"), TIMEOUT, async || {
        let wanted = |attempt: &Attempt| {
            attempt.accepted() && attempt.path == path && attempt.field("sessionId") == session
        };
        endpoint.find(wanted).pop()
    })
    .await
}

/// The time of the database, as the script takes it.
async fn now(server: &OwnPostgres) -> String {
    let database = Database { url: server.url.clone() };
    database
        .value("SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')")
        .await
}

/// Waits until a restored server has reached the time.
async fn until_writable(server: &OwnPostgres) {
    let database = Database { url: server.url.clone() };
    eventually("the restore to end", TIMEOUT, async || {
        (database.value("SELECT pg_is_in_recovery()::text").await == "false").then_some(())
    })
    .await;
}

/// Waits until all that was written so far is in the archive.
async fn archived(server: &OwnPostgres) {
    let database = Database { url: server.url.clone() };
    let last = database.value("SELECT pg_walfile_name(pg_switch_wal())").await;
    eventually("the log to be archived", TIMEOUT, async || {
        let archived =
            database.value("SELECT coalesce(last_archived_wal, '') FROM pg_stat_archiver").await;
        (archived >= last).then_some(())
    })
    .await;
}
