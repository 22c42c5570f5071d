//! One session's browser: drives its pages, watches them, and passes pictures and input on.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::workflow::{Observation, matches_url};
use ports::browser::{Browser, BrowserError, BrowserSpec, Fetched, Frame, Input};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, watch};

use crate::{
    client::{CallError, Client, Event},
    forwarder::Forwarder,
    input,
    launch::Chromium,
    watching::{LONGEST_RESPONSE, Page, Watching},
};

/// The world of our scripts, apart from the page's own.
const WORLD: &str = "avouch";
const MOST_PAGES: usize = 5;
const JPEG_QUALITY: u8 = 70;
/// How long `changed` waits when nothing tells of a change.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
const RESPONSE_PATIENCE: Duration = Duration::from_secs(5);
const LOAD_PATIENCE: Duration = Duration::from_secs(30);

const LOOK: &str = "(selectors) => ({ ready: document.readyState, present: selectors.filter((s) => { \
     const e = document.querySelector(s); return !!e && e.getClientRects().length > 0; }) })";
const FETCH: &str = "async (url, most) => { const r = await fetch(url, { credentials: 'include', \
     redirect: 'error', cache: 'no-store' }); const reader = r.body.getReader(); const parts = []; \
     let size = 0; for (;;) { const { done, value } = await reader.read(); if (done) break; \
     size += value.length; if (size > most) { await reader.cancel(); throw new Error('too long'); } \
     parts.push(value); } return { status: r.status, body: await new Blob(parts).text() }; }";
const TEXTS: &str = "(selectors) => selectors.map((s) => { const e = document.querySelector(s); \
     return e ? e.textContent.trim().slice(0, 4096) : null; })";

/// A browser that runs.
pub(crate) struct RemoteBrowser {
    chromium: Chromium,
    shared: Arc<Shared>,
    /// Lives as long as the browser: its only way out.
    _forwarder: Forwarder,
}

struct Shared {
    client: Client,
    spec: BrowserSpec,
    watching: Mutex<Watching>,
    frames: watch::Sender<Option<Arc<Frame>>>,
    changed: Notify,
    ready: watch::Sender<bool>,
}

