//! Browsers behind egress proxies: a real proxy, and behind it an Internet that consists of two sites.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

mod common;

use domain::workflow::{ElementRead, PageFetch};
use std::{
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use chromium::{ChromiumPool, PoolOptions};
use ports::browser::{BrowserPool as _, StartError};
use tempfile::TempDir;
use testkit::port::free_port;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use uuid::Uuid;

use self::common::{options, spec};

const CHECK: &str = "http://country.test/";
const HOST: &str = "page.test";
const PAGE: &str = "http://page.test/";

#[tokio::test]
async fn a_browser_uses_the_proxy_of_its_country_only() {
    let network = Network::new("DE").await;
    let ours = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    ours.set_nonblocking(true).unwrap();
    let pool = network.pool(&format!("FR=http://127.0.0.1:1 DE={}", network.proxy_url("geheim")));
    let browser = pool.start(spec(HOST, "DE")).await.unwrap();
    browser.navigate(PAGE).await.unwrap();
    assert_eq!(
        browser.read(&[ElementRead::text("h1")]).await.unwrap(),
        [serde_json::Value::from("hello")]
    );
    assert_eq!(network.targets(), ["country.test:80", "page.test:80"]);
    let port = ours.local_addr().unwrap().port();
    for host in ["127.0.0.1", "localhost", "here.localhost", "printer.local", "127.1"] {
        let fetched = browser.fetch(&PageFetch::get(&format!("http://{host}:{port}/"), 100)).await;
        assert!(fetched.map_or(true, |fetched| fetched.status == 403), "{host}");
    }
    assert!(ours.accept().is_err(), "a connection was accepted");
    pool.end_all().await;
}

#[tokio::test]
async fn a_proxy_in_another_country_is_refused() {
    let network = Network::new("FR").await;
    let pool = network.pool(&network.proxy_url("geheim"));
    let error = pool.start(spec(HOST, "DE")).await.map(drop).unwrap_err();
    assert!(matches!(error, StartError::Elsewhere), "{error:?}");
}

#[tokio::test]
async fn the_next_proxy_is_tried_after_one_that_is_dead_or_refuses_us() {
    let network = Network::new("DE").await;
    let (dead, refusing) = ("http://127.0.0.1:1", network.proxy_url("falsch"));
    let pool = network.pool(&format!("{dead} {refusing}"));
    let error = pool.start(spec(HOST, "DE")).await.map(drop).unwrap_err();
    assert!(matches!(error, StartError::NoEgress), "{error:?}");
    let pool = network.pool(&format!("{dead} {refusing} {}", network.proxy_url("geheim")));
    pool.start(spec(HOST, "DE")).await.unwrap();
    pool.end_all().await;
}

#[tokio::test]
async fn without_a_proxy_for_the_country_no_connection_is_made() {
    let network = Network::new("DE").await;
    let pool = network.pool(&format!("DE={}", network.proxy_url("geheim")));
    let error = pool.start(spec(HOST, "FR")).await.map(drop).unwrap_err();
    assert!(matches!(error, StartError::NoEgress), "{error:?}");
    assert!(network.targets().is_empty(), "{:?}", network.targets());
}

/// A real proxy that requires credentials, and the sites behind it.
struct Network {
    port: u16,
    targets: Arc<Mutex<Vec<String>>>,
    proxy: Child,
    folder: TempDir,
}

impl Network {
    /// Starts a network in which all requests come from this country.
    async fn new(country: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let internet = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let behind = internet.local_addr().unwrap().port();
        let port = free_port();
        let targets = Arc::new(Mutex::new(vec![]));
        let into = targets.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = internet.accept().await {
                tokio::spawn(serve(stream, country, into.clone()));
            }
        });
        let file = folder.path().join("tinyproxy.conf");
        let text = format!(
            "Port {port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 50\nBasicAuth ada-de geheim\n\
             Upstream http 127.0.0.1:{behind}\n"
        );
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new("tinyproxy");
        command.arg("-d").arg("-c").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        let proxy = command.spawn().unwrap();
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Self { port, targets, proxy, folder }
    }

    fn proxy_url(&self, password: &str) -> String {
        format!("http://ada-{{country}}:{password}@127.0.0.1:{}", self.port)
    }

    /// Returns the targets that the proxy was asked to connect to.
    fn targets(&self) -> Vec<String> {
        let mut targets = self.targets.lock().unwrap().clone();
        targets.dedup();
        targets
    }

    fn pool(&self, proxies: &str) -> Arc<ChromiumPool> {
        ChromiumPool::new(PoolOptions {
            egress_proxies: proxies.parse().unwrap(),
            country_check_url: Some(CHECK.to_owned()),
            ..options(&self.folder.path().join(Uuid::new_v4().simple().to_string()))
        })
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.proxy.kill();
        let _ = self.proxy.wait();
    }
}

/// Serves the other end of a tunnel to any target.
async fn serve(
    mut stream: TcpStream,
    country: &'static str,
    targets: Arc<Mutex<Vec<String>>>,
) -> Option<()> {
    let head = head(&mut stream).await?;
    let target = head.strip_prefix("CONNECT ")?.split(' ').next()?.to_owned();
    targets.lock().unwrap().push(target.clone());
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.ok()?;
    self::head(&mut stream).await?;
    let (kind, body) = match target.as_str() {
        "country.test:80" => ("text/plain", country),
        _ => ("text/html", "<h1>hello</h1>"),
    };
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await.ok()
}

async fn head(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = vec![];
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(bytes).ok()
}
