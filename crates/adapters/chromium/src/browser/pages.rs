//! The pages of one browser: set up when they are created, tracked while they exist.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::workflow::{NoBody, matches_url};
use ports::browser::{
    BrowserSpec, Device, Frame, ObservedSignals, PageState, RefusedAction, Scale, Viewport,
};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

use super::{
    events::{NavigationHistory, RequestPaused, ResponseReceived, ScreencastFrame, TargetAttached},
    outline::OutlinedControls,
    setup::{self, UserAgent},
};
use crate::{
    client::DevToolsClient,
    input::PageScale,
    page_frames::{FrameDocument, origin},
    page_tracker::{PageTracker, ResponseHead, TrackedPage},
};

/// Pages of one browser; further ones are closed.
const MAX_PAGES: usize = 5;

/// The pages of one browser, as tracked by its events.
pub(super) struct Pages {
    pub(super) client: DevToolsClient,
    /// Our browser context; `None` if the whole browser is ours.
    context_id: Option<String>,
    /// The viewport of the active page.
    viewport: watch::Sender<Viewport>,
    /// The parameters of the session; unset until the browser is assigned to one.
    pub(super) spec: OnceLock<BrowserSpec>,
    /// What observations report.
    pub(super) watch: watch::Sender<ObservedSignals>,
    pub(super) tracker: Mutex<PageTracker>,
    pub(super) frames: watch::Sender<Option<Arc<Frame>>>,
    /// Notified when a page may have changed.
    pub(super) changed: Notify,
    /// Whether the first page can be driven.
    pub(super) ready: watch::Sender<bool>,
    pub(super) scenes: watch::Sender<Arc<PageState>>,
    outlined: Mutex<OutlinedControls>,
    /// Held while an outline is read.
    pub(super) outline_lock: tokio::sync::Mutex<()>,
    /// The DevTools session of the page that has the size of another screen for a moment.
    pub(super) looked_at: Mutex<Option<String>>,
    /// Held for writing while a page has such a size, and for reading by what must find its own size: input,
    /// and what reads pages or acts in them.
    pub(super) look_lock: Arc<tokio::sync::RwLock<()>>,
    user_agent: UserAgent,
}

impl Pages {
    pub(super) fn new(
        client: DevToolsClient,
        context_id: Option<String>,
        user_agent: UserAgent,
    ) -> Self {
        Self {
            client,
            context_id,
            viewport: watch::Sender::default(),
            spec: OnceLock::new(),
            watch: watch::Sender::default(),
            tracker: Mutex::default(),
            frames: watch::Sender::new(None),
            changed: Notify::new(),
            ready: watch::Sender::new(false),
            scenes: watch::Sender::default(),
            outlined: Mutex::default(),
            outline_lock: tokio::sync::Mutex::default(),
            looked_at: Mutex::default(),
            look_lock: Arc::default(),
            user_agent,
        }
    }

    pub(super) fn tracker(&self) -> MutexGuard<'_, PageTracker> {
        self.tracker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the controls of the newest outline.
    pub(super) fn outlined(&self) -> MutexGuard<'_, OutlinedControls> {
        self.outlined.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the DevTools session and the target of the active page.
    pub(super) fn active(&self) -> Option<(String, String)> {
        let tracker = self.tracker();
        tracker.active().map(|page| (page.session.clone(), page.target.clone()))
    }

    /// Returns the scale of a page in its last frame, which is what the applicant sees.
    pub(super) fn page_scale(&self, session: &str) -> PageScale {
        self.tracker().page(session).map(|page| page.scale).unwrap_or_default()
    }

    pub(super) fn is_settled(&self) -> bool {
        self.tracker().active().is_some_and(TrackedPage::is_settled)
    }

    /// Applies the parameters of a session to the existing page and to future ones.
    pub(super) fn assign(&self, spec: BrowserSpec) {
        let viewport = spec.device.viewport;
        self.watch.send_replace(spec.watch.clone());
        if self.spec.set(spec).is_ok() {
            self.viewport.send_replace(viewport);
            if let Some((session, _)) = self.active() {
                self.apply_spec(&session);
            }
        }
    }

