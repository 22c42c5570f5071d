//! The backend of a session's browser: a process here or on a browser host, or a context in a browser of a
//! fleet.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{
    client::DevToolsClient, fleet::FleetContext, fleet_proxy::ProxyCredential,
    forwarder::Forwarder, hosted::HostGuard, launch::Chromium, route::EgressRoute,
};

/// A process here or on a browser host, or a context in a browser of a fleet.
pub(crate) enum Backend {
    Process(Box<Chromium>),
    Hosted(HostedBackend),
    Context(FleetContext),
}

/// A process on a browser host.
pub(crate) struct HostedBackend {
    client: DevToolsClient,
    /// Ends the browser when it is dropped; empty once it has ended.
    guard: Mutex<Option<Box<dyn HostGuard>>>,
}

impl HostedBackend {
    pub(crate) fn new(client: DevToolsClient, guard: Box<dyn HostGuard>) -> Self {
        Self { client, guard: Mutex::new(Some(guard)) }
    }

    fn guard(&self) -> MutexGuard<'_, Option<Box<dyn HostGuard>>> {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        self.client.close();
        self.guard().take();
    }
}

impl Drop for HostedBackend {
    fn drop(&mut self) {
        self.client.close();
    }
}

impl Backend {
    pub(crate) fn client(&self) -> &DevToolsClient {
        match self {
            Self::Process(chromium) => &chromium.client,
            Self::Hosted(hosted) => &hosted.client,
            Self::Context(context) => &context.client,
        }
    }

    /// Returns the process group of all its processes, if they run on this machine.
    pub(crate) fn pid(&self) -> Option<i32> {
        match self {
            Self::Process(chromium) => chromium.pid(),
            Self::Hosted(_) | Self::Context(_) => None,
        }
    }

    /// Returns the browser context's id; `None` if the session has a whole browser.
    pub(crate) fn context(&self) -> Option<&str> {
        match self {
            Self::Process(_) | Self::Hosted(_) => None,
            Self::Context(context) => Some(&context.context_id),
        }
    }

    /// Whether it runs on a browser host that drains.
    pub(crate) fn is_draining(&self) -> bool {
        match self {
            Self::Process(_) | Self::Context(_) => false,
            Self::Hosted(hosted) => {
                hosted.guard().as_ref().is_some_and(|guard| guard.is_draining())
            }
        }
    }

    pub(crate) async fn end(&self) {
        match self {
            Self::Process(chromium) => chromium.end().await,
            Self::Hosted(hosted) => hosted.end(),
            Self::Context(context) => context.end().await,
        }
    }
}

/// A browser's egress: its own proxy, or its credential for the shared one. Dropping this closes it.
pub(crate) enum EgressGuard {
    Dedicated(Forwarder),
    Shared(ProxyCredential),
}

impl EgressGuard {
    /// Routes new connections this way from now on.
    pub(crate) fn set_route(&self, route: Arc<EgressRoute>) {
        match self {
            Self::Dedicated(forwarder) => forwarder.set_route(route),
            Self::Shared(credential) => credential.set_route(route),
        }
    }
}
