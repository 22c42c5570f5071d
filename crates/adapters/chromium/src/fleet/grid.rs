//! Sessions of a Selenium Grid 4: each is a browser of its own, whose DevTools connection the grid passes
//! on (`WebDriver`, and the grid's `se:cdp`).
//!
//! **Invariant:** nothing that a grid responds with decides which host is connected to: every request goes
//! to the configured endpoint.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::secret::Secret;
use rustls::ClientConfig;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::json;
use tokio::{
    runtime::Handle,
    sync::{oneshot, watch},
    task::JoinHandle,
};
use url::{Url, form_urlencoded};

use crate::{
    client::{DevToolsClient, HttpMethod, HttpRequest, HttpResponse, SocketError},
    fleet_address::FleetEndpoint,
};

/// The time for the responses that need no browser.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The time within which a grid with a free slot must have created a session.
const SESSION_TIMEOUT: Duration = Duration::from_secs(45);
/// How long a request for a session is awaited after it was given up, to delete the session: a grid keeps
/// requests in its queue for five minutes, whether or not somebody still waits.
const ABANDONED_SESSION_TIMEOUT: Duration = Duration::from_secs(330);
/// The interval of requests that keep a session: a grid ends sessions without one, by default after five
/// minutes.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// The attempts to delete a session, and the delay before the second one, which doubles.
const DELETE_ATTEMPTS: u32 = 5;
const DELETE_RETRY_DELAY: Duration = Duration::from_millis(500);
/// How long the end of a browser waits for its deletion, which then continues.
const END_TIMEOUT: Duration = Duration::from_secs(15);
/// How far the status of a grid may lag behind: a deleted session occupies its slot for a moment.
const STATUS_LAG: Duration = Duration::from_secs(3);
const STATUS_INTERVAL: Duration = Duration::from_millis(200);
/// Bytes of the status of a grid, in which each slot has about 500, and of other responses.
const MAX_STATUS_BYTES: usize = 4 * 1024 * 1024;
const MAX_RESPONSE_BYTES: usize = 256 * 1024;
const MAX_SESSION_ID_BYTES: usize = 128;
/// Characters of a grid's message that are passed on.
const MAX_MESSAGE_CHARS: usize = 200;
const BROWSER_NAME: &str = "chrome";

/// A grid.
pub(super) struct Grid {
    /// The URL without a trailing slash, a query, and a user.
    base: String,
    /// With its question mark, or empty.
    query: String,
    /// The value of the header `Authorization`.
    authorization: Option<Secret>,
    tls: Arc<ClientConfig>,
    occupancy: Mutex<Occupancy>,
}

/// What is known of a grid's slots besides its status, which lags behind.
#[derive(Default)]
struct Occupancy {
    /// Requests for a session that have no response yet.
    pending: usize,
    /// When a session was last deleted.
    freed_at: Option<Instant>,
}

/// A slot for a session that is requested, free again for others when this is dropped.
struct Reservation(Arc<Grid>);

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut occupancy = self.0.occupancy();
        occupancy.pending = occupancy.pending.saturating_sub(1);
    }
}

