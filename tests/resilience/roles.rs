//! Processes that do a part of the work each: `serve --role`.

use std::{
    net::TcpStream,
    process::{Child, Command, Stdio},
    time::Duration,
};

use acceptance::{
    database::Kind, eventually, free_port, service::Deployment, webhook_endpoint::Endpoint,
    webhook_endpoint::Reply,
};
use serde_json::json;

const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhooks_are_sent_by_the_processes_for_deliveries_alone_on_sqlite() {
    deliveries_apart(Kind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhooks_are_sent_by_the_processes_for_deliveries_alone_on_postgres() {
    deliveries_apart(Kind::Postgres).await;
}

async fn deliveries_apart(kind: Kind) {
    let mut deployment = Deployment::prepare(kind).await;
    deployment.set("AVOUCH_EGRESS_ALLOW", "127.0.0.1/32");
    deployment.set("AVOUCH_ROLE", "api,browser");
    let endpoint = Endpoint::start(|_| Reply::Status(204)).await;
    let team = deployment.team.clone();
    let listed = deployment.admin(&["list-webhooks", "--team", &team]);
    let demo = listed["webhooks"][0]["webhookId"].as_str().unwrap();
    deployment.admin(&["set-webhook", demo, "--active", "false"]);
    deployment.admin(&["create-webhook", "--team", &team, "--url", &endpoint.url("hook")]);
    deployment.run().await;
    let session = deployment.create(&json!({})).await;
    let id = session["sessionId"].as_str().unwrap().to_owned();
    deployment.partner.delete(&format!("browser-session/{id}")).await;
    // Several times as long as a process needs to notice what is due.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(endpoint.count(), 0, "a process without the role sends nothing");

    let (api, metrics) = (free_port(), free_port());
    let mut command = deployment.command();
    command
        .env("AVOUCH_LISTEN", format!("127.0.0.1:{api}"))
        .env("AVOUCH_METRICS_LISTEN", format!("127.0.0.1:{metrics}"))
        .env("AVOUCH_BROWSER", "/nonexistent/chromium")
        .args(["serve", "--role", "delivery"]);
    let mut process = Running(command.stdout(Stdio::null()).spawn().unwrap());
    eventually("the webhook", TIMEOUT, async || (endpoint.count() == 1).then_some(())).await;
    assert!(endpoint.take()[0].body.contains(&id));
    assert!(TcpStream::connect(("127.0.0.1", metrics)).is_ok(), "its metrics can be read");
    assert!(TcpStream::connect(("127.0.0.1", api)).is_err(), "it serves nobody");

    let pid = process.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let ended = eventually("the process to end", TIMEOUT, async || process.0.try_wait().unwrap());
    assert_eq!(ended.await.code(), Some(0));
    assert_eq!(endpoint.count(), 0, "it was sent once");
}

/// A process that is killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
