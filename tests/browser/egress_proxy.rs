//! Sessions whose egress proxy does not work or is in another country.

use std::time::Duration;

use acceptance::{
    applicant::Applicant, database::Kind, playground::Playground, root, service::Deployment,
};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreachable_proxy_ends_the_session_with_proxy_unavailable() {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    deployment.set("AVOUCH_EGRESS_PROXY", "http://ada:geheim@127.0.0.1:1");
    deployment.run().await;
    ends_with(&deployment, "PROXY_UNAVAILABLE").await;
    let log = std::fs::read_to_string(deployment.log()).unwrap();
    assert!(!log.contains("geheim"), "the proxy's password is in the log");
    // The sandbox is reached without a proxy.
    let applicant = Applicant::visit(&deployment.demo).await;
    applicant.start_session().await.until_prompted("Sign in").await;
    applicant.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_in_another_country_ends_the_session_with_geo_mismatch() {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    let playground = Playground::start().await;
    playground.allow(&mut deployment);
    deployment.set("AVOUCH_EGRESS_PROXY", "http://127.0.0.1:1");
    // The check of the country reaches this address without the proxy, and it still reports a
    // country.
    deployment.set("AVOUCH_EGRESS_CHECK_URL", playground.url("country"));
    deployment.run().await;
    ends_with(&deployment, "GEO_MISMATCH").await;
}

/// Creates and opens a session on a platform outside this machine; the playground reports that
/// requests come from France.
async fn ends_with(deployment: &Deployment, code: &str) {
    let sandbox = root().join("crates/domain/platforms/sandbox.json");
    let text = std::fs::read_to_string(sandbox).unwrap();
    let text = text.replace("http://sandbox.localhost", "https://page.test");
    let text =
        text.replace("sandbox.localhost", "page.test").replace("acme-sandbox", "far-sandbox");
    let file = deployment.folder.path().join("far.json");
    std::fs::write(&file, text).unwrap();
    let platform = deployment.admin(&["publish-platform", file.to_str().unwrap()]);
    let order = json!({
        "platformId": platform["platformId"], "location": { "country": "DE" }, "maxAttempts": 1,
    });
    let session = deployment.create(&order).await;
    let applicant = Applicant::visit(&deployment.demo).await;
    applicant.show(session["embedUrl"].as_str().unwrap()).await;
    let id = session["sessionId"].as_str().unwrap();
    let ended = deployment.until(id, "ERROR", TIMEOUT).await;
    assert_eq!(ended["errorCode"], code);
    assert_eq!(ended["extractedData"], Value::Null);
    applicant.close().await;
}
