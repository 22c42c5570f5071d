//! The egress of fleet browsers: one proxy for all of them, which tells them apart by their
//! credentials.

use std::{
    collections::HashMap,
    io,
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
use uuid::Uuid;

use crate::{
    forwarder::{MAX_CONNECTIONS, read_request, reject, relay},
    route::EgressRoute,
};

/// The host name that the proxy itself serves (RFC 6761, section 6.4): a browser that receives its
/// page uses the proxy.
pub(crate) const READY_HOST: &str = "ready.avouch.invalid";
/// The title of its page.
pub(crate) const READY_PAGE_TITLE: &str = "through";
/// The delay after a failed `accept`.
pub(crate) const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Connections that have not sent credentials yet.
const MAX_UNAUTHENTICATED: usize = 256;

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
}

/// A credential for one browser, which is revoked on drop.
pub(crate) struct ProxyCredential {
    pub(crate) user: String,
    pub(crate) password: Secret,
    authorization: String,
    clients: ProxyClients,
}

impl FleetProxy {
    /// Starts a proxy for browsers that connect to this socket.
    pub(crate) fn start(listener: TcpListener) -> Self {
        let clients = ProxyClients::default();
        Self { task: tokio::spawn(serve(listener, clients.clone())), clients }
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
        let client = ProxyClient { route, permits: Arc::new(Semaphore::new(MAX_CONNECTIONS)) };
        lock(&self.clients).insert(self.authorization.clone(), client);
    }
}

impl Drop for ProxyCredential {
    fn drop(&mut self) {
        lock(&self.clients).remove(&self.authorization);
    }
}

async fn serve(listener: TcpListener, clients: ProxyClients) {
    let unauthenticated = Arc::new(Semaphore::new(MAX_UNAUTHENTICATED));
    while let Ok(permit) = unauthenticated.clone().acquire_owned().await {
        let Ok((mut stream, _)) = listener.accept().await else {
            // Usually too many files are open, until other connections close.
            tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            continue;
        };
        let clients = clients.clone();
        tokio::spawn(async move {
            let read = read_request(&mut stream).await;
            drop(permit);
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
                    Ok(_permit) => relay(stream, request, &rest, &client.route).await,
                    Err(_) => reject(&mut stream, "503 Service Unavailable", "").await,
                },
            };
        });
    }
}

async fn request_credentials(stream: &mut TcpStream) -> io::Result<()> {
    let header = "Proxy-Authenticate: Basic realm=\"avouch\"\r\n";
    reject(stream, "407 Proxy Authentication Required", header).await
}

async fn serve_ready_page(stream: &mut TcpStream) -> io::Result<()> {
    let page = format!("<!doctype html><title>{READY_PAGE_TITLE}</title>");
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n",
        page.len()
    );
    stream.write_all(format!("{head}{page}").as_bytes()).await
}
