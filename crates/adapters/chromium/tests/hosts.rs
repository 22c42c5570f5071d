//! The pool with the browsers of a host, which runs in the process of the test.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

mod common;

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::Path,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use chromium::{
    BrowserHost, BrowserHosts, BrowserSource, ByteStream, ChromiumPool, HostError, HostedBrowser,
    LocalBrowser, PoolOptions,
};
use ports::browser::{BrowserPool as _, Scale, StartError};
use tokio::{io::duplex, net::TcpListener, sync::mpsc};

use self::common::{local_browsers, options, spec};

const PAGE_HOST: &str = "page.localhost";
const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 8444);

#[tokio::test]
async fn a_browser_that_ends_before_its_first_reply_is_a_failure_of_its_host() {
    let folder = tempfile::tempdir().unwrap();
    let broken = Arc::new(Host { browsers: None, outcomes: Mutex::default() });
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
struct Host {
    /// Without any, each browser ends at once.
    browsers: Option<Arc<BrowserHost>>,
    outcomes: Mutex<Vec<Outcome>>,
}

impl Host {
    fn start(folder: &Path) -> Arc<Self> {
        let browsers = Some(BrowserHost::new(local_browsers(folder), 2));
        Arc::new(Self { browsers, outcomes: Mutex::default() })
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
        let (sender, connections) = mpsc::channel(64);
        let Some(browsers) = &self.browsers else {
            let (devtools, _ended) = duplex(64);
            let devtools: ByteStream = Box::new(devtools);
            return Ok(HostedBrowser { host: ADDRESS, devtools, connections, guard: Box::new(()) });
        };
        let LocalBrowser { reader, writer, proxy, handle } = browsers.start(scale).await.unwrap();
        tokio::spawn(accept(proxy, sender));
        let devtools: ByteStream = Box::new(tokio::io::join(reader, writer));
        Ok(HostedBrowser { host: ADDRESS, devtools, connections, guard: Box::new(handle) })
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
