//! A resolver that hands out permitted addresses alone, so that the check and the connection are
//! about the same address.

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

/// Finds the addresses of a name.
pub type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// The system's way to look names up.
pub(super) fn system() -> Lookup {
    Arc::new(|name| {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    })
}

#[derive(Clone)]
pub(super) struct GuardedResolver {
    pub(super) egress: Arc<Egress>,
    pub(super) lookup: Lookup,
}

/// What a call is told when its receiver is not to be reached.
#[derive(Debug, thiserror::Error)]
#[error("the address is not permitted")]
pub(super) struct EgressDenied;

/// What a call is told when its receiver's name has no address.
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
        let found = (self.lookup)(name.as_str().to_owned());
        Box::pin(async move {
            // The port is not known here; an exception that names a port is checked before. The
            // connector puts the port in the place of this one.
            let found =
                found.await.map_err(|error| io::Error::new(error.kind(), ResolveError(error)));
            let permitted: Vec<_> = found?
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