/// A session of a grid, which is deleted on drop.
pub(super) struct GridSession {
    grid: Arc<Grid>,
    id: String,
    keep_alive: JoinHandle<()>,
    /// Closed when the keep-alive ends.
    ended: watch::Receiver<()>,
    is_deleted: AtomicBool,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum GridError {
    #[error("failed to reach the grid")]
    Socket(#[from] SocketError),
    #[error("all slots of the grid are in use")]
    Full,
    #[error("no node of the grid offers {BROWSER_NAME}")]
    NoNode,
    #[error("the grid responded with {0}")]
    Status(u16),
    #[error("the grid created no session: {0}")]
    Refused(String),
    #[error("the grid has a free slot and created no session in time")]
    TimedOut,
    #[error("the grid's response has an unexpected form")]
    Malformed,
    #[error("the grid passes no DevTools connections on: start its nodes with --enable-cdp true")]
    NoDevTools,
}

impl Grid {
    /// Returns the grid at an endpoint.
    ///
    /// # Errors
    /// The endpoint has no valid URL.
    pub(super) fn new(
        endpoint: &FleetEndpoint,
        tls: Arc<ClientConfig>,
    ) -> Result<Arc<Self>, SocketError> {
        let mut url = Url::parse(endpoint.url.expose()).map_err(|_| SocketError::Address)?;
        let authorization = url.password().map(|password| {
            let user = format!("{}:{}", decoded(url.username()), decoded(password));
            Secret::new(format!("Basic {}", STANDARD.encode(user)))
        });
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        url.set_username("").map_err(|()| SocketError::Address)?;
        url.set_password(None).map_err(|()| SocketError::Address)?;
        url.set_query(None);
        let base = url.as_str().trim_end_matches('/').to_owned();
        Ok(Arc::new(Self { base, query, authorization, tls, occupancy: Mutex::default() }))
    }

    pub(super) const fn authorization(&self) -> Option<&Secret> {
        self.authorization.as_ref()
    }

    /// Creates a session whose browser has these arguments, if a slot is free now: what a grid keeps in its
    /// queue could not be withdrawn. A session that is created after the future was dropped or has timed
    /// out is deleted.
    pub(super) async fn create_session(
        self: &Arc<Self>,
        arguments: Vec<String>,
    ) -> Result<GridSession, GridError> {
        let reservation = self.reserve_slot().await?;
        let (sender, created) = oneshot::channel();
        let grid = self.clone();
        tokio::spawn(async move {
            let created = grid.request_session(arguments).await;
            drop(reservation);
            if let Err(Ok(abandoned)) = sender.send(created) {
                abandoned.end().await;
            }
        });
        let created = tokio::time::timeout(SESSION_TIMEOUT, created).await;
        created.map_err(|_| GridError::TimedOut)?.map_err(|_| GridError::TimedOut)?
    }

    /// Reserves a slot that is free, and waits for one only if the status may be out of date.
    async fn reserve_slot(self: &Arc<Self>) -> Result<Reservation, GridError> {
        let started = Instant::now();
        loop {
            let reply = self.request(HttpMethod::Get, "/status", REQUEST_TIMEOUT).await?;
            if reply.status != 200 {
                return Err(GridError::Status(reply.status));
            }
            let Slots { free, reserved } = slots(&reply.body)?;
            {
                let mut occupancy = self.occupancy();
                // Requests that have a slot already are not waiting for one of the free ones.
                let unserved = occupancy.pending.saturating_sub(reserved);
                if free > unserved {
                    occupancy.pending = occupancy.pending.saturating_add(1);
                    return Ok(Reservation(self.clone()));
                }
                let freed_at = occupancy.freed_at;
                let was_freed = freed_at.is_some_and(|at| at.elapsed() < STATUS_LAG);
                if !was_freed && (free == 0 || unserved == 0) || started.elapsed() >= STATUS_LAG {
                    return Err(GridError::Full);
                }
            }
            tokio::time::sleep(STATUS_INTERVAL).await;
        }
    }

    async fn request_session(
        self: Arc<Self>,
        arguments: Vec<String>,
    ) -> Result<GridSession, GridError> {
        let capabilities = json!({ "capabilities": { "alwaysMatch": {
            "browserName": BROWSER_NAME,
            "pageLoadStrategy": "none",
            // Dialogs are the applicant's.
            "unhandledPromptBehavior": "ignore",
            "goog:chromeOptions": { "args": arguments },
            "se:name": "avouch",
        } } });
        let request = HttpRequest {
            method: HttpMethod::Post,
            url: &self.url("/session"),
            authorization: self.authorization(),
            body: capabilities.to_string(),
            timeout: ABANDONED_SESSION_TIMEOUT,
            max_bytes: MAX_RESPONSE_BYTES,
        };
        let reply = request.send(&self.tls).await?;
        if reply.status != 200 {
            return Err(self.refusal(&reply));
        }
        let created: Reply<Created> =
            serde_json::from_slice(&reply.body).map_err(|_| GridError::Malformed)?;
        let Created { session_id: id, capabilities } = created.value;
        // Whatever else is missing, the session can be deleted by its identifier.
        let capabilities = capabilities.unwrap_or_default();
        if !is_session_id(&id) {
            return Err(GridError::Malformed);
        }
        let (sender, ended) = watch::channel(());
        let (grid, kept) = (self.clone(), id.clone());
        let keep_alive = tokio::spawn(async move {
            keep_alive(&grid, &kept).await;
            drop(sender);
        });
        let is_deleted = AtomicBool::new(false);
        let session = GridSession { grid: self, id, keep_alive, ended, is_deleted };
        if capabilities.devtools.is_none() {
            session.end().await;
            return Err(GridError::NoDevTools);
        }
        Ok(session)
    }

    /// Returns why no session was created.
    fn refusal(&self, reply: &HttpResponse) -> GridError {
        let Ok(failure) = serde_json::from_slice::<Reply<Failure>>(&reply.body) else {
            return match reply.status {
                429 | 503 => GridError::Full,
                status => GridError::Status(status),
            };
        };
        let Failure { error, message } = failure.value;
        if message.contains("request timed out") {
            // Somebody else took the slot, and the request stayed in the grid's queue.
            return GridError::Full;
        }
        // The grid may repeat what it was sent.
        let line = message.lines().next().unwrap_or_default();
        let is_secret = self.query.len() > 1 && line.contains(self.query.trim_start_matches('?'));
        let text = if is_secret { error } else { format!("{error}: {line}") };
        let printable = text.chars().filter(|character| !character.is_control());
        GridError::Refused(printable.take(MAX_MESSAGE_CHARS).collect())
    }

    async fn delete(&self, id: &str) {
        let mut delay = DELETE_RETRY_DELAY;
        for _ in 0..DELETE_ATTEMPTS {
            let path = format!("/session/{id}");
            let reply = self.request(HttpMethod::Delete, &path, REQUEST_TIMEOUT).await;
            // 404: the session has ended by itself.
            if reply.is_ok_and(|reply| matches!(reply.status, 200 | 404)) {
                self.occupancy().freed_at = Some(Instant::now());
                return;
            }
            tokio::time::sleep(delay).await;
            delay = delay.saturating_mul(2);
        }
        tracing::warn!(
            "failed to delete a session of a grid; it occupies a slot until the grid ends it"
        );
    }

    async fn request(
        &self,
        method: HttpMethod,
        path: &str,
        timeout: Duration,
    ) -> Result<HttpResponse, SocketError> {
        let request = HttpRequest {
            method,
            url: &self.url(path),
            authorization: self.authorization(),
            body: String::new(),
            timeout,
            max_bytes: if path == "/status" { MAX_STATUS_BYTES } else { MAX_RESPONSE_BYTES },
        };
        request.send(&self.tls).await
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}{}", self.base, self.query)
    }

    fn occupancy(&self) -> MutexGuard<'_, Occupancy> {
        self.occupancy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GridSession {
    /// Returns the DevTools address of the session's browser, on the configured endpoint.
    pub(super) fn devtools_url(&self) -> String {
        // `http` becomes `ws`, and `https` becomes `wss`.
        let url = self.grid.url(&format!("/session/{}/se/cdp", self.id));
        url.replacen("http", "ws", 1)
    }

    pub(super) fn authorization(&self) -> Option<&Secret> {
        self.grid.authorization()
    }

    /// Closes a client when the session has ended: a grid may keep the DevTools connection open then.
    pub(super) fn close_at_end(&self, client: DevToolsClient) {
        let mut ended = self.ended.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = ended.changed() => client.close(),
                () = client.closed() => (),
            }
        });
    }

    /// Deletes the session, with its browser, in several attempts. Returns when it is deleted, or after
    /// [`END_TIMEOUT`]. Idempotent.
    pub(super) async fn end(&self) {
        if let Some(deletion) = self.start_deletion(&Handle::current()) {
            // A task of its own, which continues without us.
            let _ = tokio::time::timeout(END_TIMEOUT, deletion).await;
        }
    }

    fn start_deletion(&self, runtime: &Handle) -> Option<JoinHandle<()>> {
        self.keep_alive.abort();
        if self.is_deleted.swap(true, Ordering::Relaxed) {
            return None;
        }
        let (grid, id) = (self.grid.clone(), self.id.clone());
        Some(runtime.spawn(async move { grid.delete(&id).await }))
    }
}

