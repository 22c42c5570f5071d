//! The page state that is published besides frames: fields, dialogs, refused actions.

use std::{sync::Arc, time::Duration};

use ports::browser::{Dialog, DialogKind, PageField, PageState, RefusedAction};
use serde::Deserialize;
use serde_json::json;

use super::pages::Pages;
use crate::page_tracker::{ReportedFields, ScriptPlace, TrackedPage};

/// Characters of a dialog's message.
const MAX_MESSAGE_CHARS: usize = 1000;
/// Bytes of an HTML attribute value.
const MAX_TOKEN_BYTES: usize = 40;
/// The time after which an unanswered dialog is closed: it blocks everything else in its page.
const DIALOG_TIMEOUT: Duration = Duration::from_secs(60);

/// A report on the fields of a page, from our script in it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FieldReport {
    fields: Vec<ReportedField>,
    focused: Option<u8>,
    /// Whether this is a report of the main frame.
    is_top: bool,
    covers: Vec<[f32; 4]>,
}

#[derive(Deserialize)]
struct ReportedField {
    place: [f32; 4],
    kind: String,
    mode: String,
    complete: String,
    #[serde(default)]
    label: String,
    #[serde(default)]
    error: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DialogOpening {
    message: String,
    #[serde(rename = "type")]
    kind: String,
}

/// A dialog and the page that it belongs to.
pub(crate) struct OpenDialog {
    session: String,
    dialog: Dialog,
}

impl Pages {
    /// Updates the page state, and publishes it if anything changed.
    pub(super) fn update_state(&self, change: impl FnOnce(&mut PageState)) {
        self.scenes.send_if_modified(|scene| {
            let mut new = PageState::clone(scene);
            change(&mut new);
            let changed = new != **scene;
            if changed {
                new.seq = new.seq.saturating_add(1);
                *scene = Arc::new(new);
            }
            changed
        });
    }

    /// Handles a report of our script in a frame. The script runs beside a hostile page, so every value
    /// is bounded.
    pub(super) fn fields_reported(&self, place: ScriptPlace, payload: &str) {
        let Ok(report) = serde_json::from_str::<FieldReport>(payload) else { return };
        let fields = report.fields.into_iter().take(PageState::MAX_FIELDS).map(|field| PageField {
            place: field.place.map(|number| number.clamp(-4096.0, 8192.0)),
            kind: html_token(&field.kind),
            input_mode: html_token(&field.mode),
            autocomplete: html_token(&field.complete),
            label: one_line(&field.label),
            error: one_line(&field.error),
        });
        let fields: Vec<_> = fields.collect();
        let focused = report.focused.filter(|index| usize::from(*index) < fields.len());
        let clamped = |place: [f32; 4]| place.map(|number| number.clamp(-8192.0, 8192.0));
        let covers =
            report.covers.into_iter().take(PageState::MAX_REDACTION_RECTS).map(clamped).collect();
        let mut tracker = self.tracker();
        let Some(page) = tracker.page_around(&place.session) else { return };
        if report.is_top && place.session == page.session {
            page.report_own(ReportedFields { fields, focused, covers });
        } else {
            let field = focused.and_then(|focused| fields.into_iter().nth(usize::from(focused)));
            page.report_frame(place, field);
        }
        drop(tracker);
        self.publish_active_page();
    }

    /// Publishes the fields of the active page: those of its own size, which its frames show, also while it has
    /// that of another screen.
    pub(super) fn publish_active_page(&self) {
        let tracker = self.tracker();
        let ReportedFields { fields, focused, covers } =
            tracker.active().map(TrackedPage::fields).unwrap_or_default();
        let unreachable = tracker.active().is_some_and(|page| page.unreachable.is_some());
        let navigation = tracker.active().map(|page| page.navigation).unwrap_or_default();
        let pages = u8::try_from(tracker.page_count()).unwrap_or(u8::MAX);
        let session = tracker.active().map(|page| page.session.clone());
        drop(tracker);
        let has_own_size = !session.is_some_and(|session| self.is_looked_at(&session));
        self.update_state(|scene| {
            if has_own_size {
                scene.fields = fields;
                scene.focused = focused;
                scene.redaction_rects = covers;
            }
            scene.navigation = navigation;
            scene.pages = pages;
            scene.unreachable = unreachable;
        });
    }

    /// Publishes that the browser refused an action of the page.
    pub(super) fn action_refused(&self, what: RefusedAction) {
        self.update_state(|scene| {
            let count = scene.refused.map_or(0, |(_, count)| count);
            scene.refused = Some((what, count.saturating_add(1)));
            if what == RefusedAction::Elsewhere {
                scene.refused_navigations = scene.refused_navigations.saturating_add(1);
            }
        });
    }

    /// Publishes a dialog, and closes it after [`DIALOG_TIMEOUT`].
    pub(super) fn dialog_opened(self: &Arc<Self>, session: &str, opening: &DialogOpening) {
        let kind = match opening.kind.as_str() {
            "confirm" => DialogKind::Confirm,
            "prompt" => DialogKind::Prompt,
            "beforeunload" => DialogKind::Leave,
            _ => DialogKind::Alert,
        };
        let mut tracker = self.tracker();
        tracker.dialog_count = tracker.dialog_count.wrapping_add(1);
        let id = tracker.dialog_count;
        let message = opening.message.chars().take(MAX_MESSAGE_CHARS).collect();
        let dialog = Dialog { id, kind, message };
        tracker.open_dialog =
            Some(OpenDialog { session: session.to_owned(), dialog: dialog.clone() });
        drop(tracker);
        self.update_state(|scene| scene.dialog = Some(dialog));
        let pages = self.clone();
        tokio::spawn(async move {
            let closed = pages.client.closed();
            if tokio::time::timeout(DIALOG_TIMEOUT, closed).await.is_err() {
                // The page may always be left.
                pages.answer_dialog(id, kind == DialogKind::Leave, "");
            }
        });
    }

    /// Answers the open dialog if it still is the one with this id.
    pub(super) fn answer_dialog(&self, id: u32, accept: bool, text: &str) {
        let open = self.tracker().open_dialog.take_if(|open| open.dialog.id == id);
        let Some(open) = open else { return };
        let mut answer = json!({ "accept": accept });
        if open.dialog.kind == DialogKind::Prompt
            && let Some(object) = answer.as_object_mut()
        {
            object.insert("promptText".into(), text.into());
        }
        self.client.send_no_reply(Some(&open.session), "Page.handleJavaScriptDialog", answer);
        self.update_state(|scene| scene.dialog = None);
    }

    /// Removes the dialog of a page that closed it itself, or that was closed with it.
    pub(super) fn dialog_closed(&self, session: &str) {
        let closed_dialog = self.tracker().open_dialog.take_if(|open| open.session == session);
        if closed_dialog.is_some() {
            self.update_state(|scene| scene.dialog = None);
        }
    }
}

/// Returns the start of a text of the page, without control and bidirectional control characters.
fn one_line(text: &str) -> String {
    let is_plain = |c: &char| {
        !c.is_control() && !matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().filter(is_plain).take(PageField::MAX_LABEL_CHARS).collect()
}

/// Returns the text if it can be an HTML attribute value of the kinds used here, or else nothing.
fn html_token(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"- ".contains(byte);
    if text.len() <= MAX_TOKEN_BYTES && text.as_bytes().iter().all(plain) {
        text.to_owned()
    } else {
        String::new()
    }
}
