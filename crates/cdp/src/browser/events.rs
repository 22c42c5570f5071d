//! Chromium's events, read and handed on.

use std::sync::Arc;

use ports::browser::{RefusedAction, Viewport};
use serde::Deserialize;
use tokio::sync::mpsc;

use super::pages::Pages;
use crate::client::Event;

/// Takes Chromium's events in, one by one. Never waits for a reply: the reply comes the same way.
pub(super) async fn listen(pages: Arc<Pages>, mut events: mpsc::Receiver<Event>) {
    while let Some(event) = events.recv().await {
        if event.method == "Target.attachedToTarget" {
            if let Some(attached) = event.read() {
                pages.attached(attached);
            }
            continue;
        }
        if event.method == "Target.detachedFromTarget" {
            if let Some(Detached { session_id }) = event.read() {
                pages.detached(&session_id);
            }
            continue;
        }
        if event.method == "Browser.downloadWillBegin" {
            pages.refused(RefusedAction::Download);
            continue;
        }
        if let Some(session) = event.session.as_deref() {
            of_page(&pages, session, &event);
        }
    }
}

fn of_page(pages: &Arc<Pages>, session: &str, event: &Event) {
    match event.method.as_str() {
        "Page.screencastFrame" => {
            if let Some(cast) = event.read::<Cast<'_>>() {
                pages.pictured(session, &cast);
            }
        }
        "Fetch.requestPaused" => {
            if let Some(paused) = event.read::<Paused>() {
                pages.paused(session, &paused);
            }
        }
        "Network.responseReceived" => {
            if let Some(answered) = event.read::<Answered>() {
                pages.answered(session, answered);
            }
        }
        "Network.loadingFinished" => {
            if let Some(Finished { request_id }) = event.read() {
                pages.finished(session, &request_id);
            }
        }
        "Page.frameStartedLoading" | "Page.frameStoppedLoading" => {
            if let Some(OfFrame { frame_id }) = event.read() {
                pages.loading(session, &frame_id, event.method == "Page.frameStartedLoading");
            }
        }
        "Page.frameNavigated" => {
            if let Some(Navigated { frame }) = event.read() {
                pages.watching().loaded(session, &frame.id);
                pages.navigated(session, &frame.id, frame.url);
            }
        }
        "Page.navigatedWithinDocument" => {
            if let Some(Within { frame_id, url }) = event.read() {
                pages.navigated(session, &frame_id, url);
            }
        }
        "Inspector.targetCrashed" => {
            tracing::warn!("a page crashed, and with it its browser");
            pages.client.close();
        }
        "Page.javascriptDialogOpening" => {
            if let Some(opening) = event.read() {
                pages.asks(session, &opening);
            }
        }
        "Page.javascriptDialogClosed" => pages.asks_no_more(session),
        "Page.fileChooserOpened" => pages.refused(RefusedAction::Upload),
        "Runtime.bindingCalled" => {
            if let Some(Called { payload }) = event.read() {
                pages.told(session, &payload);
            }
        }
        _ => (),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Attached {
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
struct Detached {
    session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cast<'a> {
    pub(super) data: &'a str,
    pub(super) session_id: u64,
    #[serde(default)]
    pub(super) metadata: Metadata,
}

/// CSS pixels of the page at the time of a picture.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    device_width: f64,
    device_height: f64,
}

impl Metadata {
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast of a number that was seen to be in range"
    )]
    pub(super) fn viewport(&self) -> Option<Viewport> {
        let side = |side: f64| (1.0..=4096.0).contains(&side).then_some(side.round() as u16);
        let (width, height) = (side(self.device_width)?, side(self.device_height)?);
        Some(Viewport { width, height })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Paused {
    pub(super) request_id: String,
    pub(super) frame_id: String,
    pub(super) request: PausedRequest,
}

#[derive(Deserialize)]
pub(super) struct PausedRequest {
    pub(super) url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answered {
    pub(super) request_id: String,
    pub(super) frame_id: Option<String>,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) response: AnsweredResponse,
}

#[derive(Deserialize)]
pub(super) struct AnsweredResponse {
    pub(super) url: String,
    pub(super) status: u16,
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
struct Called {
    payload: String,
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
