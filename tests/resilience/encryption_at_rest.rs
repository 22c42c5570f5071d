//! Encryption at rest: unique strings of an applicant are searched for in every file of the
//! database, its write-ahead log, dumps, object storage and the service's log, while the session
//! exists and after its erasure.

use std::time::Duration;

use acceptance::{
    applicant::Applicant,
    database::{Database, Kind},
    eventually,
    postgres::OwnPostgres,
    service::Deployment,
    video::{files, find},
};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(60);
/// Contacts, metadata, reference, a registered contact, and the data of the sandbox's account.
const CANARIES: &[&str] = &[
    "canary-name-51c7",
    "canary-mail-51c7",
    "+436605170051",
    "canary-metadata-51c7",
    "canary-reference-51c7",
    "canary-registered-51c7",
    "+436605170052",
    "acme-ok-4711",
    "Ada Example",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_sqlite_file_contains_an_applicants_data() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let id = completed(&deployment).await;
    let of_database = deployment.folder.path().join("avouch.db");
    let look = async || {
        let mut found = files(&deployment.data());
        for suffix in ["", "-wal", "-shm"] {
            let path = format!("{}{suffix}", of_database.display());
            found.push((path.clone(), std::fs::read(path).unwrap()));
        }
        found
    };
    looked_for(&deployment, &id, look).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_postgres_file_or_dump_contains_an_applicants_data() {
    let postgres = OwnPostgres::start();
    let mut deployment = Deployment::on(Database { url: postgres.url.clone() });
    deployment.run().await;
    let id = completed(&deployment).await;
    let look = async || {
        deployment.database.execute("CHECKPOINT").await;
        let mut found = files(&postgres.data());
        assert!(
            found.iter().any(|(name, _)| name.contains("/pg_wal/0")),
            "the write-ahead log is searched"
        );
        found.push(("pg_dump".to_owned(), postgres.dump()));
        found.extend(files(&deployment.data()));
        found
    };
    looked_for(&deployment, &id, look).await;
}

/// Plays a session that is completed, delivered to the partner, and not yet erased.
async fn completed(deployment: &Deployment) -> String {
    deployment.admin(&[
        "create-receiver",
        "--team",
        &deployment.team,
        "--name",
        "canary-registered-51c7",
        "--phone",
        "+436605170052",
    ]);
    let session = deployment
        .create(&json!({
            "externalReferenceId": "canary-reference-51c7",
            "receiverData": {
                "name": "canary-name-51c7",
                "email": "canary-mail-51c7@applicant.example",
                "phone": "+436605170051",
                "metadata": { "case": "canary-metadata-51c7" },
            },
        }))
        .await;
    let id = session["sessionId"].as_str().unwrap().to_owned();
    let applicant = Applicant::visit(&deployment.demo).await;
    let embed = applicant.show(session["embedUrl"].as_str().unwrap()).await;
    embed.sign_in("ok", "any").await;
    embed.click("[data-testid=consent-approve]").await;
    let ended = deployment.until(&id, "COMPLETED", TIMEOUT).await;
    applicant.close().await;
    assert_eq!(ended["extractedData"]["accountId"], "acme-ok-4711");
    assert_eq!(ended["extractedData"]["displayName"], "Ada Example");
    assert_eq!(ended["externalReferenceId"], "canary-reference-51c7");
    let delivery =
        eventually("the delivery", TIMEOUT, async || deployment.deliveries(&id).await.pop()).await;
    let payload = &delivery["payload"];
    assert_eq!(payload["extractedData"], ended["extractedData"]);
    assert_eq!(payload["metadata"]["case"], "canary-metadata-51c7");
    id
}

/// Searches while the session exists and after its erasure.
async fn looked_for(
    deployment: &Deployment,
    id: &str,
    mut look: impl AsyncFnMut() -> Vec<(String, Vec<u8>)>,
) {
    let mut found = hits("before", &look().await);
    deployment.partner.delete(&format!("browser-session/{id}/data")).await;
    let erased = deployment.session(id).await;
    assert_eq!(erased["extractedData"], Value::Null);
    found.extend(hits("after", &look().await));
    let log = std::fs::read(deployment.log()).unwrap();
    found.extend(hits("log", &[("log".to_owned(), log)]));
    assert!(found.is_empty(), "{} hits: {found:#?}", found.len());
}

fn hits(when: &str, places: &[(String, Vec<u8>)]) -> Vec<String> {
    assert!(!places.is_empty());
    let bytes: usize = places.iter().map(|(_, content)| content.len()).sum();
    println!("{when}: {} files, {bytes} bytes", places.len());
    let mut hits = vec![];
    for (name, content) in places {
        for canary in CANARIES {
            if find(content, canary.as_bytes()) {
                hits.push(format!("{when}: {canary} in {name}"));
            }
        }
    }
    hits
}
