//! The browser of one session: drives and observes its pages, and passes on frames and input.

mod activation;
mod credentials;
mod events;
mod frames;
mod input_queue;
mod other_screen;
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
    workflow::{Action, ElementRead, Observation, PageFetch},
};
use ports::browser::{
    Browser, BrowserCredentials, BrowserError, CapturedPage, Fetched, Frame, Input, InspectedPage,
    ObservedSignals, PageOutline, PageState, Screen,
};
use serde::Deserialize;
use serde_json::{Value, json};

use self::{
    activation::Activation,
    frames::{Captured, ObservedElsewhere, PageCapture, Wanted},
    input_queue::InputQueue,
    pages::Pages,
    scripts::{FETCH, FILL_FIELD},
};
pub(crate) use self::{page_state::OpenDialog, unassigned::UnassignedBrowser};
use crate::{
    backend::{Backend, EgressGuard},
    client::DevToolsError,
    page_tracker::{ScriptPlace, TrackedPage},
};

/// The isolated world of our scripts, separate from the page's own.
const WORLD_NAME: &str = "avouch";
/// The time after which `changed` returns without a change.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The time that `response` waits for a watched response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
/// The time that is waited for a page to load.
const LOAD_TIMEOUT: Duration = Duration::from_secs(30);
/// The time that a request in the page may take, in milliseconds: less than the 20 seconds in which
/// Chromium must reply to a command, so that the page ends the request itself.
const FETCH_TIMEOUT_MS: u32 = 18_000;
/// The empty document, which is on no host.
const BLANK_URL: &str = "about:blank";
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

    /// Opens a URL in the active page, and waits until its document has loaded, for at most
    /// [`LOAD_TIMEOUT`]: a page that never finishes loading can still be used. Returns whether it is another
    /// document: Chromium keeps the one that is there if the URL has a fragment and differs in nothing else.
    async fn load(&self, url: &str) -> Result<bool, BrowserError> {
        let (session, _) = self.pages.active().ok_or(BrowserError::Gone)?;
        let document = || self.pages.tracker().page(&session).map(|page| page.document);
        let before = document();
        let client = &self.pages.client;
        let reply = client.call(Some(&session), "Page.navigate", json!({ "url": url })).await;
        let reply = reply.map_err(browser_error)?;
        if reply.get("errorText").is_some() {
            return Err(BrowserError::Refused("the page cannot be reached".into()));
        }
        if reply.get("loaderId").is_none() {
            return Ok(false);
        }
        // The reply may be here before the events of the new document, while the one before is settled.
        let loaded = async {
            while document() == before || !self.pages.is_settled() {
                self.changed().await;
            }
        };
        let _ = tokio::time::timeout(LOAD_TIMEOUT, loaded).await;
        Ok(true)
    }

    /// Returns what is known of the active page before it is observed.
    fn page_before(&self) -> Result<PageBefore, BrowserError> {
        let (session, _) = self.pages.active().ok_or(BrowserError::Gone)?;
        let settled = self.pages.is_settled();
        let document = self.pages.tracker().page(&session).map(|page| page.document);
        Ok(PageBefore { session, settled, document })
    }

    /// Returns the selectors whose elements are observed, and those whose texts are.
    fn observed(&self) -> (Vec<String>, Vec<String>) {
        let watch = self.pages.watch.borrow();
        (watch.selectors.clone(), watch.texts.clone())
    }

    /// Returns the observation of a page that has this snapshot, and whether the document is still the one
    /// from before.
    async fn observation(
        &self,
        before: PageBefore,
        snapshot: Snapshot,
    ) -> Result<(Observation, bool), BrowserError> {
        let PageBefore { session, settled, document } = before;
        let cookies = self.pages.client.call(Some(&session), "Network.getCookies", json!({})).await;
        let cookies: Cookies =
            serde_json::from_value(cookies.unwrap_or_default()).unwrap_or_default();
        let mut tracker = self.pages.tracker();
        let page = tracker.page(&session).ok_or(BrowserError::Gone)?;
        // A snapshot of a previous document does not apply to the current one.
        let is_same = document == Some(page.document);
        let snapshot = if is_same { snapshot } else { Snapshot::default() };
        let seen = Observation {
            url: page.url.clone(),
            document: page.document,
            settled: settled && snapshot.ready == "complete" && page.is_settled(),
            http_status: page.http_status,
            cookies: cookies.cookies.into_iter().map(|cookie| cookie.name).collect(),
            present: snapshot.present,
            texts: snapshot.texts,
            responses: page.responses(),
        };
        Ok((seen, is_same))
    }

    /// Activates a control of the newest outline.
    fn activate(&self, node: u32) {
        if let Some(control) = self.pages.control(node) {
            let touch = self.pages.spec.get().is_some_and(|spec| spec.device.touch);
            self.input_queue.activate(Activation { control, touch });
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
        let world = self.isolated_world(session, frame).await?;
        let arguments = arguments.into_iter().map(|value| json!({ "value": value })).collect();
        self.call_function(session, world, function, arguments).await
    }

    /// Sets the value of the focused field.
    async fn fill(&self, value: &str) {
        let focused = {
            let tracker = self.tracker();
            tracker.active().and_then(TrackedPage::focused_in_frame).map(|one| one.place.clone())
        };
        // A field that cannot be filled stays as it is, which the applicant sees.
        let _ = match focused {
            Some(ScriptPlace { session, context }) => {
                let arguments = vec![json!({ "value": value })];
                self.call_function(&session, context, FILL_FIELD, arguments).await
            }
            None => self.run(FILL_FIELD, vec![json!(value)]).await,
        };
    }
}