    /// Configures a page for the session, and starts its screencast.
    fn apply_spec(&self, session: &str) {
        let Some(spec) = self.spec.get() else { return };
        for (method, params) in setup::session_commands(spec, &self.user_agent) {
            self.client.send_no_reply(Some(session), method, params);
        }
        self.start_screencast(session);
    }

    /// Returns the viewport of the applicant.
    pub(super) fn viewport(&self) -> Viewport {
        *self.viewport.borrow()
    }

    /// Sets the viewport of the active page, and starts its screencast. Does nothing while the page has the size
    /// of another screen: that ends with the same.
    pub(super) fn start_screencast(&self, session: &str) {
        let Some(spec) = self.spec.get() else { return };
        // Until all is sent: a look that begins meanwhile would have this size.
        let looked_at = self.looked_at();
        if looked_at.as_deref() == Some(session) {
            return;
        }
        let viewport = self.viewport();
        // The scale cannot exceed the one that the browser was started with.
        let scale = if viewport.may_be_fine() { spec.device.scale } else { Scale::One };
        for (method, params) in setup::viewport_commands(Device { viewport, scale, ..spec.device })
        {
            self.client.send_no_reply(Some(session), method, params);
        }
    }

    /// Changes the viewport.
    pub(super) fn resize(&self, viewport: Viewport) {
        let changed = self
            .viewport
            .send_if_modified(|current| std::mem::replace(current, viewport) != viewport);
        if changed && let Some((session, _)) = self.active() {
            self.client.send_no_reply(Some(&session), "Page.stopScreencast", json!({}));
            self.start_screencast(&session);
        }
    }

    /// Handles a new target, which Chromium pauses until we let it run.
    pub(super) fn target_attached(self: &Arc<Self>, from: Option<&str>, attached: TargetAttached) {
        let session = attached.session_id;
        let client = &self.client;
        if self.context_id.is_some() && self.context_id != attached.target_info.browser_context_id {
            // A target of another context in a shared browser: it waits for us as well.
            client.send_no_reply(Some(&session), "Runtime.runIfWaitingForDebugger", json!({}));
            return client.send_no_reply(
                None,
                "Target.detachFromTarget",
                json!({ "sessionId": session }),
            );
        }
        if attached.target_info.kind == "page" && self.tracker().page_count() < MAX_PAGES {
            if let Some((previous, _)) = self.active() {
                client.send_no_reply(Some(&previous), "Page.stopScreencast", json!({}));
            }
            self.tracker().push(TrackedPage::new(session.clone(), attached.target_info.target_id));
            let send = |method, params| client.send_no_reply(Some(&session), method, params);
            for (method, params) in setup::page_commands() {
                send(method, params);
            }
            self.apply_spec(&session);
            self.publish_active_page();
            tokio::spawn(run_page(self.clone(), session));
            return;
        } else if attached.target_info.kind == "page" {
            let target = json!({ "targetId": attached.target_info.target_id });
            client.send_no_reply(None, "Target.closeTarget", target);
        } else if attached.target_info.kind == "iframe" {
            self.frame_attached(from, &session, &attached.target_info.target_id);
        } else if attached.target_info.kind.contains("worker")
            && let Some(spec) = self.spec.get()
        {
            for (method, params) in setup::worker_commands(spec, &self.user_agent) {
                client.send_no_reply(Some(&session), method, params);
            }
        }
        self.let_run(&session);
    }

    /// Sets up a frame that has a process of its own like the page around it, which `from` belongs to. One
    /// that is not tracked is only told the same of the browser.
    fn frame_attached(&self, from: Option<&str>, session: &str, frame: &str) {
        let mut tracker = self.tracker();
        let page = from.and_then(|from| tracker.page_around(from));
        let is_tracked = page.is_some_and(|page| {
            let has_room = page.frames.has_room();
            page.frames.attach(session, frame);
            has_room
        });
        drop(tracker);
        let commands = if is_tracked {
            setup::frame_commands()
        } else {
            vec![("Target.setAutoAttach", setup::auto_attach())]
        };
        for (method, params) in commands {
            self.client.send_no_reply(Some(session), method, params);
        }
        if let Some(spec) = self.spec.get() {
            for (method, params) in setup::session_commands(spec, &self.user_agent) {
                self.client.send_no_reply(Some(session), method, params);
            }
        }
    }

