//! The outline of a page, read from Chromium's accessibility trees of its frames.

mod accessibility_tree;
mod reader;

use std::{collections::BTreeMap, time::Duration};

use ports::browser::{BrowserError, OutlineEntry, OutlineRole, PageOutline};
use serde_json::{Value, json};

use self::{
    accessibility_tree::FrameTree,
    reader::{FoundEntry, read},
};
use super::{
    activation::Control,
    browser_error,
    pages::{Pages, host},
    scripts::{IS_OUTLINE_SIZED, REPEATS_FIELDS},
};
use crate::page_frames::PageFrame;

const OUTLINE_TIMEOUT: Duration = Duration::from_secs(2);
/// The time within which a frame must reply. One that is busy for longer is left out.
const FRAME_TIMEOUT: Duration = Duration::from_millis(500);
/// Frames of a page that are read, itself included.
const MAX_FRAMES: usize = 8;
/// Nodes of a frame's document.
const MAX_NODES: u32 = 20_000;
/// Characters of the texts of a frame's document. Chromium repeats some of them in its tree.
const MAX_CHARS: u32 = 1_000_000;

/// The first number of controls in frames that have a process of their own. Those of the page's process
/// have Chromium's backend node identifiers, which are smaller.
const FIRST_FRAME_NUMBER: u32 = 1 << 31;

/// The controls of the newest outline.
#[derive(Default)]
pub(super) struct OutlinedControls {
    /// The DevTools session of the page.
    page: String,
    /// The number of its document.
    document: u64,
    /// The controls by their numbers: the DevTools session of the process, and the backend node identifier
    /// in it.
    controls: BTreeMap<u32, (String, u32)>,
    /// Controls in frames that have got a number so far.
    numbered: u32,
}

impl OutlinedControls {
    /// Replaces the controls by those of a new outline of a page and document. Gives them numbers: a
    /// control that was in the outline before keeps its number.
    fn number(
        &mut self,
        (page, document): (&str, u64),
        sessions: &[String],
        found: &mut [FoundEntry],
    ) {
        let mut before = std::mem::take(&mut self.controls);
        if (self.page.as_str(), self.document) != (page, document) {
            before.clear();
            page.clone_into(&mut self.page);
            self.document = document;
        }
        let before: BTreeMap<_, _> =
            before.into_iter().map(|(number, control)| (control, number)).collect();
        for FoundEntry { process, entry, .. } in found {
            let Some(node) = entry.node.take() else { continue };
            let Some(session) = sessions.get(*process) else { continue };
            let control = (session.clone(), node);
            let number = if *process == 0 {
                Some(node).filter(|node| *node < FIRST_FRAME_NUMBER)
            } else if let Some(number) = before.get(&control) {
                Some(*number)
            } else {
                self.numbered = self.numbered.wrapping_add(1) % FIRST_FRAME_NUMBER;
                Some(FIRST_FRAME_NUMBER | self.numbered)
            };
            entry.node = number;
            self.controls.extend(number.map(|number| (number, control)));
        }
    }

    fn get(&self, number: u32) -> Option<&(String, u32)> {
        self.controls.get(&number)
    }
}

impl Pages {
    /// Returns the outline of the active page.
    pub(super) async fn outline(&self) -> Result<PageOutline, BrowserError> {
        let Ok(_only_one) = self.outline_lock.try_lock() else {
            return Err(refused("another outline is being read"));
        };
        let read = tokio::time::timeout(OUTLINE_TIMEOUT, self.read_outline());
        read.await.unwrap_or(Err(BrowserError::TimedOut))
    }

    /// Returns a control of the newest outline; `None` for other numbers, and if another document is shown
    /// meanwhile.
    pub(super) fn control(&self, number: u32) -> Option<Control> {
        let outlined = self.outlined();
        let tracker = self.tracker();
        let page = tracker.active()?;
        if page.session != outlined.page || page.document != outlined.document {
            return None;
        }
        let (session, node) = outlined.get(number)?.clone();
        Some(Control {
            page: page.session.clone(),
            frames: page.frames.around(&session),
            is_beside_frames: page.frames.has_frames(),
            session,
            node,
        })
    }

