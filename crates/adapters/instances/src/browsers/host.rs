//! The server of a browser host.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::{
    ByteStream, HostedBrowser,
    wire::{PROTOCOL, REPORT_INTERVAL, Request, Response, Usage, read_line, write_line},
};
use crate::{
    identity::{IdentityError, InstanceIdentity},
    multiplexer::{Multiplexer, StreamOpener},
    socket::prepare,
};

/// Connections that are served at once, those without a browser included.
const MAX_CONNECTIONS: usize = 4096;
/// The time within which a connection must have sent its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The time within which an instance must have closed a connection that was refused.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a change of the usage is looked for.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// The delay after a failed `accept`: usually too many files are open.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Starts the browsers of a host.
#[async_trait]
pub trait HostedBrowsers: Send + Sync {
    /// Starts a browser with a device scale factor of 1, or of 2 for any other number.
    ///
    /// # Errors
    /// All slots are in use, or the browser cannot be started.
    async fn start(&self, scale: u8) -> Result<HostedBrowser, StartError>;

    /// Returns how many browsers may run at once.
    fn slots(&self) -> u32;

    /// Returns how many of them run.
    fn used(&self) -> u32;
}

/// Why a host started no browser.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("all slots are in use")]
    Full,
    #[error("{0}")]
    Failed(String),
}

/// What a host reports of itself.
#[derive(Debug, Clone)]
pub struct HostSettings {
    /// The region whose instances it serves; `None` if there are no regions.
    pub region: Option<String>,
    pub version: String,
}

/// What all connections share.
struct Host {
    browsers: Arc<dyn HostedBrowsers>,
    settings: HostSettings,
    draining: CancellationToken,
}

/// Serves instances until `stop` is cancelled, and then ends all browsers. Once `draining` is cancelled, it
/// starts no more.
///
/// # Errors
/// The TLS configuration cannot be made, which happens with no algorithm that this program is built with.
pub async fn serve(
    listener: TcpListener,
    identity: Arc<InstanceIdentity>,
    browsers: Arc<dyn HostedBrowsers>,
    settings: HostSettings,
    (draining, stop): (CancellationToken, CancellationToken),
) -> Result<(), IdentityError> {
    let mut tls = identity.server_config()?;
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let host = Arc::new(Host { browsers, settings, draining });
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        while connections.try_join_next().is_some() {}
        let (Ok((stream, peer)), Ok(permit)) = (accepted, permits.clone().try_acquire_owned())
        else {
            tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            continue;
        };
        let (acceptor, host) = (acceptor.clone(), host.clone());
        connections.spawn(async move {
            if let Err(error) = connection(stream, acceptor, &host).await {
                tracing::debug!(%peer, %error, "the connection of an instance ended");
            }
            drop(permit);
        });
    }
    connections.shutdown().await;
    Ok(())
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, host: &Host) -> io::Result<()> {
    let opened = async {
        // Without its connection a browser ends, so one whose instance is gone does too.
        prepare(&stream)?;
        let tls = acceptor.accept(stream).await?;
        if tls.get_ref().1.alpn_protocol() != Some(PROTOCOL) {
            return Err(io::Error::other("the instance speaks another protocol"));
        }
        let mut multiplexer = Multiplexer::server(tls);
        let mut control = multiplexer.accept().await.ok_or(io::ErrorKind::ConnectionAborted)?;
        let request: Request = read_line(&mut control).await?;
        Ok((multiplexer, control, request))
    };
    let opened = tokio::time::timeout(REQUEST_TIMEOUT, opened).await;
    let (mut multiplexer, mut control, request) =
        opened.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    match request {
        Request::Usage => report(&mut control, host).await,
        Request::Browser { .. } if host.draining.is_cancelled() => {
            refuse(multiplexer, control, Response::Full).await
        }
        Request::Browser { scale } => {
            // An instance that does not wait any more needs no browser.
            let started = tokio::select! {
                started = host.browsers.start(scale) => started,
                _ = multiplexer.accept() => return Err(io::ErrorKind::ConnectionAborted.into()),
            };
            match started {
                Ok(browser) => {
                    write_line(&mut control, &Response::Started).await?;
                    relay(multiplexer, control, browser).await;
                    Ok(())
                }
                Err(StartError::Full) => refuse(multiplexer, control, Response::Full).await,
                Err(StartError::Failed(reason)) => {
                    tracing::warn!(reason, "failed to start a browser");
                    refuse(multiplexer, control, Response::failed(&reason)).await
                }
            }
        }
    }
}

/// Sends a refusal, and waits until the instance has read it and closes.
async fn refuse(
    mut multiplexer: Multiplexer,
    mut control: ByteStream,
    response: Response,
) -> io::Result<()> {
    write_line(&mut control, &response).await?;
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, multiplexer.accept()).await;
    Ok(())
}

/// Reports the usage when it has changed, and at least at each interval, until the connection ends.
async fn report(control: &mut ByteStream, host: &Host) -> io::Result<()> {
    loop {
        let usage = host.usage();
        write_line(control, &usage).await?;
        let reported_at = Instant::now();
        while reported_at.elapsed() < REPORT_INTERVAL && host.usage() == usage {
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }
}

impl Host {
    fn usage(&self) -> Usage {
        Usage {
            slots: self.browsers.slots(),
            used: self.browsers.used(),
            region: self.settings.region.clone(),
            version: self.settings.version.clone(),
            draining: self.draining.is_cancelled(),
        }
    }
}

/// Passes the bytes of a browser on until it or the connection ends.
async fn relay(mut multiplexer: Multiplexer, mut control: ByteStream, browser: HostedBrowser) {
    let HostedBrowser { mut devtools, connections, guard } = browser;
    let opener = multiplexer.opener();
    tokio::select! {
        _ = copy_bidirectional(&mut devtools, &mut control) => (),
        () = relay_connections(connections, opener) => (),
        // An instance opens one stream. `None` is the end of the connection.
        _ = multiplexer.accept() => (),
    }
    drop(guard);
}

/// Passes the connections of a browser on, each in a stream of its own, until the browser has ended.
async fn relay_connections(mut connections: mpsc::Receiver<ByteStream>, opener: StreamOpener) {
    let mut relays = JoinSet::new();
    while let Some(mut connection) = connections.recv().await {
        while relays.try_join_next().is_some() {}
        let opener = opener.clone();
        relays.spawn(async move {
            if let Some(mut stream) = opener.open().await {
                // The browser notices a broken connection itself.
                let _ = copy_bidirectional(&mut connection, &mut stream).await;
            }
        });
    }
}
