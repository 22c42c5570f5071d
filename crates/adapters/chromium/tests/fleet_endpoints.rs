//! Fleets of several endpoints, and grids that misbehave: which endpoint a browser comes from, and that no
//! session of a grid remains.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

mod common;

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use chromium::{BrowserSource, ChromiumPool, Fleet, FleetAddress, PoolOptions};
use ports::browser::{BrowserPool as _, StartError};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use testkit::fleet::{SharedChromium, WEBRTC_FLAGS};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
};

use self::common::{options, spec};

const TIMEOUT: Duration = Duration::from_secs(60);
const HOST: &str = "page.localhost";
const FULL: &str = "429 Too Many Requests";

#[tokio::test]
async fn browsers_come_from_the_endpoints_that_work_by_their_weights() {
    let (light, heavy) =
        (SharedChromium::start(WEBRTC_FLAGS).await, SharedChromium::start(WEBRTC_FLAGS).await);
    let broken = Server::start(|_| Some(status("500 Internal Server Error"))).await;
    let urls = format!("{}#weight=100 {} {}#weight=2", broken.ws(), light.url(), heavy.url());
    let pool = pool(&urls, 3).await;
    for _ in 0..3 {
        pool.start(spec(HOST, "US")).await.unwrap();
    }
    assert_eq!((light.contexts(), heavy.contexts()), (1, 2));
    assert!(broken.requests().len() < 3, "it was left out after its failure");
    pool.end_all().await;
}

#[tokio::test]
async fn a_full_endpoint_is_passed_over_and_asked_again() {
    let shared = SharedChromium::start(WEBRTC_FLAGS).await;
    let full = Server::start(|_| Some(status(FULL))).await;
    let pool = pool(&format!("{}#weight=100 {}", full.ws(), shared.url()), 2).await;
    for _ in 0..2 {
        pool.start(spec(HOST, "US")).await.unwrap();
    }
    assert_eq!((shared.contexts(), full.requests().len()), (2, 2));
    pool.end_all().await;
}

/// A Chromium behind a server with the protocol of Browserless; the test below is for Browserless itself.
#[tokio::test]
async fn a_browser_of_browserless_is_requested_with_our_flags_if_one_is_free() {
    let shared = SharedChromium::start(WEBRTC_FLAGS).await;
    let (browser, path) = (shared.address, shared.path());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let opened = Arc::new(Mutex::new(vec![]));
    let recorded = opened.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 16_384];
            let read = stream.read(&mut head).await.unwrap();
            let head = String::from_utf8_lossy(&head[..read]).into_owned();
            let (line, rest) = head.split_once("\r\n").unwrap();
            if line == "GET /pressure?token=geheim HTTP/1.1" {
                let running = recorded.lock().unwrap().len();
                let body = json!({ "pressure": {
                    "isAvailable": true, "running": running, "maxConcurrent": 1, "queued": 0,
                } });
                let body = body.to_string();
                let length = body.len();
                let response = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
                stream.write_all(response.as_bytes()).await.unwrap();
                continue;
            }
            recorded.lock().unwrap().push(line.to_owned());
            let mut browser = TcpStream::connect(browser).await.unwrap();
            let request = format!("GET {path} HTTP/1.1\r\n{rest}");
            browser.write_all(request.as_bytes()).await.unwrap();
            tokio::spawn(async move { copy_bidirectional(&mut stream, &mut browser).await });
        }
    });
    let pool = pool(&format!("browserless+ws://{address}/chromium?token=geheim"), 2).await;
    pool.start(spec(HOST, "US")).await.unwrap();
    let error = pool.start(spec(HOST, "US")).await.map(drop).unwrap_err();
    assert!(matches!(error, StartError::NoRoom), "{error:?}");
    let opened = opened.lock().unwrap().clone();
    let [line] = &opened[..] else { panic!("{opened:?}") };
    assert!(line.starts_with("GET /chromium?token=geheim&launch=%7B"), "{line}");
    assert!(line.contains("--webrtc-ip-handling-policy") && line.contains("&timeout="), "{line}");
    pool.end_all().await;
}

/// `BROWSERLESS_URL` is the endpoint, with the kind before its scheme. It must have two browsers.
#[tokio::test]
#[ignore = "needs a Browserless 2"]
async fn browserless_runs_browsers_for_longer_than_it_does_by_default() {
    let pool = pool(&std::env::var("BROWSERLESS_URL").unwrap(), 4).await;
    let first = pool.start(spec(HOST, "US")).await.unwrap();
    pool.start(spec(HOST, "US")).await.unwrap();
    let error = pool.start(spec(HOST, "US")).await.map(drop).unwrap_err();
    assert!(matches!(error, StartError::NoRoom), "{error:?}");
    let ended = tokio::time::timeout(Duration::from_secs(45), first.ended()).await;
    assert!(ended.is_err(), "Browserless ends connections after 30 s unless it is asked not to");
    first.navigate("about:blank").await.unwrap();
    pool.end_all().await;
}

