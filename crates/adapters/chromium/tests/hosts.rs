//! The pool with the browsers of a host, which runs in the process of the test.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

mod common;

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use chromium::{
    BrowserHandle, BrowserHost, BrowserHosts, BrowserSource, ByteStream, ChromiumPool, HostError,
    HostGuard, HostedBrowser, LocalBrowser, PoolOptions,
};
use ports::browser::{BrowserPool as _, Scale, StartError};
use tokio::{io::duplex, net::TcpListener, sync::mpsc};

use self::common::{local_browsers, options, spec};

const PAGE_HOST: &str = "page.localhost";
const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 8444);
const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_host_that_drains_does_not_wait_for_its_warm_browser() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::start(folder.path());
    let pool = pool(&host, folder.path(), 1);
    until(|| pool.warm_count() == 1).await;
    assert_eq!(host.used(), 1);
    host.draining.store(true, Ordering::SeqCst);
    let began = Instant::now();
    until(|| host.used() == 0).await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(pool.warm_count(), 0);
    pool.end_all().await;
}

#[tokio::test]
async fn no_session_gets_a_warm_browser_of_a_host_that_drains() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::start(folder.path());
    let pool = pool(&host, folder.path(), 1);
    until(|| pool.warm_count() == 1).await;
    host.draining.store(true, Ordering::SeqCst);
    // No other host has room.
    let error = pool.start(spec(PAGE_HOST, "US")).await.map(drop).unwrap_err();
    assert!(matches!(error, StartError::NoRoom), "{error:?}");
    pool.end_all().await;
}

#[tokio::test]
async fn a_process_that_drains_keeps_no_browser_warm_and_starts_those_of_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::start(folder.path());
    let pool = pool(&host, folder.path(), 1);
    until(|| pool.warm_count() == 1).await;
    pool.drain().await;
    until(|| host.used() == 0).await;
    let session = spec(PAGE_HOST, "US");
    pool.start(session.clone()).await.unwrap();
    // Another one would be started 2 s after the session has got its browser.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!((pool.warm_count(), host.used()), (0, 1));
    pool.release(session.id).await;
    until(|| host.used() == 0).await;
    pool.end_all().await;
}

#[tokio::test]
async fn a_browser_that_ends_before_its_first_reply_is_a_failure_of_its_host() {
    let folder = tempfile::tempdir().unwrap();
    let broken = Arc::new(Host::default());
    let pool = pool(&broken, folder.path(), 0);
    let error = pool.start(spec(PAGE_HOST, "US")).await.map(drop).unwrap_err();
    assert!(matches!(error, StartError::Unavailable(_)), "{error:?}");
    assert_eq!(*broken.outcomes.lock().unwrap(), [Outcome::Failure]);

    let working = Host::start(folder.path());
    let pool = self::pool(&working, folder.path(), 0);
    pool.start(spec(PAGE_HOST, "US")).await.unwrap();
    assert_eq!(*working.outcomes.lock().unwrap(), [Outcome::Success]);
    pool.end_all().await;
}

/// What was recorded of a browser.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Success,
    Failure,
}

/// A browser host.
#[derive(Default)]
struct Host {
    /// Without any, each browser ends at once.
    browsers: Option<Arc<BrowserHost>>,
    outcomes: Mutex<Vec<Outcome>>,
    draining: Arc<AtomicBool>,
}

impl Host {
    fn start(folder: &Path) -> Arc<Self> {
        let browsers = Some(BrowserHost::new(local_browsers(folder), 2));
        Arc::new(Self { browsers, ..Self::default() })
    }

    fn used(&self) -> usize {
        self.browsers.as_ref().map_or(0, |browsers| browsers.used())
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}

#[async_trait]
impl BrowserHosts for Host {
    async fn start(&self, scale: Scale) -> Result<HostedBrowser, HostError> {
        if self.draining.load(Ordering::SeqCst) {
            return Err(HostError::Full);
        }
        let guard = |handle| Box::new(Guard { draining: self.draining.clone(), _handle: handle });
        let (sender, connections) = mpsc::channel(64);
        let Some(browsers) = &self.browsers else {
            let (devtools, _ended) = duplex(64);
            let devtools: ByteStream = Box::new(devtools);
            return Ok(HostedBrowser { host: ADDRESS, devtools, connections, guard: guard(None) });
        };
        let LocalBrowser { reader, writer, proxy, handle } = browsers.start(scale).await.unwrap();
        tokio::spawn(accept(proxy, sender));
        let devtools: ByteStream = Box::new(tokio::io::join(reader, writer));
        Ok(HostedBrowser { host: ADDRESS, devtools, connections, guard: guard(Some(handle)) })
    }

    fn record_success(&self, host: SocketAddr) {
        assert_eq!(host, ADDRESS);
        self.outcomes.lock().unwrap().push(Outcome::Success);
    }

    fn record_failure(&self, host: SocketAddr, reason: &str) {
        assert_eq!(host, ADDRESS, "{reason}");
        self.outcomes.lock().unwrap().push(Outcome::Failure);
    }
}

/// Keeps a browser running.
struct Guard {
    draining: Arc<AtomicBool>,
    _handle: Option<BrowserHandle>,
}

impl HostGuard for Guard {
    fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }
}

async fn accept(proxy: TcpListener, connections: mpsc::Sender<ByteStream>) {
    while let Ok((stream, _)) = proxy.accept().await {
        if connections.send(Box::new(stream)).await.is_err() {
            return;
        }
    }
}

fn pool(host: &Arc<Host>, folder: &Path, warm: usize) -> Arc<ChromiumPool> {
    let source = BrowserSource::Hosts(host.clone());
    ChromiumPool::new(PoolOptions { source, warm, ..options(folder) })
}

async fn until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "the condition did not become true");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
