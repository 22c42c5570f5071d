//! Sessions whose browsers run in a fleet.

use std::time::Duration;

use acceptance::{
    applicant::Applicant, database::Kind, eventually, free_port, processes::processes_with,
    service::Deployment,
};
use serde_json::json;
use testkit::fleet::{SharedChromium, WEBRTC_FLAGS};

const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_runs_in_a_fleet_and_leaves_no_context() {
    let shared = SharedChromium::start(WEBRTC_FLAGS).await;
    let mut deployment = deployment(&shared).await;
    let applicant = Applicant::visit(&deployment.demo).await;
    let embed = applicant.start_session().await;
    embed.sign_in("ok", "any").await;
    embed.click("[data-testid=consent-approve]").await;
    assert_eq!(embed.until_outcome().await, "COMPLETED");
    none_left(&shared).await;
    assert_eq!(processes_with(&deployment.browsers()), Vec::<String>::new());

    applicant.start_session().await.until_prompted("Sign in").await;
    assert_eq!(shared.contexts(), 1);
    deployment.kill();
    none_left(&shared).await;
    applicant.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_without_its_fleet_ends_with_browser_unavailable() {
    let shared = SharedChromium::start(WEBRTC_FLAGS).await;
    let deployment = deployment(&shared).await;
    shared.kill();
    let session = deployment.create(&json!({ "maxAttempts": 1 })).await;
    let applicant = Applicant::visit(&deployment.demo).await;
    applicant.show(session["embedUrl"].as_str().unwrap()).await;
    let ended = deployment.until(session["sessionId"].as_str().unwrap(), "ERROR", TIMEOUT).await;
    assert_eq!(ended["errorCode"], "BROWSER_UNAVAILABLE");
    applicant.close().await;
}

async fn none_left(shared: &SharedChromium) {
    eventually("no context to remain", TIMEOUT, async || (shared.contexts() == 0).then_some(()))
        .await;
}

async fn deployment(shared: &SharedChromium) -> Deployment {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    deployment.set("AVOUCH_BROWSER", shared.url());
    deployment.set("AVOUCH_BROWSER_PROXY_LISTEN", format!("127.0.0.1:{}", free_port()));
    deployment.run().await;
    deployment
}
