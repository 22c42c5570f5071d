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
use serde_json::Value;

use crate::digest::sha256;

/// What is kept of one run at most, in bytes of JSON. It is kept as JSON, since a parsed value may take
/// many times the memory.
const MAX_RECORDED_BYTES: usize = 32 * 1024 * 1024;

/// Records one run. What the applicant types, and values that look like credentials, are masked before
/// they are stored.
#[derive(Default)]
pub struct FixtureCapture(Mutex<State>);

#[derive(Default)]
struct State {
    /// Whether runs are not recorded.
    is_paused: bool,
    started_at: Option<DateTime<Utc>>,
    /// Each event as JSON.
    events: Vec<Vec<u8>>,
    /// Each page as JSON.
    pages: Vec<Vec<u8>>,
    /// The index of each page in the list, by the SHA-256 hash of its JSON.
    indices: HashMap<[u8; 32], usize>,
    /// The size of the events and pages.
    bytes: usize,
    has_custom_url: bool,
    newest_response: u64,
    last_observation: Option<Observation>,
    last_page: Option<usize>,
    /// The number of nodes that the run had entered at the last state of the page.
    nodes: usize,
    result: Option<RunResult>,
    /// Whether a bound was reached. Nothing is kept then: a part of the run cannot be replayed.
    is_cut: bool,
}

/// When a command was carried out.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub now: DateTime<Utc>,
    /// The number of nodes that the run had entered.
    pub nodes: usize,
}

/// A page that a command looked at, as it was then.
pub(crate) struct RecordedPage {
    pub seen: Observation,
    /// `None` if its document was being replaced, or is too large for a fixture.
    pub tree: Option<PageTree>,
}

impl FixtureCapture {
    /// Returns whether the run is recorded.
    pub(crate) fn is_recording(&self) -> bool {
        self.state().is_recording()
    }

