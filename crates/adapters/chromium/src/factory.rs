//! Creates browsers: local processes, or contexts in browsers of a fleet.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use ports::browser::{Scale, StartError};
use tokio::{net::TcpListener, sync::mpsc};

use crate::{
    backend::{Backend, EgressGuard, HostedBackend},
    browser::UnassignedBrowser,
    client::{DevToolsClient, DevToolsError, DevToolsEvent},
    fleet::{AttachedContext, Fleet, error_chain},
    forwarder::Forwarder,
    hosted::{BrowserHosts, HostError, HostedBrowser},
    launch::{Chromium, LaunchError, LaunchOptions, Launched, first_reply},
    sandbox::{PROXY_ADDRESS, Sandbox},
    slots::Slot,
};

/// The time within which a browser that replied once is set up: about 0.3 s on an idle machine.
const SETUP_TIMEOUT: Duration = Duration::from_secs(40);
/// The same for the first of two browsers.
const FIRST_SETUP_TIMEOUT: Duration = Duration::from_secs(10);

/// The time in which a browser on a host must have replied and be set up. The host may have taken 55 s for
/// it, and the job that starts it is claimed anew after 90 s.
const HOST_SETUP_TIMEOUT: Duration = Duration::from_secs(30);

/// The source of browsers.
#[derive(Debug)]
pub enum BrowserSource {
    /// A local Chromium process for each session.
    Local(LocalBrowsers),
    /// A browser context for each session, in browsers that run elsewhere.
    Fleet(Fleet),
    /// A Chromium process for each session, on browser hosts.
    Hosts(Arc<dyn BrowserHosts>),
}

/// The options of browsers on this machine.
#[derive(Debug, Clone)]
pub struct LocalBrowsers {
    pub executable: PathBuf,
    /// The folder of all browsers of this process, used by nothing else.
    pub folder: PathBuf,
    /// Bytes of private memory of one browser, above which it is ended.
    pub memory_limit: u64,
    pub sandbox: Option<Sandbox>,
}

impl LocalBrowsers {
    /// Returns the options of one browser with a number that no other one had, and the socket of its proxy
    /// unless that is in its sandbox.
    pub(crate) async fn launch_options(
        &self,
        number: u64,
        scale: Scale,
        slot: usize,
    ) -> Result<(LaunchOptions, Option<TcpListener>), StartError> {
        // Without a sandbox the proxy listens in the service's own network namespace.
        let own_listener = match self.sandbox {
            Some(_) => None,
            None => Some(TcpListener::bind("127.0.0.1:0").await.map_err(|e| unavailable(&e))?),
        };
        let proxy = match &own_listener {
            Some(listener) => listener.local_addr().map_err(|error| unavailable(&error))?,
            None => PROXY_ADDRESS,
        };
        let options = LaunchOptions {
            executable: self.executable.clone(),
            // Short: Chromium binds a socket in it, whose path is bounded.
            folder: self.folder.join(Path::new(&format!("{number:x}"))),
            flags: vec![
                format!("--proxy-server=http://{proxy}"),
                // Without this, loopback addresses are reached around the proxy.
                "--proxy-bypass-list=<-loopback>".to_owned(),
                // Overriding it later does not raise the resolution of frames.
                format!("--force-device-scale-factor={}", scale.times()),
            ],
            sandbox: self.sandbox.clone(),
            slot,
        };
        Ok((options, own_listener))
    }
}

/// A browser that is assigned to no session, and never was.
pub(crate) struct WarmBrowser {
    pub(crate) browser: UnassignedBrowser,
    /// Without a route until the browser is assigned.
    pub(crate) egress: EgressGuard,
    pub(crate) slot: Slot,
    pub(crate) scale: Scale,
}

impl WarmBrowser {
    /// Whether it runs on a browser host that drains.
    pub(crate) fn is_draining(&self) -> bool {
        self.browser.is_draining()
    }
}

/// Creates browsers.
pub(crate) struct BrowserFactory {
    source: BrowserSource,
    launched: AtomicU64,
}

impl BrowserFactory {
    pub(crate) fn new(source: BrowserSource) -> Self {
        Self { source, launched: AtomicU64::new(0) }
    }

    /// Returns the device scale factor of frames, for a device of this scale. Overriding the scale
    /// factor of a running browser does not give frames of a higher resolution.
    pub(crate) fn supported_scale(&self, wanted: Scale) -> Scale {
        match &self.source {
            BrowserSource::Local(_) | BrowserSource::Hosts(_) => wanted,
            BrowserSource::Fleet(fleet) if fleet.supports_scales() => wanted,
            BrowserSource::Fleet(_) => Scale::One,
        }
    }

