//! The service is killed while it starts a browser, and started again.

use std::time::{Duration, Instant, SystemTime};

use acceptance::{
    database::Kind,
    eventually,
    processes::processes_with,
    service::Deployment,
    viewer::{Viewer, secret},
};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(60);
/// Four seconds more than the lease of a browser lasts: for the sweeper.
const MAX_WAIT: TimeDelta = TimeDelta::seconds(24);
/// How often the moment between the request of a browser and its start is aimed at.
const TRIES: usize = 5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_applicant_waits_a_lease_for_another_browser_when_the_start_of_theirs_was_killed() {
    let mut deployment = Deployment::start(Kind::Postgres).await;
    for _ in 0..TRIES {
        let session = deployment.create(&json!({})).await;
        let (id, link) = (text(&session, "sessionId"), text(&session, "embedUrl"));
        let mut viewer = Viewer::open(link, &secret('a')).await;
        viewer.until("state", |state| state["status"] == "INITIALIZING").await;
        eventually("the browser to start", TIMEOUT, async || {
            (!processes_with(&deployment.browsers()).is_empty()).then_some(())
        })
        .await;
        deployment.kill();
        let (killed, began) = (DateTime::<Utc>::from(SystemTime::now()), Instant::now());
        deployment.run().await;
        if deployment.session(id).await["status"] != "INITIALIZING" {
            deployment.partner.delete(&format!("browser-session/{id}")).await;
            continue;
        }
        let mut viewer = Viewer::open(link, &secret('a')).await;
        loop {
            let state = viewer.next_message(TIMEOUT).await.expect("a state");
            if state["status"] == "AWAITING_USER" {
                break;
            }
        }
        println!("the next browser was there after {:?}", began.elapsed());
        // How long a browser takes to start depends on the machine; how long nobody starts one does not.
        let waited = lost_at(&deployment, id).await - killed;
        assert!(waited < MAX_WAIT, "{waited}");
        let timeline = deployment.partner.timeline(id).await;
        let count = |name: &str| timeline.iter().filter(|(event, _)| event == name).count();
        let counts = [count("BrowserRequested"), count("BrowserLost"), count("BrowserStarted")];
        assert_eq!(counts, [2, 1, 1], "{timeline:?}");
        return;
    }
    panic!("the browser was always up before the service was killed");
}

/// Returns when the session was taken from the browser that was to start.
async fn lost_at(deployment: &Deployment, id: &str) -> DateTime<Utc> {
    let events = deployment.partner.get(&format!("browser-session/{id}/events")).await;
    let mut events = events.at("/data").as_array().into_iter().flatten();
    let lost = events.find(|event| event["event"] == "BrowserLost").expect("the loss");
    lost["at"].as_str().and_then(|at| at.parse().ok()).expect("a time")
}

fn text<'a>(session: &'a Value, member: &str) -> &'a str {
    session[member].as_str().expect("a text")
}
