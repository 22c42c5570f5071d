//! The partner API, called as a partner calls it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Request, body::Bytes};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Value, json};

use crate::eventually;

/// Why there is no answer.
pub type SendError = Box<dyn std::error::Error + Send + Sync>;

/// A partner with an API key, or without one.
#[derive(Clone)]
pub struct Partner {
    client: Client<HttpConnector, Full<Bytes>>,
    /// The processes to which requests go in turn.
    bases: Vec<String>,
    turn: Arc<AtomicUsize>,
    key: Option<String>,
}

/// A response: status, headers, and a body, which is JSON except for files.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: hyper::HeaderMap,
    pub body: Value,
    /// The body's bytes.
    pub bytes: Bytes,
}

impl Answer {
    /// Returns a part of the body by JSON pointer (RFC 6901).
    pub fn at(&self, pointer: &str) -> &Value {
        self.body.pointer(pointer).unwrap_or(&Value::Null)
    }
}

impl Partner {
    /// Creates a partner of the service at `base`, the part of its URL before `/v1`.
    pub fn new(base: &str, key: Option<&str>) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        let (bases, turn) = (vec![base.to_owned()], Arc::default());
        Self { client, bases, turn, key: key.map(str::to_owned) }
    }

    /// Returns a client of the same service with another key, or without one.
    #[must_use]
    pub fn with_key(&self, key: Option<&str>) -> Self {
        Self { key: key.map(str::to_owned), ..self.clone() }
    }

    /// Returns a client with the same key whose requests go to both services in turn.
    #[must_use]
    pub fn round_robin_with(&self, other: &Self) -> Self {
        Self { bases: [self.bases.clone(), other.bases.clone()].concat(), ..self.clone() }
    }

    /// Requests a session with the first platform.
    pub async fn create(&self, extra: &Value) -> Answer {
        let platforms = self.get("browser-platforms").await;
        let mut body = json!({
            "platformId": platforms.at("/data/0/id"),
            "location": { "country": "US" },
        });
        for (name, value) in extra.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        self.post("browser-session", &body).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, &Value::Null).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.call(Method::POST, path, body).await
    }

    /// Returns a session's timeline: each event with its detail.
    pub async fn timeline(&self, session: &str) -> Vec<(String, Option<String>)> {
        let timeline = self.get(&format!("browser-session/{session}/events")).await;
        let word = |value: &Value| value.as_str().map(str::to_owned);
        let lines = timeline.at("/data").as_array().into_iter().flatten();
        lines.filter_map(|line| Some((word(&line["event"])?, word(&line["detail"])))).collect()
    }

    /// Returns the events about the links of a session.
    pub async fn notifications(&self, session: &str) -> Vec<(String, Option<String>)> {
        let lines = self.timeline(session).await.into_iter();
        lines.filter(|(event, _)| event.starts_with("Notification")).collect()
    }

    pub async fn until_notification(&self, session: &str, event: &str, why: Option<&str>) {
        eventually(event, Duration::from_secs(60), async || {
            let last = self.notifications(session).await.pop()?;
            (last == (event.to_owned(), why.map(str::to_owned))).then_some(())
        })
        .await;
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.call(Method::DELETE, path, &Value::Null).await
    }

    /// Calls a path under `/v1/partner`.
    pub async fn call(&self, method: Method, path: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.send(method, &format!("/v1/partner/{path}"), body).await
    }

    /// Sends any body to any path.
    pub async fn send(&self, method: Method, path: &str, body: String) -> Answer {
        self.send_with(method, path, body, &[]).await
    }

    /// Fetches an absolute URL, or a range of its content.
    pub async fn fetch(&self, url: &str, range: Option<&str>) -> (u16, Bytes) {
        let mut request = Request::builder().uri(url);
        if let Some(range) = range {
            request = request.header("range", range);
        }
        let request = request.body(Full::default()).expect("a request");
        let response = self.client.request(request).await.expect("an answer");
        let status = response.status().as_u16();
        (status, response.into_body().collect().await.expect("a whole body").to_bytes())
    }

    /// Sends any body to any path with further headers.
    pub async fn send_with(
        &self,
        method: Method,
        path: &str,
        body: String,
        headers: &[(&str, &str)],
    ) -> Answer {
        self.try_send(method, path, body, headers).await.expect("an answer")
    }

    /// Like [`Self::call`], for processes that may not answer.
    pub async fn try_call(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<Answer, SendError> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.try_send(method, &format!("/v1/partner/{path}"), body, &[]).await
    }

    /// Like [`Self::send_with`], for processes that may not answer.
    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        body: String,
        headers: &[(&str, &str)],
    ) -> Result<Answer, SendError> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let base = &self.bases[turn % self.bases.len()];
        let mut request = Request::builder().method(method).uri(format!("{base}{path}"));
        if !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(key) = &self.key {
            request = request.header("x-api-key", key);
        }
        let request = request.body(Full::from(body)).expect("a request");
        let response = self.client.request(request).await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.into_body().collect().await?.to_bytes();
        Ok(Answer {
            status,
            headers,
            body: serde_json::from_slice(&body).unwrap_or(Value::Null),
            bytes: body,
        })
    }
}