#[tokio::test]
async fn the_error_of_each_endpoint_is_told_without_secrets() {
    let failing = Server::start(|_| Some(status("401 Unauthorized"))).await;
    let full = Server::start(|_| Some(status(FULL))).await;
    let endpoints = [
        format!("{}?token=geheim", failing.ws()),
        format!("{}?token=geheim", failing.grid().replace("://", "://ada:geheim@")),
        format!("browserless+{}?token=geheim", failing.ws()),
        "ws://127.0.0.1:1/?token=geheim".to_owned(),
    ];
    let error = start(&endpoints.join(" ")).await;
    let StartError::Unavailable(why) = error else { panic!("{error:?}") };
    assert_eq!(why.matches(&failing.name()).count(), 3, "{why}");
    assert!(why.contains("401") && why.contains("127.0.0.1:1: "), "{why}");
    assert!(!why.contains("geheim") && !why.contains("ada"), "{why}");

    let error = start(&format!("{} {}", full.ws(), endpoints.join(" "))).await;
    assert!(matches!(error, StartError::NoRoom), "{error:?}");
}

#[tokio::test]
async fn a_session_that_is_given_up_is_deleted_with_retries() {
    let grid = Server::grid_with(|request| match request.line.as_str() {
        "DELETE /session/7 HTTP/1.1" if request.number < 5 => status("500 Internal Server Error"),
        "DELETE /session/7 HTTP/1.1" => status("200 OK"),
        // As slow as the start of a browser.
        _ => Response { delay: Duration::from_millis(500), ..created(true) },
    })
    .await;
    let pool = pool(&grid.grid(), 1).await;
    let starter = pool.clone();
    let starting = tokio::spawn(async move { starter.start(spec(HOST, "US")).await.map(drop) });
    until(|| grid.requests().contains(&"POST /session HTTP/1.1".to_owned())).await;
    starting.abort();
    let deletions = || grid.requests().iter().filter(|line| line.starts_with("DELETE ")).count();
    until(|| deletions() == 3).await;
}

#[tokio::test]
async fn a_session_is_deleted_if_its_browser_cannot_be_reached() {
    for has_devtools in [true, false] {
        let elsewhere = Server::start(|_| None).await;
        let address = elsewhere.name();
        let grid = Server::grid_with(move |request| match request.line.as_str() {
            "POST /session HTTP/1.1" if has_devtools => {
                let body = created(true).body.replace("HOST", &address);
                Response { body, ..created(true) }
            }
            "POST /session HTTP/1.1" => created(false),
            "DELETE /session/7 HTTP/1.1" => status("200 OK"),
            _ => status("404 Not Found"),
        })
        .await;
        let error = start(&grid.grid()).await;
        let StartError::Unavailable(why) = error else { panic!("{error:?}") };
        assert_eq!(why.contains("--enable-cdp"), !has_devtools, "{why}");
        let requests = grid.requests();
        assert_eq!(requests.last().unwrap(), "DELETE /session/7 HTTP/1.1", "{requests:?}");
        let devtools = "GET /session/7/se/cdp HTTP/1.1".to_owned();
        assert_eq!(requests.contains(&devtools), has_devtools, "{requests:?}");
        assert_eq!(elsewhere.requests(), Vec::<String>::new(), "a grid must not name hosts");
    }
}

#[tokio::test]
async fn a_session_is_kept_without_a_command_for_its_page() {
    let grid = Server::grid_with(|request| match request.line.as_str() {
        "POST /session HTTP/1.1" => created(true),
        "GET /session/7/se/cdp HTTP/1.1" => {
            Response { delay: Duration::from_secs(60), ..status("404 Not Found") }
        }
        _ => status("200 OK"),
    })
    .await;
    let pool = pool(&grid.grid(), 1).await;
    let starting = tokio::spawn(async move { pool.start(spec(HOST, "US")).await.map(drop) });
    until(|| grid.requests().contains(&"GET /session/7/timeouts HTTP/1.1".to_owned())).await;
    starting.abort();
    until(|| grid.requests().contains(&"DELETE /session/7 HTTP/1.1".to_owned())).await;
}

