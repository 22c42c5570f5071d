//! A TCP proxy between an applicant and the service that can be disconnected.

use std::sync::Arc;

use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::free_port;

/// The running proxy.
pub struct CuttableProxy {
    pub port: u16,
    connected: Arc<watch::Sender<bool>>,
}

impl CuttableProxy {
    /// Starts a proxy to this address.
    pub async fn to(address: &str) -> Self {
        let port = free_port();
        let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("a port");
        let (connected, address) = (Arc::new(watch::Sender::new(true)), address.to_owned());
        let state = connected.clone();
        tokio::spawn(async move {
            while let Ok((mut theirs, _)) = listener.accept().await {
                let (mut state, address) = (state.subscribe(), address.clone());
                tokio::spawn(async move {
                    if !*state.borrow() {
                        return;
                    }
                    let Ok(mut ours) = TcpStream::connect(address).await else { return };
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut theirs, &mut ours) => (),
                        _ = state.wait_for(|connected| !connected) => (),
                    }
                });
            }
        });
        Self { port, connected }
    }

    /// Ends all connections, and accepts no further ones.
    pub fn disconnect(&self) {
        self.connected.send_replace(false);
    }

    pub fn reconnect(&self) {
        self.connected.send_replace(true);
    }
}
