//! Browsers on browser hosts: what an instance uses, and what a host serves.

use std::{
    fs,
    net::{SocketAddr, TcpListener as StdListener},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use chromium::{BrowserHandle, BrowserHost, HostError, LocalBrowser};
use domain::id::InstanceId;
use http_api::Metrics;
use instances::{
    InstanceIdentity,
    browsers::{
        self, BrowserGuard, BrowserHosts, ByteStream, HostSettings, HostedBrowser, HostedBrowsers,
        OpenError, OpenedBrowser, StartError,
    },
};
use ports::{
    browser::{Scale, StartError as BrowserStartError},
    random::RandomSource as _,
};
use system::{clock::SystemRandom, data_dir::browsers_folder};
use tokio::{net::TcpListener, sync::mpsc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    browsers::local_browsers,
    config::{BrowserConfig, Config, HostConfig},
    storage::{StartupError, error_chain},
};

/// Connections of a browser that wait until they are passed on.
const MAX_WAITING: usize = 64;
/// The delay after a failed `accept`: usually too many files are open.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// The time within which the browsers of a host that stops must have ended.
const END_TIMEOUT: Duration = Duration::from_secs(8);
/// How often a host that drains looks whether browsers are left.
const DRAIN_INTERVAL: Duration = Duration::from_millis(100);

/// The browser hosts that an instance uses.
#[derive(Debug)]
pub(crate) struct RemoteHosts(BrowserHosts);

impl RemoteHosts {
    /// Connects to the configured hosts. A host that cannot be reached is tried again.
    pub(crate) async fn connect(config: &Config, hosts: &HostConfig) -> Result<Self, StartupError> {
        let identity = InstanceIdentity::open(hosts.files.clone())?;
        let region = config.addresses.own.map(|region| region.as_str().to_owned());
        Ok(Self(BrowserHosts::connect(identity, hosts.names.clone(), region).await))
    }
}

#[async_trait]
impl chromium::BrowserHosts for RemoteHosts {
    async fn start(&self, scale: Scale) -> Result<chromium::HostedBrowser, HostError> {
        let scale = if scale == Scale::Two { 2 } else { 1 };
        let opened = self.0.open(scale).await.map_err(|error| match error {
            OpenError::Full => HostError::Full,
            OpenError::Unavailable(reason) => HostError::Unavailable(reason),
        })?;
        let OpenedBrowser { host, devtools, mut connections, guard } = opened;
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        tokio::spawn(async move {
            while let Some(connection) = connections.recv().await {
                let connection: chromium::ByteStream = Box::new(connection);
                if sender.send(connection).await.is_err() {
                    return;
                }
            }
        });
        let devtools: chromium::ByteStream = Box::new(devtools);
        let guard = Box::new(RemoteGuard(guard));
        Ok(chromium::HostedBrowser { host, devtools, connections: receiver, guard })
    }

    fn record_success(&self, host: SocketAddr) {
        self.0.record_success(host);
    }

    fn record_failure(&self, host: SocketAddr, reason: &str) {
        self.0.record_failure(host, reason);
    }
}

/// Keeps a browser of a host running.
struct RemoteGuard(BrowserGuard);

impl chromium::HostGuard for RemoteGuard {
    fn is_draining(&self) -> bool {
        self.0.is_draining()
    }
}

/// The browsers of this machine.
struct OwnBrowsers {
    host: Arc<BrowserHost>,
    /// Browsers that end.
    ending: TaskTracker,
}

#[async_trait]
impl HostedBrowsers for OwnBrowsers {
    async fn start(&self, scale: u8) -> Result<HostedBrowser, StartError> {
        let scale = if scale == 1 { Scale::One } else { Scale::Two };
        let started = self.host.start(scale).await.map_err(|error| match error {
            BrowserStartError::NoRoom => StartError::Full,
            error @ (BrowserStartError::Released
            | BrowserStartError::Unavailable(_)
            | BrowserStartError::NoEgress
            | BrowserStartError::Elsewhere) => StartError::Failed(error.to_string()),
        })?;
        let LocalBrowser { reader, writer, proxy, handle } = started;
        let (sender, connections) = mpsc::channel(MAX_WAITING);
        tokio::spawn(accept(proxy, sender));
        let guard = EndedLater { handle: Some(handle), ending: self.ending.clone() };
        let devtools: ByteStream = Box::new(tokio::io::join(reader, writer));
        Ok(HostedBrowser { devtools, connections, guard: Box::new(guard) })
    }

    fn slots(&self) -> u32 {
        u32::try_from(self.host.capacity()).unwrap_or(u32::MAX)
    }

    fn used(&self) -> u32 {
        u32::try_from(self.host.used()).unwrap_or(u32::MAX)
    }
}

/// Accepts the connections of a browser to its proxy, until nobody takes them any more.
async fn accept(proxy: TcpListener, connections: mpsc::Sender<ByteStream>) {
    loop {
        let accepted = tokio::select! {
            accepted = proxy.accept() => accepted,
            () = connections.closed() => return,
        };
        match accepted {
            Ok((stream, _)) => {
                if connections.send(Box::new(stream)).await.is_err() {
                    return;
                }
            }
            Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
        }
    }
}

/// Ends a browser in a task of its own once it is dropped.
struct EndedLater {
    handle: Option<BrowserHandle>,
    ending: TaskTracker,
}

impl Drop for EndedLater {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            self.ending.spawn(handle.end());
        }
    }
}

