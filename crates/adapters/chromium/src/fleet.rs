//! A fleet of remote browsers that are driven over a WebSocket: each session has a connection, and in
//! it a browser context of its own that is disposed of with the connection.

mod browserless;
mod endpoints;
mod grid;

use std::{
    fmt, io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use ports::browser::Scale;
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::mpsc};

use self::{
    endpoints::{Candidate, Endpoints},
    grid::{Grid, GridError, GridSession},
};
use crate::{
    client::{DevToolsClient, DevToolsError, DevToolsEvent, Socket, SocketError},
    fleet_address::{EndpointKind, FleetAddress, FleetEndpoint},
    fleet_certificate::{self, ProxyCertificateError},
    fleet_proxy::{FleetProxy, ProxyCredential, READY_HOST, READY_PAGE_TITLE},
    launch::FLAGS,
};

/// The time within which a browser must be there, whichever endpoint it is of. The job that starts it is
/// claimed anew after 90 s.
const MAX_SELECTION_TIME: Duration = Duration::from_secs(55);
/// The time of one endpoint while others could be tried.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(20);
/// The time in which each endpoint is examined.
const EXAMINATION_TIMEOUT: Duration = Duration::from_secs(15);
/// Characters of a browser's user agent.
const MAX_USER_AGENT_CHARS: usize = 500;

/// The time within which a browser must be verified to use our proxy.
const PROXY_CHECK_TIMEOUT: Duration = Duration::from_secs(20);

/// A script that counts the ICE candidates of WebRTC, by which a page could connect to peers directly.
/// A browser that sends everything through its proxy has none.
const COUNT_ICE_CANDIDATES: &str = "new Promise(resolve => {
    if (!self.RTCPeerConnection) return resolve(0);
    const peer = new RTCPeerConnection();
    let count = 0;
    const end = () => { peer.close(); resolve(count); };
    peer.onicecandidate = event => event.candidate ? (count += 1) : end();
    peer.createDataChannel('');
    peer.setLocalDescription();
    setTimeout(end, 3000);
})";

/// A script that returns the title of the page once it is loaded.
const READ_TITLE: &str = "new Promise(resolve => document.readyState === 'complete'
    ? resolve(document.title)
    : addEventListener('load', () => resolve(document.title)))";

/// Endpoints of remote browsers, and the proxy that all these browsers use.
pub struct Fleet {
    endpoints: Endpoints,
    /// The grids among the endpoints, by the same indices.
    grids: Vec<Option<Arc<Grid>>>,
    tls: Arc<ClientConfig>,
    /// The address of the proxy for browsers.
    proxy_url: String,
    proxy: FleetProxy,
}

impl Fleet {
    /// Returns a fleet whose browsers connect to the proxy on `listener`. `tls` has the root
    /// certificates for endpoints that are reached over TLS. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// The certificate of the proxy cannot be used.
    pub fn new(
        address: FleetAddress,
        tls: Arc<ClientConfig>,
        listener: TcpListener,
    ) -> Result<Self, FleetSetupError> {
        let FleetAddress { endpoints, proxy_address, proxy_certificate, .. } = address;
        let acceptor = proxy_certificate.map(fleet_certificate::acceptor).transpose()?;
        let scheme = if acceptor.is_some() { "https" } else { "http" };
        let grid = |endpoint: &FleetEndpoint| match endpoint.kind {
            EndpointKind::Selenium => Grid::new(endpoint, tls.clone()).ok(),
            EndpointKind::DevTools | EndpointKind::Browserless => None,
        };
        Ok(Self {
            grids: endpoints.iter().map(grid).collect(),
            endpoints: Endpoints::new(endpoints),
            proxy: FleetProxy::start(listener, acceptor),
            tls,
            proxy_url: format!("{scheme}://{proxy_address}"),
        })
    }

    /// Listens for the browsers of a fleet, and reads the root certificates of the machine, or of
    /// `SSL_CERT_FILE`, if an endpoint is reached over TLS: it may have a root of its own.
    ///
    /// # Errors
    /// The address is in use, there are no root certificates, or the certificate of the proxy cannot be
    /// used.
    pub async fn listen(address: FleetAddress) -> Result<Self, FleetSetupError> {
        let listener = TcpListener::bind(address.listen).await;
        let listener = listener
            .map_err(|source| FleetSetupError::Listen { address: address.listen, source })?;
        let mut roots = RootCertStore::empty();
        if address.endpoints.iter().any(FleetEndpoint::uses_tls) {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            if roots.is_empty() {
                let reason = found.errors.first().map(ToString::to_string).unwrap_or_default();
                return Err(FleetSetupError::Roots(reason));
            }
        }
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self::new(address, Arc::new(tls), listener)
    }

