//! The documentation's example webhook endpoints, in each language, against the service: a signed
//! webhook is stored once, however often it is sent and across restarts, and every other request is
//! refused.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use acceptance::{
    database::Kind, eventually, free_port, partner::Partner, root, service::Deployment,
};
use hyper::Method;
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_node_endpoint_stores_each_webhook_once() {
    stores_each_webhook_once(|| {
        let mut node = Command::new("node");
        node.arg(documented("node/receiver.mjs"));
        node
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_python_endpoint_stores_each_webhook_once() {
    stores_each_webhook_once(|| {
        let mut python = Command::new(root().join("target/tools/receiver-python/bin/python"));
        python.arg(documented("python/receiver.py"));
        python
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rust_endpoint_stores_each_webhook_once() {
    let test = std::env::current_exe().expect("this test has a path");
    let program = test.parent().and_then(Path::parent).expect("target/PROFILE").join("receiver");
    assert!(program.exists(), "build it first: cargo build -p receiver");
    stores_each_webhook_once(|| Command::new(&program)).await;
}

fn documented(file: &str) -> PathBuf {
    root().join("docs/receivers").join(file)
}

/// A running example endpoint, killed when it is dropped.
struct EndpointProcess(Child);

impl EndpointProcess {
    async fn start(mut program: Command, port: u16, secret: &str, inbox: &Path) -> Self {
        program.env("WEBHOOK_SECRET", secret).env("INBOX", inbox).env("PORT", port.to_string());
        let running = Self(program.stdout(Stdio::null()).spawn().expect("the endpoint starts"));
        eventually("the endpoint", TIMEOUT, async || {
            tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok()
        })
        .await;
        running
    }
}

impl Drop for EndpointProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn stores_each_webhook_once(program: impl Fn() -> Command) {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    let (port, team) = (free_port(), deployment.team.clone());
    deployment.set("AVOUCH_EGRESS_ALLOW", "127.0.0.1/32");
    let url = format!("http://127.0.0.1:{port}/avouch");
    let made = deployment.admin(&["create-webhook", "--team", &team, "--url", &url]);
    let (webhook, secret) = (text(&made, "webhookId"), text(&made, "secret"));
    deployment.run().await;
    let inbox = deployment.folder.path().join("inbox");
    let running = EndpointProcess::start(program(), port, &secret, &inbox).await;

    let session = text(&deployment.create(&json!({})).await, "sessionId");
    deployment.partner.delete(&format!("browser-session/{session}")).await;
    let list = ["list-deliveries", "--webhook", &webhook, "--state", "delivered"];
    let id = eventually("a delivery", TIMEOUT, async || {
        deployment.admin(&list)["deliveries"][0]["deliveryId"].as_str().map(str::to_owned)
    })
    .await;
    let kept = inbox.join(format!("{id}.json"));
    let notice: Value = serde_json::from_slice(&fs::read(&kept).expect("a notice")).expect("JSON");
    assert_eq!(notice["sessionId"], session.as_str());
    let first = fs::metadata(&kept).and_then(|file| file.modified()).expect("a time");

    // The delivery is resent by hand, and once more after the endpoint has restarted.
    deployment.admin(&["resend", &id]);
    until_attempts(&deployment, &id, 2).await;
    drop(running);
    let _running = EndpointProcess::start(program(), port, &secret, &inbox).await;
    deployment.admin(&["resend", &id]);
    let shown = until_attempts(&deployment, &id, 3).await;
    for attempt in shown["attempts"].as_array().expect("attempts") {
        assert_eq!(attempt["status"], 204, "{shown}");
    }
    let again = fs::metadata(&kept).and_then(|file| file.modified()).expect("a time");
    assert_eq!((names(&inbox).len(), again), (1, first), "stored once and not written again");

    // A request without a valid signature is refused, and so is a replay with a changed time.
    let forger = Partner::new(&format!("http://127.0.0.1:{port}"), None);
    let body = r#"{"sessionId":"x","status":"COMPLETED"}"#.to_owned();
    let unsigned = forger.send(Method::POST, "/avouch", body).await;
    assert_eq!(unsigned.status, 401);
    for (tampered, headers) in forgeries(&shown, &fs::read_to_string(&kept).expect("a notice")) {
        let own: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let sent = forger.send_with(Method::POST, "/avouch", tampered, &own).await;
        assert_eq!(sent.status, 401, "{headers:?}");
    }
    assert_eq!(names(&inbox).len(), 1);
}

type Headers = Vec<(&'static str, String)>;

/// Returns the last attempt with another body, with another identifier, and with another time.
fn forgeries(shown: &Value, body: &str) -> [(String, Headers); 3] {
    let sent = shown["attempts"][2]["sent"].as_array().expect("headers");
    let lines = sent.iter().filter_map(Value::as_str);
    let header = |name: &'static str| {
        let line = lines.clone().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        (name, line.expect("a header").to_owned())
    };
    let real = ["webhook-id", "webhook-timestamp", "webhook-signature"].map(header).to_vec();
    let with = |number: usize, value: &str| {
        let mut headers = real.clone();
        value.clone_into(&mut headers[number].1);
        headers
    };
    [
        (body.replace("TERMINATED", "COMPLETED"), real.clone()),
        (body.to_owned(), with(0, "00000000-0000-0000-0000-000000000000")),
        (body.to_owned(), with(1, "1700000000")),
    ]
}

async fn until_attempts(deployment: &Deployment, id: &str, count: usize) -> Value {
    eventually("another attempt", TIMEOUT, async || {
        let shown = deployment.admin(&["show-delivery", id]);
        (shown["attempts"].as_array().map(Vec::len) == Some(count)).then_some(shown)
    })
    .await
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn text(object: &Value, name: &str) -> String {
    object[name].as_str().expect("a text").to_owned()
}
