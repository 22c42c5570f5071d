//! The addresses that browsers may connect to, and the route to them.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use domain::{
    egress::{Egress, may_be_public},
    egress_proxy::EgressProxy,
};
use tokio::net::TcpStream;

use crate::upstream::tunnel;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Ports that browsers may connect to, besides those that the operator names.
const ALLOWED_PORTS: [u16; 4] = [80, 443, 8080, 8443];
/// Addresses of a name that are tried.
const MAX_ADDRESSES: usize = 8;

/// The addresses that a browser may connect to, and the route to them.
#[derive(Default)]
pub(crate) struct EgressRoute {
    pub(crate) egress: Egress,
    /// Hosts that the service serves itself, and their addresses.
    pub(crate) local_hosts: HashMap<String, SocketAddr>,
    /// Whether all other connections go through an egress proxy, or fail without one.
    pub(crate) via_proxy: bool,
    /// The egress proxy; `None` until one is selected.
    pub(crate) proxy: Mutex<Option<EgressProxy>>,
}

impl EgressRoute {
    /// Returns a route that permits no connection.
    pub(crate) fn blocked() -> Self {
        Self { via_proxy: true, ..Self::default() }
    }

    fn proxy(&self) -> Option<EgressProxy> {
        self.proxy.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a host is connected to without an egress proxy.
    pub(crate) fn is_direct(&self, host: &str, port: u16) -> bool {
        self.local_hosts.contains_key(host) || self.egress.names(host, port)
    }

    /// Routes new connections through this egress proxy from now on.
    pub(crate) fn use_proxy(&self, proxy: EgressProxy) {
        *self.proxy.lock().unwrap_or_else(PoisonError::into_inner) = Some(proxy);
    }

    /// Connects to a host if the route permits it. The name is resolved here or by the egress proxy.
    pub(crate) async fn connect(&self, host: &str, port: u16) -> Option<TcpStream> {
        if let Some(address) = self.local_hosts.get(host) {
            return connect_to(*address).await;
        }
        if !ALLOWED_PORTS.contains(&port) && !self.egress.names(host, port) {
            return refused(host);
        }
        if self.via_proxy && !self.egress.names(host, port) {
            // The egress proxy resolves the name, so local resolvers do not learn it and it cannot
            // mean a local host.
            let proxy = self.proxy()?;
            if !may_be_public(host) {
                return refused(host);
            }
            return match tunnel(&proxy, host, port).await {
                Ok(stream) => Some(stream),
                Err(error) => {
                    tracing::info!(%error, "an egress proxy failed to connect; the browser's request is refused");
                    None
                }
            };
        }
        // Refused before the lookup: a DNS query discloses the name and takes as long as its server
        // likes.
        if !self.egress.may_permit(host, port) {
            return refused(host);
        }
        let addresses = resolve(host, port).await;
        if !addresses.is_empty()
            && !addresses.iter().any(|address| self.egress.permits(host, *address))
        {
            return refused(host);
        }
        for address in addresses {
            if self.egress.permits(host, address)
                && let Some(stream) = connect_to(address).await
            {
                return Some(stream);
            }
        }
        None
    }
}

/// Counts a connection that the egress policy does not permit; those to names that do not exist, to which
/// Chromium's own requests are directed, are no refusals.
fn refused<T>(host: &str) -> Option<T> {
    if !host.ends_with(".invalid") {
        metrics::counter!("avouch_egress_refusals_total").increment(1);
    }
    None
}

async fn resolve(host: &str, port: u16) -> Vec<SocketAddr> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return vec![(ip, port).into()];
    }
    // These names are never looked up (RFC 6761, sections 6.3 and 6.4).
    if host.ends_with(".invalid") {
        return vec![];
    }
    if host == "localhost" || host.ends_with(".localhost") {
        return [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()]
            .map(|ip| (ip, port).into())
            .to_vec();
    }
    let lookup = tokio::net::lookup_host((host, port));
    match tokio::time::timeout(CONNECT_TIMEOUT, lookup).await {
        Ok(Ok(addresses)) => addresses.take(MAX_ADDRESSES).collect(),
        Ok(Err(_)) | Err(_) => vec![],
    }
}

async fn connect_to(address: SocketAddr) -> Option<TcpStream> {
    tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await.ok()?.ok()
}
