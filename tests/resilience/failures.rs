//! What a deployment depends on fails while it has sessions: the object store, and the disk.

use std::{fs, path::Path, process::Command, time::Duration};

use acceptance::{database::Kind, eventually, service::Deployment, video::files, visit::Visit};
use serde_json::json;
use testkit::s3::S3Server;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Recordings wait for the store; applicants and partners do not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_store_that_is_gone_delays_recordings_and_nothing_else() {
    let mut server = S3Server::start();
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    deployment.set("AVOUCH_STORAGE_URL", server.url());
    for (name, value) in server.variables() {
        deployment.set(name, value);
    }
    deployment.run().await;

    let applicant = Visit::start(&deployment).await;
    eventually("a segment to be stored", TIMEOUT, async || {
        (!files(&server.bucket()).is_empty()).then_some(())
    })
    .await;
    server.stop();
    let failed = fails(&deployment, applicant).await;
    // Longer than the three attempts that an encoding has.
    tokio::time::sleep(Duration::from_secs(45)).await;
    let recording = deployment.recording(&failed).await;
    assert!(matches!(recording["status"].as_str(), Some("pending" | "in_progress")), "{recording}");
    let applicant = Visit::start(&deployment).await;
    completes(&deployment, applicant).await;

    server.run();
    recorded(&deployment, &failed).await;
    let applicant = Visit::start(&deployment).await;
    let failed = fails(&deployment, applicant).await;
    recorded(&deployment, &failed).await;
    // The longer the store was gone, the later its deletions are repeated.
    eventually("nothing but two recordings to remain", 4 * TIMEOUT, async || {
        (files(&server.bucket()).len() == 2).then_some(())
    })
    .await;
}

/// With a database elsewhere, nothing but recordings needs the disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_ends_no_session_whose_database_is_elsewhere() {
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    let small = SmallDisk::mounted(&deployment.data());
    deployment.run().await;
    let applicant = Visit::start(&deployment).await;
    let filled = small.fill();
    completes(&deployment, applicant).await;
    let applicant = Visit::start(&deployment).await;
    fails(&deployment, applicant).await;
    fs::remove_file(filled).unwrap();
    let applicant = Visit::start(&deployment).await;
    let failed = fails(&deployment, applicant).await;
    recorded(&deployment, &failed).await;
    deployment.kill();
}

/// What cannot be stored is refused, and nothing that was stored is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_sessions_in_sqlite_until_there_is_room() {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    let folder = deployment.folder.path().join("database");
    fs::create_dir(&folder).unwrap();
    let small = SmallDisk::mounted(&folder);
    for file in ["avouch.db", "avouch.db-wal", "avouch.db-shm"] {
        let _ = fs::copy(deployment.folder.path().join(file), folder.join(file));
    }
    let url = format!("sqlite://{}", folder.join("avouch.db").display());
    deployment.set("AVOUCH_DATABASE_URL", &url);
    deployment.run().await;
    let mut created = vec![deployment.create(&json!({})).await];
    let filled = small.fill();
    let refused = eventually("a refusal", TIMEOUT, async || {
        let answer = deployment.partner.create(&json!({})).await;
        if answer.status == 201 {
            created.push(answer.at("/data").clone());
        }
        (answer.status != 201).then_some(answer)
    })
    .await;
    assert_eq!(refused.status, 500, "{}", refused.body);
    fs::remove_file(filled).unwrap();
    created.push(deployment.create(&json!({})).await);
    // Also after a crash.
    deployment.kill();
    deployment.run().await;
    for session in &created {
        let id = session["sessionId"].as_str().unwrap();
        assert_eq!(deployment.session(id).await["status"], "CREATED");
    }
    let applicant = Visit::of(&created.swap_remove(0)).await;
    completes(&deployment, applicant).await;
    deployment.kill();
}

/// The applicant signs in and consents, and the partner is told.
async fn completes(deployment: &Deployment, visit: Visit) {
    let id = visit.complete().await;
    delivered(deployment, &id).await;
}

/// The applicant signs in to an account whose page fails, and the partner is told. Returns the session.
async fn fails(deployment: &Deployment, visit: Visit) -> String {
    visit.applicant.top_level().sign_in("site_down", "any").await;
    deployment.until(&visit.id, "ERROR", TIMEOUT).await;
    delivered(deployment, &visit.id).await;
    visit.applicant.close().await;
    visit.id
}

async fn delivered(deployment: &Deployment, id: &str) {
    let told = async || (!deployment.deliveries(id).await.is_empty()).then_some(());
    eventually("the webhook", TIMEOUT, told).await;
}

async fn recorded(deployment: &Deployment, id: &str) {
    // The next attempt is as far away as the store was gone long: less than 160 s in this test.
    let recording = eventually("the recording", Duration::from_secs(300), async || {
        Some(deployment.recording(id).await).filter(|one| one["status"] == "completed")
    })
    .await;
    assert!(recording["recordingUrl"].is_string(), "{recording}");
}

/// A file system of a few MiB, unmounted when it is dropped.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mounted(folder: &Path) -> Self {
        fs::create_dir_all(folder).unwrap();
        let kept = tempfile::tempdir().unwrap();
        let disk = Self(folder.to_owned());
        let copy = |from: &Path, to: &Path| {
            let copied = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status();
            assert!(copied.unwrap().success(), "{} is copied", from.display());
        };
        copy(folder, kept.path());
        let mount = ["-t", "tmpfs", "-o", "size=24m", "tmpfs"];
        let mounted = Command::new("mount").args(mount).arg(folder).status().unwrap();
        assert!(mounted.success(), "a file system can be mounted here");
        copy(kept.path(), folder);
        disk
    }

    /// Writes until there is no room; returns the file.
    fn fill(&self) -> std::path::PathBuf {
        let file = self.0.join("filled");
        let mut content = vec![0; 32 * 1024 * 1024];
        while fs::write(&file, &content).is_err() && !content.is_empty() {
            let left = fs::metadata(&file).map_or(0, |written| written.len());
            content.truncate(usize::try_from(left).unwrap());
        }
        let more = self.0.join("more");
        assert!(fs::write(&more, vec![0; 65536]).is_err(), "the disk is full");
        let _ = fs::remove_file(more);
        file
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}