    /// Whether the browsers of all endpoints are started for us, with the device scale factor that is
    /// requested.
    pub(crate) fn supports_scales(&self) -> bool {
        self.endpoints.all().iter().all(|endpoint| match endpoint.kind {
            EndpointKind::Selenium => true,
            EndpointKind::DevTools | EndpointKind::Browserless => false,
        })
    }

    /// Creates a context in a browser of an endpoint, and verifies that it uses our proxy only. The
    /// endpoint is selected by weight; others are tried if it is full or fails.
    pub(crate) async fn attach(&self, scale: Scale) -> Result<AttachedContext, FleetError> {
        let (started, mut is_full) = (Instant::now(), false);
        let mut candidates = self.endpoints.candidates(started).into_iter().peekable();
        while let Some(candidate) = candidates.next() {
            let left = MAX_SELECTION_TIME.saturating_sub(started.elapsed());
            if left.is_zero() {
                break;
            }
            let is_last = candidates.peek().is_none();
            let limit = if is_last { left } else { left.min(ENDPOINT_TIMEOUT) };
            let Candidate { index, endpoint, .. } = candidate;
            self.endpoints.charge(&candidate);
            match FleetContext::create_within(limit, self, index, endpoint, scale).await {
                Ok(attached) => {
                    count(endpoint, "started");
                    self.endpoints.record_success(index);
                    return Ok(attached);
                }
                Err(error) if error.is_full() => {
                    count(endpoint, "full");
                    self.endpoints.record_full(&candidate);
                    is_full = true;
                }
                Err(error) => {
                    count(endpoint, "failed");
                    let why = error_chain(&error);
                    let back_off =
                        self.endpoints.record_failure(index, why.clone(), Instant::now());
                    tracing::warn!(
                        endpoint = endpoint.name,
                        error = why,
                        seconds = back_off.as_secs(),
                        "an endpoint of the fleet failed; it is left out for a time"
                    );
                }
            }
        }
        Err(if is_full { FleetError::Full } else { FleetError::NoneWorks(self.endpoints.errors()) })
    }

    /// Examines each endpoint once, and returns the user agent of its browsers.
    pub(crate) async fn examine(&self) -> Vec<(&FleetEndpoint, Result<String, FleetError>)> {
        let examine = async |(index, endpoint)| {
            let created =
                FleetContext::create_within(EXAMINATION_TIMEOUT, self, index, endpoint, Scale::One)
                    .await;
            let result = match created {
                Ok(attached) => {
                    attached.context.end().await;
                    Ok(attached.user_agent)
                }
                Err(error) => Err(error),
            };
            (endpoint, result)
        };
        join_all(self.endpoints.all().iter().enumerate().map(|(index, one)| examine((index, one))))
            .await
    }

    /// Opens a connection to a browser of an endpoint.
    async fn open(
        &self,
        index: usize,
        endpoint: &FleetEndpoint,
        scale: Scale,
    ) -> Result<(Socket, Option<GridSession>), FleetError> {
        let url = endpoint.url.expose();
        match endpoint.kind {
            EndpointKind::DevTools => Ok((Socket::open(url, None, &self.tls).await?, None)),
            EndpointKind::Browserless => {
                if browserless::is_full(url, &self.tls).await? {
                    return Err(FleetError::Full);
                }
                let url = browserless::browser_url(url, &self.arguments(scale))?;
                Ok((Socket::open(&url, None, &self.tls).await?, None))
            }
            EndpointKind::Selenium => {
                let grid = self.grids.get(index).and_then(Option::as_ref);
                let grid = grid.ok_or(SocketError::Address)?;
                let session = grid.create_session(self.arguments(scale)).await?;
                let opened =
                    Socket::open(&session.devtools_url(), session.authorization(), &self.tls).await;
                match opened {
                    Ok(socket) => Ok((socket, Some(session))),
                    Err(error) => {
                        session.end().await;
                        Err(error.into())
                    }
                }
            }
        }
    }

