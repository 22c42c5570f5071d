//! The pool of fleet browsers against the contract of browser pools: a Chromium shared by sessions.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

mod common;

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chromium::{BrowserSource, CertificateFiles, ChromiumPool, Fleet, FleetAddress, PoolOptions};
use domain::workflow::PageFetch;
use ports::browser::{BrowserPool as _, StartError};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use testkit::{
    certificates::Authority,
    contract::browser_pool::Pool,
    fleet::{SharedChromium, WEBRTC_FLAGS},
    tls::acceptor,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsConnector;

use self::common::{options, spec};

testkit::browser_pool_contract!(contract());

const TIMEOUT: Duration = Duration::from_secs(60);
const HOST: &str = "page.localhost";
const PAGE: &str = "http://page.localhost/";

#[tokio::test]
async fn a_fleet_is_connected_to_over_tls() {
    let shared = SharedChromium::start(WEBRTC_FLAGS).await;
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
    let untrusting = pool(&url, roots.clone()).await;
    let error = untrusting.start(spec(HOST, "US")).await.map(drop).unwrap_err();
    assert!(matches!(error, StartError::Unavailable(_)), "{error:?}");
    roots.add(root.into()).unwrap();
    let pool = pool(&url, roots).await;
    pool.start(spec(HOST, "US")).await.unwrap().navigate(PAGE).await.unwrap();
    pool.end_all().await;
}

#[tokio::test]
async fn a_fleet_at_capacity_is_reported_as_such() {
    for status in ["429 Too Many Requests", "503 Service Unavailable"] {
        let pool = pool(&fleet_responding(status).await, RootCertStore::empty()).await;
        let error = pool.start(spec(HOST, "US")).await.map(drop).unwrap_err();
        assert!(matches!(error, StartError::NoRoom), "{error:?}");
    }
    let pool = pool(&fleet_responding("401 Unauthorized").await, RootCertStore::empty()).await;
    let error = pool.start(spec(HOST, "US")).await.map(drop).unwrap_err();
    let StartError::Unavailable(why) = error else { panic!("{error:?}") };
    assert!(why.contains("401") && !why.contains("geheim"), "{why}");
}

#[tokio::test]
async fn browsers_that_bypass_their_proxy_are_refused() {
    let shared = SharedChromium::start(&[]).await;
    let pool = pool(&shared.url(), RootCertStore::empty()).await;
    let error = pool.start(spec(HOST, "US")).await.map(drop).unwrap_err();
    let StartError::Unavailable(why) = error else { panic!("{error:?}") };
    assert!(why.contains("webrtc-ip-handling-policy"), "{why}");
    assert_eq!(shared.contexts(), 0);
}

#[tokio::test]
async fn a_proxy_that_the_fleet_cannot_reach_is_an_error() {
    let shared = SharedChromium::start(WEBRTC_FLAGS).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let fleet = fleet(&shared.url(), RootCertStore::empty(), listener, "127.0.0.1:1");
    let pool = ChromiumPool::new(options_with(fleet).await);
    let error = pool.start(spec(HOST, "US")).await.map(drop).unwrap_err();
    let StartError::Unavailable(why) = error else { panic!("{error:?}") };
    assert!(why.contains("127.0.0.1:1"), "{why}");
    assert_eq!(shared.contexts(), 0);
}

#[tokio::test]
async fn browsers_reach_the_proxy_over_tls_if_it_has_a_certificate() {
    let authority = Authority::new("fleet");
    let (known, unknown) = (authority.valid(&["127.0.0.1"]), authority.valid(&["127.0.0.1"]));
    let trusted = format!(
        "--ignore-certificate-errors-spki-list={}",
        STANDARD.encode(known.public_key_sha256())
    );
    let flags: Vec<_> = WEBRTC_FLAGS.iter().copied().chain([trusted.as_str()]).collect();
    let shared = SharedChromium::start(&flags).await;
    for (certified, is_trusted) in [(unknown, false), (known, true)] {
        let files = tempfile::tempdir().unwrap();
        let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| files.path().join(name));
        std::fs::write(&certificate, &certified.certificate).unwrap();
        std::fs::write(&key, &certified.key).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut address =
            FleetAddress::new(&shared.url(), listener.local_addr().unwrap(), None).unwrap();
        address.proxy_certificate = Some(CertificateFiles { certificate, key });
        let fleet = Fleet::new(address, tls(RootCertStore::empty()), listener).unwrap();
        let pool = ChromiumPool::new(options_with(fleet).await);
        match pool.start(spec(HOST, "US")).await {
            Ok(browser) => {
                assert!(is_trusted);
                browser.navigate(PAGE).await.unwrap();
                let fetched = browser.fetch(&PageFetch::get(&format!("{PAGE}x"), 100)).await;
                assert_eq!(fetched.unwrap().body, "<h1>hello</h1>");
            }
            Err(StartError::Unavailable(why)) if !is_trusted => {
                assert!(why.contains("https://127.0.0.1:"), "{why}");
            }
            Err(error) => panic!("{error:?}"),
        }
        pool.end_all().await;
    }
}

