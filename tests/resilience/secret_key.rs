//! `secret.key`: one file for all processes, whose fingerprint is in the database, and which is
//! rotated without losing anything.

use std::{fs, path::Path, time::Duration};

use acceptance::{
    database::{Database, Kind},
    eventually,
    service::Deployment,
};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_without_the_key_file_creates_none() {
    for kind in [Kind::Sqlite, Kind::Postgres] {
        let deployment = Deployment::prepare(kind).await;
        let elsewhere = deployment.folder.path().join("elsewhere");
        let refused = complaint(&deployment, &elsewhere);
        for part in ["belongs to the secret.key", "there is no", "elsewhere/secret.key", "copy"] {
            assert!(refused.contains(part), "{refused}");
        }
        assert!(!elsewhere.join("secret.key").exists(), "{kind:?}");
        // With a copy of the other processes' file it starts.
        fs::copy(deployment.data().join("secret.key"), elsewhere.join("secret.key")).unwrap();
        assert_eq!(complaint(&deployment, &elsewhere), "");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_not_the_databases_is_refused() {
    for kind in [Kind::Sqlite, Kind::Postgres] {
        let deployment = Deployment::prepare(kind).await;
        fs::write(deployment.data().join("secret.key"), [9; 32]).unwrap();
        let refused = complaint(&deployment, &deployment.data());
        let told = refused.contains("belongs to the secret.key with the fingerprint");
        assert!(told && refused.lines().count() == 1, "{refused}");
        fs::write(deployment.data().join("secret.key"), [9; 31]).unwrap();
        assert!(complaint(&deployment, &deployment.data()).contains("must have 32 bytes"));
    }
}

/// A database of an earlier version, which has no fingerprint.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_without_a_fingerprint_adopts_the_key_of_its_process() {
    let deployment = Deployment::prepare(Kind::Postgres).await;
    deployment.database.execute("DELETE FROM deployment_key").await;
    let elsewhere = deployment.folder.path().join("elsewhere");
    let refused = complaint(&deployment, &elsewhere);
    assert!(refused.contains("the database has data, and there is no"), "{refused}");
    assert_eq!(complaint(&deployment, &deployment.data()), "");
    assert!(complaint(&deployment, &elsewhere).contains("belongs to the secret.key"));
}

/// Two machines with data folders of their own start at the same time: the key of one is recorded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_concurrent_first_starts_is_refused() {
    for _ in 0..3 {
        let deployment = Deployment::prepare(Kind::Postgres).await;
        let folder = tempfile::tempdir().unwrap();
        let database = Database::new(Kind::Postgres, &folder).await;
        let start = |name: &str| {
            let mut command = deployment.command();
            command.env("AVOUCH_DATABASE_URL", &database.url);
            command.env("AVOUCH_DATA_DIR", folder.path().join(name));
            command.args(["admin", "list-templates"]).stderr(std::process::Stdio::piped());
            command.stdout(std::process::Stdio::null()).spawn().unwrap()
        };
        let [one, two] =
            [start("one"), start("two")].map(|child| child.wait_with_output().unwrap());
        let won = [&one, &two].iter().filter(|output| output.status.success()).count();
        assert_eq!(won, 1, "{one:?} {two:?}");
        let files = ["one", "two"].map(|name| folder.path().join(name).join("secret.key").exists());
        assert_eq!(files.iter().filter(|there| **there).count(), 1, "{files:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_key_is_rotated_on_sqlite() {
    the_key_is_rotated(Kind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_key_is_rotated_on_postgres() {
    the_key_is_rotated(Kind::Postgres).await;
}

async fn the_key_is_rotated(kind: Kind) {
    let mut deployment = Deployment::start(kind).await;
    let before = fs::read(deployment.data().join("secret.key")).unwrap();
    let session = deployment.create(&json!({})).await;
    let id = session["sessionId"].as_str().unwrap().to_owned();
    let token = link_token(&session);
    deployment.kill();

    let changed = deployment.admin(&["rotate-secret-key"]);
    assert_ne!(changed["fingerprint"], changed["earlier"]);
    let (new, old) =
        (deployment.data().join("secret.key"), deployment.data().join("secret.key.old"));
    assert_eq!(fs::read(&old).unwrap(), before);
    assert_ne!(fs::read(&new).unwrap(), before);
    let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(&new).unwrap());
    assert_eq!(mode & 0o777, 0o600);
    let twice = deployment.command().args(["admin", "rotate-secret-key"]).output().unwrap();
    assert!(String::from_utf8_lossy(&twice.stderr).contains("end that change before the next"));

    // With both keys, earlier links still open and webhooks are signed with their secrets.
    deployment.run().await;
    let listed = deployment.session(&id).await;
    assert_ne!(link_token(&listed), token, "signed with the new key");
    let page = |token: &str| format!("/embed/{id}?token={token}");
    deployment.admin(&[
        "set-frame-ancestors",
        "--team",
        &deployment.team,
        "https://lender.example",
    ]);
    for (token, opens) in [(token.as_str(), true), (&link_token(&listed), true), ("x", false)] {
        let page = deployment.partner.send(hyper::Method::GET, &page(token), String::new()).await;
        let policy = page.headers["content-security-policy"].to_str().unwrap();
        // The allowed frame ancestors are only sent for a valid link.
        assert_eq!(policy.contains("lender.example"), opens, "{policy}");
    }
    deployment.partner.delete(&format!("browser-session/{id}")).await;
    eventually(
        "a delivery signed with the webhook's secret",
        Duration::from_secs(60),
        async || (!deployment.deliveries(&id).await.is_empty()).then_some(()),
    )
    .await;

    // Until then the database still has the fingerprint of the old key.
    assert_eq!(deployment.admin(&["reseal"])["resealed"], 1);
    assert_eq!(deployment.admin(&["reseal"])["resealed"], 0);
    deployment.kill();
    fs::remove_file(&old).unwrap();
    deployment.run().await;
    let session = deployment.create(&json!({})).await;
    let id = session["sessionId"].as_str().unwrap().to_owned();
    deployment.partner.delete(&format!("browser-session/{id}")).await;
    eventually(
        "a delivery whose secret the new key decrypts",
        Duration::from_secs(60),
        async || (!deployment.deliveries(&id).await.is_empty()).then_some(()),
    )
    .await;
    // The old key is refused like any other.
    fs::write(&new, before).unwrap();
    assert!(complaint(&deployment, &deployment.data()).contains("belongs to the secret.key"));
}

fn link_token(session: &serde_json::Value) -> String {
    let url = url::Url::parse(session["embedUrl"].as_str().expect("a link")).unwrap();
    url.query_pairs().find(|(name, _)| name == "token").expect("a token").1.into_owned()
}

/// Returns what a command with another data folder prints to standard error; nothing where it
/// succeeds.
fn complaint(deployment: &Deployment, data: &Path) -> String {
    let mut command = deployment.command();
    command.env("AVOUCH_DATA_DIR", data).args(["admin", "list-templates"]);
    let output = command.output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.success(), complaint.is_empty(), "{complaint}");
    complaint
}
