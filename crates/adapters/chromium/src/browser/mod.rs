//! The browser of one session: drives and observes its pages, and passes on frames and input.

mod activation;
mod credentials;
mod events;
mod input_queue;
mod outline;
mod page_state;
mod pages;
mod scripts;
mod setup;
mod unassigned;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::{
    egress_proxy::parse_country_response,
    workflow::{Action, ElementRead, Observation, PageFetch, PageTree},
};
use ports::browser::{
    Browser, BrowserCredentials, BrowserError, Fetched, Frame, Input, InspectedPage,
    ObservedSignals, PageOutline, PageState,
};
use serde::Deserialize;
use serde_json::{Value, json};

use self::{
    activation::Activation,
    input_queue::InputQueue,
    pages::Pages,
    scripts::{ACT, FETCH, FILL_FIELD, OBSERVE, PAGE_TREE, READ_ELEMENTS},
};
pub(crate) use self::{page_state::OpenDialog, unassigned::UnassignedBrowser};
use crate::{
    backend::{Backend, EgressGuard},
    client::DevToolsError,
};

/// The isolated world of our scripts, separate from the page's own.
const WORLD_NAME: &str = "avouch";
/// The time after which `changed` returns without a change.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The time that `response` waits for a watched response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
/// The time that is waited for a page to load.
const LOAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes read of the response to a country check.
const MAX_COUNTRY_BYTES: u32 = 8192;

/// A session's browser.
pub(crate) struct RemoteBrowser {
    backend: Backend,
    pages: Arc<Pages>,
    input_queue: InputQueue,
    /// Held for the lifetime of the browser: its only egress.
    _egress: EgressGuard,
}

impl RemoteBrowser {
    /// Returns the country of the egress address, from the service at `url`; `None` if it does not
    /// respond.
    pub(crate) async fn egress_country(&self, url: &str) -> Option<String> {
        let (session, target) = self.pages.active()?;
        let client = &self.pages.client;
        let load = json!({
            "frameId": target, "url": url,
            "options": { "disableCache": true, "includeCredentials": false },
        });
        let loaded = client.call(Some(&session), "Network.loadNetworkResource", load).await.ok()?;
        let resource = loaded.get("resource")?;
        let handle = resource.get("stream")?.as_str()?;
        let range = json!({ "handle": handle, "size": MAX_COUNTRY_BYTES });
        let read = client.call(Some(&session), "IO.read", range).await;
        client.send_no_reply(Some(&session), "IO.close", json!({ "handle": handle }));
        let read = read.ok()?;
        let text = read.get("data")?.as_str()?;
        let plain = read.get("base64Encoded").and_then(Value::as_bool) != Some(true);
        let text = if plain { text.as_bytes().to_vec() } else { STANDARD.decode(text).ok()? };
        let succeeded = resource.get("httpStatusCode").and_then(Value::as_u64) == Some(200);
        parse_country_response(str::from_utf8(&text).ok()?).filter(|_| succeeded)
    }

    /// Returns the process group of the browser, if it runs on this machine.
    pub(crate) fn pid(&self) -> Option<i32> {
        self.backend.pid()
    }

    pub(crate) async fn end(&self) {
        self.backend.end().await;
    }

    /// Activates a control of the newest outline.
    fn activate(&self, node: u32) {
        if let Some(session) = self.pages.session_of_control(node) {
            let touch = self.pages.spec.get().is_some_and(|spec| spec.device.touch);
            self.input_queue.activate(Activation { session, node, touch });
        } else {
            tracing::debug!(node, "a control is not in the newest outline; it is not activated");
        }
    }
}

impl Pages {
    /// Runs a function in our isolated world of the active page, and returns its result.
    async fn run(&self, function: &str, arguments: Vec<Value>) -> Result<Value, BrowserError> {
        let (session, target) = self.active().ok_or(BrowserError::Gone)?;
        self.run_in(&session, &target, function, arguments).await
    }

    /// Runs a function in our isolated world of a frame, and returns its result.
    async fn run_in(
        &self,
        session: &str,
        frame: &str,
        function: &str,
        arguments: Vec<Value>,
    ) -> Result<Value, BrowserError> {
        let client = &self.client;
        let world = json!({ "frameId": frame, "worldName": WORLD_NAME });
        let created = client.call(Some(session), "Page.createIsolatedWorld", world).await;
        let world = created.map_err(browser_error)?;
        let arguments: Vec<_> =
            arguments.into_iter().map(|value| json!({ "value": value })).collect();
        let call = json!({
            "functionDeclaration": function,
            "executionContextId": world.get("executionContextId"),
            "arguments": arguments,
            "awaitPromise": true,
            "returnByValue": true,
        });
        let mut reply = client
            .call(Some(session), "Runtime.callFunctionOn", call)
            .await
            .map_err(browser_error)?;
        if reply.get("exceptionDetails").is_some() {
            return Err(BrowserError::Refused("a script failed in the page".into()));
        }
        Ok(reply.pointer_mut("/result/value").map(Value::take).unwrap_or_default())
    }
}