fn browser_error(error: DevToolsError) -> BrowserError {
    match error {
        DevToolsError::Closed => BrowserError::Gone,
        // What is sent next goes to the page that is active then.
        DevToolsError::TimedOut(_) | DevToolsError::PageClosed => BrowserError::TimedOut,
        DevToolsError::Refused(why) => BrowserError::Refused(why),
        DevToolsError::ReplyTooLarge => BrowserError::Refused(error.to_string()),
    }
}

#[async_trait]
impl Browser for RemoteBrowser {
    async fn navigate(&self, url: &str) -> Result<(), BrowserError> {
        if self.load(url).await? {
            return Ok(());
        }
        // The page would be read while it still shows what is at the address before. It is not reloaded,
        // since a document that answered a form would have the form sent again.
        self.load(BLANK_URL).await?;
        self.load(url).await?;
        Ok(())
    }

    fn observe_signals(&self, signals: ObservedSignals) {
        self.pages.watch.send_replace(signals);
    }

    async fn observe(&self) -> Result<Observation, BrowserError> {
        let _own_size = self.pages.look_lock.read().await;
        let before = self.page_before()?;
        let (selectors, texts) = self.observed();
        let snapshot = match self.pages.snapshot(&selectors, &texts).await {
            Ok(snapshot) => snapshot,
            // The page was replaced meanwhile; the next observation sees the new one.
            Err(BrowserError::Refused(_)) => Snapshot::default(),
            Err(error) => return Err(error),
        };
        self.observation(before, snapshot).await.map(|(seen, _)| seen)
    }

    async fn changed(&self) {
        let _ = tokio::time::timeout(POLL_INTERVAL, self.pages.changed.notified()).await;
    }

    async fn fetch(&self, request: &PageFetch) -> Result<Fetched, BrowserError> {
        let PageFetch { url, method, headers, csrf, body, max_bytes, .. } = request;
        let method = method.as_str();
        let request =
            json!({ "url": url, "method": method, "headers": headers, "csrf": csrf, "body": body });
        let arguments = vec![request, json!(max_bytes), json!(FETCH_TIMEOUT_MS)];
        let value = self.pages.run(FETCH, arguments).await?;
        let result: FetchResult = serde_json::from_value(value).map_err(|_| {
            BrowserError::Refused("the result of the fetch has an unexpected form".into())
        })?;
        Ok(Fetched { status: result.status, body: result.body })
    }

