//! The pages of one browser: set up when they come, watched while they are there.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::workflow::matches_url;
use ports::browser::{BrowserSpec, Device, Frame, PageState, RefusedAction, Scale, Viewport};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

use super::{
    events::{Answered, Attached, Cast, Paused},
    setup::{self, Agent},
};
use crate::{
    client::Client,
    watching::{LONGEST_RESPONSE, Page, Watching},
};

const MOST_PAGES: usize = 5;

/// The pages of one browser, as its events tell of them.
pub(super) struct Pages {
    pub(super) client: Client,
    /// The context that is ours; none where all of the browser is.
    context: Option<String>,
    /// The size of the page on top.
    viewport: watch::Sender<Viewport>,
    /// What the browser is for; not known while it waits for a session.
    pub(super) spec: OnceLock<BrowserSpec>,
    pub(super) watching: Mutex<Watching>,
    pub(super) frames: watch::Sender<Option<Arc<Frame>>>,
    pub(super) changed: Notify,
    pub(super) ready: watch::Sender<bool>,
    pub(super) scenes: watch::Sender<Arc<PageState>>,
    agent: Agent,
}

impl Pages {
    pub(super) fn new(client: Client, context: Option<String>, agent: Agent) -> Self {
        Self {
            client,
            context,
            viewport: watch::Sender::default(),
            spec: OnceLock::new(),
            watching: Mutex::default(),
            frames: watch::Sender::new(None),
            changed: Notify::new(),
            ready: watch::Sender::new(false),
            scenes: watch::Sender::default(),
            agent,
        }
    }

    pub(super) fn watching(&self) -> MutexGuard<'_, Watching> {
        self.watching.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// DevTools session and target of the page on top.
    pub(super) fn top(&self) -> Option<(String, String)> {
        let watching = self.watching();
        watching.active().map(|page| (page.session.clone(), page.target.clone()))
    }

    pub(super) fn settled(&self) -> bool {
        self.watching().active().is_some_and(Page::settled)
    }

    /// Tells the page that is there, and those to come, what session they are for.
    pub(super) fn assign(&self, spec: BrowserSpec) {
        let viewport = spec.device.viewport;
        if self.spec.set(spec).is_ok() {
            self.viewport.send_replace(viewport);
            if let Some((session, _)) = self.top() {
                self.introduce(&session);
            }
        }
    }

    fn introduce(&self, session: &str) {
        let Some(spec) = self.spec.get() else { return };
        for (method, params) in setup::of_session(spec, &self.agent) {
            self.client.fire(Some(session), method, params);
        }
        self.cast(session);
    }

    /// Gives the page on top the size that there is room for, and casts it.
    pub(super) fn cast(&self, session: &str) {
        let Some(spec) = self.spec.get() else { return };
        let viewport = *self.viewport.borrow();
        // Finer than the browser was started for it cannot be.
        let scale = if viewport.may_be_fine() { spec.device.scale } else { Scale::One };
        for (method, params) in setup::sizes(Device { viewport, scale, ..spec.device }) {
            self.client.fire(Some(session), method, params);
        }
    }

    /// There is this much room now.
    pub(super) fn resize(&self, viewport: Viewport) {
        let changed =
            self.viewport.send_if_modified(|known| std::mem::replace(known, viewport) != viewport);
        if changed && let Some((session, _)) = self.top() {
            self.client.fire(Some(&session), "Page.stopScreencast", json!({}));
            self.cast(&session);
        }
    }

    /// A target came into being. Chromium holds it until we let it run.
    pub(super) fn attached(self: &Arc<Self>, attached: Attached) {
        let session = attached.session_id;
        let client = &self.client;
        if self.context.is_some() && self.context != attached.target_info.browser_context_id {
            // Somebody else's in a browser that we share: it waits for us, too.
            client.fire(Some(&session), "Runtime.runIfWaitingForDebugger", json!({}));
            return client.fire(None, "Target.detachFromTarget", json!({ "sessionId": session }));
        }
        if attached.target_info.kind == "page" && self.watching().count() < MOST_PAGES {
            if let Some((below, _)) = self.top() {
                client.fire(Some(&below), "Page.stopScreencast", json!({}));
            }
            self.watching().push(Page::new(session.clone(), attached.target_info.target_id));
            let fire = |method, params| client.fire(Some(&session), method, params);
            for (method, params) in setup::commands() {
                fire(method, params);
            }
            self.introduce(&session);
            self.show_top();
            tokio::spawn(run_first(self.clone(), session));
            return;
        } else if attached.target_info.kind == "page" {
            let target = json!({ "targetId": attached.target_info.target_id });
            client.fire(None, "Target.closeTarget", target);
        }
        client.fire(Some(&session), "Runtime.runIfWaitingForDebugger", json!({}));
    }

