//! Changes in a studio that overlap: none of them is lost.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use async_trait::async_trait;
use definition_syntax::Syntax;
use domain::workflow::{
    Action, Definition, ElementRead, Fixture, Node, Observation, PageFetch, PageNode, PageTree,
    ReadFailure, Replayed, RunResult, SeenResponse, TraceEvent,
};
use ports::{
    authoring::{AuthoringError, AuthoringRuns, DefinitionStorage, RunPurpose, Stored},
    browser::{
        Browser, BrowserCredentials, BrowserError, CapturedPage, Fetched, Frame, Input,
        InspectedPage, ObservedSignals, PageOutline, PageState, Screen,
    },
    driving::{DefinitionReport, MockDefinitionService},
};
use serde_json::{Value, json};
use testkit::{clock::FakeClock, sample::noon};
use tokio::sync::Notify;

use crate::{
    signals::KnownPage,
    studio::{
        ChosenSource, Edit, RunFrom, Studio, StudioError, StudioParts, TraceSink, state::RunState,
        text_of,
    },
    studios::StudioDocument,
    tests::{changes::with_orders, page, with_text},
};

#[tokio::test(start_paused = true)]
async fn an_edit_that_waits_for_the_page_keeps_what_is_changed_meanwhile() {
    let world = World::new();
    let place = json!({ "page": { "inspection": 1, "at": "#email", "read": "text" } });
    world.edit_during(of_response(1, "since"), added("email", &place)).await.unwrap();
    let definition = world.definition();
    for name in ["tier", "since", "email"] {
        assert!(definition.output.contains_key(name), "{name}");
    }

    let document = text_of(&Definition { version: "2.0.0".to_owned(), ..definition });
    world.edit_during(of_response(2, "points"), Edit::Replace { document }).await.unwrap();
    let definition = world.definition();
    assert_eq!(definition.version, "2.0.0");
    assert!(definition.output.contains_key("points"));

    // There is no definition any more that could be changed.
    let document = "{".to_owned();
    let refused = world.edit_during(of_response(3, "late"), Edit::Replace { document }).await;
    assert!(matches!(refused, Err(StudioError::NoDefinition)), "{refused:?}");
    assert_eq!(world.studio.view().document, "{");
}

#[tokio::test(start_paused = true)]
async fn the_address_of_a_response_is_asked_for_once() {
    let World { studio, browser, .. } = World::new();
    let of = |number: u64, pointer: &str| {
        let from = json!({ "response": { "number": number, "pointer": pointer } });
        serde_json::from_value::<ChosenSource>(from).unwrap()
    };
    let (since, points, other) = (of(1, "/since"), of(1, "/points"), of(2, "/points"));
    let answered = async {
        browser.asked.notified().await;
        browser.answered.notify_one();
    };
    let (address, ()) = tokio::join!(studio.address(&since), answered);
    address.unwrap();
    // Nobody answers another request.
    let limit = Duration::from_secs(60);
    let again = tokio::time::timeout(limit, studio.address(&points)).await;
    again.expect("no second request for the same response").unwrap();
    assert!(tokio::time::timeout(limit, studio.address(&other)).await.is_err());
    browser.asked.notified().await;
}

