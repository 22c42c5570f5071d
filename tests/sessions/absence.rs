//! Applicants who leave while they wait for a browser, or while it starts: nobody else waits for them.

use std::time::{Duration, Instant};

use acceptance::{
    applicant::{Applicant, Embed},
    cluster::Cluster,
    database::Kind,
    eventually,
    processes::processes_with,
    service::Deployment,
    viewer::{Viewer, secret},
};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Connections reach one instance and another in turn; only the second one runs a browser.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_applicant_who_left_the_queue_is_passed_over_and_finds_their_place_again() {
    let deployment = Deployment::prepare(Kind::Postgres).await;
    let cluster = Cluster::start(deployment, &[0, 1], true).await;
    let deployment = &cluster.deployment;
    let mut sessions = Vec::new();
    for _ in 0..4 {
        sessions.push(deployment.create(&json!({})).await);
    }
    let [first, away, behind, last] = [0, 1, 2, 3].map(|number| &sessions[number]);
    let _running = connected(first, |state| state["status"] == "AWAITING_USER").await;
    let applicant = Applicant::visit(link(away)).await;
    applicant.top_level().click("[data-testid=start]").await;
    until_place(&applicant.top_level(), 1).await;
    let mut second = connected(behind, |state| state["place"] == 2).await;
    let mut third = connected(last, |state| state["place"] == 3).await;

    // A reload costs no place.
    applicant.reload().await;
    until_place(&applicant.top_level(), 1).await;
    applicant.navigate("about:blank").await;
    second.until("state", |state| state["place"] == 1).await;
    third.until("state", |state| state["place"] == 2).await;
    end(deployment, first).await;
    second.until("state", |state| state["status"] == "AWAITING_USER").await;
    assert_eq!(deployment.session(id(away)).await["status"], "INITIALIZING");

    applicant.navigate(link(away)).await;
    until_place(&applicant.top_level(), 1).await;
    end(deployment, behind).await;
    applicant.top_level().until_prompted("Sign in").await;
    assert_eq!(deployment.session(id(last)).await["status"], "INITIALIZING");
    end(deployment, away).await;
    third.until("state", |state| state["status"] == "AWAITING_USER").await;
    applicant.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_waited_for_its_applicant_for_too_long_begins_again_with_them() {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    deployment.set("AVOUCH_BROWSERS", "1");
    deployment.set("AVOUCH_BROWSER_QUEUE_SECONDS", "30");
    deployment.run().await;
    let (first, away) = (deployment.create(&json!({})).await, deployment.create(&json!({})).await);
    let mut running = Viewer::open(link(&first), &secret('a')).await;
    running.until("state", |state| state["status"] == "AWAITING_USER").await;
    let applicant = Applicant::visit(link(&away)).await;
    applicant.top_level().click("[data-testid=start]").await;
    until_place(&applicant.top_level(), 1).await;
    applicant.navigate("about:blank").await;
    let waiting = deployment.until(id(&away), "CREATED", TIMEOUT).await;
    assert!(waiting["errorCode"].is_null(), "{waiting}");
    end(&deployment, &first).await;
    applicant.navigate(link(&away)).await;
    applicant.top_level().until_prompted("Sign in").await;
    // Nothing of it counts as the loss of a browser.
    let timeline = deployment.partner.timeline(id(&away)).await;
    let count = |name: &str| timeline.iter().filter(|(event, _)| event == name).count();
    assert_eq!((count("ApplicantAbsent"), count("BrowserLost")), (1, 0), "{timeline:?}");
    applicant.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_whose_applicant_left_before_it_was_up_is_given_back() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let session = deployment.create(&json!({})).await;
    let mut viewer = Viewer::open(link(&session), &secret('a')).await;
    viewer.until("state", |state| state["status"] == "INITIALIZING").await;
    eventually("the browser to start", TIMEOUT, async || {
        (!processes_with(&deployment.browsers()).is_empty()).then_some(())
    })
    .await;
    drop(viewer);
    let began = Instant::now();
    deployment.until(id(&session), "READY", TIMEOUT).await;
    deployment.until(id(&session), "CREATED", TIMEOUT).await;
    assert!(began.elapsed() > Duration::from_secs(25), "it waits for a reload");
    eventually("the browser to end", TIMEOUT, async || {
        processes_with(&deployment.browsers()).is_empty().then_some(())
    })
    .await;
    let mut viewer = Viewer::open(link(&session), &secret('a')).await;
    viewer.until("state", |state| state["status"] == "AWAITING_USER").await;
}

/// Connects to a session until its state satisfies a condition. An instance ends the connection where it only
/// learns meanwhile that another one has to begin the session.
async fn connected(session: &Value, holds: impl Fn(&Value) -> bool) -> Viewer {
    eventually("a connection that stays", TIMEOUT, async || {
        let mut viewer = Viewer::open(link(session), &secret('a')).await;
        loop {
            let told = viewer.next_message(TIMEOUT).await?;
            if told["t"] == "state" && holds(&told) {
                return Some(viewer);
            }
        }
    })
    .await
}

async fn until_place(page: &Embed<'_>, place: u32) {
    let text = "document.getElementById('note-text').textContent";
    let note = format!(r"/queue:\s{place}\.$/.test({text})");
    page.until(&format!("place {place}"), &note).await;
}

async fn end(deployment: &Deployment, session: &Value) {
    let ended = deployment.partner.delete(&format!("browser-session/{}", id(session))).await;
    assert_eq!(ended.status, 200);
}

fn id(session: &Value) -> &str {
    session["sessionId"].as_str().expect("an identifier")
}

fn link(session: &Value) -> &str {
    session["embedUrl"].as_str().expect("a link")
}
