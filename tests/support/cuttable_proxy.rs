//! A TCP proxy that can be disconnected, or keep silent.

use std::sync::Arc;

use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::free_port;

/// The running proxy.
pub struct CuttableProxy {
    pub port: u16,
    link: Arc<watch::Sender<Link>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    Connected,
    /// Connections are accepted and stay open, and nothing is transferred.
    Silent,
    Disconnected,
}

impl CuttableProxy {
    /// Starts a proxy to this address.
    pub async fn to(address: &str) -> Self {
        let port = free_port();
        let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("a port");
        let link = Arc::new(watch::Sender::new(Link::Connected));
        let (state, address) = (link.clone(), address.to_owned());
        tokio::spawn(async move {
            while let Ok((mut theirs, _)) = listener.accept().await {
                let (mut state, address) = (state.subscribe(), address.clone());
                tokio::spawn(async move {
                    if *state.borrow() == Link::Connected {
                        let Ok(mut ours) = TcpStream::connect(address).await else { return };
                        tokio::select! {
                            _ = tokio::io::copy_bidirectional(&mut theirs, &mut ours) => return,
                            _ = state.wait_for(|link| *link != Link::Connected) => (),
                        }
                        let _ = state.wait_for(|link| *link != Link::Silent).await;
                        return;
                    }
                    let _ = state.wait_for(|link| *link != Link::Silent).await;
                });
            }
        });
        Self { port, link }
    }

    /// Ends all connections, and accepts no further ones.
    pub fn disconnect(&self) {
        self.link.send_replace(Link::Disconnected);
    }

    /// Transfers nothing any more; no connection ends, as in a network that loses all packets.
    pub fn silence(&self) {
        self.link.send_replace(Link::Silent);
    }

    /// Ends the connections that were silent, and transfers those that begin.
    pub fn reconnect(&self) {
        self.link.send_replace(Link::Connected);
    }
}
