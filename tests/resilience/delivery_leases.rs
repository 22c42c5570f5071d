//! Webhooks whose endpoints take long: they are sent once while their process runs, and again within
//! seconds when it was killed.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use acceptance::{
    database::Kind,
    eventually,
    service::Deployment,
    webhook_endpoint::{Attempt, Endpoint, Reply},
};
use serde_json::json;

/// Less than the timeout of a webhook (30 s), and several times the lease of a delivery.
const SLOW: Duration = Duration::from_secs(25);
const TIMEOUT: Duration = Duration::from_secs(60);

/// A deployment whose webhook leads to an endpoint that takes [`SLOW`] for its first answer.
async fn start(kind: Kind) -> (Deployment, Endpoint) {
    let mut deployment = Deployment::prepare(kind).await;
    deployment.set("AVOUCH_EGRESS_ALLOW", "127.0.0.1/32");
    let is_first = AtomicBool::new(true);
    let slow = move |_: &Attempt| {
        let is_first = is_first.swap(false, Ordering::Relaxed);
        if is_first { Reply::AcceptAfter(SLOW) } else { Reply::Status(204) }
    };
    let endpoint = Endpoint::start(slow).await;
    let team = deployment.team.clone();
    let listed = deployment.admin(&["list-webhooks", "--team", &team]);
    let demo = listed["webhooks"][0]["webhookId"].as_str().unwrap();
    deployment.admin(&["set-webhook", demo, "--active", "false"]);
    let url = endpoint.url("hook");
    deployment.admin(&["create-webhook", "--team", &team, "--url", &url]);
    deployment.run().await;
    (deployment, endpoint)
}

/// Ends a session, and waits until its delivery is being sent.
async fn end_one(deployment: &Deployment, endpoint: &Endpoint) -> String {
    let session = deployment.create(&json!({})).await;
    let id = session["sessionId"].as_str().unwrap().to_owned();
    deployment.partner.delete(&format!("browser-session/{id}")).await;
    eventually("the first call", TIMEOUT, async || (endpoint.count() == 1).then_some(())).await;
    id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_holds_no_delivery_up_on_sqlite() {
    sent_again_after_a_kill(Kind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_holds_no_delivery_up_on_postgres() {
    sent_again_after_a_kill(Kind::Postgres).await;
}

async fn sent_again_after_a_kill(kind: Kind) {
    let (mut deployment, endpoint) = start(kind).await;
    end_one(&deployment, &endpoint).await;
    // It has been renewed at least once.
    tokio::time::sleep(Duration::from_secs(4)).await;
    deployment.kill();
    let killed_at = Instant::now();
    deployment.run().await;
    // The endpoint still has the first call: before, nothing was sent until 45 s after it.
    let second = eventually("the second call", Duration::from_secs(20), async || {
        (endpoint.count() == 2).then_some(killed_at.elapsed())
    });
    println!("sent again {:.1} s after the kill", second.await.as_secs_f64());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_endpoint_is_called_once_by_two_processes_on_sqlite() {
    called_once(Kind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_endpoint_is_called_once_by_two_processes_on_postgres() {
    called_once(Kind::Postgres).await;
}

async fn called_once(kind: Kind) {
    let (deployment, endpoint) = start(kind).await;
    let _other = deployment.second_process().await;
    let id = end_one(&deployment, &endpoint).await;
    let states = async || {
        let list = deployment.admin(&["list-deliveries", "--session", &id]);
        let state = list["deliveries"][0]["state"].as_str().map(str::to_owned);
        state.filter(|state| state == "delivered")
    };
    eventually("the delivery to be settled", TIMEOUT, states).await;
    assert_eq!(endpoint.count(), 1);
}
