//! Creates browsers: local processes, or contexts in browsers of a fleet.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use ports::browser::{Scale, StartError};
use tokio::net::TcpListener;

use crate::{
    backend::{Backend, EgressGuard, HostedBackend},
    browser::UnassignedBrowser,
    client::{DevToolsClient, SocketError},
    fleet::{AttachedContext, Fleet, FleetContext, FleetError},
    forwarder::Forwarder,
    hosted::{BrowserHosts, HostError, HostedBrowser},
    launch::{Chromium, LaunchOptions, Launched, first_reply},
    sandbox::{PROXY_ADDRESS, Sandbox},
    slots::Slot,
};

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
            BrowserSource::Fleet(_) => Scale::One,
        }
    }

    pub(crate) async fn create(&self, scale: Scale, slot: Slot) -> Result<WarmBrowser, StartError> {
        match &self.source {
            BrowserSource::Local(local) => self.launch(local, scale, slot).await,
            BrowserSource::Fleet(fleet) => match FleetContext::create(fleet).await {
                Ok(AttachedContext { context, events, user_agent, credential }) => {
                    let (backend, egress) =
                        (Backend::Context(context), EgressGuard::Shared(credential));
                    let browser = UnassignedBrowser::initialize(backend, events, &user_agent).await;
                    let browser = browser.map_err(|error| unavailable(&error))?;
                    Ok(WarmBrowser { browser, egress, slot, scale })
                }
                Err(FleetError::Socket(SocketError::AtCapacity(_))) => Err(StartError::NoRoom),
                Err(error) => Err(unavailable(&error)),
            },
            BrowserSource::Hosts(hosts) => start_on_host(&**hosts, scale, slot).await,
        }
    }

    async fn launch(
        &self,
        local: &LocalBrowsers,
        scale: Scale,
        slot: Slot,
    ) -> Result<WarmBrowser, StartError> {
        let number = self.launched.fetch_add(1, Ordering::Relaxed);
        let (options, own_listener) = local.launch_options(number, scale, slot.index).await?;
        let launched = Chromium::launch(&options).await.map_err(|error| unavailable(&error))?;
        let Launched { chromium, events, user_agent, proxy_listener } = launched;
        let listener = proxy_listener.or(own_listener);
        let listener = listener
            .ok_or_else(|| StartError::Unavailable("the sandbox sent no proxy socket".into()))?;
        let backend = Backend::Process(Box::new(chromium));
        let browser = UnassignedBrowser::initialize(backend, events, &user_agent).await;
        let browser = browser.map_err(|error| unavailable(&error))?;
        let egress = EgressGuard::Dedicated(Forwarder::start(listener));
        Ok(WarmBrowser { browser, egress, slot, scale })
    }
}

async fn start_on_host(
    hosts: &dyn BrowserHosts,
    scale: Scale,
    slot: Slot,
) -> Result<WarmBrowser, StartError> {
    let HostedBrowser { devtools, connections, guard } =
        hosts.start(scale).await.map_err(|error| match error {
            HostError::Full => StartError::NoRoom,
            HostError::Unavailable(_) => unavailable(&error),
        })?;
    let (client, events) = DevToolsClient::from_stream(devtools);
    let backend = Backend::Hosted(HostedBackend::new(client, guard));
    let user_agent = first_reply(backend.client()).await.map_err(|error| unavailable(&error))?;
    let egress = EgressGuard::Dedicated(Forwarder::of_connections(connections));
    let browser = UnassignedBrowser::initialize(backend, events, &user_agent).await;
    let browser = browser.map_err(|error| unavailable(&error))?;
    Ok(WarmBrowser { browser, egress, slot, scale })
}

/// Converts an error, with all its causes.
pub(crate) fn unavailable(error: &dyn std::error::Error) -> StartError {
    let mut why = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        why.push_str(": ");
        why.push_str(&cause.to_string());
        source = cause.source();
    }
    StartError::Unavailable(why)
}
