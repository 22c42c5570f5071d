//! A resolver that hands out permitted addresses alone, so that the check and the connection are
//! about the same address.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    vec,
};

use domain::egress::Egress;
use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

#[derive(Clone)]
pub(super) struct GuardedResolver {
    pub(super) egress: Arc<Egress>,
}

/// What a call is told when its receiver is not to be reached.
#[derive(Debug, thiserror::Error)]
#[error("the address is not permitted")]
pub(super) struct Blocked;

impl Service<Name> for GuardedResolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let egress = self.egress.clone();
        Box::pin(async move {
            let found: Vec<_> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            // The port is not known here; an exception that names a port is checked before.
            let permitted: Vec<_> = found
                .into_iter()
                .filter(|address| egress.permits_any_port(name.as_str(), address.ip()))
                .collect();
            if permitted.is_empty() {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, Blocked));
            }
            Ok(permitted.into_iter())
        })
    }
}
