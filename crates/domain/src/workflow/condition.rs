//! Observations of a page, and conditions over them.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{JsonPath, convert::collapse_spaces};

/// The number of conditions within each other that are evaluated, also across signals.
pub(super) const MAX_CONDITION_DEPTH: usize = 20;

/// A condition over one [`Observation`]. Except for [`Self::Text`], it does not depend on the page's
/// language.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    /// Another signal, by its name.
    Signal(String),
    /// A CSS selector that matches a visible element of the main frame. `a >>> b` finds `b` in the open
    /// shadow root of `a`, or in its document if `a` is a frame of the same origin or on one of the
    /// `hosts` and `ssoHosts`.
    Selector(String),
    /// A visible element that contains one of the texts. Upper case and spaces make no difference.
    #[serde(rename_all = "camelCase")]
    Text {
        selector: String,
        /// The texts by language tag. Those of all languages are compared.
        contains: BTreeMap<String, Vec<String>>,
    },
    /// A pattern for the path of the main frame's URL; `*` matches any sequence of characters.
    Url(String),
    /// The host of the main frame's URL.
    Host(String),
    /// A parameter in the query of the main frame's URL.
    #[serde(rename_all = "camelCase")]
    Query {
        name: String,
        /// A pattern for its value; without it, any value.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<String>,
    },
    /// A pattern for the fragment of the main frame's URL, without `#`.
    Fragment(String),
    /// The name of a cookie that would be sent to the main frame's URL.
    Cookie(String),
    /// A response of one of the `hosts` and `ssoHosts` that the page has received since it was opened, and
    /// since the run last entered an `awaitUser` node of kind `login` or `account_picker`: earlier ones may
    /// be of another account.
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
    /// The texts of the visible elements that conditions look at, by selector.
    pub texts: BTreeMap<String, String>,
    pub responses: Vec<SeenResponse>,
}

/// A response that a page has received.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeenResponse {
    /// Its number among the responses of the browser, in the order of their arrival, from 1.
    pub number: u64,
    pub url: String,
    pub status: u16,
    /// Whether the request was a POST; false if that is not known, as in runs that nobody authors and in
    /// replays.
    pub is_post: bool,
    /// The body, if it is JSON and within the size limit.
    pub body: Option<Value>,
    /// Why there is no body; `None` if there is one, or if that is not known, as in a replay.
    pub no_body: Option<NoBody>,
}

/// Why a response has no body that conditions and fields could read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoBody {
    /// It is longer than this number of KiB.
    TooLong { max_kib: usize },
    /// It is of another type, which has at most [`NoBody::MAX_TYPE_CHARS`]; empty if the site names none, or
    /// says that it is JSON.
    NotJson { content_type: String },
    /// The response has no content.
    Empty,
    /// The response was interrupted.
    Interrupted,
    /// The browser does not have it any more, such as that of a page that was left.
    Unavailable,
}

impl NoBody {
    /// The length of a media type that is kept.
    pub const MAX_TYPE_CHARS: usize = 100;

    /// Returns the reason for a body that is not JSON. Sites also send, as JSON, what begins with characters
    /// against foreign scripts: the media type `content_type` then does not say what the body is.
    #[must_use]
    pub fn not_json(content_type: &str) -> Self {
        let name = content_type.to_ascii_lowercase();
        let is_json = name.ends_with("/json") || name.ends_with("+json");
        let content_type = if is_json { String::new() } else { content_type.to_owned() };
        Self::NotJson { content_type }
    }
}

/// What a condition holds by; two mistakes of an applicant differ in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occurrence {
    /// The document with this number.
    Document(u64),
    /// The response with this number, the newest one that the condition names.
    Response(u64),
}

/// The signals of a definition, evaluated on one observation.
pub(super) struct SignalEvaluation<'a> {
    signals: &'a BTreeMap<String, Condition>,
    page: &'a Observation,
    url: UrlParts<'a>,
    /// The texts of the page as they are compared, by selector.
    texts: BTreeMap<&'a str, String>,
    /// The responses that count, each with the path of its URL.
    responses: Vec<(&'a SeenResponse, &'a str)>,
}

impl<'a> SignalEvaluation<'a> {
    /// Takes from a page what conditions compare. Only responses with a higher number than `after`
    /// count.
    pub(super) fn new(
        signals: &'a BTreeMap<String, Condition>,
        page: &'a Observation,
        after: u64,
    ) -> Self {
        let texts = page.texts.iter();
        let responses = page.responses.iter().filter(|response| response.number > after);
        Self {
            signals,
            page,
            url: url_parts(&page.url),
            texts: texts.map(|(selector, text)| (selector.as_str(), plain(text))).collect(),
            responses: responses
                .map(|response| (response, url_parts(&response.url).path))
                .collect(),
        }
    }

