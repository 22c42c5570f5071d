//! A service that is asked to stop completes the requests in flight and accepts no new ones.

use std::time::Duration;

use acceptance::{database::Kind, eventually, service::Deployment};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

const TIMEOUT: Duration = Duration::from_secs(60);
const ID: &str = "in-flight-1";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_completes_requests_in_flight_and_refuses_new_connections() {
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    deployment.set("AVOUCH_LOG_FORMAT", "json");
    deployment.run().await;
    let address = deployment.setting("AVOUCH_LISTEN").unwrap();
    let body = json!({ "platformId": 1, "location": { "country": "US" } }).to_string();
    let (first, rest) = body.split_at(body.len() / 2);
    let head = format!(
        "POST /v1/partner/browser-session HTTP/1.1\r\nhost: {address}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nx-request-id: {ID}\r\n\
         x-api-key: {}\r\nconnection: close\r\n\r\n{first}",
        body.len(),
        deployment.api_key,
    );
    let mut begun = TcpStream::connect(&address).await.unwrap();
    begun.write_all(head.as_bytes()).await.unwrap();
    // Leaves time for the head to be read.
    tokio::time::sleep(Duration::from_secs(2)).await;

    deployment.send_sigterm();
    eventually("new connections to be refused", TIMEOUT, async || {
        TcpStream::connect(&address).await.is_err().then_some(())
    })
    .await;
    begun.write_all(rest.as_bytes()).await.unwrap();
    let mut answer = String::new();
    begun.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 201 Created"), "{answer}");
    let status = deployment.ended(TIMEOUT).await;
    assert!(status.success(), "{status}");

    // The session that was created is stored, and the log has the response as one JSON object per
    // line.
    deployment.run().await;
    assert_eq!(deployment.partner.get("browser-sessions").await.at("/data/total"), 1);
    let log = std::fs::read_to_string(deployment.log()).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answered = lines.iter().find(|line| line["span"]["request.id"] == ID).unwrap();
    assert_eq!(answered["fields"]["status"], 201, "{answered}");
    assert!(!log.contains(&deployment.api_key), "the key is in the log");
}