    async fn credentials(&self, url: &str) -> Result<BrowserCredentials, BrowserError> {
        self.pages.credentials(url).await
    }

    async fn response(&self, pattern: &str, after: u64) -> Result<Option<String>, BrowserError> {
        let deadline = tokio::time::Instant::now() + RESPONSE_TIMEOUT;
        loop {
            let (session, _) = self.pages.active().ok_or(BrowserError::Gone)?;
            let found = {
                let mut tracker = self.pages.tracker();
                tracker.page(&session).and_then(|page| page.response(pattern, after))
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
        let _own_size = self.pages.look_lock.read().await;
        self.pages.read_elements(elements).await
    }

    async fn capture(
        &self,
        elements: &[ElementRead],
        is_typing: bool,
    ) -> Result<CapturedPage, BrowserError> {
        let _own_size = self.pages.look_lock.read().await;
        let before = self.page_before()?;
        let (selectors, texts) = self.observed();
        let wanted = Wanted {
            selectors: &selectors,
            texts: &texts,
            reads: elements,
            is_typing,
            has_boxes: false,
        };
        let mut capture = match self.pages.begin_capture(&wanted).await {
            Ok(capture) => Ok(capture),
            // The page was replaced meanwhile.
            Err(BrowserError::Refused(why)) => Err(why),
            Err(error) => return Err(error),
        };
        let snapshot = capture.as_mut().map(PageCapture::take_snapshot).unwrap_or_default();
        // Before the other frames, which may take seconds to reply.
        let (seen, is_same) = self.observation(before, snapshot).await?;
        let captured = match capture {
            Ok(capture) => self.pages.finish_capture(capture).await,
            Err(why) => Captured::refused(&why),
        };
        let tree = captured.page.ok().filter(|_| is_same).map(|page| page.tree);
        Ok(CapturedPage { seen, values: captured.values, tree })
    }

    async fn inspect(&self) -> Result<InspectedPage, BrowserError> {
        let _own_size = self.pages.look_lock.read().await;
        // Values that nobody wrote can be chosen, also while the applicant is asked to type.
        let wanted = Wanted { has_boxes: true, ..Wanted::default() };
        self.pages.capture(&wanted).await?.page
    }

    async fn inspect_on_other_screen(&self) -> Result<(Screen, InspectedPage), BrowserError> {
        self.pages.inspect_on_other_screen().await
    }

    async fn act(&self, action: &Action) -> Result<bool, BrowserError> {
        let _own_size = self.pages.look_lock.read().await;
        self.pages.do_action(action).await
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
        let _own_size = self.pages.look_lock.read().await;
        self.pages.outline().await
    }

    fn input(&self, input: Input) {
        if let Input::Activate(node) = input {
            return self.activate(node);
        }
        let Some((session, target)) = self.pages.active() else { return };
        if self.pages.is_misplaced(&session, &input) {
            return;
        }
        let page_scale = self.pages.page_scale(&session);
        if self.input_queue.enqueue(session, &input, page_scale) {
            return;
        }
        if let Input::Answer { dialog, accept, text } = &input {
            self.pages.answer_dialog(*dialog, *accept, text);
        } else if let Input::Fill(value) = input {
            let pages = self.pages.clone();
            tokio::spawn(async move {
                let _own_size = pages.look_lock.read().await;
                pages.fill(&value).await;
            });
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

/// What is known of a page before it is observed.
struct PageBefore {
    session: String,
    settled: bool,
    document: Option<u64>,
}

/// The state of the document: whether it is ready, and what matches of it is visible.
#[derive(Default, Deserialize)]
struct Snapshot {
    ready: String,
    present: BTreeSet<String>,
    texts: BTreeMap<String, String>,
    /// The selectors that lead into frames of other origins.
    elsewhere: Vec<ObservedElsewhere>,
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
struct FetchResult {
    status: u16,
    body: String,
}
