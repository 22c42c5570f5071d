//! The egress of fleet browsers: one proxy for all of them, which tells them apart by their
//! credentials.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::secret::Secret;
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    forwarder::{MAX_CONNECTIONS, read_request, reject, relay},
    hosted::{ByteStream, Duplex},
    route::EgressRoute,
};

/// The host name that the proxy itself serves (RFC 6761, section 6.4): a browser that receives its
/// page uses the proxy.
pub(crate) const READY_HOST: &str = "ready.avouch.invalid";
/// The title of its page.
pub(crate) const READY_PAGE_TITLE: &str = "through";
/// The delay after a failed `accept`.
pub(crate) const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// The time of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections that have not sent credentials yet: in all, and of one peer.
const MAX_UNAUTHENTICATED: usize = 2048;
const MAX_UNAUTHENTICATED_OF_PEER: usize = 512;

/// A running proxy, which stops on drop.
pub(crate) struct FleetProxy {
    clients: ProxyClients,
    task: JoinHandle<()>,
}

/// By the value of the `Proxy-Authorization` header.
type ProxyClients = Arc<Mutex<HashMap<String, ProxyClient>>>;

/// The route of an authenticated browser, and its concurrency limit.
#[derive(Clone)]
struct ProxyClient {
    route: Arc<EgressRoute>,
    permits: Arc<Semaphore>,
    /// Cancelled when the credential is revoked.
    revoked: CancellationToken,
}

/// A credential for one browser, which is revoked on drop: its connections end.
pub(crate) struct ProxyCredential {
    pub(crate) user: String,
    pub(crate) password: Secret,
    authorization: String,
    clients: ProxyClients,
    revoked: CancellationToken,
}

impl FleetProxy {
    /// Starts a proxy for browsers that connect to this socket, over TLS if there is an acceptor.
    pub(crate) fn start(listener: TcpListener, tls: Option<TlsAcceptor>) -> Self {
        let clients = ProxyClients::default();
        Self { task: tokio::spawn(serve(listener, tls, clients.clone())), clients }
    }

    /// Issues a credential for one more browser, at first without a route.
    pub(crate) fn issue_credential(&self) -> ProxyCredential {
        let random = || Uuid::new_v4().simple().to_string();
        let (user, password) = (random(), random());
        let authorization = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        let credential = ProxyCredential {
            user,
            password: Secret::new(password),
            authorization,
            clients: self.clients.clone(),
            revoked: CancellationToken::new(),
        };
        credential.set_route(Arc::new(EgressRoute::blocked()));
        credential
    }
}

impl Drop for FleetProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(clients: &ProxyClients) -> MutexGuard<'_, HashMap<String, ProxyClient>> {
    clients.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ProxyCredential {
    /// Routes new connections with this credential this way from now on.
    pub(crate) fn set_route(&self, route: Arc<EgressRoute>) {
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let client = ProxyClient { route, permits, revoked: self.revoked.clone() };
        lock(&self.clients).insert(self.authorization.clone(), client);
    }
}

impl Drop for ProxyCredential {
    fn drop(&mut self) {
        lock(&self.clients).remove(&self.authorization);
        // An endpoint could otherwise keep connections open that its browser no longer needs.
        self.revoked.cancel();
    }
}

/// Counts the connections of each peer that have not sent credentials yet.
#[derive(Clone, Default)]
struct UnauthenticatedPeers(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// A counted connection, until it is dropped.
struct CountedConnection {
    peers: UnauthenticatedPeers,
    peer: IpAddr,
}

impl UnauthenticatedPeers {
    /// Counts a connection; `None` if its peer has as many as it may have.
    fn count(&self, address: IpAddr) -> Option<CountedConnection> {
        let peer = peer(address);
        let mut counts = self.counts();
        let count = counts.entry(peer).or_default();
        if *count >= MAX_UNAUTHENTICATED_OF_PEER {
            return None;
        }
        *count += 1;
        Some(CountedConnection { peers: self.clone(), peer })
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let mut counts = self.peers.counts();
        if let Some(count) = counts.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.peer);
            }
        }
    }
}