fn browser_error(error: DevToolsError) -> BrowserError {
    match error {
        DevToolsError::Closed => BrowserError::Gone,
        DevToolsError::TimedOut(_) => BrowserError::TimedOut,
        DevToolsError::Refused(why) => BrowserError::Refused(why),
    }
}

#[async_trait]
impl Browser for RemoteBrowser {
    async fn navigate(&self, url: &str) -> Result<(), BrowserError> {
        let (session, _) = self.pages.active().ok_or(BrowserError::Gone)?;
        let client = &self.pages.client;
        let reply = client.call(Some(&session), "Page.navigate", json!({ "url": url })).await;
        if reply.map_err(browser_error)?.get("errorText").is_some() {
            return Err(BrowserError::Refused("the page cannot be reached".into()));
        }
        let loaded = async {
            while !self.pages.is_settled() {
                self.changed().await;
            }
        };
        // A page that never finishes loading can still be used.
        let _ = tokio::time::timeout(LOAD_TIMEOUT, loaded).await;
        Ok(())
    }

    fn observe_signals(&self, signals: ObservedSignals) {
        self.pages.watch.send_replace(signals);
    }

    async fn observe(&self) -> Result<Observation, BrowserError> {
        let (session, _) = self.pages.active().ok_or(BrowserError::Gone)?;
        let settled = self.pages.is_settled();
        let document = self.pages.tracker().page(&session).map(|page| page.document);
        let selectors = {
            let watch = self.pages.watch.borrow();
            vec![json!(watch.selectors), json!(watch.texts)]
        };
        let snapshot = self.pages.run(OBSERVE, selectors).await;
        let snapshot: Snapshot = match snapshot {
            Ok(value) => serde_json::from_value(value).unwrap_or_default(),
            // The page was replaced meanwhile; the next observation sees the new one.
            Err(BrowserError::Refused(_)) => Snapshot::default(),
            Err(error) => return Err(error),
        };
        let cookies = self.pages.client.call(Some(&session), "Network.getCookies", json!({})).await;
        let cookies: Cookies =
            serde_json::from_value(cookies.unwrap_or_default()).unwrap_or_default();
        let mut tracker = self.pages.tracker();
        let page = tracker.page(&session).ok_or(BrowserError::Gone)?;
        // A snapshot of a previous document does not apply to the current one.
        let snapshot = if document == Some(page.document) { snapshot } else { Snapshot::default() };
        Ok(Observation {
            url: page.url.clone(),
            document: page.document,
            settled: settled && snapshot.ready == "complete" && page.is_settled(),
            http_status: page.http_status,
            cookies: cookies.cookies.into_iter().map(|cookie| cookie.name).collect(),
            present: snapshot.present,
            texts: snapshot.texts,
            responses: page.responses(),
        })
    }

    async fn changed(&self) {
        let _ = tokio::time::timeout(POLL_INTERVAL, self.pages.changed.notified()).await;
    }

    async fn fetch(&self, request: &PageFetch) -> Result<Fetched, BrowserError> {
        let PageFetch { url, method, headers, csrf, body, max_bytes, .. } = request;
        let method = method.as_str();
        let request =
            json!({ "url": url, "method": method, "headers": headers, "csrf": csrf, "body": body });
        let value = self.pages.run(FETCH, vec![request, json!(max_bytes)]).await?;
        let result: FetchResult = serde_json::from_value(value).map_err(|_| {
            BrowserError::Refused("the result of the fetch has an unexpected form".into())
        })?;
        Ok(Fetched { status: result.status, body: result.body })
    }

    async fn credentials(&self, url: &str) -> Result<BrowserCredentials, BrowserError> {
        self.pages.credentials(url).await
    }

    async fn response(&self, pattern: &str) -> Result<Option<String>, BrowserError> {
        let deadline = tokio::time::Instant::now() + RESPONSE_TIMEOUT;
        loop {
            let (session, _) = self.pages.active().ok_or(BrowserError::Gone)?;
            let found = {
                let mut tracker = self.pages.tracker();
                tracker.page(&session).and_then(|page| page.response(pattern))
            };
            match found {
                Some((200..=299, text)) => return Ok(Some(text)),
                Some(_) => return Ok(None),
                None if tokio::time::Instant::now() >= deadline => return Ok(None),
                None => self.changed().await,
            }
        }
    }

