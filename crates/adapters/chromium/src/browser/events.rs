//! Parses Chromium's events and dispatches them.

use std::sync::Arc;

use ports::browser::{RefusedAction, Viewport};
use serde::Deserialize;
use tokio::sync::mpsc;

use super::pages::Pages;
use crate::{
    client::DevToolsEvent, input::PageScale, page_frames::FrameDocument, page_tracker::ScriptPlace,
};

/// Handles Chromium's events one by one. Must never wait for a reply, which arrives on the same
/// connection.
pub(super) async fn handle_events(pages: Arc<Pages>, mut events: mpsc::Receiver<DevToolsEvent>) {
    while let Some(event) = events.recv().await {
        if event.method == "Target.attachedToTarget" {
            if let Some(attached) = event.read() {
                pages.target_attached(event.session.as_deref(), attached);
            }
            continue;
        }
        if event.method == "Target.detachedFromTarget" {
            if let Some(TargetDetached { session_id }) = event.read() {
                pages.target_detached(&session_id);
            }
            continue;
        }
        if event.method == "Browser.downloadWillBegin" {
            pages.action_refused(RefusedAction::Download);
            continue;
        }
        if let Some(session) = event.session.as_deref() {
            handle_page_event(&pages, session, &event);
        }
    }
}

fn handle_page_event(pages: &Arc<Pages>, session: &str, event: &DevToolsEvent) {
    match event.method.as_str() {
        "Page.screencastFrame" => {
            if let Some(frame) = event.read::<ScreencastFrame<'_>>() {
                pages.frame_received(session, &frame);
            }
        }
        "Fetch.requestPaused" => {
            if let Some(paused) = event.read::<RequestPaused>() {
                pages.request_paused(session, &paused);
            }
        }
        "Network.requestWillBeSent" => {
            if let Some(RequestSent { request_id, request }) = event.read() {
                pages.request_sent(session, request_id, &request.method);
            }
        }
        "Network.responseReceived" => {
            if let Some(response) = event.read::<ResponseReceived>() {
                pages.response_received(session, response);
            }
        }
        "Network.loadingFinished" => {
            if let Some(LoadingEnded { request_id }) = event.read() {
                pages.loading_finished(session, &request_id);
            }
        }
        "Network.loadingFailed" => {
            if let Some(LoadingEnded { request_id }) = event.read() {
                pages.loading_failed(session, &request_id);
            }
        }
        "Inspector.targetCrashed" => pages.target_crashed(session),
        "Page.javascriptDialogOpening" => {
            if let Some(opening) = event.read() {
                pages.dialog_opened(session, &opening);
            }
        }
        "Page.javascriptDialogClosed" => pages.dialog_closed(session),
        "Page.fileChooserOpened" => pages.action_refused(RefusedAction::Upload),
        "Runtime.bindingCalled" => {
            if let Some(BindingCalled { payload, execution_context_id }) = event.read() {
                let place =
                    ScriptPlace { session: session.to_owned(), context: execution_context_id };
                pages.fields_reported(place, &payload);
            }
        }
        _ => handle_frame_event(pages, session, event),
    }
}

/// Handles the events of the frames of a page, its main frame included.
fn handle_frame_event(pages: &Pages, session: &str, event: &DevToolsEvent) {
    match event.method.as_str() {
        "Page.frameStartedLoading" | "Page.frameStoppedLoading" => {
            if let Some(FrameLoading { frame_id }) = event.read() {
                pages.loading_changed(
                    session,
                    &frame_id,
                    event.method == "Page.frameStartedLoading",
                );
            }
        }
        "Page.frameNavigated" => {
            if let Some(FrameNavigated { frame }) = event.read() {
                let document = FrameDocument {
                    frame: &frame.id,
                    parent: frame.parent_id.as_deref(),
                    url: &frame.url,
                    loader: &frame.loader_id,
                };
                pages.document_shown(session, &document);
                let url = frame.url + &frame.url_fragment;
                pages.frame_navigated(session, &frame.id, url, frame.unreachable_url);
            }
        }
        "Page.navigatedWithinDocument" => {
            if let Some(NavigatedWithinDocument { frame_id, url }) = event.read() {
                pages.frame_navigated(session, &frame_id, url, None);
            }
        }
        "Page.frameAttached" => {
            if let Some(FrameAttached { frame_id, parent_frame_id }) = event.read() {
                pages.inner_frame_added(session, &frame_id, &parent_frame_id);
            }
        }
        "Page.frameDetached" => {
            // A frame that goes on in another process is only swapped.
            if let Some(FrameDetached { frame_id, reason }) = event.read()
                && reason != "swap"
            {
                pages.inner_frame_removed(session, &frame_id);
            }
        }
        "Runtime.executionContextDestroyed" => {
            if let Some(ContextDestroyed { execution_context_id }) = event.read() {
                pages.contexts_ended(session, Some(execution_context_id));
            }
        }
        "Runtime.executionContextsCleared" => pages.contexts_ended(session, None),
        _ => (),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TargetAttached {
    pub(super) session_id: String,
    pub(super) target_info: TargetInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TargetInfo {
    pub(super) target_id: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) browser_context_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TargetDetached {
    session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScreencastFrame<'a> {
    pub(super) data: &'a str,
    pub(super) session_id: u64,
    #[serde(default)]
    pub(super) metadata: FrameMetadata,
}

/// The size and the scale of the page when a frame was captured.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FrameMetadata {
    device_width: f64,
    device_height: f64,
    page_scale_factor: f64,
}

impl FrameMetadata {
    pub(super) fn page_scale(&self) -> PageScale {
        PageScale::new(self.page_scale_factor)
    }

    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number is within 1..=4096"
    )]
    pub(super) fn viewport(&self) -> Option<Viewport> {
        let side = |side: f64| (1.0..=4096.0).contains(&side).then_some(side.round() as u16);
        let (width, height) = (side(self.device_width)?, side(self.device_height)?);
        Some(Viewport { width, height })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestPaused {
    pub(super) request_id: String,
    pub(super) frame_id: String,
    pub(super) request: RequestInfo,
}

#[derive(Deserialize)]
pub(super) struct RequestInfo {
    pub(super) url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestSent {
    request_id: String,
    request: SentRequest,
}

#[derive(Deserialize)]
struct SentRequest {
    method: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResponseReceived {
    pub(super) request_id: String,
    pub(super) frame_id: Option<String>,
    #[serde(default)]
    pub(super) loader_id: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) response: ResponseInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResponseInfo {
    pub(super) url: String,
    pub(super) status: u16,
    #[serde(default)]
    pub(super) mime_type: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LoadingEnded {
    request_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameLoading {
    frame_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BindingCalled {
    payload: String,
    execution_context_id: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContextDestroyed {
    execution_context_id: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameAttached {
    frame_id: String,
    parent_frame_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameDetached {
    frame_id: String,
    reason: String,
}

#[derive(Deserialize)]
struct FrameNavigated {
    frame: FrameInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameInfo {
    id: String,
    parent_id: Option<String>,
    loader_id: String,
    /// Without the fragment.
    url: String,
    /// With its `#`; empty if there is none.
    #[serde(default)]
    url_fragment: String,
    /// The address that could not be loaded, if this is Chromium's page about that.
    unreachable_url: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NavigationHistory {
    pub(super) current_index: usize,
    pub(super) entries: Vec<HistoryEntry>,
}

#[derive(Deserialize)]
pub(super) struct HistoryEntry {
    pub(super) id: i64,
    pub(super) url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NavigatedWithinDocument {
    frame_id: String,
    url: String,
}
