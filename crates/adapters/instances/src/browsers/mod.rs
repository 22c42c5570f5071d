//! Browsers of other machines: an instance asks a browser host for a browser over a connection of its own,
//! and gets the bytes of Chromium's pipes and of the connections that Chromium opens to its proxy.
//!
//! The instance opens one stream and sends a request, a line of JSON; the host responds with a line. What
//! follows on this stream are the DevTools messages of the browser. The host opens a further stream for each
//! connection of the browser. The browser ends with the connection, and the connection with the browser.

mod back_off;
mod client;
mod host;
mod wire;

use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
};

pub(crate) use self::client::report;
pub use self::{
    client::{BrowserGuard, BrowserHosts, OpenError, OpenedBrowser},
    host::{HostSettings, HostedBrowsers, StartError, serve},
};

/// A stream of bytes in both directions.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Any stream of bytes in both directions.
pub type ByteStream = Box<dyn Duplex>;

/// A running browser that is reached through streams of bytes.
pub struct HostedBrowser {
    /// DevTools messages, each terminated by a NUL byte. It ends when the browser has ended.
    pub devtools: ByteStream,
    /// The connections that the browser opens to its HTTP proxy.
    pub connections: mpsc::Receiver<ByteStream>,
    /// Dropping this ends the browser.
    pub guard: Box<dyn Send + Sync>,
}
