//! Records runs of authors, so that their definitions can be run again without a browser.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use chrono::{DateTime, Utc};
use domain::workflow::{
    Command, Definition, End, Fixture, FixtureEvent, Observation, PageTree, RunResult, StepResult,
    TraceEvent,
};
use ports::browser::Browser;
use serde_json::Value;

/// Parts of the names of members and parameters whose values are credentials.
const SECRET_PARTS: &[&str] = &[
    "assertion",
    "authorization",
    "cookie",
    "credential",
    "csrf",
    "passw",
    "secret",
    "sessionid",
    "session_id",
    "signature",
    "ticket",
    "token",
    "xsrf",
];
/// Whole names of such members and parameters.
const SECRET_NAMES: &[&str] = &["jwt", "otp", "pwd", "session", "sid"];
/// Parameters of redirects between an authorization server and a client (RFC 6749, section 4.1.2).
const REDIRECT_PARAMETERS: &[&str] = &["code", "nonce", "state"];
/// Parameters by which a page tells the next one what was typed as the user name (OpenID Connect Core 1.0,
/// section 3.1.2.1, for `login_hint`).
const USER_NAME_PARAMETERS: &[&str] = &["email", "login", "login_hint", "user_name", "username"];
const MASK: &str = "masked";
const MAX_MASK_DEPTH: usize = 64;

/// Records one run. What the applicant types, and values that look like credentials, are masked before
/// they are stored.
#[derive(Default)]
pub struct FixtureCapture(Mutex<State>);

#[derive(Default)]
struct State {
    started_at: Option<DateTime<Utc>>,
    events: Vec<FixtureEvent>,
    pages: Vec<PageTree>,
    /// The index of each page in the list.
    indices: HashMap<PageTree, usize>,
    newest_response: u64,
    last_observation: Option<Observation>,
    last_page: Option<usize>,
    /// The number of nodes that the run had entered at the last state of the page.
    nodes: usize,
    result: Option<RunResult>,
    /// Whether a bound was reached, so that the fixture is a part of the run.
    is_cut: bool,
}

/// When a command was carried out.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub now: DateTime<Utc>,
    /// The number of nodes that the run had entered.
    pub nodes: usize,
    /// Whether the applicant is asked to type.
    pub is_typing: bool,
}

impl FixtureCapture {
    /// Records the result of a command.
    pub(crate) async fn record(
        &self,
        browser: &dyn Browser,
        command: &Command,
        result: &StepResult,
        Moment { now, nodes, is_typing }: Moment,
    ) {
        match (command, result) {
            (Command::Goto { url }, _) => {
                let (url, arrived) = (url.clone(), *result == StepResult::Arrived);
                self.state().push(FixtureEvent::Visit { url, arrived });
            }
            (Command::Act(_), StepResult::Acted) => self.state().push(FixtureEvent::Act),
            (Command::Consent { .. }, StepResult::Answered { share }) => {
                self.state().push(FixtureEvent::Answer { share: *share });
            }
            (Command::Fetch(request), _) => {
                let response = if let StepResult::Read(body) = result {
                    Some(masked(body.clone(), 0))
                } else {
                    None
                };
                let (method, url, body) =
                    (request.method, request.url.clone(), request.body.clone());
                self.state().push(FixtureEvent::Fetch { method, url, body, response });
            }
            (Command::Watch, StepResult::Seen(page)) => {
                match browser.page_tree(is_typing).await {
                    Ok(tree) => self.state().page(page, tree, now, Seen::Watched { nodes }),
                    // Its document is being replaced, or is too large for a fixture.
                    Err(_) => self.state().responses(page),
                }
            }
            (Command::ReadDom { .. }, _) => {
                if let (Ok(page), Ok(tree)) =
                    (browser.observe().await, browser.page_tree(is_typing).await)
                {
                    self.state().page(&page, tree, now, Seen::Read);
                }
            }
            (Command::ReadResponse { .. }, _) => {
                if let Ok(page) = browser.observe().await {
                    self.state().responses(&page);
                }
            }
            // The address is recorded when the run accepts it.
            (
                Command::Watch
                | Command::Act(_)
                | Command::Consent { .. }
                | Command::AskCustomUrl
                | Command::End(_),
                _,
            ) => (),
        }
    }

    /// Records the address that the session opens, once.
    pub(crate) fn custom_url(&self, url: &str) {
        let mut state = self.state();
        let is_recorded =
            state.events.iter().any(|event| matches!(event, FixtureEvent::CustomUrl { .. }));
        if !is_recorded {
            state.push(FixtureEvent::CustomUrl { url: url.to_owned() });
        }
    }

    /// Begins anew: each attempt is a run in a browser of its own, and the last one is captured.
    pub(crate) fn restart(&self) {
        *self.state() = State::default();
    }

    /// Records the end of the run.
    pub(crate) fn end(&self, path: &[String], end: &End) {
        self.state().result = Some(RunResult::new(path.to_vec(), end));
    }

