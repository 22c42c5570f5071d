//! A fleet of remote browsers that are driven over a WebSocket: each session has a connection, and in
//! it a browser context of its own that is disposed of with the connection.

use std::{fmt, io, net::SocketAddr, sync::Arc, time::Duration};

use domain::secret::Secret;
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::mpsc};

use crate::{
    FleetAddress,
    client::{DevToolsClient, DevToolsError, DevToolsEvent, Socket, SocketError},
    fleet_proxy::{FleetProxy, ProxyCredential, READY_HOST, READY_PAGE_TITLE},
};

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

/// A remote browser endpoint, and the proxy that its browsers use.
pub struct Fleet {
    url: Secret,
    tls: Arc<ClientConfig>,
    proxy_address: String,
    proxy: FleetProxy,
}

impl Fleet {
    /// Returns a fleet at a `ws:` or `wss:` address, which may contain a token. `tls` has the root
    /// certificates for `wss:`. Its browsers connect to the proxy on `listener`, whose address for
    /// them is `proxy_address` (`HOST:PORT`). Must be called within a Tokio runtime.
    #[must_use]
    pub fn new(
        url: Secret,
        tls: Arc<ClientConfig>,
        listener: TcpListener,
        proxy_address: String,
    ) -> Self {
        Self { url, tls, proxy_address, proxy: FleetProxy::start(listener) }
    }

    /// Listens for the browsers of a fleet, and reads the root certificates of the machine, or of
    /// `SSL_CERT_FILE`, if the fleet is reached over TLS: it may have a root of its own.
    ///
    /// # Errors
    /// The address is in use, or there are no root certificates.
    pub async fn listen(address: &FleetAddress) -> Result<Self, FleetSetupError> {
        let listener = TcpListener::bind(address.listen).await;
        let listener = listener
            .map_err(|source| FleetSetupError::Listen { address: address.listen, source })?;
        let mut roots = RootCertStore::empty();
        if address.url.expose().starts_with("wss:") {
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
        let FleetAddress { url, proxy_address, .. } = address.clone();
        Ok(Self::new(url, Arc::new(tls), listener, proxy_address))
    }
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
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet").field("address", &self.proxy_address).finish_non_exhaustive()
    }
}

/// A browser context that belongs to one session.
pub(crate) struct FleetContext {
    pub(crate) client: DevToolsClient,
    pub(crate) context_id: String,
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
    #[error("failed to connect to the fleet")]
    Socket(#[from] SocketError),
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
    /// Creates a context in a browser of the fleet, and verifies that it uses our proxy only.
    pub(crate) async fn create(fleet: &Fleet) -> Result<AttachedContext, FleetError> {
        let socket = Socket::open(fleet.url.expose(), &fleet.tls).await?;
        let (client, mut events) = DevToolsClient::from_socket(socket);
        let credential = fleet.proxy.issue_credential();
        // Disposed of with the connection, however that ends.
        let options = json!({
            "disposeOnDetach": true,
            "proxyServer": format!("http://{}", fleet.proxy_address),
            // Without this, loopback addresses are reached around the proxy.
            "proxyBypassList": "<-loopback>",
        });
        let created = client.call(None, "Target.createBrowserContext", options).await;
        let context = match created.and_then(parse::<CreatedContext>) {
            Ok(created) => Self { context_id: created.browser_context_id, client },
            Err(error) => {
                client.close();
                return Err(error.into());
            }
        };
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
            Ok(Ok(None)) | Err(_) => FleetError::NotProxied(fleet.proxy_address.clone()),
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
        Ok(user_agent.as_str().filter(|_| proxied).map(str::to_owned))
    }

    /// Ends the context with all its pages. Idempotent.
    pub(crate) async fn end(&self) {
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

fn parse<T: for<'a> Deserialize<'a>>(reply: Value) -> Result<T, DevToolsError> {
    serde_json::from_value(reply)
        .map_err(|_| DevToolsError::Refused("the reply has an unexpected form".into()))
}