    /// Returns by what a signal holds; `None` if it does not hold.
    pub(super) fn occurrence(&self, signal: &str) -> Option<Occurrence> {
        let condition = self.signals.get(signal)?;
        if !self.condition_holds(condition, 0) {
            return None;
        }
        let newest = self.newest_response(condition, 0);
        Some(newest.map_or(Occurrence::Document(self.page.document), Occurrence::Response))
    }

    pub(super) fn condition_holds(&self, condition: &Condition, depth: usize) -> bool {
        if depth > MAX_CONDITION_DEPTH {
            return false;
        }
        let page = self.page;
        match condition {
            Condition::All(all) => all.iter().all(|inner| self.condition_holds(inner, depth + 1)),
            Condition::Any(any) => any.iter().any(|inner| self.condition_holds(inner, depth + 1)),
            Condition::Not(inner) => !self.condition_holds(inner, depth + 1),
            Condition::Signal(name) => {
                let signal = self.signals.get(name);
                signal.is_some_and(|signal| self.condition_holds(signal, depth + 1))
            }
            Condition::Selector(selector) => page.present.contains(selector),
            Condition::Text { selector, contains } => {
                self.texts.get(selector.as_str()).is_some_and(|text| {
                    contains.values().flatten().any(|wanted| text.contains(&plain(wanted)))
                })
            }
            Condition::Url(pattern) => glob(pattern, self.url.path),
            Condition::Host(host) => self.url.host.eq_ignore_ascii_case(host),
            Condition::Query { name, value } => {
                let query = self.url.query.unwrap_or_default();
                parameters(query).any(|(key, text)| {
                    key == *name && value.as_deref().is_none_or(|value| glob(value, &text))
                })
            }
            Condition::Fragment(pattern) => {
                self.url.fragment.is_some_and(|fragment| glob(pattern, fragment))
            }
            Condition::Cookie(name) => page.cookies.contains(name),
            Condition::Response { .. } => self.newest_response(condition, depth).is_some(),
            Condition::HttpStatus(statuses) => {
                page.http_status.is_some_and(|status| statuses.contains(&status))
            }
        }
    }

    /// Returns the number of the newest response that a part of the condition names. Parts within a
    /// `not` name none.
    fn newest_response(&self, condition: &Condition, depth: usize) -> Option<u64> {
        if depth > MAX_CONDITION_DEPTH {
            return None;
        }
        match condition {
            Condition::All(inner) | Condition::Any(inner) => {
                let inner = inner.iter().filter_map(|inner| self.newest_response(inner, depth + 1));
                inner.max()
            }
            Condition::Signal(name) => self.newest_response(self.signals.get(name)?, depth + 1),
            Condition::Response { url, status, has } => {
                let named = self.responses.iter().filter(|(response, path)| {
                    response.status == *status
                        && glob(url, path)
                        && has.as_deref().is_none_or(|pointer| {
                            response.body.as_ref().and_then(|body| body.pointer(pointer)).is_some()
                        })
                });
                named.map(|(response, _)| response.number).max()
            }
            Condition::Not(_)
            | Condition::Selector(_)
            | Condition::Text { .. }
            | Condition::Url(_)
            | Condition::Host(_)
            | Condition::Query { .. }
            | Condition::Fragment(_)
            | Condition::Cookie(_)
            | Condition::HttpStatus(_) => None,
        }
    }
}

fn plain(text: &str) -> String {
    collapse_spaces(text).to_lowercase()
}

impl Condition {
    /// Adds the selectors of this condition, which is at `path`, and of those nested in it.
    pub(super) fn selector_paths<'a>(
        &'a self,
        path: &JsonPath,
        selectors: &mut Vec<(JsonPath, &'a str)>,
    ) {
        match self {
            Self::All(inner) | Self::Any(inner) => {
                let list = path.member(if matches!(self, Self::All(_)) { "all" } else { "any" });
                for (index, condition) in inner.iter().enumerate() {
                    condition.selector_paths(&list.item(index), selectors);
                }
            }
            Self::Not(inner) => inner.selector_paths(&path.member("not"), selectors),
            Self::Selector(selector) => selectors.push((path.member("selector"), selector)),
            Self::Text { selector, .. } => {
                selectors.push((path.member("text").member("selector"), selector));
            }
            Self::Signal(_)
            | Self::Url(_)
            | Self::Host(_)
            | Self::Query { .. }
            | Self::Fragment(_)
            | Self::Cookie(_)
            | Self::Response { .. }
            | Self::HttpStatus(_) => (),
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
            Self::Signal(_)
            | Self::Selector(_)
            | Self::Text { .. }
            | Self::Url(_)
            | Self::Host(_)
            | Self::Query { .. }
            | Self::Fragment(_)
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
    glob(pattern, url_parts(url).path)
}

/// The parts of a URL that conditions compare.
struct UrlParts<'a> {
    host: &'a str,
    path: &'a str,
    query: Option<&'a str>,
    fragment: Option<&'a str>,
}

/// Splits a URL of a browser, which is normalized (WHATWG URL Standard).
fn url_parts(url: &str) -> UrlParts<'_> {
    let (url, fragment) = url.split_once('#').map_or((url, None), |(url, f)| (url, Some(f)));
    let (url, query) = url.split_once('?').map_or((url, None), |(url, q)| (url, Some(q)));
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let at = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(at);
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default();
    UrlParts { host, path: if path.is_empty() { "/" } else { path }, query, fragment }
}

