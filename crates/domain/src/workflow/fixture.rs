//! Fixtures: the pages that a run saw and what was done in them, so that a definition can be
//! run again without a browser.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{Definition, Method, matches_url, run::End};
use crate::error_code::ErrorCode;

/// A recorded run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fixture {
    /// [`Fixture::SCHEMA`].
    pub schema: String,
    pub platform: String,
    /// The version of the definition with which it was recorded.
    pub version: String,
    /// What a run with this definition leads to.
    pub expected: RunResult,
    /// In the order in which they happened.
    pub events: Vec<FixtureEvent>,
    /// The pages that events refer to by index.
    pub pages: Vec<PageTree>,
}

impl Fixture {
    /// The version of the format.
    pub const SCHEMA: &str = "avouch-fixture/1";
    /// The maximum length of a fixture as JSON.
    pub const MAX_BYTES: usize = 64 * 1024 * 1024;
    pub const MAX_EVENTS: usize = 5000;
    pub const MAX_PAGES: usize = 500;

    /// Returns why this is no fixture that can be replayed.
    #[must_use]
    pub fn error(&self) -> Option<&'static str> {
        let pages = self.events.iter().filter_map(|event| {
            if let FixtureEvent::Page { page, .. } = event { Some(*page) } else { None }
        });
        let mut pages = pages;
        if self.schema != Self::SCHEMA {
            Some("`schema` is not `avouch-fixture/1`")
        } else if self.events.len() > Self::MAX_EVENTS || self.pages.len() > Self::MAX_PAGES {
            Some("it has too many events or pages")
        } else if !self.pages.iter().all(PageTree::is_valid) {
            Some("a page has too many nodes, or a node before its parent")
        } else if pages.any(|page| page >= self.pages.len()) {
            Some("an event refers to a page that is not there")
        } else {
            None
        }
    }

    /// Returns the fixture without the responses that a definition does not watch.
    #[must_use]
    pub fn watched_by(mut self, definition: &Definition) -> Self {
        let watched = definition.responses();
        self.events.retain(|event| {
            let FixtureEvent::Response { url, .. } = event else { return true };
            watched.iter().any(|pattern| matches_url(pattern, url))
        });
        self
    }
}

/// Something that happened during a recorded run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[serde(deny_unknown_fields)]
pub enum FixtureEvent {
    /// The state of the page, if it differs from the one before.
    Page {
        /// Milliseconds since the beginning of the run.
        at: u64,
        /// The index of the page in [`Fixture::pages`].
        page: usize,
        url: String,
        /// The number of the document.
        document: u64,
        settled: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        http_status: Option<u16>,
        /// The names of the cookies.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        cookies: BTreeSet<String>,
        /// Whether elements of the page were read in this state.
        #[serde(default, skip_serializing_if = "is_false")]
        is_read: bool,
        /// Whether it is what a node of the run saw first. It is then recorded also if it is the state
        /// before.
        #[serde(default, skip_serializing_if = "is_false")]
        is_first: bool,
    },
    /// A response that the page received and that the definition watches. While a studio is open, it has
    /// those with JSON that the definition does not watch as well.
    Response {
        number: u64,
        url: String,
        status: u16,
        #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
        body: Option<Value>,
    },
    /// A `goto` node opened a URL, whose credentials are masked.
    Visit { url: String, arrived: bool },
    /// An action was done in the page.
    Act,
    /// A request was made in the page. Credentials in its URL and its body are masked.
    Fetch {
        method: Method,
        url: String,
        /// JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<String>,
        /// The response as JSON; `None` if it was not as expected, or is the JSON `null`.
        response: Option<Value>,
        /// Whether the response is the JSON `null`, such as that of a list without rows.
        #[serde(default, skip_serializing_if = "is_false")]
        is_null: bool,
    },
    /// The applicant answered the request to share.
    Answer { share: bool },
    /// The address that the session gave, or that the applicant entered.
    CustomUrl { url: String },
}

/// How a run ended, and the nodes that it entered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunResult {
    pub path: Vec<String>,
    /// The data that was shared; empty if the run failed.
    #[serde(default)]
    pub data: BTreeMap<String, Value>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub missing: BTreeSet<String>,
    /// Why the run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorCode>,
}

