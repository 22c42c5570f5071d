//! A client that creates sessions and ends them while the processes crash.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use http_body_util::{BodyExt as _, Full};
use hyper::{Request, body::Bytes};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;
use tokio::sync::Mutex;

/// Creates sessions and ends them, at whichever process answers.
pub(crate) struct SessionMaker {
    client: Client<HttpConnector, Full<Bytes>>,
    key: String,
    addresses: Vec<String>,
    turn: usize,
}

impl SessionMaker {
    pub(crate) fn new(key: &str, addresses: Vec<String>, turn: usize) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { client, key: key.to_owned(), addresses, turn }
    }

    /// Runs while there are sessions left to create.
    pub(crate) async fn work(
        mut self,
        remaining: Arc<AtomicUsize>,
        ended: Arc<Mutex<HashSet<String>>>,
    ) {
        let take =
            || remaining.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        while take().is_ok() {
            let body = r#"{"platformId":1,"location":{"country":"US"}}"#;
            let made = self.insist("POST", "/v1/partner/browser-session", body, 201).await;
            let id = made.pointer("/data/sessionId").and_then(Value::as_str).expect("a session");
            let path = format!("/v1/partner/browser-session/{id}");
            self.insist("DELETE", &path, "", 200).await;
            ended.lock().await.insert(id.to_owned());
        }
    }

    /// Repeats a request until it has the wanted status.
    async fn insist(&mut self, method: &str, path: &str, body: &'static str, wanted: u16) -> Value {
        let began = Instant::now();
        loop {
            let answer = self.ask(method, path, body).await;
            if let Some((_, body)) = answer.as_ref().filter(|(status, _)| *status == wanted) {
                return body.clone();
            }
            let address = &self.addresses[self.turn % self.addresses.len()];
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "{method} {path} did not succeed in time; at last {address} answered {answer:?}"
            );
            self.turn += 1;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn ask(&self, method: &str, path: &str, body: &'static str) -> Option<(u16, Value)> {
        let address = &self.addresses[self.turn % self.addresses.len()];
        let request = Request::builder()
            .method(method)
            .uri(format!("http://{address}{path}"))
            .header("x-api-key", &self.key)
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from_static(body.as_bytes())))
            .ok()?;
        let answer = self.client.request(request);
        let answer = tokio::time::timeout(Duration::from_secs(10), answer).await.ok()?.ok()?;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.ok()?.to_bytes();
        Some((status, serde_json::from_slice(&body).unwrap_or_default()))
    }
}
