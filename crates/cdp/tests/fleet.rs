//! Browsers that run elsewhere, against the contract of browser pools: a Chromium that many share.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

mod common;

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use cdp::{ChromiumPool, Fleet, PoolOptions, Source};
use domain::secret::Secret;
use ports::browser::{BrowserPool as _, StartError};
use rustls::{ClientConfig, RootCertStore};
use testkit::{
    contract::browser_pool::Pool,
    fleet::{CLOSED, Shared},
    tls::acceptor,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
};

use self::common::{options, spec};

testkit::browser_pool_contract!(contract());

const PATIENCE: Duration = Duration::from_secs(20);
const HOST: &str = "page.localhost";
const PAGE: &str = "http://page.localhost/";

#[tokio::test]
async fn a_fleet_is_spoken_to_over_tls() {
    let shared = Shared::start(CLOSED).await;
    let ((acceptor, root), behind) = (acceptor("localhost"), shared.address);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut stream = acceptor.accept(stream).await.ok()?;
                let mut browser = TcpStream::connect(behind).await.ok()?;
                copy_bidirectional(&mut stream, &mut browser).await.ok()
            });
        }
    });
    let mut roots = RootCertStore::empty();
    let url = format!("wss://localhost:{port}/");
    let stranger = pool(&url, roots.clone()).await;
    let refusal = stranger.start(spec(HOST, "US")).await.map(drop).unwrap_err();
    assert!(matches!(refusal, StartError::Unavailable(_)), "{refusal:?}");
    roots.add(root.into()).unwrap();
    let pool = pool(&url, roots).await;
    pool.start(spec(HOST, "US")).await.unwrap().navigate(PAGE).await.unwrap();
    pool.end_all().await;
}

#[tokio::test]
async fn a_fleet_without_room_has_none() {
    for status in ["429 Too Many Requests", "503 Service Unavailable"] {
        let pool = pool(&answering(status).await, RootCertStore::empty()).await;
        let refusal = pool.start(spec(HOST, "US")).await.map(drop).unwrap_err();
        assert!(matches!(refusal, StartError::NoRoom), "{refusal:?}");
    }
    let pool = pool(&answering("401 Unauthorized").await, RootCertStore::empty()).await;
    let refusal = pool.start(spec(HOST, "US")).await.map(drop).unwrap_err();
    let StartError::Unavailable(why) = refusal else { panic!("{refusal:?}") };
    assert!(why.contains("401") && !why.contains("geheim"), "{why}");
}

#[tokio::test]
async fn browsers_that_speak_past_their_proxy_are_not_taken() {
    let shared = Shared::start(&[]).await;
    let pool = pool(&shared.url(), RootCertStore::empty()).await;
    let refusal = pool.start(spec(HOST, "US")).await.map(drop).unwrap_err();
    let StartError::Unavailable(why) = refusal else { panic!("{refusal:?}") };
    assert!(why.contains("webrtc-ip-handling-policy"), "{why}");
    assert_eq!(shared.contexts(), 0);
}

#[tokio::test]
async fn a_proxy_that_the_fleet_does_not_find_is_told() {
    let shared = Shared::start(CLOSED).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Secret::new(shared.url());
    let fleet = Fleet::new(url, tls(RootCertStore::empty()), listener, "127.0.0.1:1".to_owned());
    let pool = ChromiumPool::new(with(fleet).await);
    let refusal = pool.start(spec(HOST, "US")).await.map(drop).unwrap_err();
    let StartError::Unavailable(why) = refusal else { panic!("{refusal:?}") };
    assert!(why.contains("127.0.0.1:1"), "{why}");
    assert_eq!(shared.contexts(), 0);
}

#[tokio::test]
async fn sessions_in_one_browser_do_not_see_or_hold_up_each_other() {
    let shared = Shared::start(CLOSED).await;
    let (one, other) = (
        pool(&shared.url(), RootCertStore::empty()).await,
        pool(&shared.url(), RootCertStore::empty()).await,
    );
    let first = one.start(spec(HOST, "US")).await.unwrap();
    let second = other.start(spec(HOST, "US")).await.unwrap();
    first.navigate(&format!("{PAGE}set")).await.unwrap();
    second.navigate(PAGE).await.unwrap();
    assert!(first.observe().await.unwrap().cookies.contains("who"));
    assert!(second.observe().await.unwrap().cookies.is_empty());
    let fetched = first.fetch(&format!("{PAGE}x"), 100).await.unwrap();
    assert_eq!((fetched.status, fetched.body.as_str()), (200, "<h1>hello</h1>"));
    drop((first, one));
    until(|| shared.contexts() == 1).await;
    second.navigate(PAGE).await.unwrap();
    other.end_all().await;
    until(|| shared.contexts() == 0).await;
}

#[tokio::test]
async fn the_end_of_the_fleet_is_the_end_of_its_browsers() {
    let shared = Shared::start(CLOSED).await;
    let pool = pool(&shared.url(), RootCertStore::empty()).await;
    let browser = pool.start(spec(HOST, "US")).await.unwrap();
    shared.kill();
    tokio::time::timeout(PATIENCE, browser.ended()).await.unwrap();
}

#[tokio::test]
async fn the_way_out_is_for_nobody_else() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let url = Secret::new("ws://127.0.0.1:1/".to_owned());
    let fleet = Fleet::new(url, tls(RootCertStore::empty()), listener, address.to_string());
    let _pool = ChromiumPool::new(with(fleet).await);
    for shown in ["", "Proxy-Authorization: Basic dTpw\r\n"] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!("GET {PAGE} HTTP/1.1\r\nHost: {HOST}\r\n{shown}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 407 "), "{answer}");
    }
}

async fn until(condition: impl Fn() -> bool) {
    let ends = tokio::time::Instant::now() + PATIENCE;
    while !condition() {
        assert!(tokio::time::Instant::now() < ends, "it did not come to that");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn contract() -> Pool {
    let shared = Arc::new(Shared::start(CLOSED).await);
    let contexts = shared.clone();
    Pool {
        pool: pool(&shared.url(), RootCertStore::empty()).await,
        page: PAGE.to_owned(),
        host: HOST.to_owned(),
        running: Box::new(move || contexts.contexts()),
        guard: Box::new(shared),
    }
}

async fn pool(url: &str, roots: RootCertStore) -> Arc<ChromiumPool> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let url = Secret::new(url.to_owned());
    ChromiumPool::new(with(Fleet::new(url, tls(roots), listener, address)).await)
}

/// With one site that they can go to.
async fn with(fleet: Fleet) -> PoolOptions {
    let routes = HashMap::from([(HOST.to_owned(), site().await)]);
    PoolOptions { source: Source::Elsewhere(fleet), routes, ..options("".as_ref()) }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn tls(roots: RootCertStore) -> Arc<ClientConfig> {
    let config = ClientConfig::builder_with_provider(provider());
    let config = config.with_safe_default_protocol_versions().unwrap();
    Arc::new(config.with_root_certificates(roots).with_no_client_auth())
}

async fn site() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let set = if request.starts_with(b"GET /set") { "set-cookie: who=me\r\n" } else { "" };
            let page = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 14\r\n{set}\
                 connection: close\r\n\r\n<h1>hello</h1>"
            );
            let _ = stream.write_all(page.as_bytes()).await;
        }
    });
    address
}

/// A fleet that answers every handshake with a status.
async fn answering(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    format!("ws://{address}/?token=geheim")
}