    async fn read_outline(&self) -> Result<PageOutline, BrowserError> {
        let (page, document, of_page) = {
            let tracker = self.tracker();
            let page = tracker.active().ok_or(BrowserError::Gone)?;
            if page.unreachable.is_some() || host(&page.url).is_none() {
                return Err(refused("no page is loaded"));
            }
            (page.session.clone(), page.document, page.frames.outermost(MAX_FRAMES))
        };
        let mut sessions: Vec<String> = of_page.iter().map(|one| one.session.clone()).collect();
        // The page's own is the first one.
        sessions.sort_by_key(|session| *session != page);
        sessions.dedup();
        let (mut frames, mut trees) = (vec![], vec![]);
        for frame in of_page {
            let within = if frame.around.is_some() { FRAME_TIMEOUT } else { OUTLINE_TIMEOUT };
            let tree = tokio::time::timeout(within, self.frame_tree(&frame, &sessions));
            match tree.await.unwrap_or(Err(BrowserError::TimedOut)) {
                Ok(tree) => {
                    trees.push(tree);
                    frames.push(frame);
                }
                Err(error) if frame.around.is_none() => return Err(error),
                // A frame that was removed meanwhile, that is too large, or that is busy.
                Err(_) => (),
            }
        }
        let (mut found, is_cut) = read(&trees);
        // The trees have what was entered.
        drop(trees);
        for frame in &frames {
            self.leave_out_repeated(frame, &mut found).await?;
        }
        self.outlined().number((&page, document), &sessions, &mut found);
        Ok(outline_of(found, is_cut))
    }

    async fn frame_tree(
        &self,
        PageFrame { session, frame, around }: &PageFrame,
        sessions: &[String],
    ) -> Result<FrameTree, BrowserError> {
        let bounds = vec![json!(MAX_NODES), json!(MAX_CHARS)];
        if self.run_in(session, frame, IS_OUTLINE_SIZED, bounds).await? != true {
            return Err(refused("the document is too large for an outline"));
        }
        let client = &self.client;
        let params = json!({ "frameId": frame });
        let process = |session: &str| sessions.iter().position(|one| one == session);
        let owner = if let Some(around) = around {
            let owner = client.call(Some(around), "DOM.getFrameOwner", params.clone()).await;
            let owner = owner.map_err(browser_error)?;
            let node = owner.get("backendNodeId").and_then(Value::as_i64);
            process(around).zip(node)
        } else {
            None
        };
        let tree = client.call(Some(session), "Accessibility.getFullAXTree", params).await;
        let tree = tree.map_err(browser_error)?;
        process(session)
            .and_then(|process| FrameTree::parse(process, owner, tree))
            .ok_or_else(|| refused("the accessibility tree has an unexpected form"))
    }

    /// Leaves out what repeats the content of a field in this frame. The page's own process compares:
    /// the content does not leave it.
    async fn leave_out_repeated(
        &self,
        PageFrame { session, frame, .. }: &PageFrame,
        found: &mut [FoundEntry],
    ) -> Result<(), BrowserError> {
        let texts: Vec<_> = found
            .iter()
            .map(|found| json!([found.entry.name, found.entry.value, found.is_cut]))
            .collect();
        let repeated = self.run_in(session, frame, REPEATS_FIELDS, vec![json!(texts)]).await?;
        let repeated = repeated.as_array().filter(|repeated| repeated.len() == found.len());
        let repeated = repeated.ok_or_else(|| refused("the texts cannot be compared"))?;
        for (found, is_repeated) in found.iter_mut().zip(repeated) {
            if *is_repeated != false {
                found.entry.name.clear();
                found.entry.value = None;
            }
        }
        Ok(())
    }
}

/// Divides long texts into entries, and leaves out those that say nothing.
fn outline_of(found: Vec<FoundEntry>, is_cut: bool) -> PageOutline {
    let mut outline = PageOutline { entries: vec![], is_cut };
    for FoundEntry { entry, .. } in found {
        if entry.name.is_empty() && entry.node.is_none() && entry.role != OutlineRole::Dialog {
            continue;
        }
        let parts = parts(&entry.name);
        for name in if parts.is_empty() { vec![String::new()] } else { parts } {
            if outline.entries.len() == PageOutline::MAX_ENTRIES {
                outline.is_cut = true;
                return outline;
            }
            outline.entries.push(OutlineEntry { name, ..entry.clone() });
        }
    }
    outline
}

/// Divides a text at spaces into parts of at most [`PageOutline::MAX_TEXT_CHARS`] characters.
fn parts(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = vec![];
    let mut last_chars = 0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        // A longer word is cut.
        let word: String = word.chars().take(PageOutline::MAX_TEXT_CHARS).collect();
        let chars = word.chars().count();
        match parts.last_mut() {
            Some(last) if last_chars + 1 + chars <= PageOutline::MAX_TEXT_CHARS => {
                last.push(' ');
                last.push_str(&word);
                last_chars += 1 + chars;
            }
            _ => {
                parts.push(word);
                last_chars = chars;
            }
        }
    }
    parts
}

fn refused(why: &str) -> BrowserError {
    BrowserError::Refused(why.to_owned())
}

#[cfg(test)]
mod tests;