impl Drop for GridSession {
    fn drop(&mut self) {
        if let Ok(runtime) = Handle::try_current() {
            self.start_deletion(&runtime);
        }
    }
}

/// Asks for a setting of the session again and again, until the session has ended. That does not touch the
/// page: commands for a window would first handle an open dialog.
async fn keep_alive(grid: &Grid, id: &str) {
    let path = format!("/session/{id}/timeouts");
    loop {
        tokio::time::sleep(KEEP_ALIVE_INTERVAL).await;
        let reply = grid.request(HttpMethod::Get, &path, REQUEST_TIMEOUT).await;
        if reply.is_ok_and(|reply| reply.status == 404) {
            return;
        }
    }
}

#[derive(Deserialize)]
struct Reply<T> {
    value: T,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Created {
    session_id: String,
    capabilities: Option<Capabilities>,
}

#[derive(Default, Deserialize)]
struct Capabilities {
    /// Only whether it is there: the address is derived from the endpoint's.
    #[serde(rename = "se:cdp")]
    devtools: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Failure {
    error: String,
    message: String,
}

#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Node {
    availability: String,
    max_sessions: usize,
    slots: Vec<NodeSlot>,
}

#[derive(Deserialize)]
struct NodeSlot {
    session: Option<SlotSession>,
    stereotype: Stereotype,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SlotSession {
    session_id: Option<String>,
}

impl SlotSession {
    /// Whether the grid has reserved the slot for a session that it is creating.
    fn is_reserved(&self) -> bool {
        self.session_id.as_deref() == Some("reserved")
    }
}

/// The slots of a grid for our browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slots {
    /// Those in which a browser can be started now.
    free: usize,
    /// Those in which one is being started.
    reserved: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stereotype {
    browser_name: Option<String>,
}

/// Counts the slots of a grid.
///
/// # Errors
/// The status has an unexpected form, or no node offers our browser.
fn slots(status: &[u8]) -> Result<Slots, GridError> {
    let status: Reply<Status> = serde_json::from_slice(status).map_err(|_| GridError::Malformed)?;
    let is_ours = |slot: &&NodeSlot| slot.stereotype.browser_name.as_deref() == Some(BROWSER_NAME);
    let (mut slots, mut total) = (Slots { free: 0, reserved: 0 }, 0_usize);
    for node in status.value.nodes.iter().filter(|node| node.availability == "UP") {
        // A node may have more slots than sessions that it runs at once.
        let used = node.slots.iter().filter(|slot| slot.session.is_some()).count();
        let ours = node.slots.iter().filter(is_ours);
        let free = ours.clone().filter(|slot| slot.session.is_none()).count();
        let free = free.min(node.max_sessions.saturating_sub(used));
        let reserved = ours.clone().filter_map(|slot| slot.session.as_ref());
        let reserved = reserved.filter(|session| session.is_reserved()).count();
        slots.free = slots.free.saturating_add(free);
        slots.reserved = slots.reserved.saturating_add(reserved);
        total = total.saturating_add(ours.count());
    }
    if total == 0 { Err(GridError::NoNode) } else { Ok(slots) }
}

fn is_session_id(id: &str) -> bool {
    (1..=MAX_SESSION_ID_BYTES).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Decodes a part of a URL (RFC 3986, section 2.1).
fn decoded(text: &str) -> String {
    let value = format!("x={}", text.replace('+', "%2B").replace('&', "%26"));
    let value = form_urlencoded::parse(value.as_bytes()).next();
    value.map(|(_, value)| value.into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::fleet_address::FleetAddress;

    use super::*;

    #[test]
    fn free_slots_are_those_of_our_browser_on_nodes_that_are_up() {
        let node = |availability: &str, max: usize, slots: &[(&str, bool)]| {
            let slots = slots.iter().map(|(browser, used)| {
                let session = if *used { json!({ "sessionId": "a" }) } else { Value::Null };
                json!({ "session": session, "stereotype": { "browserName": browser } })
            });
            let slots: Vec<_> = slots.collect();
            json!({ "availability": availability, "maxSessions": max, "slots": slots })
        };
        let free = |nodes: Value| {
            let status = json!({ "value": { "ready": true, "nodes": nodes } });
            slots(status.to_string().as_bytes()).ok().map(|slots| slots.free)
        };
        let (idle, busy) = (("chrome", false), ("chrome", true));
        assert_eq!(free(json!([node("UP", 2, &[idle, busy]), node("UP", 1, &[idle])])), Some(2));
        assert_eq!(free(json!([node("UP", 1, &[idle, ("firefox", true)])])), Some(0));
        assert_eq!(free(json!([node("UP", 4, &[busy, ("firefox", false)])])), Some(0));
        assert_eq!(free(json!([node("DRAINING", 1, &[idle]), node("UP", 1, &[busy])])), Some(0));
        assert_eq!(free(json!([node("UP", 1, &[("firefox", false)])])), None);
        assert_eq!(free(json!([])), None);
        assert!(matches!(slots(b"<html>"), Err(GridError::Malformed)));
    }

    #[test]
    fn slots_that_are_reserved_for_sessions_are_told_apart() {
        let slot = |session: Value| json!({ "session": session, "stereotype": { "browserName": "chrome" } });
        let slots_of =
            [json!({ "sessionId": "reserved" }), json!({ "sessionId": "a" }), Value::Null];
        let node = json!({ "availability": "UP", "maxSessions": 3, "slots": slots_of.map(slot) });
        let status = json!({ "value": { "nodes": [node] } });
        let counted = slots(status.to_string().as_bytes()).unwrap();
        assert_eq!(counted, Slots { free: 1, reserved: 1 });
    }

    #[test]
    fn addresses_are_derived_from_the_endpoint() {
        for (url, expected, authorization) in [
            ("http://grid:4444", "ws://grid:4444/session/7/se/cdp", None),
            ("https://grid/wd/?token=x", "wss://grid/wd/session/7/se/cdp?token=x", None),
            (
                "https://ada:p%40+%26w@http.example/",
                "wss://http.example/session/7/se/cdp",
                Some("Basic YWRhOnBAKyZ3"),
            ),
        ] {
            let grid = grid(url);
            let url = grid.url("/session/7/se/cdp").replacen("http", "ws", 1);
            assert_eq!(url, expected);
            assert_eq!(grid.authorization().map(Secret::expose), authorization);
        }
    }

    #[test]
    fn only_plain_session_ids_are_accepted() {
        assert!(is_session_id("fc9c8cad20f3ff5d59207fc88ac3bd8f"));
        for id in ["", "../../", "a/b", "a?b", "a#b", "a b", &"a".repeat(129)] {
            assert!(!is_session_id(id), "{id}");
        }
    }

    #[test]
    fn refusals_are_told_without_secrets() {
        let grid = grid("https://grid/?token=geheim");
        let refusal = |status, body: &str| {
            grid.refusal(&HttpResponse { status, body: body.to_owned().into() })
        };
        let told = |message: &str| {
            let body = json!({ "value": { "error": "session not created", "message": message } });
            refusal(500, &body.to_string())
        };
        assert!(matches!(told("New session request timed out \nHost info"), GridError::Full));
        assert!(matches!(refusal(503, "<html>"), GridError::Full));
        assert!(matches!(refusal(502, "<html>"), GridError::Status(502)));
        let text = told("no chrome\nHost info").to_string();
        assert!(text.ends_with("session not created: no chrome"), "{text}");
        let text = told("of https://grid/?token=geheim").to_string();
        assert!(text.ends_with("session not created"), "{text}");
    }

    fn grid(url: &str) -> Arc<Grid> {
        let url = format!("selenium+{url}");
        let address = FleetAddress::new(&url, "10.0.0.7:8181".parse().unwrap(), None).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider);
        let tls = tls.with_safe_default_protocol_versions().unwrap();
        let tls = tls.with_root_certificates(rustls::RootCertStore::empty());
        let endpoint = address.endpoints.first().unwrap();
        Grid::new(endpoint, Arc::new(tls.with_no_client_auth())).unwrap()
    }
}