/// Returns what is one peer: an IPv4 address, or the network of 64 bits of an IPv6 address, which one host
/// may have to itself (RFC 4291, section 2.5.1).
fn peer(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>, clients: ProxyClients) {
    let unauthenticated = Arc::new(Semaphore::new(MAX_UNAUTHENTICATED));
    let peers = UnauthenticatedPeers::default();
    while let Ok(permit) = unauthenticated.clone().acquire_owned().await {
        let Ok((stream, address)) = listener.accept().await else {
            // Usually too many files are open, until other connections close.
            tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            continue;
        };
        // The connection of a peer that has too many is closed, so that the others are served.
        let Some(counted) = peers.count(address.ip()) else { continue };
        let (tls, clients) = (tls.clone(), clients.clone());
        tokio::spawn(async move {
            let Some(mut stream) = secured(stream, tls).await else { return };
            let read = read_request(&mut stream).await;
            drop((permit, counted));
            let Ok(Some((request, rest))) = read else { return };
            let authorization = request.credentials.as_deref().unwrap_or_default();
            let client = lock(&clients).get(authorization).cloned();
            // The browser notices a broken connection itself.
            let _ = match client {
                None => request_credentials(&mut stream).await,
                Some(_) if request.host == READY_HOST && request.forwarded.is_some() => {
                    serve_ready_page(&mut stream).await
                }
                Some(client) => match client.permits.try_acquire() {
                    Ok(_permit) => {
                        let relayed = relay(stream, request, &rest, &client.route);
                        client.revoked.run_until_cancelled(relayed).await.unwrap_or(Ok(()))
                    }
                    Err(_) => reject(&mut stream, "503 Service Unavailable", "").await,
                },
            };
        });
    }
}

/// Completes the TLS handshake, if there is to be one; `None` if it fails.
async fn secured(stream: TcpStream, tls: Option<TlsAcceptor>) -> Option<ByteStream> {
    let Some(tls) = tls else { return Some(Box::new(stream)) };
    let accepted = tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await;
    Some(Box::new(accepted.ok()?.ok()?))
}

async fn request_credentials(stream: &mut impl Duplex) -> io::Result<()> {
    let header = "Proxy-Authenticate: Basic realm=\"avouch\"\r\n";
    reject(stream, "407 Proxy Authentication Required", header).await
}

async fn serve_ready_page(stream: &mut impl Duplex) -> io::Result<()> {
    let page = format!("<!doctype html><title>{READY_PAGE_TITLE}</title>");
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n",
        page.len()
    );
    stream.write_all(format!("{head}{page}").as_bytes()).await
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[test]
    fn a_peer_is_an_address_or_a_network() {
        for (address, expected) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ] {
            assert_eq!(peer(address.parse().unwrap()), expected.parse::<IpAddr>().unwrap());
        }
    }

    #[tokio::test]
    async fn a_peer_that_sends_nothing_does_not_keep_others_out() {
        let listener = TcpListener::bind(("0.0.0.0", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let _proxy = FleetProxy::start(listener, None);
        let mut silent = vec![];
        for _ in 0..2 * MAX_UNAUTHENTICATED_OF_PEER {
            silent.push(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
        }
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 2], 0).into()).unwrap();
        let mut other = socket.connect(([127, 0, 0, 1], port).into()).await.unwrap();
        other.write_all(b"CONNECT example.com:443 HTTP/1.1\r\n\r\n").await.unwrap();
        let mut answer = [0; 12];
        let read = tokio::time::timeout(Duration::from_secs(5), other.read_exact(&mut answer));
        read.await.unwrap().unwrap();
        assert_eq!(&answer, b"HTTP/1.1 407");
        // The peer is served again once its connections are closed.
        drop(silent);
        for attempt in 0.. {
            let mut again = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let sent = again.write_all(b"CONNECT example.com:443 HTTP/1.1\r\n\r\n").await;
            if sent.is_ok() && again.read_exact(&mut answer).await.is_ok() {
                break;
            }
            assert!(attempt < 100, "its connections are still counted");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