    /// Lets a target run. One that never runs could be waited for: without room for the command, the
    /// browser ends.
    fn let_run(&self, session: &str) {
        let run = self.client.send(Some(session), "Runtime.runIfWaitingForDebugger", json!({}));
        if run.is_err() {
            self.client.close();
        }
    }

    /// Whether a URL is on a host of the session.
    pub(super) fn is_ours(&self, url: &str) -> bool {
        let is_listed = |host| self.spec.get().is_some_and(|spec| spec.hosts.contains(&host));
        host(url).is_some_and(is_listed)
    }

    /// Handles the end of a target.
    pub(super) fn target_detached(&self, session: &str) {
        if self.tracker().detach_frame(session) {
            self.publish_active_page();
            return self.changed.notify_waiters();
        }
        let was_active = self.tracker().remove(session);
        self.dialog_closed(session);
        self.publish_active_page();
        if was_active && let Some((previous, _)) = self.active() {
            self.start_screencast(&previous);
        }
        self.changed.notify_waiters();
    }

    /// Handles a frame of the screencast.
    pub(super) fn frame_received(&self, session: &str, frame: &ScreencastFrame<'_>) {
        let acknowledge = json!({ "sessionId": frame.session_id });
        self.client.send_no_reply(Some(session), "Page.screencastFrameAck", acknowledge);
        let origin = self
            .tracker()
            .active()
            .filter(|page| page.session == session)
            .map(|page| origin(page.unreachable.as_ref().unwrap_or(&page.url)));
        // Frames of inactive pages, and of the blank page that a browser starts with, are dropped.
        let Some(origin) = origin.filter(|origin| !origin.is_empty()) else { return };
        let Ok(jpeg) = STANDARD.decode(frame.data) else { return };
        // A frame that was captured before a change of the viewport has the former one in its metadata.
        let viewport = frame.metadata.viewport().unwrap_or_else(|| self.viewport());
        let mut tracker = self.tracker();
        if let Some(page) = tracker.page(session) {
            page.scale = frame.metadata.page_scale();
        }
        tracker.frame_seq = tracker.frame_seq.saturating_add(1);
        let seq = tracker.frame_seq;
        drop(tracker);
        self.frames.send_replace(Some(Arc::new(Frame { seq, jpeg, origin, viewport })));
    }

    /// Handles the request of a document. The main frame must stay on the platform's hosts.
    pub(super) fn request_paused(&self, session: &str, paused: &RequestPaused) {
        let main = self.tracker().page(session).is_some_and(|page| page.target == paused.frame_id);
        let allowed = host(&paused.request.url)
            .is_some_and(|host| self.spec.get().is_some_and(|spec| spec.hosts.contains(&host)));
        let request = json!({ "requestId": paused.request_id });
        if !main || allowed {
            self.client.send_no_reply(Some(session), "Fetch.continueRequest", request);
        } else {
            let mut request = request;
            if let Some(object) = request.as_object_mut() {
                // Aborted, not blocked, so that the current page stays.
                object.insert("errorReason".into(), "Aborted".into());
            }
            self.client.send_no_reply(Some(session), "Fetch.failRequest", request);
            tracing::info!("a navigation to a host outside of the platform was refused");
            self.action_refused(RefusedAction::Elsewhere);
        }
    }