impl RunResult {
    /// Returns the result of a run that entered these nodes.
    #[must_use]
    pub fn new(path: Vec<String>, end: &End) -> Self {
        let empty = Self { path, ..Self::default() };
        match end {
            End::Done(collected) => Self {
                data: collected.data.clone().into_iter().collect(),
                missing: collected.missing.iter().cloned().collect(),
                ..empty
            },
            End::Declined => Self { error: Some(ErrorCode::ConsentDeclined), ..empty },
            End::Failed(code) => Self { error: Some(*code), ..empty },
        }
    }

    /// Returns how another result differs from this one, a line each.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        let same = self.path.iter().zip(&other.path).take_while(|(a, b)| a == b).count();
        let next = |path: &[String]| path.get(same).map_or("the end", String::as_str).to_owned();
        if self.path != other.path {
            let after = same.checked_sub(1).and_then(|last| self.path.get(last));
            let after = after.map_or("the start", String::as_str);
            let (expected, actual) = (next(&self.path), next(&other.path));
            lines.push(format!("path: after {after}, expected {expected}, but it was {actual}"));
        }
        if self.error != other.error {
            let name = |error: Option<ErrorCode>| error.map_or("none", ErrorCode::as_str);
            let (expected, actual) = (name(self.error), name(other.error));
            lines.push(format!("error: expected {expected}, but it was {actual}"));
        }
        let names: BTreeSet<_> = self.data.keys().chain(other.data.keys()).collect();
        for name in names {
            let (expected, actual) = (self.data.get(name), other.data.get(name));
            if expected != actual {
                let text = |value: Option<&Value>| value.map_or("missing".into(), Value::to_string);
                let (expected, actual) = (text(expected), text(actual));
                lines.push(format!("{name}: expected {expected}, but it was {actual}"));
            }
        }
        lines
    }
}

/// The elements and texts of a page, in document order: of the document, of open shadow roots, and of
/// frames of the same origin or on hosts of the session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageTree {
    pub nodes: Vec<PageNode>,
}

/// A node of a page. It is an element if it has a tag, a text if it has a text, and else the root of a
/// document or of a shadow tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PageNode {
    /// The index of the parent, which is before the node. Of a root, that of the element that has it;
    /// `None` for the page's document.
    #[serde(default, rename = "in", skip_serializing_if = "Option::is_none")]
    pub parent: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
    /// Whether the element has a box.
    #[serde(default, skip_serializing_if = "is_false")]
    pub visible: bool,
    /// The value of a form field; of a list of options, the text of the chosen one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Whether a box is checked, or an option chosen.
    #[serde(default, skip_serializing_if = "is_false")]
    pub checked: bool,
}

/// Reads a member that is there. Without it, serde takes the JSON `null` for no value.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

impl PageTree {
    pub const MAX_NODES: usize = 20_000;

    /// Returns whether each node is after its parent, so that a walk to the root ends.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let is_before = |(index, node): (usize, &PageNode)| match node.parent {
            Some(parent) => parent < index,
            None => index == 0,
        };
        (1..=Self::MAX_NODES).contains(&self.nodes.len())
            && self.nodes.iter().enumerate().all(is_before)
    }

    /// Returns whether a node is the root of a document or of a shadow tree.
    #[must_use]
    pub fn is_root(&self, index: usize) -> bool {
        self.nodes.get(index).is_none_or(|node| node.tag.is_none() && node.text.is_none())
    }

    /// Returns the nodes within a node, in document order; not those in roots of their own.
    pub fn descendants(&self, scope: usize) -> impl Iterator<Item = (usize, &PageNode)> {
        let mut inside = vec![false; self.nodes.len()];
        if let Some(first) = inside.get_mut(scope) {
            *first = true;
        }
        let start = scope.saturating_add(1);
        self.nodes.iter().enumerate().skip(start).filter(move |(index, node)| {
            let is_inside = !self.is_root(*index)
                && node.parent.is_some_and(|parent| inside.get(parent) == Some(&true));
            if let Some(entry) = inside.get_mut(*index) {
                *entry = is_inside;
            }
            is_inside
        })
    }

    /// Returns the texts within a node, as `textContent` of the DOM Standard.
    #[must_use]
    pub fn text_content(&self, scope: usize) -> String {
        self.descendants(scope).filter_map(|(_, node)| node.text.as_deref()).collect()
    }

    /// Returns the root of the shadow tree or document that an element has.
    #[must_use]
    pub fn root_of(&self, element: usize) -> Option<usize> {
        let is_its_root = |(index, node): &(usize, &PageNode)| {
            node.parent == Some(element) && self.is_root(*index)
        };
        let (index, _) = self.nodes.iter().enumerate().find(is_its_root)?;
        Some(index)
    }
}