    pub(super) fn detached(&self, session: &str) {
        let was_top = self.watching().remove(session);
        self.asks_no_more(session);
        self.show_top();
        if was_top && let Some((below, _)) = self.top() {
            self.cast(&below);
        }
        self.changed.notify_waiters();
    }

    pub(super) fn pictured(&self, session: &str, cast: &Cast<'_>) {
        let acknowledge = json!({ "sessionId": cast.session_id });
        self.client.fire(Some(session), "Page.screencastFrameAck", acknowledge);
        let origin = self
            .watching()
            .active()
            .filter(|page| page.session == session)
            .map(|page| origin(&page.url));
        // A page that is not on top, or the empty one that a browser begins with, is not shown.
        let Some(origin) = origin.filter(|origin| !origin.is_empty()) else { return };
        let Ok(jpeg) = STANDARD.decode(cast.data) else { return };
        // A picture that was taken before the page had its size says so.
        let viewport = cast.metadata.viewport().unwrap_or(*self.viewport.borrow());
        let mut watching = self.watching();
        watching.frame_seq = watching.frame_seq.saturating_add(1);
        let seq = watching.frame_seq;
        drop(watching);
        self.frames.send_replace(Some(Arc::new(Frame { seq, jpeg, origin, viewport })));
    }

    /// A document is about to be requested. The main frame stays on the platform's hosts.
    pub(super) fn paused(&self, session: &str, paused: &Paused) {
        let main = self.watching().page(session).is_some_and(|page| page.target == paused.frame_id);
        let allowed = host(&paused.request.url)
            .is_some_and(|host| self.spec.get().is_some_and(|spec| spec.hosts.contains(&host)));
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
            self.refused(RefusedAction::Elsewhere);
        }
    }

    pub(super) fn answered(&self, session: &str, answered: Answered) {
        let mut watching = self.watching();
        let Some(page) = watching.page(session) else { return };
        if answered.kind == "Document" && answered.frame_id.as_deref() == Some(&page.target) {
            page.http_status = Some(answered.response.status);
        }
        let watched = self.spec.get().map(|spec| spec.watch.responses.as_slice());
        if watched
            .unwrap_or_default()
            .iter()
            .any(|pattern| matches_url(pattern, &answered.response.url))
        {
            page.announce(answered.request_id, &answered.response.url, answered.response.status);
        }
    }

    pub(super) fn finished(self: &Arc<Self>, session: &str, request: &str) {
        let arrived = self.watching().page(session).and_then(|page| page.arrived(request));
        let Some(response) = arrived else { return };
        let (shared, session) = (self.clone(), session.to_owned());
        let request = json!({ "requestId": request });
        tokio::spawn(async move {
            let body = shared.client.call(Some(&session), "Network.getResponseBody", request).await;
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

    pub(super) fn loading(&self, session: &str, frame: &str, loading: bool) {
        if let Some(page) = self.watching().page(session)
            && page.target == frame
        {
            page.load(loading);
        }
        self.changed.notify_waiters();
    }

    pub(super) fn navigated(&self, session: &str, frame: &str, url: String) {
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
async fn run_first(pages: Arc<Pages>, session: String) {
    let client = &pages.client;
    let run = client.call(Some(&session), "Runtime.runIfWaitingForDebugger", json!({})).await;
    let look = json!({ "expression": "0" });
    if run.is_ok() && client.call(Some(&session), "Runtime.evaluate", look).await.is_ok() {
        pages.ready.send_replace(true);
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