#[tokio::test(start_paused = true)]
async fn a_member_is_added_at_the_address_that_was_shown() {
    let World { studio, browser, .. } = World::new();
    let other = |number: u64| {
        let url = "https://shop.example/api/watched".to_owned();
        let body = json!({ "since": format!("of response {number}") });
        SeenResponse { number, url, status: 200, body: Some(body), ..SeenResponse::default() }
    };
    let sees = |page: &str, responses: Vec<SeenResponse>| {
        let url = format!("https://shop.example/{page}");
        studio.shared.state().seen(Observation { url, responses, ..Observation::default() });
    };
    sees("orders", vec![other(4)]);
    for number in [1, 4] {
        let opened = studio.response(number).unwrap();
        assert_eq!(opened["pageUrl"], "https://shop.example/orders");
    }
    for (number, name) in [(1, "points"), (4, "since")] {
        let from = json!({ "response": { "number": number, "pointer": format!("/{name}") } });
        let source = serde_json::from_value::<ChosenSource>(from.clone()).unwrap();
        let answered = async {
            browser.asked.notified().await;
            browser.answered.notify_one();
        };
        let (shown, ()) = tokio::join!(studio.address(&source), answered);
        let shown = serde_json::to_value(shown.unwrap()).unwrap();
        // The page polls, receives much else, and goes elsewhere.
        let polled = [1, 4].map(|address| SeenResponse {
            number: number * 1000 + address,
            url: if address == 1 { "https://shop.example/api/1".to_owned() } else { other(4).url },
            status: 200,
            body: Some(json!({ "points": "8", "since": "later" })),
            ..SeenResponse::default()
        });
        let much = (0..100).map(|at| SeenResponse {
            number: number * 1000 + 10 + at,
            url: format!("https://shop.example/api/other/{at}"),
            status: 200,
            body: Some(body()),
            ..SeenResponse::default()
        });
        sees("elsewhere", polled.into_iter().chain(much).collect());
        let parts = shown["parts"].as_array().unwrap().iter().map(|part| part["choice"].clone());
        let address = json!({ "url": shown["url"], "parts": parts.collect::<Vec<_>>() });
        let edit = json!({
            "op": "addField", "name": name, "label": name, "type": "string", "required": true,
            "pii": false, "from": from, "convert": [], "address": address,
        });
        let edit = studio.edit(serde_json::from_value(edit).unwrap());
        let limit = Duration::from_secs(60);
        tokio::time::timeout(limit, edit).await.expect("no second request").unwrap();
    }
    let definition = studio.definition().unwrap();
    assert!(definition.requests.values().any(|request| request.url.ends_with("/api/1")));
    let opened = definition.nodes.values().any(
        |node| matches!(node, Node::Goto { url, .. } if url == "https://shop.example/elsewhere"),
    );
    assert!(!opened, "the page that was shown is opened");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_recorded_while_the_one_before_is_saved_is_not_saved() {
    let World { studio, storage, .. } = World::new();
    let record = |version: &str| {
        let fixture = Fixture {
            schema: Fixture::SCHEMA.to_owned(),
            platform: "shop".to_owned(),
            version: version.to_owned(),
            expected: RunResult::default(),
            events: vec![],
            pages: vec![],
        };
        studio.shared.change(|state| {
            state.recorded(fixture, Some(vec![]));
            true
        });
    };
    record("1.0.0");
    let meanwhile = async {
        storage.asked.notified().await;
        record("2.0.0");
        storage.answered.notify_one();
    };
    let (saved, ()) = tokio::join!(studio.save(), meanwhile);
    saved.unwrap();
    assert!(!studio.shared.state().is_saved());
    storage.answered.notify_one();
    studio.save().await.unwrap();
    assert!(studio.shared.state().is_saved());
}

const TOKEN: &str = "9a7b3c5d1e2f4a6b8c0d9e1f3a5b7c9d";

/// A run of a page that shows a token.
fn recorded() -> Fixture {
    let shown = PageNode { parent: Some(0), text: Some(TOKEN.to_owned()), ..PageNode::default() };
    let data = [("tier".to_owned(), json!("gold"))].into();
    Fixture {
        schema: Fixture::SCHEMA.to_owned(),
        platform: "shop".to_owned(),
        version: "1.0.0".to_owned(),
        expected: RunResult { data, ..RunResult::default() },
        events: vec![],
        pages: vec![PageTree { nodes: vec![PageNode::default(), shown] }],
    }
}

fn end_recorded_run(studio: &Studio) {
    studio.shared.change(|state| {
        state.began(RunState::Running, Some(Arc::new(with_orders())));
        state.has_ended = true;
        true
    });
}

#[tokio::test]
async fn a_recorded_run_has_no_tokens_and_its_author_is_told_how_many_were_masked() {
    let World { studio, .. } = World::new();
    end_recorded_run(&studio);
    studio.settle().await;
    let view = serde_json::to_value(studio.view()).unwrap();
    let fixture = &view["fixture"];
    assert_eq!((&fixture["maskedTokens"], &fixture["keptTokens"]), (&json!(1), &json!(0)));
    let stored = studio.shared.state().stored_fixture().expect("a recorded run");
    assert_eq!(stored.expected, recorded().expected);
    assert!(!serde_json::to_string(&stored).unwrap().contains(TOKEN), "{stored:?}");
}

#[tokio::test]
async fn an_edit_does_not_wait_until_the_tokens_of_a_run_are_masked() {
    let (edited, waits) = mpsc::channel();
    let was_free = Arc::<AtomicBool>::default();
    let seen = was_free.clone();
    let World { studio, .. } = World::with_replay(move || {
        if waits.recv_timeout(Duration::from_secs(10)).is_ok() {
            seen.store(true, Ordering::SeqCst);
        }
    });
    end_recorded_run(&studio);
    let edit = async {
        tokio::task::yield_now().await;
        drop(studio.changing());
        edited.send(()).unwrap();
        drop(edited);
    };
    tokio::join!(studio.settle(), edit);
    assert!(was_free.load(Ordering::SeqCst));
    assert!(studio.shared.state().stored_fixture().is_some());
}

#[tokio::test]
async fn what_is_seen_when_a_value_is_added_is_known_of_the_account_at_once() {
    let World { studio, .. } = World::new();
    let sees = |path: &str, text: &str| seen(&studio, path, text);
    let own_part = async || {
        let part = part_of_lovelace(&studio).await;
        (part["mayBeOwn"].clone(), part["choice"].clone())
    };
    let edit =
        async |edit: Value| studio.edit(serde_json::from_value(edit).unwrap()).await.unwrap();
    let as_it_is = json!("asItIs");
    let nothing = (json!(false), as_it_is.clone());
    assert_eq!(own_part().await, nothing);
    let mut field = json!({
        "op": "addField", "name": "slug", "label": "Slug", "type": "string", "required": false,
        "pii": false, "from": sees("home", "lovelace"), "convert": [],
    });
    edit(field.clone()).await;
    assert_eq!(own_part().await, (json!(true), as_it_is));
    edit(json!({ "op": "removeField", "name": "slug" })).await;
    assert_eq!(own_part().await, nothing);

    let variable = json!({
        "op": "addVariable", "name": "team", "from": sees("home", "Team lovelace"),
        "convert": [{ "match": "Team (\\w+)" }],
    });
    edit(variable).await;
    assert_eq!(own_part().await, (json!(true), json!({ "value": "team" })));
    // Another account may be signed in.
    studio.shared.state().began(RunState::Exploring, None);
    assert_eq!(own_part().await, nothing);
    // Nothing is known of a value that was not there.
    let mut from = sees("home", "lovelace");
    from["page"]["at"] = json!("#none");
    field["from"] = from;
    edit(field).await;
    assert_eq!(own_part().await, nothing);
}

#[tokio::test]
async fn a_selector_with_a_value_of_the_account_is_marked_wherever_it_is_proposed() {
    let World { studio, .. } = World::new();
    let row =
        |text: &str| format!("   li\n    a\n     \"A\"\n    b class=lovelace\n     \"{text}\"\n");
    let tree = page(&format!(
        "html\n body\n  ul\n  ul id=lovelace-orders\n{}{}  a title=Next+of+lovelace href=/b\n   \"Go\"",
        row("x"),
        row("y")
    ));
    let (value, link) = (with_text(&tree, "x"), with_text(&tree, "Go"));
    let url = "https://shop.example/orders".to_owned();
    let inspection = studio.shared.state().add_inspection(KnownPage { url, tree });
    let seen =
        |node: usize| serde_json::to_value(studio.element(inspection, node).unwrap()).unwrap();
    let own = |selectors: &Value| {
        let selectors = selectors.as_array().unwrap().iter();
        let has_word = |one: &&Value| one["selector"].as_str().unwrap().contains("lovelace");
        selectors.filter(has_word).map(|one| one["mayBeOwn"].clone()).collect::<Vec<_>>()
    };
    let marks = || {
        let (value, link) = (seen(value), seen(link));
        let lists = [&value["selectors"], &value["columns"], &link["nextSelectors"]];
        (lists.map(own), value["listMayBeOwn"].clone())
    };
    let (before, list) = marks();
    assert!(before.iter().all(|own| own.contains(&json!(false))), "{before:?}");
    assert_eq!(list, false);
    studio.shared.state().samples.insert("team".to_owned(), "Lovelace".to_owned());
    let (after, list) = marks();
    assert!(after.iter().all(|own| !own.is_empty() && !own.contains(&json!(false))), "{after:?}");
    assert_eq!(list, true);
    assert_eq!(seen(value)["columns"][0]["selector"], "b");
}

#[tokio::test]
async fn what_is_known_of_the_account_is_kept_until_it_is_read_again() {
    let World { studio, .. } = World::new();
    let edit =
        async |edit: Value| studio.edit(serde_json::from_value(edit).unwrap()).await.unwrap();
    edit(json!({
        "op": "addField", "name": "slug", "label": "Slug", "type": "string", "required": true,
        "pii": false, "from": seen(&studio, "home", "lovelace"), "convert": [],
    }))
    .await;
    let shown = async || {
        let part = part_of_lovelace(&studio).await;
        (part["mayBeOwn"].clone(), part["values"].clone())
    };
    let changed = |name: &str, reading: Value| {
        json!({
            "op": "editField", "name": name, "newName": "handle", "label": "Handle",
            "required": true, "pii": false, "reading": reading,
        })
    };
    let read = |result: Result<Value, ReadFailure>| {
        let event = TraceEvent::Read { name: "handle".to_owned(), found: None, result };
        studio.shared.state().traced(&event, noon());
    };
    let is_handle = (json!(true), json!(["handle"]));
    edit(changed("slug", Value::Null)).await;
    assert_eq!(shown().await, is_handle, "a field with another name is the same");
    studio.run(RunFrom::Here).await.unwrap();
    assert_eq!(shown().await, is_handle, "the run has read nothing");
    read(Err(ReadFailure::NotFound));
    assert_eq!(shown().await, is_handle, "nor could it");
    read(Ok(json!("byron")));
    assert_eq!(shown().await, (json!(false), json!([])));
    read(Ok(json!("lovelace")));
    studio.run(RunFrom::Here).await.unwrap();
    assert_eq!(shown().await, is_handle, "the run before has read it");

    // What is read elsewhere is another text. The one before is still that of the account.
    edit(changed("handle", json!({ "type": "string", "at": "#other" }))).await;
    let is_own = (json!(true), json!([]));
    assert_eq!(shown().await, is_own);
    studio.run(RunFrom::Here).await.unwrap();
    assert_eq!(shown().await, is_own);
    // Another account may be signed in.
    studio.shared.state().began(RunState::Exploring, None);
    assert_eq!(shown().await, (json!(false), json!([])));
}

#[tokio::test]
async fn what_an_earlier_browser_has_shown_is_not_known_of_the_account() {
    let World { studio, browser, .. } = World::new();
    let known = |name: &str| studio.shared.state().samples.contains_key(name);
    let of_page = |name: &str| added(name, &seen(&studio, "home", "lovelace"));
    let earlier = of_page("slug");
    studio.response(1).unwrap();
    studio.open().await.unwrap();
    studio.edit(earlier).await.unwrap();
    assert!(!known("slug"));
    studio.edit(of_page("handle")).await.unwrap();
    assert!(known("handle"));
    let answered = async {
        browser.asked.notified().await;
        browser.answered.notify_one();
    };
    let (edited, ()) = tokio::join!(studio.edit(of_response(1, "points")), answered);
    edited.unwrap();
    assert!(!known("points"));

    let number = {
        let url = "https://shop.example/api/9".to_owned();
        let (number, status, body) = (1, 200, Some(body()));
        let response = SeenResponse { number, url, status, body, ..SeenResponse::default() };
        let mut state = studio.shared.state();
        state.seen(Observation { responses: vec![response], ..Observation::default() });
        state.responses.newest()
    };
    let meanwhile = async {
        browser.asked.notified().await;
        studio.open().await.unwrap();
        browser.answered.notify_one();
    };
    let (edited, ()) = tokio::join!(studio.edit(of_response(number, "since")), meanwhile);
    edited.unwrap();
    assert!(studio.definition().unwrap().output.contains_key("since"));
    assert!(!known("since"));
}

/// Has the author see a page with a text, and returns the place of the text.
fn seen(studio: &Studio, path: &str, text: &str) -> Value {
    let url = format!("https://shop.example/{path}");
    let tree = page(&format!("html\n body\n  b id=slug\n   \"{text}\""));
    let inspection = studio.shared.state().add_inspection(KnownPage { url, tree });
    json!({ "page": { "inspection": inspection, "at": "#slug", "read": "text" } })
}

/// Returns what is shown of the part `lovelace` of an address.
async fn part_of_lovelace(studio: &Studio) -> Value {
    let from = seen(studio, "organizer/lovelace", "1 December");
    let address = studio.address(&serde_json::from_value(from).unwrap()).await.unwrap();
    serde_json::to_value(address).unwrap()["parts"][1].clone()
}

/// Returns an edit for which the page makes a request.
fn of_response(number: u64, name: &str) -> Edit {
    added(name, &json!({ "response": { "number": number, "pointer": format!("/{name}") } }))
}

fn added(name: &str, from: &Value) -> Edit {
    let edit = json!({
        "op": "addField", "name": name, "label": name, "type": "string", "required": true,
        "pii": false, "from": from, "convert": [],
    });
    serde_json::from_value(edit).unwrap()
}

/// What the page receives.
fn body() -> Value {
    json!({ "since": "2020", "points": "7", "late": "no" })
}

/// A studio in which the author looks around.
pub(super) struct World {
    pub(super) studio: Studio,
    pub(super) browser: Arc<SlowBrowser>,
    storage: Arc<SlowStorage>,
}

impl World {
    pub(super) fn new() -> Self {
        Self::with_replay(|| ())
    }

    /// Calls `replay` in each replay.
    fn with_replay(replay: impl Fn() + Send + 'static) -> Self {
        let mut definitions = MockDefinitionService::new();
        definitions.expect_validate().returning(|document| DefinitionReport {
            definition: serde_json::from_str(document).ok(),
            findings: vec![],
        });
        definitions.expect_replay().returning(move |_, fixture| {
            replay();
            Replayed { result: fixture.expected.clone(), trace: vec![], unrecorded: vec![] }
        });
        let browser = Arc::<SlowBrowser>::default();
        let clock = Arc::new(FakeClock::at(noon()));
        let storage = Arc::<SlowStorage>::default();
        let parts = StudioParts {
            definitions: Arc::new(definitions),
            syntax: Arc::new(Syntax),
            runs: Arc::new(OneRun(browser.clone())),
            storage: storage.clone(),
            publisher: None,
            clock: clock.clone(),
            probe: None,
            home: None,
            time_zone: None,
        };
        let document = StudioDocument {
            document: text_of(&with_orders()),
            fixture: None,
            is_saved: true,
            storage: storage.clone(),
            publisher: None,
            probe: None,
            country: "US".to_owned(),
            home: None,
        };
        let studio = Studio::new(parts, &TraceSink::new(clock), document);
        let responses = [1, 2, 3].map(|number| {
            let url = format!("https://shop.example/api/{number}");
            SeenResponse { number, url, status: 200, body: Some(body()), ..SeenResponse::default() }
        });
        let url = "https://shop.example/orders".to_owned();
        let mut state = studio.shared.state();
        state.seen(Observation { responses: responses.into(), ..Observation::default() });
        state.add_inspection(KnownPage { url, tree: page("html\n body") });
        drop(state);
        Self { studio, browser, storage }
    }

    /// Makes an edit, and another change while the first one waits for the page.
    async fn edit_during(&self, edit: Edit, other: Edit) -> Result<(), StudioError> {
        let meanwhile = async {
            self.browser.asked.notified().await;
            let changed = self.studio.edit(other).await;
            self.browser.answered.notify_one();
            changed
        };
        let both = async { tokio::join!(self.studio.edit(edit), meanwhile) };
        let done = tokio::time::timeout(Duration::from_secs(60), both).await;
        let (edited, changed) = done.expect("no edit waits for another one");
        changed.unwrap();
        edited
    }

    fn definition(&self) -> Definition {
        (*self.studio.definition().unwrap()).clone()
    }
}

/// Answers a request when it is told to.
#[derive(Default)]
pub(super) struct SlowBrowser {
    asked: Notify,
    answered: Notify,
    /// The address of the page that is shown.
    pub(super) url: Mutex<String>,
    /// How often the page was looked at on another screen.
    pub(super) looks: AtomicUsize,
    /// Whether the page is too busy for that.
    pub(super) is_busy: AtomicBool,
}

#[async_trait]
impl Browser for SlowBrowser {
    async fn navigate(&self, _: &str) -> Result<(), BrowserError> {
        Ok(())
    }

    fn observe_signals(&self, _: ObservedSignals) {}

    async fn observe(&self) -> Result<Observation, BrowserError> {
        let url = self.url.lock().unwrap().clone();
        Ok(Observation { url, ..Observation::default() })
    }

    async fn changed(&self) {}

    async fn fetch(&self, _: &PageFetch) -> Result<Fetched, BrowserError> {
        self.asked.notify_one();
        self.answered.notified().await;
        Ok(Fetched { status: 200, body: body().to_string() })
    }

    async fn credentials(&self, _: &str) -> Result<BrowserCredentials, BrowserError> {
        Err(BrowserError::Gone)
    }

    async fn response(&self, _: &str, _: u64) -> Result<Option<String>, BrowserError> {
        Ok(None)
    }

    async fn read(&self, _: &[ElementRead]) -> Result<Vec<Value>, BrowserError> {
        Ok(vec![])
    }

    async fn capture(&self, _: &[ElementRead], _: bool) -> Result<CapturedPage, BrowserError> {
        Err(BrowserError::Gone)
    }

    async fn inspect(&self) -> Result<InspectedPage, BrowserError> {
        Err(BrowserError::Gone)
    }

    async fn inspect_on_other_screen(&self) -> Result<(Screen, InspectedPage), BrowserError> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        tokio::task::yield_now().await;
        if self.is_busy.load(Ordering::SeqCst) {
            return Err(BrowserError::TimedOut);
        }
        Ok((Screen::Phone, InspectedPage::default()))
    }

    async fn act(&self, _: &Action) -> Result<bool, BrowserError> {
        Ok(false)
    }

    async fn frame(&self, _: u64) -> Option<Arc<Frame>> {
        None
    }

    async fn page_state(&self, _: u64) -> Option<Arc<PageState>> {
        None
    }

    async fn outline(&self) -> Result<PageOutline, BrowserError> {
        Err(BrowserError::Gone)
    }

    fn input(&self, _: Input) {}

    async fn ended(&self) {}
}

/// Runs everything in one browser.
struct OneRun(Arc<SlowBrowser>);

#[async_trait]
impl AuthoringRuns for OneRun {
    async fn open(&self, _: &Definition, _: RunPurpose) -> Result<String, AuthoringError> {
        Ok("https://avouch.example/embed/".to_owned())
    }

    fn reload(&self, _: Arc<Definition>) {}

    fn browser(&self) -> Option<Arc<dyn Browser>> {
        Some(self.0.clone())
    }

    fn fixture(&self, _: &Definition) -> Option<Fixture> {
        Some(recorded())
    }

    async fn close(&self) {}
}

/// Has stored what it is given when it is told to.
#[derive(Default)]
struct SlowStorage {
    asked: Notify,
    answered: Notify,
}

#[async_trait]
impl DefinitionStorage for SlowStorage {
    async fn save(&self, _: &str, fixture: Option<&Fixture>) -> Result<Stored, AuthoringError> {
        self.asked.notify_one();
        self.answered.notified().await;
        Ok(Stored { is_copy: false, has_fixture: fixture.is_some() })
    }

    fn names(&self) -> (String, String) {
        ("definition".to_owned(), "recorded run".to_owned())
    }
}
