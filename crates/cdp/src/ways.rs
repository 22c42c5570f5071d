//! Where browsers may connect to, and how they get there.

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

const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
const PORTS: [u16; 4] = [80, 443, 8080, 8443];

/// Where a browser may connect to, and how it gets there.
#[derive(Default)]
pub(crate) struct Ways {
    pub(crate) egress: Egress,
    /// Hosts that the service serves itself, and where.
    pub(crate) routes: HashMap<String, SocketAddr>,
    /// Whether everything else leaves through an exit, or not at all.
    pub(crate) by_exit: bool,
    pub(crate) exit: Mutex<Option<EgressProxy>>,
}

impl Ways {
    pub(crate) fn nowhere() -> Self {
        Self { by_exit: true, ..Self::default() }
    }

    fn exit(&self) -> Option<EgressProxy> {
        self.exit.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a host is reached without an exit.
    pub(crate) fn is_direct(&self, host: &str, port: u16) -> bool {
        self.routes.contains_key(host) || self.egress.names(host, port)
    }

    /// From now on new connections leave there.
    pub(crate) fn leave_by(&self, exit: EgressProxy) {
        *self.exit.lock().unwrap_or_else(PoisonError::into_inner) = Some(exit);
    }

    /// A connection, if the browser may have it; names are resolved here or at the exit.
    pub(crate) async fn connect(&self, host: &str, port: u16) -> Option<TcpStream> {
        if let Some(route) = self.routes.get(host) {
            return dial(*route).await;
        }
        if !PORTS.contains(&port) && !self.egress.names(host, port) {
            return None;
        }
        if self.by_exit && !self.egress.names(host, port) {
            // Resolved where it leaves: nobody here learns of it, and nothing here is meant.
            let exit = self.exit()?;
            if !may_be_public(host) {
                return None;
            }
            return match tunnel(&exit, host, port).await {
                Ok(stream) => Some(stream),
                Err(error) => {
                    tracing::info!(%error, "an exit did not connect");
                    None
                }
            };
        }
        // Asking for a name tells whoever answers, and takes as long as they like.
        if !self.egress.may_permit(host, port) {
            return None;
        }
        for address in resolve(host, port).await {
            if self.egress.permits(host, address)
                && let Some(stream) = dial(address).await
            {
                return Some(stream);
            }
        }
        None
    }
}

async fn resolve(host: &str, port: u16) -> Vec<SocketAddr> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return vec![(ip, port).into()];
    }
    // Never asked of anybody (RFC 6761, sections 6.3 and 6.4).
    if host.ends_with(".invalid") {
        return vec![];
    }
    if host == "localhost" || host.ends_with(".localhost") {
        return [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()]
            .map(|ip| (ip, port).into())
            .to_vec();
    }
    let lookup = tokio::net::lookup_host((host, port));
    match tokio::time::timeout(CONNECT_PATIENCE, lookup).await {
        Ok(Ok(found)) => found.take(8).collect(),
        Ok(Err(_)) | Err(_) => vec![],
    }
}

async fn dial(address: SocketAddr) -> Option<TcpStream> {
    tokio::time::timeout(CONNECT_PATIENCE, TcpStream::connect(address)).await.ok()?.ok()
}
