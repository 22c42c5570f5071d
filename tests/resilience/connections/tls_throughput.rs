//! The cost of TLS to PostgreSQL for a poll.

use acceptance::{database::Database, load::wrk, service::Deployment};
use serde_json::json;

use super::TlsServer;

/// A measurement: `cargo test -p acceptance --test resilience -- --ignored polls_over_tls`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn polls_over_tls_compared_with_plaintext() {
    let secured = TlsServer::start().await;
    let mut figures = vec![];
    let mut ratios = vec![];
    for _ in 0..3 {
        let mut round = vec![];
        for url in [secured.guest() + "?sslmode=disable", secured.verified()] {
            let database = format!("bench_{}", figures.len());
            secured
                .client()
                .await
                .batch_execute(&format!("CREATE DATABASE {database}"))
                .await
                .unwrap();
            let url = url.replace("/postgres?", &format!("/{database}?"));
            let mut deployment = Deployment::on(Database { url });
            deployment.set("AVOUCH_LOG", "off");
            deployment.run().await;
            let session = deployment.create(&json!({})).await;
            let id = session["sessionId"].as_str().unwrap();
            let address = deployment.setting("AVOUCH_PUBLIC_URL").unwrap();
            let poll = format!("{address}/v1/partner/browser-session/{id}");
            let key = format!("x-api-key: {}", deployment.api_key);
            let run = wrk(&[&poll, "-H", &key]);
            round.push(run.per_second);
            figures.push(run);
        }
        ratios.push(round[1] / round[0]);
    }
    ratios.sort_by(f64::total_cmp);
    println!("plaintext and TLS in turn: {figures:#?}; ratios TLS/plaintext {ratios:.3?}");
}