/// Returns the names and values of a query (WHATWG URL Standard, section 5.1).
fn parameters(query: &str) -> impl Iterator<Item = (String, String)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (percent_decoded(name), percent_decoded(value))
    })
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let decoded = match (first, tail) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)).map(|(high, low)| high * 16 + low),
            _ => None,
        };
        bytes.push(decoded.unwrap_or(if *first == b'+' { b' ' } else { *first }));
        rest = if decoded.is_some() { tail.get(2..).unwrap_or_default() } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok())
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
    use serde_json::json;

    use super::*;

    fn holds(condition: &Value, page: &Observation) -> bool {
        let condition = serde_json::from_value(condition.clone()).unwrap();
        let signals = [("signal".to_owned(), condition)].into();
        SignalEvaluation::new(&signals, page, 0).occurrence("signal").is_some()
    }

    #[test]
    fn parts_of_the_url_are_compared() {
        let page = |url: &str| Observation { url: url.to_owned(), ..Observation::default() };
        for (condition, url) in [
            (json!({ "query": { "name": "tab" } }), "https://a.test/?x=1&tab"),
            (
                json!({ "query": { "name": "tab", "value": "sec*" } }),
                "https://a.test/?tab=security#x",
            ),
            (
                json!({ "query": { "name": "a b", "value": "c/d é" } }),
                "https://a.test/?a+b=c%2Fd%20%C3%A9",
            ),
            (json!({ "query": { "name": "t", "value": "" } }), "https://a.test/?t=1&t="),
            (json!({ "fragment": "/account*" }), "https://a.test/app#/account/1?x"),
            (json!({ "host": "a.test" }), "https://A.test:8443/b.test"),
            (json!({ "url": "/x" }), "https://a.test/x?y=/z"),
        ] {
            assert!(holds(&condition, &page(url)), "{condition} {url}");
        }
        for (condition, url) in [
            (json!({ "query": { "name": "tab" } }), "https://a.test/#?tab=1"),
            (json!({ "query": { "name": "tab", "value": "x" } }), "https://a.test/?tab=xy&tabs=x"),
            (json!({ "query": { "name": "a", "value": "%" } }), "https://a.test/?a=%2"),
            (json!({ "fragment": "/account" }), "https://a.test/account"),
            (json!({ "host": "a.test" }), "https://a.test.b.test/"),
            (json!({ "host": "b.test" }), "https://a.test/?u=https://b.test/"),
        ] {
            assert!(!holds(&condition, &page(url)), "{condition} {url}");
        }
    }

    #[test]
    fn texts_of_elements_are_compared_in_each_language() {
        let page = Observation {
            texts: [(".alert".to_owned(), " Das  PASSWORT ist\u{a0}falsch ".to_owned())].into(),
            ..Observation::default()
        };
        let contains = json!({ "en": ["wrong password"], "de": ["passwort ist falsch"] });
        let condition =
            |selector: &str| json!({ "text": { "selector": selector, "contains": contains } });
        assert!(holds(&condition(".alert"), &page));
        assert!(!holds(&condition(".other"), &page));
    }

    #[test]
    fn a_signal_stands_for_its_condition() {
        let signals: BTreeMap<String, Condition> = serde_json::from_value(json!({
            "form": { "selector": "form" },
            "refused": { "response": { "url": "/login", "status": 401 } },
            "both": { "all": [{ "signal": "form" }, { "signal": "refused" }] },
            "circle": { "not": { "signal": "circle" } },
        }))
        .unwrap();
        let response = SeenResponse {
            number: 7,
            url: "https://a.test/login".into(),
            status: 401,
            ..SeenResponse::default()
        };
        let page = Observation {
            document: 3,
            present: ["form".to_owned()].into(),
            responses: vec![response],
            ..Observation::default()
        };
        let evaluation = |after| SignalEvaluation::new(&signals, &page, after);
        assert_eq!(evaluation(0).occurrence("both"), Some(Occurrence::Response(7)));
        assert_eq!(evaluation(7).occurrence("both"), None);
        assert_eq!(evaluation(0).occurrence("form"), Some(Occurrence::Document(3)));
        // A definition with a circle is not valid; its evaluation ends all the same.
        let _ = evaluation(0).occurrence("circle");
    }

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