/// A running browser host.
pub(crate) struct Host {
    browsers: Arc<BrowserHost>,
    folder: PathBuf,
    ending: TaskTracker,
    serving: tokio::task::JoinHandle<()>,
    draining: CancellationToken,
    stop: CancellationToken,
}

impl Host {
    /// Starts to serve instances, and the metrics if they have an address. Opens no database, and reads no
    /// key but that of its own certificate.
    /// Must be called within a Tokio runtime.
    pub(crate) fn start(config: &Config) -> Result<Self, StartupError> {
        let Some(own) = &config.host_identity else {
            return Err("a browser host needs instance_listen".into());
        };
        let BrowserConfig::Here { .. } = &config.browser else {
            return Err(
                "a browser host runs browsers of its own: `browser` must be a program".into()
            );
        };
        let identity = InstanceIdentity::open(own.files.clone())?;
        let folder = browsers_folder(InstanceId::from_u128(SystemRandom.new_id()))?;
        let local = local_browsers(config, "/proc/self/exe".as_ref(), &folder)?;
        let host = BrowserHost::new(local, config.browsers);
        let listener = StdListener::bind(own.listen)
            .and_then(|listener| {
                listener.set_nonblocking(true)?;
                TcpListener::from_std(listener)
            })
            .map_err(|error| format!("cannot listen on {}: {error}", own.listen))?;
        let (draining, stop) = (CancellationToken::new(), CancellationToken::new());
        let ending = TaskTracker::new();
        let browsers = Arc::new(OwnBrowsers { host: host.clone(), ending: ending.clone() });
        let settings = HostSettings {
            region: config.addresses.own.map(|region| region.as_str().to_owned()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let ends = (draining.clone(), stop.clone());
        if let Some(address) = config.metrics_listen {
            let metrics = Metrics::install().map_err(error_chain)?;
            let upkeep = metrics.clone();
            let ends = stop.clone();
            tokio::spawn(async move { ends.run_until_cancelled(upkeep.upkeep()).await });
            tokio::spawn(report(host.clone(), stop.clone()));
            tokio::spawn(http_api::serve_metrics(StdListener::bind(address)?, metrics)?);
        }
        let serving = tokio::spawn(async move {
            if let Err(error) = browsers::serve(listener, identity, browsers, settings, ends).await
            {
                tracing::error!(%error, "failed to serve instances");
            }
        });
        tracing::info!("running browsers for instances on {}", own.listen);
        Ok(Self { browsers: host, folder, ending, serving, draining, stop })
    }

    /// Starts no more browsers, and waits until those that run have ended.
    pub(crate) async fn drain(&self) {
        self.draining.cancel();
        while self.browsers.used() > 0 {
            tokio::time::sleep(DRAIN_INTERVAL).await;
        }
    }

    /// Ends all browsers, with their processes and files.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        let _ = self.serving.await;
        self.ending.close();
        if tokio::time::timeout(END_TIMEOUT, self.ending.wait()).await.is_err() {
            tracing::warn!("some browsers did not end in time");
        }
        // A folder that cannot be removed now is removed at the next start.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Reports the slots of a host as an instance reports its own.
async fn report(host: Arc<BrowserHost>, stop: CancellationToken) {
    let gauge = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    loop {
        metrics::gauge!("avouch_browser_slots").set(gauge(host.capacity()));
        metrics::gauge!("avouch_browser_slots_used").set(gauge(host.used()));
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(Duration::from_secs(1)) => (),
        }
    }
}