impl RemoteBrowser {
    /// Takes a fresh Chromium over; answers once its first page can be driven.
    pub(crate) async fn adopt(
        chromium: Chromium,
        events: mpsc::Receiver<Event>,
        spec: BrowserSpec,
        forwarder: Forwarder,
    ) -> Result<Self, CallError> {
        let shared = Arc::new(Shared {
            client: chromium.client.clone(),
            spec,
            watching: Mutex::default(),
            frames: watch::Sender::new(None),
            changed: Notify::new(),
            ready: watch::Sender::new(false),
        });
        tokio::spawn(listen(shared.clone(), events));
        let client = &chromium.client;
        client.call(None, "Browser.setDownloadBehavior", json!({ "behavior": "deny" })).await?;
        let attach =
            json!({ "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true });
        client.call(None, "Target.setAutoAttach", attach).await?;
        let mut ready = shared.ready.subscribe();
        let first = tokio::time::timeout(LOAD_PATIENCE, ready.wait_for(|ready| *ready)).await;
        match first {
            Ok(Ok(_)) => Ok(Self { chromium, shared: shared.clone(), _forwarder: forwarder }),
            Ok(Err(_)) => Err(CallError::Gone),
            Err(_) => Err(CallError::TimedOut("the first page".into())),
        }
    }

    pub(crate) async fn end(&self) {
        self.chromium.end().await;
    }

    /// Runs a function in our world of the page on top.
    async fn run(&self, function: &str, arguments: Vec<Value>) -> Result<Value, BrowserError> {
        let (session, target) = self.shared.top().ok_or(BrowserError::Gone)?;
        let client = &self.shared.client;
        let world = json!({ "frameId": target, "worldName": WORLD });
        let made = client.call(Some(&session), "Page.createIsolatedWorld", world).await;
        let world = made.map_err(told)?;
        let arguments: Vec<_> = arguments.into_iter().map(|value| json!({ "value": value })).collect();
        let call = json!({
            "functionDeclaration": function,
            "executionContextId": world.get("executionContextId"),
            "arguments": arguments,
            "awaitPromise": true,
            "returnByValue": true,
        });
        let mut reply =
            client.call(Some(&session), "Runtime.callFunctionOn", call).await.map_err(told)?;
        if reply.get("exceptionDetails").is_some() {
            return Err(BrowserError::Refused("a script failed in the page".into()));
        }
        Ok(reply.pointer_mut("/result/value").map(Value::take).unwrap_or_default())
    }
}

fn told(error: CallError) -> BrowserError {
    match error {
        CallError::Gone => BrowserError::Gone,
        CallError::TimedOut(_) => BrowserError::TimedOut,
        CallError::Refused(why) => BrowserError::Refused(why),
    }
}

#[async_trait]
impl Browser for RemoteBrowser {
    async fn navigate(&self, url: &str) -> Result<(), BrowserError> {
        let (session, _) = self.shared.top().ok_or(BrowserError::Gone)?;
        let client = &self.shared.client;
        let reply = client.call(Some(&session), "Page.navigate", json!({ "url": url })).await;
        if reply.map_err(told)?.get("errorText").is_some() {
            return Err(BrowserError::Refused("the page cannot be reached".into()));
        }
        let loaded = async {
            while !self.shared.settled() {
                self.changed().await;
            }
        };
        // A page that loads for ever can still be used.
        let _ = tokio::time::timeout(LOAD_PATIENCE, loaded).await;
        Ok(())
    }

    async fn observe(&self) -> Result<Observation, BrowserError> {
        let (session, _) = self.shared.top().ok_or(BrowserError::Gone)?;
        let settled = self.shared.settled();
        let selectors = json!(self.shared.spec.watch.selectors);
        let look = self.run(LOOK, vec![selectors]).await;
        let seen: Look = match look {
            Ok(value) => serde_json::from_value(value).unwrap_or_default(),
            // The page went away under our hands; the next look finds its successor.
            Err(BrowserError::Refused(_)) => Look::default(),
            Err(error) => return Err(error),
        };
        let cookies = self.shared.client.call(Some(&session), "Network.getCookies", json!({})).await;
        let cookies: Cookies =
            serde_json::from_value(cookies.unwrap_or_default()).unwrap_or_default();
        let mut watching = self.shared.watching();
        let page = watching.page(&session).ok_or(BrowserError::Gone)?;
        Ok(Observation {
            url: page.url.clone(),
            settled: settled && seen.ready == "complete" && page.settled(),
            http_status: page.http_status,
            cookies: cookies.cookies.into_iter().map(|cookie| cookie.name).collect(),
            present: seen.present,
            responses: page.responses(),
        })
    }

    async fn changed(&self) {
        let _ = tokio::time::timeout(LOOK_AGAIN, self.shared.changed.notified()).await;
    }

    async fn fetch(&self, url: &str, max_bytes: u32) -> Result<Fetched, BrowserError> {
        let value = self.run(FETCH, vec![json!(url), json!(max_bytes)]).await?;
        let answer: FetchAnswer = serde_json::from_value(value)
            .map_err(|_| BrowserError::Refused("an answer that cannot be read".into()))?;
        Ok(Fetched { status: answer.status, body: answer.body })
    }

    async fn response(&self, pattern: &str) -> Result<Option<String>, BrowserError> {
        let ends = tokio::time::Instant::now() + RESPONSE_PATIENCE;
        loop {
            let (session, _) = self.shared.top().ok_or(BrowserError::Gone)?;
            let found = {
                let mut watching = self.shared.watching();
                let seen = watching.page(&session).and_then(|page| page.response(pattern).cloned());
                seen.map(|seen| (seen.response.status, seen.text))
            };
            match found {
                Some((200..=299, text)) => return Ok(Some(text)),
                Some(_) => return Ok(None),
                None if tokio::time::Instant::now() >= ends => return Ok(None),
                None => self.changed().await,
            }
        }
    }

    async fn texts(&self, selectors: &[String]) -> Result<Vec<Option<String>>, BrowserError> {
        let value = self.run(TEXTS, vec![json!(selectors)]).await?;
        serde_json::from_value(value)
            .map_err(|_| BrowserError::Refused("texts that cannot be read".into()))
    }

    async fn frame(&self, after: u64) -> Option<Arc<Frame>> {
        let mut frames = self.shared.frames.subscribe();
        let newer = |frame: &Option<Arc<Frame>>| frame.as_ref().is_some_and(|f| f.seq > after);
        tokio::select! {
            frame = frames.wait_for(newer) => frame.ok().and_then(|frame| frame.clone()),
            () = self.shared.client.closed() => None,
        }
    }

    fn input(&self, input: Input) {
        if let Some((session, _)) = self.shared.top() {
            let (method, params) = input::command(&input);
            self.shared.client.fire(Some(&session), method, params);
        }
    }

    async fn ended(&self) {
        self.shared.client.closed().await;
    }
}

#[derive(Default, Deserialize)]
struct Look {
    ready: String,
    present: BTreeSet<String>,
}

#[derive(Default, Deserialize)]
struct Cookies {
    cookies: Vec<Cookie>,
}

#[derive(Deserialize)]
struct Cookie {
    name: String,
}

#[derive(Deserialize)]
struct FetchAnswer {
    status: u16,
    body: String,
}

impl Shared {
    fn watching(&self) -> MutexGuard<'_, Watching> {
        self.watching.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// DevTools session and target of the page on top.
    fn top(&self) -> Option<(String, String)> {
        let watching = self.watching();
        watching.active().map(|page| (page.session.clone(), page.target.clone()))
    }

    fn settled(&self) -> bool {
        self.watching().active().is_some_and(Page::settled)
    }

    fn cast(&self, session: &str) {
        let viewport = self.spec.viewport;
        let params = json!({
            "format": "jpeg", "quality": JPEG_QUALITY, "everyNthFrame": 1, "sendLastFrame": true,
            "maxWidth": viewport.width, "maxHeight": viewport.height,
        });
        self.client.fire(Some(session), "Page.startScreencast", params);
    }

    /// A target came into being. Chromium holds it until we let it run.
    fn attached(self: &Arc<Self>, attached: Attached) {
        let session = attached.session_id;
        let client = &self.client;
        if attached.target_info.kind == "page" && self.watching().count() < MOST_PAGES {
            if let Some((below, _)) = self.top() {
                client.fire(Some(&below), "Page.stopScreencast", json!({}));
            }
            self.watching().push(Page::new(session.clone(), attached.target_info.target_id));
            let fire = |method, params| client.fire(Some(&session), method, params);
            fire("Page.enable", json!({}));
            fire("Network.enable", json!({ "maxTotalBufferSize": 8 * 1024 * 1024 }));
            let documents = json!([{ "resourceType": "Document", "requestStage": "Request" }]);
            fire("Fetch.enable", json!({ "patterns": documents }));
            let viewport = self.spec.viewport;
            let metrics = json!({
                "width": viewport.width, "height": viewport.height,
                "deviceScaleFactor": 1, "mobile": false,
            });
            fire("Emulation.setDeviceMetricsOverride", metrics);
            fire("Emulation.setFocusEmulationEnabled", json!({ "enabled": true }));
            fire("Page.setInterceptFileChooserDialog", json!({ "enabled": true }));
            self.cast(&session);
            tokio::spawn(run_first(self.clone(), session));
            return;
        } else if attached.target_info.kind == "page" {
            let target = json!({ "targetId": attached.target_info.target_id });
            client.fire(None, "Target.closeTarget", target);
        }
        client.fire(Some(&session), "Runtime.runIfWaitingForDebugger", json!({}));
    }

    fn detached(&self, session: &str) {
        let was_top = self.watching().remove(session);
        if was_top && let Some((below, _)) = self.top() {
            self.cast(&below);
        }
        self.changed.notify_waiters();
    }

    fn pictured(&self, session: &str, cast: &Cast<'_>) {
        let acknowledge = json!({ "sessionId": cast.session_id });
        self.client.fire(Some(session), "Page.screencastFrameAck", acknowledge);
        let origin = self.watching().active().filter(|page| page.session == session).map(|page| origin(&page.url));
        // A page that is not on top, or the empty one that a browser begins with, is not shown.
        let Some(origin) = origin.filter(|origin| !origin.is_empty()) else { return };
        let Ok(jpeg) = STANDARD.decode(cast.data) else { return };
        let mut watching = self.watching();
        watching.frame_seq = watching.frame_seq.saturating_add(1);
        let seq = watching.frame_seq;
        drop(watching);
        let viewport = self.spec.viewport;
        self.frames.send_replace(Some(Arc::new(Frame { seq, jpeg, origin, viewport })));
    }

    /// A document is about to be requested. The main frame stays on the platform's hosts.
    fn paused(&self, session: &str, paused: &Paused) {
        let main = self.watching().page(session).is_some_and(|page| page.target == paused.frame_id);
        let allowed = host(&paused.request.url)
            .is_some_and(|host| self.spec.hosts.iter().any(|allowed| allowed == &host));
        let request = json!({ "requestId": paused.request_id });
        if !main || allowed {
            self.client.fire(Some(session), "Fetch.continueRequest", request);
        } else {
            let mut request = request;
            if let Some(object) = request.as_object_mut() {
                // Aborted, not blocked: the page that is there stays there.
                object.insert("errorReason".into(), "Aborted".into());
            }
            self.client.fire(Some(session), "Fetch.failRequest", request);
            tracing::info!("a browser was kept from leaving its platform");
        }
    }

    fn answered(&self, session: &str, answered: Answered) {
        let mut watching = self.watching();
        let Some(page) = watching.page(session) else { return };
        if answered.kind == "Document" && answered.frame_id.as_deref() == Some(&page.target) {
            page.http_status = Some(answered.response.status);
        }
        let watched = &self.spec.watch.responses;
        if watched.iter().any(|pattern| matches_url(pattern, &answered.response.url)) {
            page.announce(answered.request_id, &answered.response.url, answered.response.status);
        }
    }

    fn finished(self: &Arc<Self>, session: &str, request: &str) {
        let arrived = self.watching().page(session).and_then(|page| page.arrived(request));
        let Some(response) = arrived else { return };
        let (shared, session) = (self.clone(), session.to_owned());
        let request = json!({ "requestId": request });
        tokio::spawn(async move {
            let body =
                shared.client.call(Some(&session), "Network.getResponseBody", request).await;
            let Ok(body) = body else { return };
            let text = body.get("body").and_then(Value::as_str).unwrap_or_default();
            let plain = body.get("base64Encoded").and_then(Value::as_bool) != Some(true);
            if plain && text.len() <= LONGEST_RESPONSE {
                if let Some(page) = shared.watching().page(&session) {
                    page.keep(response, text.to_owned());
                }
                shared.changed.notify_waiters();
            }
        });
    }

    fn loading(&self, session: &str, frame: &str, loading: bool) {
        if let Some(page) = self.watching().page(session)
            && page.target == frame
        {
            page.load(loading);
        }
        self.changed.notify_waiters();
    }

    fn navigated(&self, session: &str, frame: &str, url: String) {
        if let Some(page) = self.watching().page(session)
            && page.target == frame
        {
            page.url = url;
        }
        self.changed.notify_waiters();
    }
}

/// Lets a page run, and tells when it does: a renderer that is sent elsewhere before it has
/// answered crashes now and then.
async fn run_first(shared: Arc<Shared>, session: String) {
    let client = &shared.client;
    let run = client.call(Some(&session), "Runtime.runIfWaitingForDebugger", json!({})).await;
    let look = json!({ "expression": "0" });
    if run.is_ok() && client.call(Some(&session), "Runtime.evaluate", look).await.is_ok() {
        shared.ready.send_replace(true);
    }
}

/// Takes Chromium's events in, one by one. Never waits for a reply: the reply comes the same way.
async fn listen(shared: Arc<Shared>, mut events: mpsc::Receiver<Event>) {
    while let Some(event) = events.recv().await {
        if event.method == "Target.attachedToTarget" {
            if let Some(attached) = event.read() {
                shared.attached(attached);
            }
            continue;
        }
        if event.method == "Target.detachedFromTarget" {
            if let Some(Detached { session_id }) = event.read() {
                shared.detached(&session_id);
            }
            continue;
        }
        if let Some(session) = event.session.as_deref() {
            of_page(&shared, session, &event);
        }
    }
}

fn of_page(shared: &Arc<Shared>, session: &str, event: &Event) {
    match event.method.as_str() {
        "Page.screencastFrame" => {
            if let Some(cast) = event.read::<Cast<'_>>() {
                shared.pictured(session, &cast);
            }
        }
        "Fetch.requestPaused" => {
            if let Some(paused) = event.read::<Paused>() {
                shared.paused(session, &paused);
            }
        }
        "Network.responseReceived" => {
            if let Some(answered) = event.read::<Answered>() {
                shared.answered(session, answered);
            }
        }
        "Network.loadingFinished" => {
            if let Some(Finished { request_id }) = event.read() {
                shared.finished(session, &request_id);
            }
        }
        "Page.frameStartedLoading" | "Page.frameStoppedLoading" => {
            if let Some(OfFrame { frame_id }) = event.read() {
                shared.loading(session, &frame_id, event.method == "Page.frameStartedLoading");
            }
        }
        "Page.frameNavigated" => {
            if let Some(Navigated { frame }) = event.read() {
                shared.navigated(session, &frame.id, frame.url);
            }
        }
        "Page.navigatedWithinDocument" => {
            if let Some(Within { frame_id, url }) = event.read() {
                shared.navigated(session, &frame_id, url);
            }
        }
        "Inspector.targetCrashed" => {
            tracing::warn!("a page crashed, and with it its browser");
            shared.client.close();
        }
        "Page.javascriptDialogOpening" => {
            // Nothing of the page moves while a dialog is open; leaving is always allowed.
            let leave = event.params().get("type").and_then(Value::as_str) == Some("beforeunload");
            let answer = json!({ "accept": leave });
            shared.client.fire(Some(session), "Page.handleJavaScriptDialog", answer);
        }
        _ => (),
    }
}

/// The host of a URL, lower case; for `about:blank` and the like none.
fn host(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let host = if host.starts_with('[') { host } else { host.split(':').next()? };
    matches!(scheme, "http" | "https").then(|| host.to_ascii_lowercase())
}

fn origin(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return String::new() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    format!("{scheme}://{}", authority.rsplit('@').next().unwrap_or_default())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attached {
    session_id: String,
    target_info: TargetInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TargetInfo {
    target_id: String,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Detached {
    session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cast<'a> {
    data: &'a str,
    session_id: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Paused {
    request_id: String,
    frame_id: String,
    request: PausedRequest,
}

#[derive(Deserialize)]
struct PausedRequest {
    url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answered {
    request_id: String,
    frame_id: Option<String>,
    #[serde(rename = "type")]
    kind: String,
    response: AnsweredResponse,
}

#[derive(Deserialize)]
struct AnsweredResponse {
    url: String,
    status: u16,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Finished {
    request_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfFrame {
    frame_id: String,
}

#[derive(Deserialize)]
struct Navigated {
    frame: NavigatedFrame,
}

#[derive(Deserialize)]
struct NavigatedFrame {
    id: String,
    url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Within {
    frame_id: String,
    url: String,
}