#[tokio::test]
async fn no_more_sessions_are_requested_than_slots_are_free() {
    let grid = Server::grid_with(|request| match request.line.as_str() {
        "POST /session HTTP/1.1" => Response { delay: Duration::from_secs(30), ..created(true) },
        _ => status("200 OK"),
    })
    .await;
    let pool = pool(&grid.grid(), 2).await;
    let first = tokio::spawn({
        let pool = pool.clone();
        async move { pool.start(spec(HOST, "US")).await.map(drop) }
    });
    let posts = || grid.requests().iter().filter(|line| line.starts_with("POST ")).count();
    until(|| posts() == 1).await;
    let error = pool.start(spec(HOST, "US")).await.map(drop).unwrap_err();
    assert!(matches!(error, StartError::NoRoom), "{error:?}");
    assert_eq!(posts(), 1);
    first.abort();
}

#[tokio::test]
async fn what_a_grid_responds_with_is_bounded() {
    let body = "a".repeat(5 << 20);
    let grid =
        Server::start(move |_| Some(Response { body: body.clone(), ..status("200 OK") })).await;
    let error = start(&grid.grid()).await;
    let StartError::Unavailable(why) = error else { panic!("{error:?}") };
    assert!(why.contains("too long"), "{why}");
}

async fn start(urls: &str) -> StartError {
    pool(urls, 1).await.start(spec(HOST, "US")).await.map(drop).unwrap_err()
}

async fn pool(urls: &str, capacity: usize) -> Arc<ChromiumPool> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = FleetAddress::new(urls, listener.local_addr().unwrap(), None).unwrap();
    let source = BrowserSource::Fleet(Fleet::new(address, tls(), listener).unwrap());
    let local_hosts = HashMap::new();
    ChromiumPool::new(PoolOptions { source, capacity, local_hosts, ..options("".as_ref()) })
}

fn tls() -> Arc<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap();
    Arc::new(config.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

async fn until(condition: impl Fn() -> bool) {
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    while !condition() {
        assert!(tokio::time::Instant::now() < deadline, "the condition did not become true");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A request to a server of these tests.
struct Request {
    /// Method, path and version.
    line: String,
    /// How many requests came before.
    number: usize,
}

#[derive(Clone)]
struct Response {
    status: &'static str,
    body: String,
    delay: Duration,
}

fn status(status: &'static str) -> Response {
    Response { status, body: String::new(), delay: Duration::ZERO }
}

/// Returns the response with the session `7`, whose DevTools address is on `HOST`.
fn created(has_devtools: bool) -> Response {
    let devtools = if has_devtools { json!("ws://HOST/session/7/se/cdp") } else { Value::Null };
    let body = json!({ "value": { "sessionId": "7", "capabilities": { "se:cdp": devtools } } });
    Response { body: body.to_string(), ..status("200 OK") }
}

/// An HTTP server that records the first line of each request.
struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts a server; without a response it closes the connection.
    async fn start(respond: impl Fn(&Request) -> Option<Response> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(vec![]));
        let (recorded, respond) = (requests.clone(), Arc::new(respond));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (recorded, respond) = (recorded.clone(), respond.clone());
                tokio::spawn(async move {
                    let mut head = [0; 8192];
                    let read = stream.read(&mut head).await.unwrap_or(0);
                    let head = String::from_utf8_lossy(head.get(..read).unwrap_or_default());
                    let line = head.lines().next().unwrap_or_default().to_owned();
                    let number = {
                        let mut recorded = recorded.lock().unwrap();
                        recorded.push(line.clone());
                        recorded.len() - 1
                    };
                    let Some(response) = respond(&Request { line, number }) else { return };
                    tokio::time::sleep(response.delay).await;
                    let (status, body) = (response.status, response.body);
                    let response = format!(
                        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                        body.len()
                    );
                    let _ = stream.write_all(response.as_bytes()).await;
                });
            }
        });
        Self { address, requests }
    }

    /// Starts a grid with one slot, which is free all the time, and that responds like this to everything
    /// else.
    async fn grid_with(respond: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Self {
        Self::start(move |request| {
            if request.line != "GET /status HTTP/1.1" {
                return Some(respond(request));
            }
            let slot = json!({ "session": null, "stereotype": { "browserName": "chrome" } });
            let node = json!({ "availability": "UP", "maxSessions": 1, "slots": [slot] });
            let body = json!({ "value": { "ready": true, "nodes": [node] } }).to_string();
            Some(Response { body, ..status("200 OK") })
        })
        .await
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    fn name(&self) -> String {
        self.address.to_string()
    }

    fn ws(&self) -> String {
        format!("ws://{}/", self.address)
    }

    fn grid(&self) -> String {
        format!("selenium+http://{}", self.address)
    }
}
