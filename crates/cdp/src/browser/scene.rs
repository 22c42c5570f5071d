//! What the applicant's page is told beside pictures: fields, dialogs, refusals.

use std::{sync::Arc, time::Duration};

use ports::browser::{Dialog, DialogKind, Field, PageState, RefusedAction};
use serde::Deserialize;
use serde_json::json;

use super::pages::Pages;

const LONGEST_MESSAGE: usize = 1000;
const LONGEST_WORD: usize = 40;
/// Nothing of a page moves while its dialog is open: one that nobody answers is closed.
const DIALOG_PATIENCE: Duration = Duration::from_secs(60);

/// What our script in the page tells of its fields.
#[derive(Deserialize)]
struct Told {
    fields: Vec<ToldField>,
    focused: Option<u8>,
    covers: Vec<[f32; 4]>,
}

#[derive(Deserialize)]
struct ToldField {
    place: [f32; 4],
    kind: String,
    mode: String,
    complete: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Opening {
    message: String,
    #[serde(rename = "type")]
    kind: String,
}

/// A dialog and the page that it belongs to.
pub(crate) struct Open {
    session: String,
    dialog: Dialog,
}

impl Pages {
    /// Brings the scene up to date, and tells it if anything changed.
    pub(super) fn retell(&self, change: impl FnOnce(&mut PageState)) {
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

    /// Our script in the page on top told of its fields. What it says was made next to a hostile
    /// page: it is cut to size.
    pub(super) fn told(&self, session: &str, payload: &str) {
        let Ok(told) = serde_json::from_str::<Told>(payload) else { return };
        let fields = told.fields.into_iter().take(PageState::MAX_FIELDS).map(|field| Field {
            place: field.place.map(|number| number.clamp(-4096.0, 8192.0)),
            kind: word(&field.kind),
            input_mode: word(&field.mode),
            autocomplete: word(&field.complete),
        });
        let fields: Vec<_> = fields.collect();
        let focused = told.focused.filter(|at| usize::from(*at) < fields.len());
        let place = |place: [f32; 4]| place.map(|number| number.clamp(-8192.0, 8192.0));
        let covers =
            told.covers.into_iter().take(PageState::MAX_REDACTION_RECTS).map(place).collect();
        let mut watching = self.watching();
        let Some(page) = watching.page(session) else { return };
        page.fields = (fields, focused, covers);
        drop(watching);
        self.show_top();
    }

    /// Shows the fields of the page that is on top now.
    pub(super) fn show_top(&self) {
        let watching = self.watching();
        let (fields, focused, covers) =
            watching.active().map(|page| page.fields.clone()).unwrap_or_default();
        let pages = u8::try_from(watching.count()).unwrap_or(u8::MAX);
        drop(watching);
        self.retell(|scene| {
            scene.fields = fields;
            scene.focused = focused;
            scene.redaction_rects = covers;
            scene.pages = pages;
        });
    }

    pub(super) fn refused(&self, what: RefusedAction) {
        self.retell(|scene| {
            let count = scene.refused.map_or(0, |(_, count)| count);
            scene.refused = Some((what, count.saturating_add(1)));
        });
    }

    pub(super) fn asks(self: &Arc<Self>, session: &str, opening: &Opening) {
        let kind = match opening.kind.as_str() {
            "confirm" => DialogKind::Confirm,
            "prompt" => DialogKind::Prompt,
            "beforeunload" => DialogKind::Leave,
            _ => DialogKind::Alert,
        };
        let mut watching = self.watching();
        watching.dialogs = watching.dialogs.wrapping_add(1);
        let id = watching.dialogs;
        let message = opening.message.chars().take(LONGEST_MESSAGE).collect();
        let dialog = Dialog { id, kind, message };
        watching.open = Some(Open { session: session.to_owned(), dialog: dialog.clone() });
        drop(watching);
        self.retell(|scene| scene.dialog = Some(dialog));
        let pages = self.clone();
        tokio::spawn(async move {
            let closed = pages.client.closed();
            if tokio::time::timeout(DIALOG_PATIENCE, closed).await.is_err() {
                // Leaving is always allowed.
                pages.answer(id, kind == DialogKind::Leave, "");
            }
        });
    }

    pub(super) fn answer(&self, id: u32, accept: bool, text: &str) {
        let open = self.watching().open.take_if(|open| open.dialog.id == id);
        let Some(open) = open else { return };
        let mut answer = json!({ "accept": accept });
        if open.dialog.kind == DialogKind::Prompt
            && let Some(object) = answer.as_object_mut()
        {
            object.insert("promptText".into(), text.into());
        }
        self.client.fire(Some(&open.session), "Page.handleJavaScriptDialog", answer);
        self.retell(|scene| scene.dialog = None);
    }

    /// The page closed its dialog itself, or went away with it.
    pub(super) fn asks_no_more(&self, session: &str) {
        let gone = self.watching().open.take_if(|open| open.session == session);
        if gone.is_some() {
            self.retell(|scene| scene.dialog = None);
        }
    }
}

/// A word of HTML's; anything else is none.
fn word(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"- ".contains(byte);
    if text.len() <= LONGEST_WORD && text.as_bytes().iter().all(plain) {
        text.to_owned()
    } else {
        String::new()
    }
}
