//! A web page of fields and buttons that reports its events, and a platform that leads to it.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::{eventually, root, service::Deployment};

const HOST: &str = "play.localhost";
const PAGE: &str = include_str!("playground.html");
const POPUP: &str = "<!doctype html><input id=in style=\"width:100%;height:40px\" oninput=\"opener.postMessage(this.value)\">";

/// The running web site.
pub struct Playground {
    port: u16,
    reported: Arc<Mutex<Value>>,
    is_down: Arc<AtomicBool>,
}

impl Playground {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let reported = Arc::new(Mutex::new(Value::Null));
        let into = reported.clone();
        let is_down = Arc::new(AtomicBool::new(false));
        let down = is_down.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if down.load(Ordering::SeqCst) {
                    continue;
                }
                let into = into.clone();
                tokio::spawn(async move { serve(stream, &into).await });
            }
        });
        Self { port, reported, is_down }
    }

    /// Permits browsers to reach the site; to be called before the deployment starts.
    pub fn allow(&self, deployment: &mut Deployment) {
        let allowed = deployment.setting("AVOUCH_EGRESS_ALLOW").unwrap_or_default();
        deployment.set("AVOUCH_EGRESS_ALLOW", format!("{allowed},{HOST}:{}", self.port));
    }

    /// Lets the site close every connection without an answer, or answer again.
    pub fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::SeqCst);
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{HOST}:{}/{path}", self.port)
    }

    /// Publishes a platform that waits on the page indefinitely; returns its id.
    pub fn publish(&self, deployment: &Deployment) -> Value {
        let sandbox = root().join("crates/domain/platforms/sandbox.json");
        let file = std::fs::read(sandbox).expect("the sandbox's definition");
        let mut definition: Value = serde_json::from_slice(&file).expect("JSON");
        let page = format!("http://{HOST}:{}/", self.port);
        definition["platform"] = json!("playground-sandbox");
        definition["loginUrl"] = json!(page);
        definition["hosts"] = json!([HOST]);
        definition["nodes"]["open"]["url"] = json!(page);
        definition["requests"] = json!({
            "me": { "url": format!("{page}me"), "expectStatus": 200, "maxBytes": 1000 },
        });
        definition["attest"] = Value::Null;
        definition["signals"]["loginForm"] = json!({ "selector": "#name" });
        let file = deployment.folder.path().join("playground.json");
        std::fs::write(&file, definition.to_string()).expect("a file");
        let published = deployment.admin(&["publish-platform", file.to_str().expect("a path")]);
        published["platformId"].clone()
    }

    /// Returns the newest report.
    pub fn reported(&self) -> Value {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the newest report satisfies a condition.
    pub async fn until(&self, what: &str, mut holds: impl FnMut(&Value) -> bool) -> Value {
        let within = std::time::Duration::from_secs(60);
        let what = format!("{what}; the page reports {}", short(&self.reported()));
        eventually(&what, within, async || Some(self.reported()).filter(&mut holds)).await
    }

    pub async fn until_is(&self, field: &str, value: impl Into<Value>) {
        let value = value.into();
        let ends = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
        while self.reported()[field] != value {
            let seen = short(&self.reported());
            assert!(tokio::time::Instant::now() < ends, "{field} is not {}: {seen}", short(&value));
            tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        }
    }
}

/// Shortens long texts to their length and their end.
fn short(value: &Value) -> String {
    let cut = |text: &str| {
        let letters: Vec<char> = text.chars().collect();
        let end: String = letters[letters.len().saturating_sub(40)..].iter().collect();
        if letters.len() > 200 {
            json!(format!("{} … {end}", letters.len()))
        } else {
            json!(text)
        }
    };
    match value {
        Value::String(text) => cut(text).to_string(),
        Value::Object(all) => {
            let all =
                all.iter().map(|(name, value)| (name, value.as_str().map_or(value.clone(), cut)));
            json!(all.collect::<std::collections::BTreeMap<_, _>>()).to_string()
        }
        other => other.to_string(),
    }
}

async fn serve(mut stream: TcpStream, into: &Mutex<Value>) -> Option<()> {
    let mut bytes = Vec::new();
    let (head, body) = loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..at]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.and_then(|length| length.parse().ok()).unwrap_or_default();
        if bytes.len() >= at + 4 + length {
            break (head, bytes[at + 4..at + 4 + length].to_vec());
        }
    };
    let path = head.split(' ').nth(1)?;
    if path == "/report" {
        let report: Value = serde_json::from_slice(&body).ok()?;
        let mut last = into.lock().unwrap_or_else(PoisonError::into_inner);
        // Reports may arrive out of order.
        if last["at"].as_f64() < report["at"].as_f64() {
            *last = report;
        }
    }
    let (kind, more, body) = match path {
        "/" => ("text/html; charset=utf-8", "", PAGE),
        "/popup" => ("text/html; charset=utf-8", "", POPUP),
        "/country" => ("text/plain", "", "FR"),
        "/file" => ("text/plain", "content-disposition: attachment\r\n", "a file"),
        _ => ("text/plain", "", ""),
    };
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{more}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await.ok()
}
