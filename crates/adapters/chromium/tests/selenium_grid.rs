//! The pool of fleet browsers on a Selenium Grid with two nodes, against the contract of browser pools.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

mod common;

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use chromium::{BrowserSource, ChromiumPool, Fleet, FleetAddress, PoolOptions};
use ports::browser::{BrowserPool as _, Device, Scale, StartError, Viewport};
use rustls::{ClientConfig, RootCertStore};
use testkit::{contract::browser_pool::Pool, grid::SeleniumGrid};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use zune_jpeg::{JpegDecoder, zune_core::bytestream::ZCursor};

use self::common::{options, spec};

const TIMEOUT: Duration = Duration::from_secs(60);
const HOST: &str = "page.localhost";
const PAGE: &str = "http://page.localhost/";

testkit::browser_pool_contract!(
    contract,
    on SeleniumGrid::start(2, 300),
    in every_case_of_the_contract_holds_on_a_grid
);

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_a_grid_are_kept_and_have_the_resolution_of_their_device() {
    let grid = SeleniumGrid::start(1, 15).await;
    let pool = pool(&grid.url()).await;
    let mut spec = spec(HOST, "US");
    let viewport = Viewport { width: 390, height: 844 };
    spec.device = Device { viewport, scale: Scale::Two, touch: true, ..spec.device };
    let browser = pool.start(spec.clone()).await.unwrap();
    browser.navigate(PAGE).await.unwrap();
    let width = usize::from(viewport.width) * 2;
    let (mut seen, mut widths) = (0, vec![]);
    while widths.last() != Some(&width) {
        let frame = tokio::time::timeout(TIMEOUT, browser.frame(seen)).await;
        let frame = frame.unwrap_or_else(|_| panic!("{widths:?} for {width}")).unwrap();
        let mut decoder = JpegDecoder::new(ZCursor::new(&frame.jpeg[..]));
        decoder.decode_headers().unwrap();
        widths.push(decoder.dimensions().unwrap().0);
        seen = frame.seq;
    }

    let other = pool.start(self::common::spec(HOST, "US")).await.map(drop).unwrap_err();
    assert!(matches!(other, StartError::NoRoom), "{other:?}");
    // The grid ends sessions without a command for 15 s, and looks for them every 30 s.
    let idle = std::env::var("GRID_IDLE_SECONDS").map_or(1, |seconds| seconds.parse().unwrap());
    tokio::time::sleep(Duration::from_secs(idle)).await;
    assert_eq!(grid.sessions(), 1);
    browser.navigate(PAGE).await.unwrap();
    grid.end_sessions();
    tokio::time::timeout(TIMEOUT, browser.ended()).await.unwrap();
    pool.release(spec.id).await;
    pool.start(self::common::spec(HOST, "US")).await.unwrap();
    pool.end_all().await;
    until(|| grid.sessions() == 0).await;
}

async fn contract(grid: Arc<SeleniumGrid>) -> Pool {
    let sessions = grid.clone();
    // Those of the pool before, which was dropped.
    until(|| sessions.sessions() == 0).await;
    Pool {
        pool: pool(&grid.url()).await,
        page: PAGE.to_owned(),
        host: HOST.to_owned(),
        running: Box::new(move || sessions.sessions()),
        guard: Box::new(grid),
    }
}

async fn pool(urls: &str) -> Arc<ChromiumPool> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listen = listener.local_addr().unwrap();
    let address = FleetAddress::new(urls, listen, None).unwrap();
    let fleet = Fleet::new(address, tls(), listener).unwrap();
    let local_hosts = HashMap::from([(HOST.to_owned(), site().await)]);
    let source = BrowserSource::Fleet(fleet);
    ChromiumPool::new(PoolOptions { source, local_hosts, ..options("".as_ref()) })
}

fn tls() -> Arc<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap();
    Arc::new(config.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

async fn site() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 14\r\n\
                        connection: close\r\n\r\n<h1>hello</h1>";
            let _ = stream.write_all(page.as_bytes()).await;
        }
    });
    address
}

async fn until(condition: impl Fn() -> bool) {
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    while !condition() {
        assert!(tokio::time::Instant::now() < deadline, "the condition did not become true");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