#[tokio::test]
async fn a_certificate_of_the_proxy_that_is_replaced_is_read_again() {
    let files = tempfile::tempdir().unwrap();
    let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| files.path().join(name));
    let write = |authority: &Authority| {
        let certified = authority.valid(&["localhost"]);
        std::fs::write(&certificate, &certified.certificate).unwrap();
        std::fs::write(&key, &certified.key).unwrap();
    };
    let (before, after) = (Authority::new("before"), Authority::new("after"));
    write(&before);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listen = listener.local_addr().unwrap();
    let mut address = FleetAddress::new("ws://127.0.0.1:1/", listen, None).unwrap();
    address.proxy_certificate =
        Some(CertificateFiles { certificate: certificate.clone(), key: key.clone() });
    let _fleet = Fleet::new(address, tls(RootCertStore::empty()), listener).unwrap();
    let is_from = async |authority: &Authority| {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap()).unwrap();
        let stream = TcpStream::connect(listen).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(tls(roots)).connect(name, stream).await.is_ok()
    };
    assert!(is_from(&before).await && !is_from(&after).await);
    std::fs::write(&certificate, "nothing").unwrap();
    tokio::time::sleep(Duration::from_millis(2100)).await;
    assert!(is_from(&before).await, "a certificate that cannot be used is not taken");
    write(&after);
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    while !is_from(&after).await {
        assert!(tokio::time::Instant::now() < deadline, "the certificate was not read again");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn sessions_in_one_browser_are_isolated_and_do_not_block_each_other() {
    let shared = SharedChromium::start(WEBRTC_FLAGS).await;
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
    let fetched = first.fetch(&PageFetch::get(&format!("{PAGE}x"), 100)).await.unwrap();
    assert_eq!((fetched.status, fetched.body.as_str()), (200, "<h1>hello</h1>"));
    drop((first, one));
    until(|| shared.contexts() == 1).await;
    second.navigate(PAGE).await.unwrap();
    other.end_all().await;
    until(|| shared.contexts() == 0).await;
}

#[tokio::test]
async fn browsers_end_with_their_fleet() {
    let shared = SharedChromium::start(WEBRTC_FLAGS).await;
    let pool = pool(&shared.url(), RootCertStore::empty()).await;
    let browser = pool.start(spec(HOST, "US")).await.unwrap();
    shared.kill();
    tokio::time::timeout(TIMEOUT, browser.ended()).await.unwrap();
}

#[tokio::test]
async fn the_proxy_refuses_clients_without_a_credential() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let url = "ws://127.0.0.1:1/";
    let fleet = fleet(url, RootCertStore::empty(), listener, &address.to_string());
    let _pool = ChromiumPool::new(options_with(fleet).await);
    for header in ["", "Proxy-Authorization: Basic dTpw\r\n"] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!("GET {PAGE} HTTP/1.1\r\nHost: {HOST}\r\n{header}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 407 "), "{answer}");
    }
}

async fn until(condition: impl Fn() -> bool) {
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    while !condition() {
        assert!(tokio::time::Instant::now() < deadline, "the condition did not become true");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn contract() -> Pool {
    let shared = Arc::new(SharedChromium::start(WEBRTC_FLAGS).await);
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
    ChromiumPool::new(options_with(fleet(url, roots, listener, &address)).await)
}

fn fleet(urls: &str, roots: RootCertStore, listener: TcpListener, proxy: &str) -> Fleet {
    let listen = listener.local_addr().unwrap();
    let address = FleetAddress::new(urls, listen, Some(proxy.to_owned())).unwrap();
    Fleet::new(address, tls(roots), listener).unwrap()
}

/// Returns options with one site.
async fn options_with(fleet: Fleet) -> PoolOptions {
    let local_hosts = HashMap::from([(HOST.to_owned(), site().await)]);
    PoolOptions { source: BrowserSource::Fleet(fleet), local_hosts, ..options("".as_ref()) }
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

/// Starts a fleet that responds to every handshake with a status.
async fn fleet_responding(status: &'static str) -> String {
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
