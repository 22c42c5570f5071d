//! Secrets in the database: encrypted with keys of the configuration, and encrypted again when
//! these change.

use std::{fs, time::Duration};

use acceptance::{database::Kind, eventually, service::Deployment};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn configured_keys_encrypt_and_rotate_on_sqlite() {
    configured_keys_encrypt_and_rotate(Kind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn configured_keys_encrypt_and_rotate_on_postgres() {
    configured_keys_encrypt_and_rotate(Kind::Postgres).await;
}

async fn configured_keys_encrypt_and_rotate(kind: Kind) {
    let mut deployment = Deployment::prepare(kind).await;
    let team = deployment.team.clone();
    let header = ["--url", "https://partner.example/", "--inactive", "--header", "x-token: canary"];
    let other = [&["create-webhook", "--team", &team], &header[..]].concat();
    let other = deployment.admin(&other)["webhookId"].as_str().expect("a webhook").to_owned();
    let (seven, eight) = (STANDARD.encode([7; 32]), STANDARD.encode([8; 32]));
    for keys in [format!("7={seven}"), format!("8={eight},7={seven}")] {
        deployment.set("AVOUCH_SEAL_KEYS", keys);
        deployment.run().await;
        let session = deployment.create(&json!({})).await;
        let id = session["sessionId"].as_str().expect("a session");
        deployment.partner.delete(&format!("browser-session/{id}")).await;
        eventually(
            "a delivery signed with the webhook's secret",
            Duration::from_secs(60),
            async || (!deployment.deliveries(id).await.is_empty()).then_some(()),
        )
        .await;
        for resealed in [2, 0] {
            assert_eq!(deployment.admin(&["reseal"])["resealed"], resealed);
        }
        deployment.kill();
        // From now on only the new keys can decrypt.
        deployment.admin(&["rotate-secret-key"]);
        assert_eq!(deployment.admin(&["reseal"])["resealed"], 0);
        fs::remove_file(deployment.data().join("secret.key.old")).expect("the earlier key file");
    }
    deployment.set("AVOUCH_SEAL_KEYS", format!("8={eight}"));
    let listed = deployment.admin(&["list-webhooks", "--team", &team]);
    assert_eq!(listed["webhooks"].as_array().map(Vec::len), Some(2), "{listed}");
    deployment.set("AVOUCH_SEAL_KEYS", format!("7={seven}"));
    let refused = deployment.command().args(["admin", "reseal"]).output().expect("avouch runs");
    let complaint = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && complaint.contains(&other), "{complaint}");
}
