//! Browsers that run on browser hosts: other machines, each of which starts a whole Chromium for a
//! session and passes the bytes of its pipes and of its connections on.

use std::{fmt, net::SocketAddr};

use async_trait::async_trait;
use ports::browser::Scale;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
};

/// A stream of bytes in both directions.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Any stream of bytes in both directions.
pub type ByteStream = Box<dyn Duplex>;

/// A running browser that is reached through byte streams.
pub struct HostedBrowser {
    /// The address of its host.
    pub host: SocketAddr,
    /// The DevTools messages of Chromium's pipes, each terminated by a NUL byte. It ends when the browser
    /// has ended.
    pub devtools: ByteStream,
    /// The connections that the browser opens to its HTTP proxy.
    pub connections: mpsc::Receiver<ByteStream>,
    pub guard: Box<dyn HostGuard>,
}

/// Keeps a browser of a host running. Dropping this ends the browser.
pub trait HostGuard: Send + Sync {
    /// Whether the host starts no browsers any more, and stops once those that run have ended.
    fn is_draining(&self) -> bool;
}

/// Starts browsers on browser hosts.
#[async_trait]
pub trait BrowserHosts: fmt::Debug + Send + Sync {
    /// Starts a browser that has never been used, with this device scale factor.
    ///
    /// # Errors
    /// All hosts are full, or none can be reached.
    async fn start(&self, scale: Scale) -> Result<HostedBrowser, HostError>;

    /// Records that a browser of this host could be set up.
    fn record_success(&self, host: SocketAddr);

    /// Records that a browser of this host could not be set up: other hosts are asked first for a time.
    fn record_failure(&self, host: SocketAddr, reason: &str);
}

/// Why no browser host started a browser.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    #[error("all browser hosts are full")]
    Full,
    #[error("no browser host started a browser: {0}")]
    Unavailable(String),
}
