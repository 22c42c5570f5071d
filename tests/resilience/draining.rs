//! A process that is asked to stop lets its sessions end first, and hands over those that wait.

use std::time::Duration;

use acceptance::{
    applicant::Applicant, database::Kind, eventually, processes::processes_with,
    service::Deployment,
};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_stops_lets_its_sessions_end_and_hands_over_those_that_wait() {
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    deployment.set("AVOUCH_BROWSERS", "1");
    deployment.run().await;
    let (running, waiting) =
        (deployment.create(&json!({})).await, deployment.create(&json!({})).await);
    let first = Applicant::visit(&deployment.demo).await;
    let signing_in = first.show(text(&running, "embedUrl")).await;
    signing_in.until_prompted("Sign in").await;
    let second = Applicant::visit(&deployment.demo).await;
    let queued = second.show(text(&waiting, "embedUrl")).await;
    let note = "document.getElementById('note').textContent.includes('are in use')";
    queued.until("the wait", note).await;

    deployment.send_sigterm();
    until_draining(&deployment).await;
    deployment.until(text(&waiting, "sessionId"), "CREATED", TIMEOUT).await;
    // Requests are answered, and the applicant goes on.
    let created = deployment.create(&json!({})).await;
    assert_eq!(deployment.session(text(&created, "sessionId")).await["status"], "CREATED");
    signing_in.sign_in_again("ok", "any").await;
    signing_in.click("[data-testid=consent-approve]").await;
    assert_eq!(signing_in.until_outcome().await, "COMPLETED");
    let status = deployment.ended(TIMEOUT).await;
    assert!(status.success(), "{status}");
    assert!(processes_with(&deployment.browsers()).is_empty(), "no browser is left");

    // The applicant who waited has the page still open.
    deployment.run().await;
    queued.until_prompted("Sign in").await;
    let session = deployment.session(text(&waiting, "sessionId")).await;
    assert_eq!(session["status"], "AWAITING_USER");
    first.close().await;
    second.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn draining_ends_at_its_deadline_or_with_a_second_signal() {
    for (seconds, again) in [("2", false), ("600", true)] {
        let mut deployment = Deployment::prepare(Kind::Sqlite).await;
        deployment.set("AVOUCH_DRAIN_SECONDS", seconds);
        deployment.run().await;
        let session = deployment.create(&json!({})).await;
        let id = text(&session, "sessionId");
        let applicant = Applicant::visit(&deployment.demo).await;
        let embed = applicant.show(text(&session, "embedUrl")).await;
        embed.until_prompted("Sign in").await;
        deployment.send_sigterm();
        if again {
            // Signals that come before the first one is noticed count as one.
            until_draining(&deployment).await;
            deployment.send_sigterm();
        }
        // Far less than the ten minutes. Servers and tasks have some time each to end by themselves.
        let status = deployment.ended(TIMEOUT).await;
        assert!(status.success(), "{status}");
        // The session is not lost: it starts again where the applicant connects to next. Until then the
        // page shows the instruction of before.
        deployment.run().await;
        eventually("another browser", 2 * TIMEOUT, async || {
            let timeline = deployment.partner.timeline(id).await;
            let begun = timeline.iter().filter(|(event, _)| event == "BrowserStarted").count();
            (begun == 2).then_some(())
        })
        .await;
        deployment.until(id, "AWAITING_USER", TIMEOUT).await;
        embed.until_prompted("Sign in").await;
        applicant.close().await;
    }
}

async fn until_draining(deployment: &Deployment) {
    eventually("the process not to be ready", TIMEOUT, async || {
        let ready = deployment.partner.send(Method::GET, "/readyz", String::new()).await;
        (ready.status == StatusCode::SERVICE_UNAVAILABLE).then_some(())
    })
    .await;
}

fn text<'a>(session: &'a Value, member: &str) -> &'a str {
    session[member].as_str().expect("a text")
}