    /// Handles the head of a response.
    pub(super) fn response_received(&self, session: &str, event: ResponseReceived) {
        let mut tracker = self.tracker();
        let Some(page) = tracker.page_around(session) else { return };
        let key = (session.to_owned(), event.request_id);
        let is_post = page.take_post(&key);
        // Without a frame, a response is not one that a page asked for.
        let Some(frame) = event.frame_id.as_deref() else { return };
        let is_document = event.kind == "Document";
        let is_main = frame == page.target && session == page.session;
        if is_document && is_main {
            page.http_status = Some(event.response.status);
        }
        if event.kind == "Preflight" {
            // The browser's own question (Fetch, section 4.8), with the URL of the request to come.
            return;
        }
        // The document of a frame is the one that is to be loaded. What a process of a frame tells of
        // documents may be a lie.
        let asked_by = if is_document && session == page.session {
            Some(event.response.url.as_str())
        } else if is_main {
            Some(page.url.as_str())
        } else if page.frames.session_of(frame) == Some(session)
            && page.frames.loader_of(frame) == Some(&event.loader_id)
        {
            page.frames.origin_url(frame, &page.url)
        } else {
            None
        };
        if !asked_by.is_some_and(|url| self.is_ours(url)) || !self.is_ours(&event.response.url) {
            // What a foreign frame receives, or a foreign host answers, says nothing about the platform.
            // The URL of a response is the one that the last redirect led to.
            return;
        }
        let is_watched = |pattern: &String| matches_url(pattern, &event.response.url);
        let watch = self.watch.borrow();
        let is_json = event.response.mime_type.contains("json");
        let is_refused = is_post
            && matches!(event.kind.as_str(), "Fetch" | "XHR")
            && (400..=499).contains(&event.response.status);
        let is_shown = watch.all_json && (is_json || is_refused);
        if is_shown || watch.responses.iter().any(is_watched) {
            let content_type = event.response.mime_type.chars().take(NoBody::MAX_TYPE_CHARS);
            let head = ResponseHead {
                url: event.response.url,
                status: event.response.status,
                is_post,
                content_type: content_type.collect(),
            };
            page.expect_response(key, head);
        }
    }

    /// Handles a request that a page makes. Only authors are told of methods.
    pub(super) fn request_sent(&self, session: &str, request: String, method: &str) {
        if !self.watch.borrow().all_json {
            return;
        }
        if let Some(page) = self.tracker().page_around(session) {
            page.request_sent((session.to_owned(), request), method);
        }
    }

    /// Handles the end of a response, and reads its body if it is watched.
    pub(super) fn loading_finished(self: &Arc<Self>, session: &str, request: &str) {
        let key = (session.to_owned(), request.to_owned());
        let expected =
            self.tracker().page_around(session).and_then(|page| page.take_expected(&key));
        let Some(head) = expected else { return };
        let (pages, session) = (self.clone(), session.to_owned());
        let request = json!({ "requestId": request });
        tokio::spawn(async move {
            let body = pages.client.call(Some(&session), "Network.getResponseBody", request).await;
            // Chromium has no body of a response without content, and of one that a page discarded.
            let text = body.map_err(|_| NoBody::Unavailable).and_then(|body| {
                let plain = body.get("base64Encoded").and_then(Value::as_bool) != Some(true);
                let text = body.get("body").and_then(Value::as_str).filter(|_| plain);
                let other = || NoBody::not_json(&head.content_type);
                text.map(str::to_owned).ok_or_else(other)
            });
            if pages.is_session_ours(&session).await {
                pages.tracker().store_response(&session, head, text);
            }
            pages.changed.notify_waiters();
        });
    }

    /// Handles a response that was interrupted. Its status is known.
    pub(super) fn loading_failed(self: &Arc<Self>, session: &str, request: &str) {
        let key = (session.to_owned(), request.to_owned());
        let expected =
            self.tracker().page_around(session).and_then(|page| page.take_expected(&key));
        let Some(head) = expected else { return };
        let (pages, session) = (self.clone(), session.to_owned());
        tokio::spawn(async move {
            if pages.is_session_ours(&session).await {
                pages.tracker().store_response(&session, head, Err(NoBody::Interrupted));
            }
            pages.changed.notify_waiters();
        });
    }

    /// Handles the start or the end of loading a frame.
    pub(super) fn loading_changed(&self, session: &str, frame: &str, loading: bool) {
        if let Some(page) = self.tracker().page(session)
            && page.target == frame
        {
            page.set_loading(loading);
        }
        self.changed.notify_waiters();
    }

