//! A database that hangs, is locked, or has no free connection.

use std::time::{Duration, Instant};

use acceptance::{
    database::{Database, Kind},
    eventually,
    partner::{Answer, Partner},
    postgres::OwnPostgres,
    service::Deployment,
};
use hyper::Method;
use serde_json::json;
use tokio::task::JoinSet;

use super::lines;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hanging_database_times_out_and_is_used_again_once_it_recovers() {
    let postgres = OwnPostgres::start();
    let mut deployment = Deployment::on(Database { url: postgres.url.clone() });
    deployment.set("AVOUCH_DATABASE_POOL_SECONDS", "2");
    deployment.set("AVOUCH_DATABASE_CONNECT_SECONDS", "1");
    deployment.set("AVOUCH_DATABASE_STATEMENT_SECONDS", "1");
    deployment.run().await;
    let session = deployment.create(&json!({})).await;
    let path = format!("browser-session/{}", session["sessionId"].as_str().unwrap());

    postgres.pause();
    for _ in 0..3 {
        let began = Instant::now();
        let ready = deployment.partner.send(Method::GET, "/readyz", String::new()).await;
        println!("/readyz: {} after {:?}", ready.status, began.elapsed());
        assert_eq!(ready.status, 503);
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    }
    let alive = deployment.partner.send(Method::GET, "/healthz", String::new()).await;
    assert_eq!(alive.status, 200);
    let began = Instant::now();
    let poll = deployment.partner.get(&path).await;
    println!("poll: {} {} after {:?}", poll.status, poll.body, began.elapsed());
    assert!(poll.status >= 500, "{}", poll.body);
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    let began = Instant::now();
    let command = deployment.command().args(["admin", "create-team", "Late"]).output().unwrap();
    let complaint = String::from_utf8_lossy(&command.stderr).into_owned();
    println!("command: {complaint} after {:?}", began.elapsed());
    assert!(complaint.contains("no answer within 1 s"), "{complaint}");
    eventually("a worker's time-out", Duration::from_secs(60), async || {
        lines(&deployment.log(), "gave no answer within 6 s").pop()
    })
    .await;
    for line in lines(&deployment.log(), "within") {
        println!("{line}");
    }

    postgres.resume();
    eventually("the service to be ready again", Duration::from_secs(60), async || {
        let ready = deployment.partner.send(Method::GET, "/readyz", String::new()).await;
        (ready.status == 200).then_some(())
    })
    .await;
    assert_eq!(deployment.partner.get(&path).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocked_statement_is_cancelled_by_the_server() {
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    deployment.set("AVOUCH_DATABASE_STATEMENT_SECONDS", "1");
    let (mut client, connection) =
        tokio_postgres::connect(&deployment.database.url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let locked = client.transaction().await.unwrap();
    locked.batch_execute("LOCK TABLE teams IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let began = Instant::now();
    let command = deployment.command().args(["admin", "create-team", "Late"]).output().unwrap();
    let complaint = String::from_utf8_lossy(&command.stderr).into_owned();
    println!("{complaint} after {:?}", began.elapsed());
    assert!(complaint.contains("statement timeout"), "{complaint}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_for_a_pooled_connection_times_out() {
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    deployment.set("AVOUCH_DATABASE_POOL_SECONDS", "1");
    deployment.run().await;
    let (mut client, connection) =
        tokio_postgres::connect(&deployment.database.url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let locked = client.transaction().await.unwrap();
    // Creating a session once inserts there, over the pool; reads go on.
    locked.batch_execute("LOCK TABLE session_events IN ACCESS EXCLUSIVE MODE").await.unwrap();
    // The tasks end with the test, before the service does.
    let mut waiting = JoinSet::new();
    for number in 0..40 {
        let partner = deployment.partner.clone();
        waiting.spawn(async move { create_once(&partner, number).await });
    }
    let told = "no connection was free within 1 s";
    eventually("a request to time out", Duration::from_secs(60), async || {
        lines(&deployment.log(), told).pop()
    })
    .await;
    locked.rollback().await.unwrap();
    eventually("a session to be created", Duration::from_secs(60), async || {
        (create_once(&deployment.partner, 40).await.status == 201).then_some(())
    })
    .await;
    waiting.shutdown().await;
}

/// Creates a session with an idempotency key.
async fn create_once(partner: &Partner, number: usize) -> Answer {
    let (path, key) = ("/v1/partner/browser-session", format!("key-{number}"));
    let body = json!({ "platformId": 1, "location": { "country": "US" } }).to_string();
    partner.send_with(Method::POST, path, body, &[("idempotency-key", &key)]).await
}