    /// Returns the fixture of a run with this definition; `None` if the run did not end, or was too
    /// long to be recorded.
    #[must_use]
    pub fn finish(&self, definition: &Definition) -> Option<Fixture> {
        let mut state = self.state();
        if state.is_cut {
            return None;
        }
        Some(Fixture {
            schema: Fixture::SCHEMA.to_owned(),
            platform: definition.platform.clone(),
            version: definition.version.clone(),
            expected: state.result.take()?,
            events: std::mem::take(&mut state.events),
            pages: std::mem::take(&mut state.pages),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// By which command a run saw a state of the page.
#[derive(Clone, Copy)]
enum Seen {
    Read,
    Watched { nodes: usize },
}

impl State {
    fn push(&mut self, event: FixtureEvent) {
        if self.events.len() < Fixture::MAX_EVENTS {
            self.events.push(event);
        } else {
            self.is_cut = true;
        }
    }

    /// Records the responses that are new.
    fn responses(&mut self, seen: &Observation) {
        for response in &seen.responses {
            if response.number <= self.newest_response {
                continue;
            }
            self.newest_response = response.number;
            self.push(FixtureEvent::Response {
                number: response.number,
                url: mask_url(&response.url),
                status: response.status,
                body: response.body.clone().map(|body| masked(body, 0)),
            });
        }
    }

    /// Records a state of the page, if it is another one, was read, or is the first of a node.
    fn page(&mut self, seen: &Observation, tree: PageTree, now: DateTime<Utc>, by: Seen) {
        let started_at = *self.started_at.get_or_insert(now);
        self.responses(seen);
        let Some(page) = self.index(tree) else { return };
        let is_same = self.last_page == Some(page) && self.last_observation.as_ref() == Some(seen);
        let (is_read, is_first) = match by {
            Seen::Read => (true, false),
            Seen::Watched { nodes } => (false, std::mem::replace(&mut self.nodes, nodes) != nodes),
        };
        if is_same && !is_read && !is_first {
            return;
        }
        (self.last_page, self.last_observation) = (Some(page), Some(seen.clone()));
        self.push(FixtureEvent::Page {
            at: u64::try_from((now - started_at).num_milliseconds()).unwrap_or_default(),
            page,
            url: mask_url(&seen.url),
            document: seen.document,
            settled: seen.settled,
            http_status: seen.http_status,
            cookies: seen.cookies.clone(),
            is_read,
            is_first,
        });
    }

    fn index(&mut self, tree: PageTree) -> Option<usize> {
        if let Some(index) = self.indices.get(&tree) {
            return Some(*index);
        }
        if self.pages.len() == Fixture::MAX_PAGES {
            self.is_cut = true;
            return None;
        }
        let index = self.pages.len();
        self.pages.push(tree.clone());
        self.indices.insert(tree, index);
        Some(index)
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.contains(&name.as_str()) || SECRET_PARTS.iter().any(|part| name.contains(part))
}

/// Returns JSON without the values of members that are credentials by their names.
fn masked(value: Value, depth: usize) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, member)| {
                let is_value = !member.is_object() && !member.is_array() && !member.is_null();
                let hidden = (is_value && is_secret(&name)) || depth == MAX_MASK_DEPTH;
                let member = if hidden { MASK.into() } else { masked(member, depth + 1) };
                (name, member)
            });
            Value::Object(members.collect())
        }
        Value::Array(_) if depth == MAX_MASK_DEPTH => MASK.into(),
        Value::Array(items) => items.into_iter().map(|item| masked(item, depth + 1)).collect(),
        scalar @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => scalar,
    }
}

/// Returns an event of a trace without the credentials in its URL.
pub(super) fn masked_event(event: TraceEvent) -> TraceEvent {
    if let TraceEvent::Observed { url, settled, signals } = event {
        TraceEvent::Observed { url: mask_url(&url), settled, signals }
    } else {
        event
    }
}

/// Returns a URL without the values of parameters that are credentials or user names by their names, in its
/// query and its fragment.
fn mask_url(url: &str) -> String {
    url.split_inclusive(['?', '&', '#'])
        .map(|part| {
            let end = part.len() - usize::from(part.ends_with(['?', '&', '#']));
            let (pair, separator) = part.split_at(end);
            match pair.split_once('=') {
                Some((name, value))
                    if !value.is_empty()
                        && (is_secret(name)
                            || REDIRECT_PARAMETERS.contains(&name)
                            || USER_NAME_PARAMETERS.contains(&name)) =>
                {
                    format!("{name}={MASK}{separator}")
                }
                Some(_) | None => part.to_owned(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn credentials_in_urls_and_json_are_masked() {
        for (url, expected) in [
            ("https://a.test/?code=1&page=2", "https://a.test/?code=masked&page=2"),
            ("https://a.test/cb#access_token=x&b=1", "https://a.test/cb#access_token=masked&b=1"),
            ("https://a.test/?page=2", "https://a.test/?page=2"),
            ("https://a.test/?state=", "https://a.test/?state="),
            ("https://a.test/2?login_hint=ada&n=2", "https://a.test/2?login_hint=masked&n=2"),
        ] {
            assert_eq!(mask_url(url), expected);
        }
        let body =
            json!({ "id": 1, "sessionId": "x", "data": [{ "csrfToken": "y", "name": "Ada" }] });
        let expected = json!({ "id": 1, "sessionId": "masked", "data": [{ "csrfToken": "masked", "name": "Ada" }] });
        assert_eq!(masked(body, 0), expected);
    }
}