    /// Returns the arguments of browsers that an endpoint starts for us.
    fn arguments(&self, scale: Scale) -> Vec<String> {
        let own = [
            // Also for what the browser itself requests, which is not in our context.
            format!("--proxy-server={}", self.proxy_url),
            format!("--force-device-scale-factor={}", scale.times()),
        ];
        FLAGS.iter().map(|flag| (*flag).to_owned()).chain(own).collect()
    }
}

fn count(endpoint: &FleetEndpoint, outcome: &'static str) {
    let labels = [("endpoint", endpoint.name.clone()), ("outcome", outcome.to_owned())];
    metrics::counter!("avouch_fleet_attempts_total", &labels).increment(1);
}

/// Why a fleet cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FleetSetupError {
    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("there are no root certificates with which to verify the fleet: {0}")]
    Roots(String),
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    #[error("the certificate of the fleet's proxy cannot be used")]
    Certificate(#[from] ProxyCertificateError),
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet").field("proxy", &self.proxy_url).finish_non_exhaustive()
    }
}

/// A browser context that belongs to one session.
pub(crate) struct FleetContext {
    pub(crate) client: DevToolsClient,
    pub(crate) context_id: String,
    /// The session of a grid whose browser has the context.
    session: Option<GridSession>,
}

/// A context that has been verified to use the proxy.
pub(crate) struct AttachedContext {
    pub(crate) context: FleetContext,
    pub(crate) events: mpsc::Receiver<DevToolsEvent>,
    /// The browser's own user agent.
    pub(crate) user_agent: String,
    pub(crate) credential: ProxyCredential,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum FleetError {
    #[error("all browsers of the fleet are in use")]
    Full,
    #[error("no endpoint of the fleet works: {0}")]
    NoneWorks(String),
    #[error("the endpoint provided no browser within {0:?}")]
    TimedOut(Duration),
    #[error("failed to connect to the fleet")]
    Socket(#[from] SocketError),
    #[error(transparent)]
    Grid(#[from] GridError),
    #[error("the fleet did not create a browser context")]
    Call(#[from] DevToolsError),
    #[error("the fleet's browser does not use the proxy at {0}")]
    NotProxied(String),
    #[error(
        "the fleet's browsers bypass their proxy by WebRTC: start them with \
         --webrtc-ip-handling-policy=disable_non_proxied_udp and \
         --force-webrtc-ip-handling-policy=disable_non_proxied_udp"
    )]
    ProxyBypass,
}

impl FleetError {
    /// Whether the endpoint works and has no free browser.
    pub(crate) const fn is_full(&self) -> bool {
        matches!(
            self,
            Self::Full
                | Self::Grid(GridError::Full | GridError::Socket(SocketError::AtCapacity(_)))
                | Self::Socket(SocketError::AtCapacity(_))
        )
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreatedContext {
    browser_context_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreatedTarget {
    target_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AttachedTarget {
    session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InterceptedRequest {
    request_id: String,
}

impl FleetContext {
    /// Creates a context as [`Self::create`] does. What exists when the time is over is ended.
    async fn create_within(
        limit: Duration,
        fleet: &Fleet,
        index: usize,
        endpoint: &FleetEndpoint,
        scale: Scale,
    ) -> Result<AttachedContext, FleetError> {
        let created = Self::create(fleet, index, endpoint, scale);
        let created = tokio::time::timeout(limit, created).await;
        created.map_err(|_| FleetError::TimedOut(limit))?
    }

    /// Creates a context in a browser of an endpoint, and verifies that it uses our proxy only. Where the
    /// future is dropped, the connection is closed and the session of a grid is deleted.
    async fn create(
        fleet: &Fleet,
        index: usize,
        endpoint: &FleetEndpoint,
        scale: Scale,
    ) -> Result<AttachedContext, FleetError> {
        let (socket, session) = fleet.open(index, endpoint, scale).await?;
        let (client, mut events) = DevToolsClient::from_socket(socket);
        if let Some(session) = &session {
            session.close_at_end(client.clone());
        }
        // Closes the connection on drop.
        let mut context = Self { context_id: String::new(), client, session };
        let credential = fleet.proxy.issue_credential();
        // Disposed of with the connection, however that ends.
        let options = json!({
            "disposeOnDetach": true,
            "proxyServer": fleet.proxy_url,
            // Without this, loopback addresses are reached around the proxy.
            "proxyBypassList": "<-loopback>",
        });
        let created = context.client.call(None, "Target.createBrowserContext", options).await;
        match created.and_then(parse::<CreatedContext>) {
            Ok(created) => context.context_id = created.browser_context_id,
            Err(error) => {
                context.client.close();
                if let Some(session) = &context.session {
                    session.end().await;
                }
                return Err(error.into());
            }
        }
        let verified = tokio::time::timeout(
            PROXY_CHECK_TIMEOUT,
            context.verify_proxied(&mut events, &credential),
        )
        .await;
        let error = match verified {
            Ok(Ok(Some(user_agent))) => {
                return Ok(AttachedContext { context, events, user_agent, credential });
            }
            Ok(Err(error)) => error,
            Ok(Ok(None)) | Err(_) => FleetError::NotProxied(fleet.proxy_url.clone()),
        };
        context.end().await;
        Err(error)
    }

    /// Verifies in a page of its own that the context uses our proxy for everything. From then on the
    /// browser sends the credential by itself. Returns its user agent, or `None` if the page of the
    /// proxy was not received.
    async fn verify_proxied(
        &self,
        events: &mut mpsc::Receiver<DevToolsEvent>,
        credential: &ProxyCredential,
    ) -> Result<Option<String>, FleetError> {
        let client = &self.client;
        let page = json!({ "url": "about:blank", "browserContextId": self.context_id });
        let page: CreatedTarget = parse(client.call(None, "Target.createTarget", page).await?)?;
        let attach = json!({ "targetId": page.target_id, "flatten": true });
        let attached: AttachedTarget =
            parse(client.call(None, "Target.attachToTarget", attach).await?)?;
        let session = Some(attached.session_id.as_str());
        let evaluate = |expression: &str| {
            let params = json!({ "expression": expression, "awaitPromise": true });
            async move {
                let result = client.call(session, "Runtime.evaluate", params).await?;
                Ok::<_, DevToolsError>(result.pointer("/result/value").cloned().unwrap_or_default())
            }
        };
        if evaluate(COUNT_ICE_CANDIDATES).await?.as_u64() != Some(0) {
            return Err(FleetError::ProxyBypass);
        }
        let intercept = json!({ "handleAuthRequests": true });
        client.call(session, "Fetch.enable", intercept).await?;
        let target = json!({ "url": format!("http://{READY_HOST}/") });
        let navigation = client.call(session, "Page.navigate", target);
        tokio::pin!(navigation);
        loop {
            tokio::select! {
                navigated = &mut navigation => {
                    navigated?;
                    break;
                }
                event = events.recv() => {
                    let event = event.ok_or(DevToolsError::Closed)?;
                    let Some(InterceptedRequest { request_id }) = event.read() else { continue };
                    let (method, params) = match event.method.as_str() {
                        "Fetch.authRequired" => ("Fetch.continueWithAuth", auth_response(&request_id, credential)),
                        "Fetch.requestPaused" => {
                            ("Fetch.continueRequest", json!({ "requestId": request_id }))
                        }
                        _ => continue,
                    };
                    client.send_no_reply(session, method, params);
                }
            }
        }
        let proxied = evaluate(READ_TITLE).await?.as_str() == Some(READY_PAGE_TITLE);
        let user_agent = evaluate("navigator.userAgent").await?;
        client.call(None, "Target.closeTarget", json!({ "targetId": page.target_id })).await?;
        let user_agent = user_agent.as_str().filter(|_| proxied);
        Ok(user_agent.map(|agent| agent.chars().take(MAX_USER_AGENT_CHARS).collect()))
    }

    /// Ends the context with all its pages. Idempotent.
    pub(crate) async fn end(&self) {
        if let Some(session) = &self.session {
            self.client.close();
            return session.end().await;
        }
        let context = json!({ "browserContextId": self.context_id });
        // If this fails, closing the connection has the same effect.
        let _ = self.client.call(None, "Target.disposeBrowserContext", context).await;
        self.client.close();
    }
}

impl Drop for FleetContext {
    fn drop(&mut self) {
        self.client.close();
    }
}

/// Returns the parameters that answer an authentication challenge of the proxy.
fn auth_response(request: &str, credential: &ProxyCredential) -> Value {
    json!({
        "requestId": request,
        "authChallengeResponse": {
            "response": "ProvideCredentials",
            "username": credential.user,
            "password": credential.password.expose(),
        },
    })
}

/// Returns an error with all its causes.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

fn parse<T: for<'a> Deserialize<'a>>(reply: Value) -> Result<T, DevToolsError> {
    serde_json::from_value(reply)
        .map_err(|_| DevToolsError::Refused("the reply has an unexpected form".into()))
}
