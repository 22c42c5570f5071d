//! What can be seen of a page, and conditions over it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A condition over one [`Observation`]. Language-neutral on purpose: no text of a page counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    /// A CSS selector that matches a visible element of the main frame.
    Selector(String),
    /// The path of the main frame's URL; `*` stands for any run of characters.
    Url(String),
    /// The name of a cookie that would be sent to the main frame's URL.
    Cookie(String),
    /// A response the page was given since it was opened.
    #[serde(rename_all = "camelCase")]
    Response {
        url: String,
        status: u16,
        /// A JSON pointer (RFC 6901) that must lead to something in the body.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        has: Option<String>,
    },
    /// The status of the main frame's document.
    HttpStatus(Vec<u16>),
}

/// What is to be seen of a page at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observation {
    pub url: String,
    /// Another one for each document; a page that is loaded anew is another document.
    pub document: u64,
    /// The document is loaded and nothing is on its way that would replace it.
    pub settled: bool,
    pub http_status: Option<u16>,
    pub cookies: BTreeSet<String>,
    /// Those of the definition's selectors that match.
    pub present: BTreeSet<String>,
    pub responses: Vec<SeenResponse>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenResponse {
    pub url: String,
    pub status: u16,
    /// The body, where it is JSON and of modest size.
    pub body: Option<Value>,
}

impl Condition {
    #[must_use]
    pub fn holds(&self, seen: &Observation) -> bool {
        match self {
            Self::All(all) => all.iter().all(|condition| condition.holds(seen)),
            Self::Any(any) => any.iter().any(|condition| condition.holds(seen)),
            Self::Not(condition) => !condition.holds(seen),
            Self::Selector(selector) => seen.present.contains(selector),
            Self::Url(pattern) => matches_url(pattern, &seen.url),
            Self::Cookie(name) => seen.cookies.contains(name),
            Self::Response { url, status, has } => seen.responses.iter().any(|response| {
                response.status == *status
                    && matches_url(url, &response.url)
                    && has.as_deref().is_none_or(|pointer| {
                        response.body.as_ref().and_then(|body| body.pointer(pointer)).is_some()
                    })
            }),
            Self::HttpStatus(statuses) => {
                seen.http_status.is_some_and(|status| statuses.contains(&status))
            }
        }
    }

    /// Calls `visit` with this condition and all within it.
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

/// Whether the path of `url` fits `pattern`, in which `*` stands for any run of characters.
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
    fn patterns_fit_paths() {
        let fits = [
            ("/login*", "https://a.test/login?x=1"),
            ("/login*", "https://a.test/login/2"),
            ("/api/me", "http://a.test:81/api/me#x"),
            ("/a/*/c", "https://a.test/a/b/b/c"),
            ("/", "https://a.test"),
            ("*", "https://a.test/whatever"),
        ];
        for (pattern, url) in fits {
            assert!(matches_url(pattern, url), "{pattern} {url}");
        }
        let misfits =
            [("/login", "https://a.test/login2"), ("/a/*/c", "https://a.test/a/c"), ("/x*", "/y")];
        for (pattern, url) in misfits {
            assert!(!matches_url(pattern, url), "{pattern} {url}");
        }
    }
}
