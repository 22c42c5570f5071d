//! Records runs of authors, so that their definitions can be run again without a browser.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use chrono::{DateTime, Utc};
use domain::workflow::{
    Command, Definition, End, Fixture, FixtureEvent, Observation, PageTree, RunResult, StepResult,
    TraceEvent, mask_body, mask_json, mask_url,
};
use ports::browser::Browser;

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
                let (url, arrived) = (mask_url(url), *result == StepResult::Arrived);
                self.state().push(FixtureEvent::Visit { url, arrived });
            }
            (Command::Act(_), StepResult::Acted) => self.state().push(FixtureEvent::Act),
            (Command::Consent { .. }, StepResult::Answered { share }) => {
                self.state().push(FixtureEvent::Answer { share: *share });
            }
            (Command::Fetch(request), _) => {
                let response = if let StepResult::Read(body) = result {
                    Some(mask_json(body.clone()))
                } else {
                    None
                };
                let (method, url) = (request.method, mask_url(&request.url));
                let body = request.body.as_deref().map(mask_body);
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
            state.push(FixtureEvent::CustomUrl { url: mask_url(url) });
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
                body: response.body.clone().map(mask_json),
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

/// Returns an event of a trace without the credentials in its URL.
pub(super) fn masked_event(event: TraceEvent) -> TraceEvent {
    if let TraceEvent::Observed { url, settled, signals } = event {
        TraceEvent::Observed { url: mask_url(&url), settled, signals }
    } else {
        event
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use domain::workflow::{Run, replay};
    use serde_json::json;
    use testkit::sample::noon;

    use super::*;
    use crate::testing::FakeBrowser;

    /// A definition that has a credential of one response in what it asks for next.
    fn definition() -> Arc<Definition> {
        let failed = json!({ "fail": "NO_DATA" });
        let document = json!({
            "schema": "avouch-workflow/1", "platform": "shop", "version": "1.0.0",
            "environment": "production", "displayName": "Shop", "icon": "/icon.svg",
            "loginUrl": "https://shop.test/", "hosts": ["shop.test"],
            "budgets": { "totalSeconds": 600, "steps": 40 },
            "signals": {},
            "start": "session",
            "nodes": {
                "session": {
                    "type": "collect", "via": { "fetch": "session" }, "fields": {},
                    "variables": { "t": "/sessionId" }, "onMissing": failed, "next": "open",
                },
                "open": {
                    "type": "goto", "url": "https://shop.test/home?sid={t}", "next": "profile",
                    "onFail": failed,
                },
                "profile": {
                    "type": "collect", "via": { "fetch": "profile" }, "fields": { "name": "/name" },
                    "onMissing": failed, "next": "review",
                },
                "review": { "type": "review", "textKey": "t", "timeoutSeconds": 60, "next": "end" },
                "end": { "type": "done" },
            },
            "requests": {
                "session": { "url": "https://shop.test/session", "expectStatus": 200, "maxBytes": 1000 },
                "profile": {
                    "url": "https://shop.test/profile?sid={t}", "method": "POST", "expectStatus": 200,
                    "maxBytes": 1000, "body": { "session": { "id": "{t}" } },
                },
            },
            "output": { "name": { "type": "string", "required": true, "labelKey": "t" } },
            "texts": { "en": { "t": "t" } },
        });
        Arc::new(serde_json::from_value(document).unwrap())
    }

    #[tokio::test]
    async fn a_run_that_passes_a_credential_on_is_replayed_without_it() {
        let (definition, browser) = (definition(), FakeBrowser::default());
        let capture = FixtureCapture::default();
        let mut run = Run::new(definition.clone(), noon());
        let moment = Moment { now: noon(), nodes: 1, is_typing: false };
        let mut result = StepResult::Begin;
        let mut asked = vec![];
        for next in [
            StepResult::Read(json!({ "sessionId": "7f3a" })),
            StepResult::Arrived,
            StepResult::Read(json!({ "name": "Ada" })),
            StepResult::Answered { share: true },
        ] {
            let command = run.next(result, noon()).command;
            asked.push(format!("{command:?}"));
            capture.record(&browser, &command, &next, moment).await;
            result = next;
        }
        assert_eq!(asked.concat().matches("7f3a").count(), 3, "{asked:?}");
        let Command::End(end) = run.next(result, noon()).command else { panic!("an end") };
        capture.end(run.path(), &end);
        let fixture = capture.finish(&definition).expect("a fixture");
        let text = serde_json::to_string(&fixture).unwrap();
        assert!(!text.contains("7f3a"), "{text}");
        let replayed = replay(&definition, &fixture, &|_, _, _| vec![]);
        assert_eq!(replayed.unrecorded, Vec::<String>::new());
        assert_eq!(fixture.expected.differences(&replayed.result), Vec::<String>::new());
        assert_eq!(replayed.result.data["name"], "Ada");
    }

    #[test]
    fn credentials_in_the_address_of_a_session_are_masked() {
        let capture = FixtureCapture::default();
        capture.custom_url("https://shop.test/users/ada?token=7f3a&tab=2");
        let masked = "https://shop.test/users/ada?token=masked&tab=2".to_owned();
        assert_eq!(capture.state().events, [FixtureEvent::CustomUrl { url: masked }]);
    }
}
