//! Browsers that run elsewhere and speak the DevTools protocol over a WebSocket: each session has a
//! connection, and in it a browser context of its own that goes with the connection.

use std::{fmt, sync::Arc, time::Duration};

use domain::secret::Secret;
use rustls::ClientConfig;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::mpsc};

use crate::{
    client::{CallError, Client, Event, Socket, SocketError},
    gate::{Gate, Pass, READY, READY_TITLE},
};

/// Until a browser was seen to come through our proxy.
const PATIENCE: Duration = Duration::from_secs(20);

/// Gathers the ways by which a page could speak to others directly; a browser that keeps to its proxy
/// has none.
const DIRECT_WAYS: &str = "new Promise(tell => {
    if (!self.RTCPeerConnection) return tell(0);
    const peer = new RTCPeerConnection();
    let ways = 0;
    const end = () => { peer.close(); tell(ways); };
    peer.onicecandidate = told => told.candidate ? (ways += 1) : end();
    peer.createDataChannel('');
    peer.setLocalDescription();
    setTimeout(end, 3000);
})";

/// The title of a page that has been loaded.
const TITLE: &str = "new Promise(tell => document.readyState === 'complete'
    ? tell(document.title)
    : addEventListener('load', () => tell(document.title)))";

/// How browsers elsewhere are reached, and how they reach us.
pub struct Fleet {
    url: Secret,
    tls: Arc<ClientConfig>,
    address: String,
    gate: Gate,
}

impl Fleet {
    /// A fleet at a `ws:` or `wss:` address, which may have a token in it. Over TLS `tls` says whom to
    /// believe. Its browsers come to `listener` on their way out, which they know as `address`
    /// (`HOST:PORT`). Must be called within a runtime.
    #[must_use]
    pub fn new(
        url: Secret,
        tls: Arc<ClientConfig>,
        listener: TcpListener,
        address: String,
    ) -> Self {
        Self { url, tls, address, gate: Gate::open(listener) }
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A browser context that nobody else has.
pub(crate) struct Berth {
    pub(crate) client: Client,
    pub(crate) context: String,
}

/// A context that is ready to be used.
pub(crate) struct Boarded {
    pub(crate) berth: Berth,
    pub(crate) events: mpsc::Receiver<Event>,
    /// Who its browser says it is.
    pub(crate) agent: String,
    pub(crate) pass: Pass,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum FleetError {
    #[error("no connection to the fleet")]
    Socket(#[from] SocketError),
    #[error("the fleet gives no browser")]
    Call(#[from] CallError),
    #[error("the fleet's browser does not come through the proxy at {0}")]
    Astray(String),
    #[error(
        "the fleet's browsers speak past their proxy: start them with \
         --webrtc-ip-handling-policy=disable_non_proxied_udp and \
         --force-webrtc-ip-handling-policy=disable_non_proxied_udp"
    )]
    Leaks,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Made {
    browser_context_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Opened {
    target_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attached {
    session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    request_id: String,
}

impl Berth {
    /// A context in a browser of the fleet whose only way out was seen to be ours.
    pub(crate) async fn board(fleet: &Fleet) -> Result<Boarded, FleetError> {
        let socket = Socket::open(fleet.url.expose(), &fleet.tls).await?;
        let (client, mut events) = Client::over_socket(socket);
        let pass = fleet.gate.admit();
        // Gone with the connection, however that ends.
        let context = json!({
            "disposeOnDetach": true,
            "proxyServer": format!("http://{}", fleet.address),
            // Without this, loopback addresses are reached around the proxy.
            "proxyBypassList": "<-loopback>",
        });
        let made = client.call(None, "Target.createBrowserContext", context).await;
        let berth = match made.and_then(read::<Made>) {
            Ok(made) => Self { context: made.browser_context_id, client },
            Err(error) => {
                client.close();
                return Err(error.into());
            }
        };
        let proved = tokio::time::timeout(PATIENCE, berth.prove(&mut events, &pass)).await;
        let error = match proved {
            Ok(Ok(Some(agent))) => return Ok(Boarded { berth, events, agent, pass }),
            Ok(Err(error)) => error,
            Ok(Ok(None)) | Err(_) => FleetError::Astray(fleet.address.clone()),
        };
        berth.end().await;
        Err(error)
    }

    /// Looks in a page of its own whether all of the context goes through our proxy. From then on
    /// the browser shows by itself what lets it through. Answers who it says it is.
    async fn prove(
        &self,
        events: &mut mpsc::Receiver<Event>,
        pass: &Pass,
    ) -> Result<Option<String>, FleetError> {
        let client = &self.client;
        let page = json!({ "url": "about:blank", "browserContextId": self.context });
        let page: Opened = read(client.call(None, "Target.createTarget", page).await?)?;
        let attach = json!({ "targetId": page.target_id, "flatten": true });
        let attached: Attached = read(client.call(None, "Target.attachToTarget", attach).await?)?;
        let session = Some(attached.session_id.as_str());
        let look = |expression: &str| {
            let look = json!({ "expression": expression, "awaitPromise": true });
            async move {
                let seen = client.call(session, "Runtime.evaluate", look).await?;
                Ok::<_, CallError>(seen.pointer("/result/value").cloned().unwrap_or_default())
            }
        };
        if look(DIRECT_WAYS).await?.as_u64() != Some(0) {
            return Err(FleetError::Leaks);
        }
        let pause = json!({ "handleAuthRequests": true });
        client.call(session, "Fetch.enable", pause).await?;
        let go = json!({ "url": format!("http://{READY}/") });
        let go = client.call(session, "Page.navigate", go);
        tokio::pin!(go);
        loop {
            tokio::select! {
                gone = &mut go => {
                    gone?;
                    break;
                }
                event = events.recv() => {
                    let event = event.ok_or(CallError::Gone)?;
                    let Some(Request { request_id }) = event.read() else { continue };
                    let (method, params) = match event.method.as_str() {
                        "Fetch.authRequired" => ("Fetch.continueWithAuth", show(&request_id, pass)),
                        "Fetch.requestPaused" => {
                            ("Fetch.continueRequest", json!({ "requestId": request_id }))
                        }
                        _ => continue,
                    };
                    client.fire(session, method, params);
                }
            }
        }
        let through = look(TITLE).await?.as_str() == Some(READY_TITLE);
        let agent = look("navigator.userAgent").await?;
        client.call(None, "Target.closeTarget", json!({ "targetId": page.target_id })).await?;
        Ok(agent.as_str().filter(|_| through).map(str::to_owned))
    }

    /// Ends the context with all its pages. Once more does no harm.
    pub(crate) async fn end(&self) {
        let context = json!({ "browserContextId": self.context });
        // The connection's end does as much.
        let _ = self.client.call(None, "Target.disposeBrowserContext", context).await;
        self.client.close();
    }
}

impl Drop for Berth {
    fn drop(&mut self) {
        self.client.close();
    }
}

/// The answer to a proxy that asks who comes.
fn show(request: &str, pass: &Pass) -> Value {
    json!({
        "requestId": request,
        "authChallengeResponse": {
            "response": "ProvideCredentials",
            "username": pass.user,
            "password": pass.password.expose(),
        },
    })
}

fn read<T: for<'a> Deserialize<'a>>(answer: Value) -> Result<T, CallError> {
    serde_json::from_value(answer)
        .map_err(|_| CallError::Refused("an answer that cannot be read".into()))
}
