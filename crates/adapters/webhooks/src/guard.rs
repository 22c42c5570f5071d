//! A resolver that returns only permitted addresses, so that the checked address is the one that is
//! connected to.

use std::{
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    vec,
};

use domain::egress::Egress;
use futures_util::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

/// Resolves a host name to its addresses.
pub type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// Returns a lookup that uses the system's resolver.
pub(super) fn system() -> Lookup {
    Arc::new(|name| {
        Box::pin(async move {
            let addresses = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(addresses.map(|address| address.ip()).collect())
        })
    })
}

#[derive(Clone)]
pub(super) struct GuardedResolver {
    pub(super) egress: Arc<Egress>,
    pub(super) lookup: Lookup,
}

/// The error if the egress policy permits none of the addresses.
#[derive(Debug, thiserror::Error)]
#[error("the address is not permitted")]
pub(super) struct EgressDenied;

/// The error if the host name cannot be resolved.
#[derive(Debug, thiserror::Error)]
#[error("the name has no address")]
pub(super) struct ResolveError(#[source] io::Error);

impl Service<Name> for GuardedResolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let egress = self.egress.clone();
        let addresses = (self.lookup)(name.as_str().to_owned());
        Box::pin(async move {
            // The port is not known here; the connector replaces it. An exception for a port is
            // checked by the caller.
            let addresses =
                addresses.await.map_err(|error| io::Error::new(error.kind(), ResolveError(error)));
            let permitted: Vec<_> = addresses?
                .into_iter()
                .filter(|ip| egress.permits_any_port(name.as_str(), *ip))
                .map(|ip| SocketAddr::from((ip, 0)))
                .collect();
            if permitted.is_empty() {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, EgressDenied));
            }
            Ok(permitted.into_iter())
        })
    }
}