    /// Records the result of a command, and the page that it looked at.
    pub(crate) async fn record(
        &self,
        browser: &dyn Browser,
        command: &Command,
        result: &StepResult,
        page: Option<RecordedPage>,
        Moment { now, nodes }: Moment,
    ) {
        if !self.is_recording() {
            return;
        }
        match (command, result) {
            (Command::Goto { url }, _) => {
                let (url, arrived) = (mask_url(url), *result == StepResult::Arrived);
                self.state().push(&FixtureEvent::Visit { url, arrived });
            }
            (Command::Act(_), StepResult::Acted) => self.state().push(&FixtureEvent::Act),
            (Command::Consent { .. }, StepResult::Answered { share }) => {
                self.state().push(&FixtureEvent::Answer { share: *share });
            }
            (Command::Fetch(request), _) => {
                let response = if let StepResult::Read(body) = result {
                    Some(mask_json(body.clone()))
                } else {
                    None
                };
                let (method, url) = (request.method, mask_url(&request.url));
                let body = request.body.as_deref().map(mask_body);
                let is_null = response == Some(Value::Null);
                self.state().push(&FixtureEvent::Fetch { method, url, body, response, is_null });
            }
            (Command::Watch, StepResult::Seen(_)) => {
                self.record_page(page, now, Seen::Watched { nodes });
            }
            (Command::ReadDom { .. }, _) => self.record_page(page, now, Seen::Read),
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

    /// Records a page that was looked at.
    fn record_page(&self, page: Option<RecordedPage>, now: DateTime<Utc>, by: Seen) {
        let Some(RecordedPage { seen, tree }) = page else { return };
        if let Some(tree) = tree {
            self.state().page(&seen, &tree, now, by);
        } else {
            self.state().responses(&seen);
        }
    }

    /// Records the address that the session opens, once.
    pub(crate) fn custom_url(&self, url: &str) {
        let mut state = self.state();
        if !std::mem::replace(&mut state.has_custom_url, true) {
            state.push(&FixtureEvent::CustomUrl { url: mask_url(url) });
        }
    }

    /// Begins anew: each attempt is a run in a browser of its own, and the last one is captured.
    pub(crate) fn restart(&self) {
        let mut state = self.state();
        *state = State { is_paused: state.is_paused, ..State::default() };
    }

    /// Drops what was recorded, and records nothing until [`FixtureCapture::resume`].
    pub(crate) fn pause(&self) {
        *self.state() = State { is_paused: true, ..State::default() };
    }

    /// Records the runs that begin from now on.
    pub(crate) fn resume(&self) {
        *self.state() = State::default();
    }

    /// Records the end of the run.
    pub(crate) fn end(&self, path: &[String], end: &End) {
        let mut state = self.state();
        if state.is_recording() {
            state.result = Some(RunResult::new(path.to_vec(), end));
        }
    }

    /// Returns the fixture of a run with this definition; `None` if the run did not end, was too long
    /// or too large to be recorded, or was not to be recorded.
    #[must_use]
    pub fn finish(&self, definition: &Definition) -> Option<Fixture> {
        let (expected, events, pages) = {
            let mut state = self.state();
            let expected = state.result.take()?;
            (expected, std::mem::take(&mut state.events), std::mem::take(&mut state.pages))
        };
        let event = |json: Vec<u8>| serde_json::from_slice::<FixtureEvent>(&json).ok();
        let page = |json: Vec<u8>| serde_json::from_slice::<PageTree>(&json).ok();
        Some(Fixture {
            schema: Fixture::SCHEMA.to_owned(),
            platform: definition.platform.clone(),
            version: definition.version.clone(),
            expected,
            events: events.into_iter().map(event).collect::<Option<_>>()?,
            pages: pages.into_iter().map(page).collect::<Option<_>>()?,
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
    const fn is_recording(&self) -> bool {
        !self.is_paused && !self.is_cut
    }

    /// Drops what was recorded.
    fn cut(&mut self) {
        *self = Self { is_paused: self.is_paused, is_cut: true, ..Self::default() };
    }

    /// Returns whether something of this size is to be kept, and counts it.
    fn admit(&mut self, bytes: usize) -> bool {
        if !self.is_recording() {
            return false;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_RECORDED_BYTES {
            self.cut();
        }
        !self.is_cut
    }

    fn push(&mut self, event: &FixtureEvent) {
        // It has no map with keys that are no strings, and can always be serialized.
        let json = serde_json::to_vec(event).unwrap_or_default();
        if self.events.len() == Fixture::MAX_EVENTS {
            self.cut();
        } else if self.admit(json.len()) {
            self.events.push(json);
        }
    }

    /// Records the responses that are new.
    fn responses(&mut self, seen: &Observation) {
        for response in &seen.responses {
            if response.number <= self.newest_response {
                continue;
            }
            self.newest_response = response.number;
            self.push(&FixtureEvent::Response {
                number: response.number,
                url: mask_url(&response.url),
                status: response.status,
                body: response.body.clone().map(mask_json),
            });
        }
    }

    /// Records a state of the page, if it is another one, was read, or is the first of a node.
    fn page(&mut self, seen: &Observation, tree: &PageTree, now: DateTime<Utc>, by: Seen) {
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
        self.push(&FixtureEvent::Page {
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

    /// Returns the index of a page in the list, to which it is added if it is new.
    fn index(&mut self, tree: &PageTree) -> Option<usize> {
        // It can always be serialized, as an event can.
        let json = serde_json::to_vec(tree).unwrap_or_default();
        let hash = sha256(&json);
        if let Some(index) = self.indices.get(&hash) {
            return Some(*index);
        }
        if self.pages.len() == Fixture::MAX_PAGES {
            self.cut();
            return None;
        }
        if !self.admit(json.len()) {
            return None;
        }
        let index = self.pages.len();
        self.pages.push(json);
        self.indices.insert(hash, index);
        Some(index)
    }
}

/// Returns an event of a trace without the credentials in its URL.
pub(super) fn masked_event(event: TraceEvent) -> TraceEvent {
    if let TraceEvent::Observed { url, settled, signals } = event {
        TraceEvent::Observed { url: mask_url(&url), settled, signals }
    } else if let TraceEvent::Unconfirmed { signal, url: Some(url) } = event {
        TraceEvent::Unconfirmed { signal, url: Some(mask_url(&url)) }
    } else {
        event
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use domain::workflow::{PageFetch, PageNode, Run, SeenResponse, replay};
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
        let moment = Moment { now: noon(), nodes: 1 };
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
            capture.record(&browser, &command, &next, None, moment).await;
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

    #[tokio::test]
    async fn a_response_that_is_null_is_recorded_as_such() {
        let (definition, browser) = (definition(), FakeBrowser::default());
        for (result, expected) in
            [(StepResult::Read(Value::Null), true), (StepResult::Unreadable, false)]
        {
            let capture = FixtureCapture::default();
            let moment = Moment { now: noon(), nodes: 1 };
            let request = PageFetch::get("https://shop.test/orders", 1000);
            capture.record(&browser, &Command::Fetch(request), &result, None, moment).await;
            capture.end(&[], &End::Declined);
            let fixture = capture.finish(&definition).expect("a fixture");
            let [FixtureEvent::Fetch { response: None, is_null, .. }] = &fixture.events[..] else {
                panic!("{:?}", fixture.events)
            };
            assert_eq!(*is_null, expected);
        }
    }

    #[test]
    fn credentials_in_the_address_of_a_session_are_masked() {
        let capture = FixtureCapture::default();
        capture.custom_url("https://shop.test/users/ada?token=7f3a&tab=2");
        // It is recorded once.
        capture.custom_url("https://shop.test/users/ada?token=7f3a&tab=2");
        capture.end(&[], &End::Declined);
        let url = "https://shop.test/users/ada?token=masked&tab=2".to_owned();
        let fixture = capture.finish(&definition()).expect("a fixture");
        assert_eq!(fixture.events, [FixtureEvent::CustomUrl { url }]);
    }

    /// A page with a text of this many bytes.
    fn tree(number: u64, bytes: usize) -> PageTree {
        let text = format!("{number}{}", "x".repeat(bytes));
        let node = PageNode { parent: Some(0), text: Some(text), ..PageNode::default() };
        PageTree { nodes: vec![PageNode::default(), node] }
    }

    fn watch(capture: &FixtureCapture, number: u64, tree: &PageTree) {
        let seen = Observation { document: number, ..Observation::default() };
        capture.state().page(&seen, tree, noon(), Seen::Watched { nodes: 1 });
    }

    #[test]
    fn a_page_that_is_seen_again_is_kept_once() {
        let capture = FixtureCapture::default();
        let trees = [tree(1, 10), tree(2, 10)];
        for (number, tree) in (1..).zip(trees.iter().chain(&trees)) {
            watch(&capture, number, tree);
        }
        capture.end(&[], &End::Declined);
        let fixture = capture.finish(&definition()).expect("a fixture");
        assert_eq!(fixture.pages, trees);
        let pages = fixture.events.iter().map(|event| {
            let FixtureEvent::Page { page, .. } = event else { panic!("{event:?}") };
            *page
        });
        assert_eq!(pages.collect::<Vec<_>>(), [0, 1, 0, 1]);
    }

    #[test]
    fn a_run_with_many_large_pages_or_responses_is_not_kept() {
        let response = |number: u64| Observation {
            responses: vec![SeenResponse {
                number,
                url: "https://shop.test/feed".into(),
                status: 200,
                body: Some(json!("x".repeat(1024 * 1024))),
                ..SeenResponse::default()
            }],
            ..Observation::default()
        };
        let pages = |capture: &FixtureCapture, number: u64| {
            watch(capture, number, &tree(number, 1024 * 1024));
        };
        let responses = |capture: &FixtureCapture, number: u64| {
            capture.state().responses(&response(number));
        };
        for of_pages in [true, false] {
            let capture = FixtureCapture::default();
            for number in 1..=40 {
                if of_pages {
                    pages(&capture, number);
                } else {
                    responses(&capture, number);
                }
                let state = capture.state();
                let kept: usize = state.events.iter().chain(&state.pages).map(Vec::len).sum();
                assert!(kept <= MAX_RECORDED_BYTES && kept == state.bytes, "{kept}");
                assert_eq!(state.is_cut, number > 31, "{number}");
            }
            capture.end(&[], &End::Declined);
            assert_eq!(capture.finish(&definition()), None);
            let state = capture.state();
            assert!(state.events.is_empty() && state.pages.is_empty() && state.indices.is_empty());
        }
    }

    #[test]
    fn a_trace_has_no_credentials_of_addresses() {
        let event = |url: &str| TraceEvent::Unconfirmed {
            signal: "in".to_owned(),
            url: Some(url.to_owned()),
        };
        let masked = masked_event(event("https://shop.test/?code=1"));
        assert_eq!(masked, event("https://shop.test/?code=masked"));
    }

    #[tokio::test]
    async fn a_run_in_which_the_author_looks_around_is_not_kept() {
        let (capture, browser) = (FixtureCapture::default(), FakeBrowser::default());
        let moment = Moment { now: noon(), nodes: 1 };
        let seen = StepResult::Seen(Observation::default());
        let page = || Some(RecordedPage { seen: Observation::default(), tree: Some(tree(1, 10)) });
        capture.pause();
        capture.restart();
        capture.record(&browser, &Command::Watch, &seen, page(), moment).await;
        capture.custom_url("https://shop.test/users/ada");
        capture.end(&[], &End::Declined);
        assert_eq!(capture.state().bytes, 0);
        assert_eq!(capture.finish(&definition()), None);
        capture.resume();
        capture.restart();
        capture.record(&browser, &Command::Watch, &seen, page(), moment).await;
        capture.end(&[], &End::Declined);
        assert_eq!(capture.finish(&definition()).map(|fixture| fixture.pages.len()), Some(1));
    }
}