    /// Handles the navigation of a frame. With `unreachable`, the page could not be loaded: Chromium
    /// shows an error in its place, whose own address means nothing to the applicant.
    pub(super) fn frame_navigated(
        &self,
        session: &str,
        frame: &str,
        url: String,
        unreachable: Option<String>,
    ) {
        let mut tracker = self.tracker();
        let navigation = tracker.next_navigation();
        if let Some(page) = tracker.page(session)
            && page.target == frame
        {
            page.url = url;
            page.unreachable = unreachable;
            page.navigation = navigation;
        }
        drop(tracker);
        self.publish_active_page();
        self.changed.notify_waiters();
    }

    /// Handles a new frame within a page.
    pub(super) fn inner_frame_added(&self, session: &str, frame: &str, parent: &str) {
        let mut tracker = self.tracker();
        let Some(page) = tracker.page_around(session) else { return };
        page.frames.add(session, frame, parent, |url| self.is_ours(url), &page.url);
    }

    /// Handles a document that a frame of a page shows now.
    pub(super) fn document_shown(&self, session: &str, document: &FrameDocument<'_>) {
        let mut tracker = self.tracker();
        tracker.document_loaded(session, document.frame);
        let Some(page) = tracker.page_around(session) else { return };
        page.frames.navigate(session, document, |url| self.is_ours(url), &page.url);
    }

    /// Handles a frame within a page that was removed.
    pub(super) fn inner_frame_removed(&self, session: &str, frame: &str) {
        if let Some(page) = self.tracker().page_around(session) {
            page.frames.remove_if_told(session, frame);
        }
        self.changed.notify_waiters();
    }

    /// Handles the crash of a target. A page takes its browser with it; a frame or a worker does not.
    pub(super) fn target_crashed(&self, session: &str) {
        if self.tracker().page(session).is_some() {
            tracing::warn!("a page crashed; its browser is ended");
            self.client.close();
        } else if self.tracker().detach_frame(session) {
            self.publish_active_page();
        }
    }

    /// Handles the end of execution contexts of a DevTools session: of this one, or of all.
    pub(super) fn contexts_ended(&self, session: &str, context: Option<i64>) {
        let mut tracker = self.tracker();
        let Some(page) = tracker.page_around(session) else { return };
        page.forget_focus(|place| {
            place.session == session && context.is_none_or(|context| place.context == context)
        });
        drop(tracker);
        self.publish_active_page();
    }

    /// Goes back to the previous entry of the active page's history that is a web page. The request
    /// for it is checked like any other.
    pub(super) async fn go_back(&self) {
        let Some((session, _)) = self.active() else { return };
        let history =
            self.client.call(Some(&session), "Page.getNavigationHistory", json!({})).await;
        let Ok(history) = history.map(serde_json::from_value::<NavigationHistory>) else { return };
        let Ok(NavigationHistory { current_index, entries }) = history else { return };
        let mut earlier = entries.iter().take(current_index).rev();
        if let Some(entry) = earlier.find(|entry| host(&entry.url).is_some()) {
            let target = json!({ "entryId": entry.id });
            self.client.send_no_reply(Some(&session), "Page.navigateToHistoryEntry", target);
        }
    }
}

/// Lets a page run, and sets `ready` when it replies: a renderer that navigates before it has replied
/// sometimes crashes.
async fn run_page(pages: Arc<Pages>, session: String) {
    let client = &pages.client;
    let run = client.call(Some(&session), "Runtime.runIfWaitingForDebugger", json!({})).await;
    let probe = json!({ "expression": "0" });
    if run.is_ok() && client.call(Some(&session), "Runtime.evaluate", probe).await.is_ok() {
        pages.ready.send_replace(true);
    }
}

/// Returns the host of an HTTP or HTTPS URL in lower case; `None` for others such as `about:blank`.
pub(super) fn host(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let host = if host.starts_with('[') { host } else { host.split(':').next()? };
    matches!(scheme, "http" | "https").then(|| host.to_ascii_lowercase())
}