    pub(crate) async fn create(&self, scale: Scale, slot: Slot) -> Result<WarmBrowser, StartError> {
        match &self.source {
            BrowserSource::Local(local) => self.launch(local, scale, slot).await,
            BrowserSource::Fleet(fleet) => match fleet.attach(scale).await {
                Ok(AttachedContext { context, events, user_agent, credential }) => {
                    let (backend, egress) =
                        (Backend::Context(context), EgressGuard::Shared(credential));
                    let browser =
                        UnassignedBrowser::initialize(backend, events, &user_agent, SETUP_TIMEOUT)
                            .await;
                    let browser = browser.map_err(|error| unavailable(&error))?;
                    Ok(WarmBrowser { browser, egress, slot, scale })
                }
                Err(error) if error.is_full() => Err(StartError::NoRoom),
                Err(error) => Err(unavailable(&error)),
            },
            BrowserSource::Hosts(hosts) => start_on_host(&**hosts, scale, slot).await,
        }
    }

    /// Starts a browser, and another one in its place if it does not reply: Chromium sometimes hangs in
    /// its start.
    async fn launch(
        &self,
        local: &LocalBrowsers,
        scale: Scale,
        slot: Slot,
    ) -> Result<WarmBrowser, StartError> {
        let first = self.launch_within(FIRST_SETUP_TIMEOUT, local, scale, slot.index).await;
        let launched = match first {
            Err(error) if error.is_timeout() => {
                tracing::warn!(
                    error = error_chain(&error),
                    "a browser hung in its start; another one is started"
                );
                self.launch_within(SETUP_TIMEOUT, local, scale, slot.index).await
            }
            launched => launched,
        };
        let (browser, egress) = launched.map_err(LocalStartError::into_start_error)?;
        Ok(WarmBrowser { browser, egress, slot, scale })
    }

    /// Starts a browser that is set up within this time from its first reply, or ended.
    async fn launch_within(
        &self,
        bound: Duration,
        local: &LocalBrowsers,
        scale: Scale,
        slot: usize,
    ) -> Result<(UnassignedBrowser, EgressGuard), LocalStartError> {
        let number = self.launched.fetch_add(1, Ordering::Relaxed);
        let (options, own_listener) = local.launch_options(number, scale, slot).await?;
        let launched = Chromium::launch(&options).await?;
        let Launched { chromium, events, user_agent, proxy_listener } = launched;
        let listener = proxy_listener.or(own_listener);
        let listener = listener
            .ok_or_else(|| StartError::Unavailable("the sandbox sent no proxy socket".into()))?;
        let backend = Backend::Process(Box::new(chromium));
        let browser = UnassignedBrowser::initialize(backend, events, &user_agent, bound).await?;
        Ok((browser, EgressGuard::Dedicated(Forwarder::start(listener))))
    }
}

/// The reason why a browser of this machine did not start.
#[derive(Debug, thiserror::Error)]
enum LocalStartError {
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error(transparent)]
    Setup(#[from] DevToolsError),
    #[error(transparent)]
    Other(#[from] StartError),
}

impl LocalStartError {
    /// Whether the browser runs but did not reply.
    fn is_timeout(&self) -> bool {
        matches!(
            self,
            Self::Launch(LaunchError::NotResponding(DevToolsError::TimedOut(_)))
                | Self::Setup(DevToolsError::TimedOut(_))
        )
    }

    fn into_start_error(self) -> StartError {
        match self {
            Self::Other(error) => error,
            Self::Launch(error) => unavailable(&error),
            Self::Setup(error) => unavailable(&error),
        }
    }
}

async fn start_on_host(
    hosts: &dyn BrowserHosts,
    scale: Scale,
    slot: Slot,
) -> Result<WarmBrowser, StartError> {
    let HostedBrowser { host, devtools, connections, guard } =
        hosts.start(scale).await.map_err(|error| match error {
            HostError::Full => StartError::NoRoom,
            HostError::Unavailable(_) => unavailable(&error),
        })?;
    let (client, events) = DevToolsClient::from_stream(devtools);
    let backend = Backend::Hosted(HostedBackend::new(client, guard));
    let egress = EgressGuard::Dedicated(Forwarder::of_connections(connections));
    // Only now it shows whether Chromium works there: a host does not read what it says.
    match set_up_on_host(backend, events).await {
        Ok(browser) => {
            hosts.record_success(host);
            Ok(WarmBrowser { browser, egress, slot, scale })
        }
        Err(error) => {
            hosts.record_failure(host, &error_chain(&error));
            Err(unavailable(&error))
        }
    }
}

async fn set_up_on_host(
    backend: Backend,
    events: mpsc::Receiver<DevToolsEvent>,
) -> Result<UnassignedBrowser, DevToolsError> {
    let began = Instant::now();
    let user_agent = first_reply(backend.client()).await?;
    let left = HOST_SETUP_TIMEOUT.saturating_sub(began.elapsed());
    UnassignedBrowser::initialize(backend, events, &user_agent, left).await
}

/// Converts an error, with all its causes.
pub(crate) fn unavailable(error: &dyn std::error::Error) -> StartError {
    StartError::Unavailable(error_chain(error))
}
