//! Observations of a page, and conditions over them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A condition over one [`Observation`]. It is independent of the page's language on purpose: no
/// condition looks at text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    /// A CSS selector that matches a visible element of the main frame.
    Selector(String),
    /// A pattern for the path of the main frame's URL; `*` matches any sequence of characters.
    Url(String),
    /// The name of a cookie that would be sent to the main frame's URL.
    Cookie(String),
    /// A response that the page has received since it was opened.
    #[serde(rename_all = "camelCase")]
    Response {
        url: String,
        status: u16,
        /// A JSON pointer (RFC 6901) that must point to a value in the body.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        has: Option<String>,
    },
    /// The HTTP status of the main frame's document is one of these.
    HttpStatus(Vec<u16>),
}

/// The state of a page at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observation {
    pub url: String,
    /// The number of the document, different for each one; a reload gives a new document.
    pub document: u64,
    /// Whether the document is loaded and no navigation is under way.
    pub settled: bool,
    pub http_status: Option<u16>,
    pub cookies: BTreeSet<String>,
    /// The selectors of the definition that match.
    pub present: BTreeSet<String>,
    pub responses: Vec<SeenResponse>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenResponse {
    /// Its number among the responses of the browser, in the order of their arrival, from 1.
    pub number: u64,
    pub url: String,
    pub status: u16,
    /// The body, if it is JSON and within the size limit.
    pub body: Option<Value>,
}

/// What a condition holds by; two mistakes of an applicant differ in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occurrence {
    /// The document with this number.
    Document(u64),
    /// The response with this number, the newest one that the condition names.
    Response(u64),
}

impl Condition {
    #[must_use]
    pub fn holds(&self, page: &Observation) -> bool {
        self.holds_after(page, 0)
    }

    /// Returns by what the condition holds, without the responses up to a number; `None` if it does
    /// not hold.
    pub(super) fn occurrence(&self, page: &Observation, after: u64) -> Option<Occurrence> {
        if !self.holds_after(page, after) {
            return None;
        }
        let newest = self.newest_response(page, after);
        Some(newest.map_or(Occurrence::Document(page.document), Occurrence::Response))
    }

    fn holds_after(&self, page: &Observation, after: u64) -> bool {
        match self {
            Self::All(all) => all.iter().all(|condition| condition.holds_after(page, after)),
            Self::Any(any) => any.iter().any(|condition| condition.holds_after(page, after)),
            Self::Not(condition) => !condition.holds_after(page, after),
            Self::Selector(selector) => page.present.contains(selector),
            Self::Url(pattern) => matches_url(pattern, &page.url),
            Self::Cookie(name) => page.cookies.contains(name),
            Self::Response { .. } => self.newest_response(page, after).is_some(),
            Self::HttpStatus(statuses) => {
                page.http_status.is_some_and(|status| statuses.contains(&status))
            }
        }
    }

    /// Returns the number of the newest response after another one that a part of the condition
    /// names. Parts within a `not` name none.
    fn newest_response(&self, page: &Observation, after: u64) -> Option<u64> {
        match self {
            Self::All(inner) | Self::Any(inner) => {
                inner.iter().filter_map(|condition| condition.newest_response(page, after)).max()
            }
            Self::Response { url, status, has } => {
                let named = page.responses.iter().filter(|response| {
                    response.number > after
                        && response.status == *status
                        && matches_url(url, &response.url)
                        && has.as_deref().is_none_or(|pointer| {
                            response.body.as_ref().and_then(|body| body.pointer(pointer)).is_some()
                        })
                });
                named.map(|response| response.number).max()
            }
            Self::Not(_)
            | Self::Selector(_)
            | Self::Url(_)
            | Self::Cookie(_)
            | Self::HttpStatus(_) => None,
        }
    }

    /// Calls `visit` with this condition and all conditions nested in it.
    pub(super) fn walk<'a>(&'a self, visit: &mut impl FnMut(&'a Self)) {
        visit(self);
        match self {
            Self::All(inner) | Self::Any(inner) => {
                for condition in inner {
                    condition.walk(visit);
                }
            }
            Self::Not(inner) => inner.walk(visit),
            Self::Selector(_)
            | Self::Url(_)
            | Self::Cookie(_)
            | Self::Response { .. }
            | Self::HttpStatus(_) => (),
        }
    }
}

/// Returns whether the path of `url` matches `pattern`, in which `*` matches any sequence of
/// characters.
#[must_use]
pub fn matches_url(pattern: &str, url: &str) -> bool {
    glob(pattern, path_of(url))
}

fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/");
    path.split(['?', '#']).next().unwrap_or("/")
}

fn glob(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        let Some(after) = rest.find(piece).and_then(|at| rest.get(at + piece.len()..)) else {
            return false;
        };
        rest = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_paths() {
        let matching = [
            ("/login*", "https://a.test/login?x=1"),
            ("/login*", "https://a.test/login/2"),
            ("/api/me", "http://a.test:81/api/me#x"),
            ("/a/*/c", "https://a.test/a/b/b/c"),
            ("/", "https://a.test"),
            ("*", "https://a.test/whatever"),
        ];
        for (pattern, url) in matching {
            assert!(matches_url(pattern, url), "{pattern} {url}");
        }
        let different =
            [("/login", "https://a.test/login2"), ("/a/*/c", "https://a.test/a/c"), ("/x*", "/y")];
        for (pattern, url) in different {
            assert!(!matches_url(pattern, url), "{pattern} {url}");
        }
    }
}