    async fn read(&self, elements: &[ElementRead]) -> Result<Vec<Value>, BrowserError> {
        let value = self.pages.run(READ_ELEMENTS, vec![json!(elements)]).await?;
        serde_json::from_value(value)
            .map_err(|_| BrowserError::Refused("the values have an unexpected form".into()))
    }

    async fn page_tree(&self, is_typing: bool) -> Result<PageTree, BrowserError> {
        let arguments = vec![json!(is_typing), json!(PageTree::MAX_NODES), json!(false)];
        let value = self.pages.run(PAGE_TREE, arguments).await?;
        serde_json::from_value::<PageTree>(value)
            .ok()
            .filter(PageTree::is_valid)
            .ok_or_else(|| BrowserError::Refused("the page has an unexpected form".into()))
    }

    async fn inspect(&self) -> Result<InspectedPage, BrowserError> {
        let arguments = vec![json!(true), json!(PageTree::MAX_NODES), json!(true)];
        let value = self.pages.run(PAGE_TREE, arguments).await?;
        let refused = || BrowserError::Refused("the page has an unexpected form".into());
        let page: BoxedTree = serde_json::from_value(value).map_err(|_| refused())?;
        if !page.tree.is_valid() || page.boxes.len() != page.tree.nodes.len() {
            return Err(refused());
        }
        let size = (page.width, page.height);
        Ok(InspectedPage { tree: page.tree, boxes: page.boxes, size })
    }

    async fn act(&self, action: &Action) -> Result<bool, BrowserError> {
        let value = self.pages.run(ACT, vec![json!(action)]).await?;
        Ok(value.as_bool() == Some(true))
    }

    async fn frame(&self, after: u64) -> Option<Arc<Frame>> {
        let mut frames = self.pages.frames.subscribe();
        let newer = |frame: &Option<Arc<Frame>>| frame.as_ref().is_some_and(|f| f.seq > after);
        tokio::select! {
            frame = frames.wait_for(newer) => frame.ok().and_then(|frame| frame.clone()),
            () = self.pages.client.closed() => None,
        }
    }

    async fn page_state(&self, after: u64) -> Option<Arc<PageState>> {
        let mut scenes = self.pages.scenes.subscribe();
        tokio::select! {
            scene = scenes.wait_for(|scene| scene.seq > after) => scene.ok().map(|scene| scene.clone()),
            () = self.pages.client.closed() => None,
        }
    }

    async fn outline(&self) -> Result<PageOutline, BrowserError> {
        self.pages.outline().await
    }

    fn input(&self, input: Input) {
        if let Input::Activate(node) = input {
            return self.activate(node);
        }
        let Some((session, target)) = self.pages.active() else { return };
        let page_scale = self.pages.page_scale(&session);
        if self.input_queue.enqueue(session, &input, page_scale) {
            return;
        }
        if let Input::Answer { dialog, accept, text } = &input {
            self.pages.answer_dialog(*dialog, *accept, text);
        } else if let Input::Fill(value) = input {
            let (pages, value) = (self.pages.clone(), json!(value));
            // A field that cannot be filled stays as it is, which the applicant sees.
            tokio::spawn(async move { pages.run(FILL_FIELD, vec![value]).await.map(drop) });
        } else if let Input::Resize(viewport) = input {
            self.pages.resize(viewport);
        } else if input == Input::Back {
            let pages = self.pages.clone();
            tokio::spawn(async move { pages.go_back().await });
        } else if self.pages.tracker().page_count() > 1 {
            self.pages.client.send_no_reply(
                None,
                "Target.closeTarget",
                json!({ "targetId": target }),
            );
        }
    }

    async fn ended(&self) {
        self.pages.client.closed().await;
    }
}

/// The state of the document: whether it is ready, and what matches of it is visible.
#[derive(Default, Deserialize)]
struct Snapshot {
    ready: String,
    present: BTreeSet<String>,
    texts: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
struct Cookies {
    cookies: Vec<Cookie>,
}

/// A page with the places of its elements.
#[derive(Deserialize)]
struct BoxedTree {
    tree: PageTree,
    boxes: Vec<Option<[f32; 4]>>,
    width: u32,
    height: u32,
}

#[derive(Deserialize)]
struct Cookie {
    name: String,
}

#[derive(Deserialize)]
struct FetchResult {
    status: u16,
    body: String,
}
