//! The outline of a page, read from Chromium's accessibility trees of its frames.

mod accessibility_tree;
mod reader;

use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};

use ports::browser::{BrowserError, OutlineEntry, OutlineRole, PageOutline};
use serde_json::{Value, json};

use self::{
    accessibility_tree::FrameTree,
    reader::{FoundEntry, read},
};
use super::{
    browser_error,
    pages::{Pages, host},
    scripts::{IS_OUTLINE_SIZED, REPEATS_FIELDS},
};

const OUTLINE_TIMEOUT: Duration = Duration::from_secs(2);
/// Frames of a page that are read, itself included.
const MAX_FRAMES: usize = 8;
/// Nodes of a frame's document.
const MAX_NODES: u32 = 20_000;
/// Characters of the texts of a frame's document. Chromium repeats some of them in its tree.
const MAX_CHARS: u32 = 1_000_000;

/// The controls of the newest outline.
#[derive(Default)]
pub(super) struct OutlinedControls {
    /// The DevTools session of the page.
    session: String,
    /// The number of its document.
    document: u64,
    /// The backend node identifiers of Chromium.
    nodes: BTreeSet<u32>,
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

    /// Returns the DevTools session of a control of the newest outline; `None` for other numbers, and
    /// if another document is shown meanwhile.
    pub(super) fn session_of_control(&self, node: u32) -> Option<String> {
        let outlined = self.outlined();
        let tracker = self.tracker();
        let page = tracker.active()?;
        let is_current = page.session == outlined.session && page.document == outlined.document;
        (is_current && outlined.nodes.contains(&node)).then(|| page.session.clone())
    }

    async fn read_outline(&self) -> Result<PageOutline, BrowserError> {
        let (session, document) = {
            let tracker = self.tracker();
            let page = tracker.active().ok_or(BrowserError::Gone)?;
            if page.unreachable.is_some() || host(&page.url).is_none() {
                return Err(refused("no page is loaded"));
            }
            (page.session.clone(), page.document)
        };
        let (mut frames, mut trees) = (vec![], vec![]);
        for frame in self.frames(&session).await? {
            let is_main = trees.is_empty();
            match self.frame_tree(&session, &frame, is_main).await {
                Ok(tree) => {
                    trees.push(tree);
                    frames.push(frame);
                }
                Err(error) if is_main => return Err(error),
                // A frame of another site, or one that was removed meanwhile.
                Err(_) => (),
            }
        }
        let (mut found, is_cut) = read(&trees);
        // The trees have what was entered.
        drop(trees);
        for frame in &frames {
            self.leave_out_repeated(&session, frame, &mut found).await?;
        }
        let outline = outline_of(found, is_cut);
        let nodes = outline.entries.iter().filter_map(|entry| entry.node).collect();
        *self.outlined() = OutlinedControls { session, document, nodes };
        Ok(outline)
    }

    /// Returns the identifiers of the frames of a page, the main frame first.
    async fn frames(&self, session: &str) -> Result<Vec<String>, BrowserError> {
        let reply = self.client.call(Some(session), "Page.getFrameTree", json!({})).await;
        let reply = reply.map_err(browser_error)?;
        let mut waiting: VecDeque<_> = reply.get("frameTree").into_iter().collect();
        let mut frames = vec![];
        while let Some(tree) = waiting.pop_front() {
            let id = tree.pointer("/frame/id").and_then(Value::as_str);
            frames.extend(id.map(str::to_owned));
            if frames.len() == MAX_FRAMES {
                break;
            }
            let children = tree.get("childFrames").and_then(Value::as_array);
            waiting.extend(children.into_iter().flatten().take(MAX_FRAMES));
        }
        Ok(frames)
    }

    async fn frame_tree(
        &self,
        session: &str,
        frame: &str,
        is_main: bool,
    ) -> Result<FrameTree, BrowserError> {
        let bounds = vec![json!(MAX_NODES), json!(MAX_CHARS)];
        if self.run_in(session, frame, IS_OUTLINE_SIZED, bounds).await? != true {
            return Err(refused("the document is too large for an outline"));
        }
        let client = &self.client;
        let params = json!({ "frameId": frame });
        let owner = if is_main {
            None
        } else {
            let owner = client.call(Some(session), "DOM.getFrameOwner", params.clone()).await;
            owner.map_err(browser_error)?.get("backendNodeId").and_then(Value::as_i64)
        };
        let tree = client.call(Some(session), "Accessibility.getFullAXTree", params).await;
        FrameTree::parse(owner, tree.map_err(browser_error)?)
            .ok_or_else(|| refused("the accessibility tree has an unexpected form"))
    }

    /// Leaves out what repeats the content of a field in this frame. The page's own process compares:
    /// the content does not leave it.
    async fn leave_out_repeated(
        &self,
        session: &str,
        frame: &str,
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
