//! Runs a definition on a fixture, without a browser.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

use chrono::{DateTime, TimeDelta, Utc};
use regex::Regex;
use serde_json::Value;

use super::{
    Definition, ElementChoice, ElementContent, FRAME_SEPARATOR, Fixture, FixtureEvent, Observation,
    PageTree, RunResult, SeenResponse, TraceEvent, mask_body, mask_url, matches_url,
    run::{Command, ElementRead, End, PageFetch, ReadContent, Run, StepResult},
};
use crate::error_code::ErrorCode;

/// Frames and shadow roots that one part of a selector leads into.
const MAX_ROOTS: usize = 50;
/// Elements that a selector matches in one root.
const MAX_ELEMENTS: usize = 1000;
/// Characters of a text that conditions compare.
const MAX_OBSERVED_CHARS: usize = 2000;
/// Commands of one replay: more than a run of any definition needs.
const MAX_COMMANDS: usize = 50_000;

/// Selects the elements in a node of a page, not in roots of their own, by a CSS selector, in document
/// order.
pub type Select<'a> = &'a dyn Fn(&PageTree, usize, &str) -> Vec<usize>;

/// What a replay led to.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    pub result: RunResult,
    pub trace: Vec<TraceEvent>,
    /// What the definition asked for that the fixture does not have.
    pub unrecorded: Vec<String>,
}

/// Runs a definition on a fixture. What is recorded takes place at the recorded times; where a run
/// waits for something that was not recorded, time passes until the node's deadline.
#[must_use]
pub fn replay(definition: &Arc<Definition>, fixture: &Fixture, select: Select<'_>) -> Replayed {
    let mut run = Run::new(definition.clone(), DateTime::UNIX_EPOCH);
    run.record_trace();
    let mut replay = Replay {
        definition,
        fixture,
        select,
        next: 0,
        current: None,
        nodes: 0,
        has_entered: false,
        paused_until: None,
        has_moved: false,
        elapsed: TimeDelta::zero(),
        answered: BTreeSet::new(),
        unrecorded: BTreeSet::new(),
        observed: None,
    };
    let mut trace = Vec::new();
    let mut result = StepResult::Begin;
    let mut end = End::Failed(ErrorCode::InternalError);
    for _ in 0..MAX_COMMANDS {
        let step = run.next(result, replay.now());
        trace.append(&mut run.take_trace());
        if let Command::End(reached) = step.command {
            end = reached;
            break;
        }
        let paused_until = run.paused_until();
        // A pause begins with the page that was read, as a node begins with the one before it.
        let has_paused = paused_until.is_some() && paused_until != replay.paused_until;
        replay.has_entered |= has_paused || run.path().len() != replay.nodes;
        replay.nodes = run.path().len();
        replay.paused_until = paused_until;
        result = replay.execute(step.command);
    }
    Replayed {
        result: RunResult::new(run.path().to_vec(), &end),
        trace,
        unrecorded: replay.unrecorded.into_iter().collect(),
    }
}

struct Replay<'a> {
    definition: &'a Definition,
    fixture: &'a Fixture,
    select: Select<'a>,
    /// The index of the next event.
    next: usize,
    /// The index of the event with the state of the page.
    current: Option<usize>,
    /// The number of nodes that the run has entered.
    nodes: usize,
    /// Whether the run has entered a node that has not seen a state yet.
    has_entered: bool,
    /// The time until which the run pauses before a further attempt.
    paused_until: Option<DateTime<Utc>>,
    /// Whether the run itself has changed the page since that state.
    has_moved: bool,
    elapsed: TimeDelta,
    /// The indices of the events with requests that were answered.
    answered: BTreeSet<usize>,
    unrecorded: BTreeSet<String>,
    /// The last observation, with the index of its event and the number of events before it.
    observed: Option<(usize, usize, Observation)>,
}

impl Replay<'_> {
    fn now(&self) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + self.elapsed
    }

    fn execute(&mut self, command: Command) -> StepResult {
        match command {
            Command::Goto { url } => self.visit(&url),
            Command::Watch => self.watch(),
            Command::Fetch(request) => self.fetch(&request),
            Command::ReadResponse { url, after } => self.response(&url, after),
            Command::ReadDom { elements } => self.read(&elements),
            Command::Act(action) => self.act(action.selector()),
            Command::Consent { .. } => {
                let share = self.skip_to(|event| {
                    let FixtureEvent::Answer { share } = event else { return None };
                    Some(*share)
                });
                // A fixture that ended before the consent is one of somebody who would have agreed.
                StepResult::Answered { share: share.unwrap_or(true) }
            }
            Command::AskCustomUrl => {
                let url = self.skip_to(|event| {
                    let FixtureEvent::CustomUrl { url } = event else { return None };
                    Some(url.clone())
                });
                let Some(url) = url else {
                    self.unrecorded.insert("the address of the session".to_owned());
                    self.elapsed += TimeDelta::seconds(1);
                    return StepResult::Waited;
                };
                StepResult::CustomUrl(url)
            }
            Command::End(_) => StepResult::Waited,
        }
    }

    /// Moves behind the next event for which there is a value, and returns it.
    fn skip_to<T>(&mut self, value: impl Fn(&FixtureEvent) -> Option<T>) -> Option<T> {
        let mut later = self.fixture.events.iter().enumerate().skip(self.next);
        let (index, value) = later.find_map(|(at, event)| Some((at, value(event)?)))?;
        self.next = index.saturating_add(1);
        Some(value)
    }

    fn visit(&mut self, url: &str) -> StepResult {
        // A value that is masked in a response stands for another one in the URL.
        let masked = mask_url(url);
        let arrived = self.skip_to(|event| {
            let FixtureEvent::Visit { url: recorded, arrived } = event else { return None };
            (mask_url(recorded) == masked).then_some(*arrived)
        });
        if arrived.is_none() {
            self.unrecorded.insert(format!("a visit of {url}"));
        }
        self.has_moved = true;
        if arrived == Some(true) { StepResult::Arrived } else { StepResult::Unreachable }
    }

    /// Goes on to the next state of the page that the run itself does not have to bring about.
    fn advance(&mut self) -> bool {
        while let Some(event) = self.fixture.events.get(self.next) {
            match event {
                FixtureEvent::Page { at, .. } => {
                    self.elapsed = self.elapsed.max(since_beginning(*at));
                    self.current = Some(self.next);
                    self.next = self.next.saturating_add(1);
                    self.has_moved = false;
                    return true;
                }
                FixtureEvent::Response { .. } | FixtureEvent::Fetch { .. } => {
                    self.next = self.next.saturating_add(1);
                }
                FixtureEvent::Visit { .. }
                | FixtureEvent::Act
                | FixtureEvent::Answer { .. }
                | FixtureEvent::CustomUrl { .. } => return false,
            }
        }
        false
    }

    /// Returns whether the next state of the page is what a node of the recorded run saw first.
    fn is_first_next(&self) -> bool {
        let mut later = self.fixture.events.iter().skip(self.next);
        let next = later.find(|event| {
            !matches!(event, FixtureEvent::Response { .. } | FixtureEvent::Fetch { .. })
        });
        matches!(next, Some(FixtureEvent::Page { is_first: true, .. }))
    }

    /// Returns whether the recorded run saw the next state of the page before a time, and did nothing
    /// else before. What a later node saw first is none that a pause has seen, unless it has only begun.
    fn is_seen_before(&self, time: DateTime<Utc>, has_begun: bool) -> bool {
        let mut later = self.fixture.events.iter().enumerate().skip(self.next);
        let next = later.find(|(index, event)| match event {
            FixtureEvent::Response { .. } => false,
            FixtureEvent::Fetch { .. } => !self.answered.contains(index),
            FixtureEvent::Page { .. }
            | FixtureEvent::Visit { .. }
            | FixtureEvent::Act
            | FixtureEvent::Answer { .. }
            | FixtureEvent::CustomUrl { .. } => true,
        });
        let elapsed = time - DateTime::UNIX_EPOCH;
        matches!(
            next,
            Some((_, FixtureEvent::Page { at, is_first, .. }))
                if since_beginning(*at) < elapsed && (has_begun || !*is_first)
        )
    }

    fn watch(&mut self) -> StepResult {
        // A node sees first what the one before it saw last, unless the page has changed in between.
        let has_entered = std::mem::take(&mut self.has_entered);
        let sees_current =
            has_entered && self.current.is_some() && !self.has_moved && !self.is_first_next();
        // What the recorded run saw after its pause is for later attempts and nodes.
        let may_advance =
            self.paused_until.is_none_or(|until| self.is_seen_before(until, has_entered));
        let has_seen = sees_current || (may_advance && self.advance());
        if !has_seen {
            // A pause ends on time, so that what was recorded after it is not taken for a part of the next.
            let later = self.elapsed + TimeDelta::seconds(1);
            let end = self.paused_until.map(|until| until - DateTime::UNIX_EPOCH);
            let end = end.filter(|end| *end > self.elapsed);
            self.elapsed = end.map_or(later, |end| end.min(later));
        }
        StepResult::Seen(self.observe().unwrap_or_default())
    }

    /// Returns the state of the page as a browser would report it.
    fn observe(&mut self) -> Option<Observation> {
        let current = self.current?;
        if let Some((at, before, observation)) = &self.observed
            && (*at, *before) == (current, self.next)
        {
            return Some(observation.clone());
        }
        let FixtureEvent::Page { page, url, document, settled, http_status, cookies, .. } =
            self.fixture.events.get(current)?
        else {
            return None;
        };
        let tree = self.fixture.pages.get(*page)?;
        let visible = |selector: &str| self.visible(tree, selector);
        let definition = self.definition;
        let present = definition.selectors().into_iter().filter(|one| visible(one).is_some());
        let text = |selector: &str| {
            let text = tree.text_content(visible(selector)?);
            Some((selector.to_owned(), text.chars().take(MAX_OBSERVED_CHARS).collect()))
        };
        let observation = Observation {
            url: url.clone(),
            document: *document,
            settled: *settled,
            http_status: *http_status,
            cookies: cookies.clone(),
            present: present.map(ToOwned::to_owned).collect(),
            texts: definition.text_selectors().into_iter().filter_map(text).collect(),
            responses: self.responses(self.next).collect(),
        };
        self.observed = Some((current, self.next, observation.clone()));
        Some(observation)
    }

    /// Returns the responses before an event.
    fn responses(&self, end: usize) -> impl Iterator<Item = SeenResponse> {
        self.fixture.events.iter().take(end).filter_map(|event| {
            let FixtureEvent::Response { number, url, status, body } = event else { return None };
            let (url, body) = (url.clone(), body.clone());
            Some(SeenResponse {
                number: *number,
                url,
                status: *status,
                is_post: false,
                body,
                no_body: None,
            })
        })
    }

    fn response(&mut self, pattern: &str, after: u64) -> StepResult {
        let counts = |seen: &SeenResponse| seen.number > after && matches_url(pattern, &seen.url);
        // A browser waits a short time for the response.
        while !self.responses(self.next).any(|seen| counts(&seen)) {
            if !self.advance() {
                break;
            }
        }
        let matching = self.responses(self.next).filter(counts);
        let newest = matching.max_by_key(|seen| seen.number);
        let body =
            newest.filter(|seen| (200..=299).contains(&seen.status)).and_then(|seen| seen.body);
        body.map_or(StepResult::Unreadable, StepResult::Read)
    }

    /// Answers a request as the recorded one that it is without credentials. Requests that differ in
    /// credentials alone are answered in the order in which they were recorded.
    fn fetch(&mut self, request: &PageFetch) -> StepResult {
        let (fixture, next) = (self.fixture, self.next);
        let asked = (mask_url(&request.url), request.body.as_deref().map(mask_body));
        let is_same = |(_, event): &(usize, &FixtureEvent)| {
            let FixtureEvent::Fetch { method, url, body, .. } = event else { return false };
            *method == request.method
                && mask_url(url) == asked.0
                && body.as_deref().map(mask_body) == asked.1
        };
        let mut same = fixture.events.iter().enumerate().filter(is_same);
        let newest = same.clone().next_back();
        let new = same.find(|(index, _)| *index >= next && !self.answered.contains(index));
        match new.or(newest) {
            Some((index, FixtureEvent::Fetch { response, is_null, .. })) => {
                self.answered.insert(index);
                let body = response.clone().or_else(|| is_null.then_some(Value::Null));
                body.map_or(StepResult::Unreadable, StepResult::Read)
            }
            Some(_) => StepResult::Unreadable,
            None => {
                self.unrecorded.insert(format!("{} {}", request.method.as_str(), request.url));
                StepResult::Unreadable
            }
        }
    }

    fn act(&mut self, selector: &str) -> StepResult {
        let found = self.page().and_then(|tree| self.visible(tree, selector));
        if found.is_none() {
            return StepResult::Unreadable;
        }
        let acted = self.skip_to(|event| matches!(event, FixtureEvent::Act).then_some(()));
        if acted.is_none() {
            self.unrecorded.insert(format!("an action on {selector}"));
        }
        self.has_moved = true;
        StepResult::Acted
    }

    fn page(&self) -> Option<&PageTree> {
        let FixtureEvent::Page { page, .. } = self.fixture.events.get(self.current?)? else {
            return None;
        };
        self.fixture.pages.get(*page)
    }

    fn read(&mut self, elements: &BTreeMap<String, ElementRead>) -> StepResult {
        let next = self.fixture.events.iter().skip(self.next).find(|event| {
            !matches!(event, FixtureEvent::Response { .. } | FixtureEvent::Fetch { .. })
        });
        if matches!(next, Some(FixtureEvent::Page { is_read: true, .. })) {
            self.advance();
        }
        let Some(tree) = self.page() else { return StepResult::Unreadable };
        let mut values = serde_json::Map::new();
        for (name, element) in elements {
            let value = self.value(tree, 0, element);
            if !value.is_null() {
                values.insert(name.clone(), value);
            }
        }
        StepResult::Read(Value::Object(values))
    }

    fn value(&self, tree: &PageTree, scope: usize, read: &ElementRead) -> Value {
        let found = if read.selector.is_empty() {
            Some(scope)
        } else {
            let found = self.find(tree, scope, &read.selector);
            match read.choice {
                ElementChoice::First => found.first().copied(),
                ElementChoice::Last => found.last().copied(),
            }
        };
        let Some(element) = found else { return self.in_place_of(tree, &read.content) };
        let object = |scope: usize, members: &BTreeMap<String, ElementRead>| {
            let member = |(name, read): (&String, &ElementRead)| {
                (name.clone(), self.value(tree, scope, read))
            };
            Value::Object(members.iter().map(member).collect())
        };
        match &read.content {
            ReadContent::Value(content) => {
                element_text(tree, element, content).map_or(Value::Null, Value::from)
            }
            ReadContent::Members(members) => object(element, members),
            ReadContent::Rows { each, members, max, .. } => {
                let rows = self.find(tree, element, each).into_iter().take(*max);
                rows.map(|row| object(row, members)).collect()
            }
        }
    }

    /// Returns what is read where no element matches.
    fn in_place_of(&self, tree: &PageTree, content: &ReadContent) -> Value {
        match content {
            ReadContent::Rows { empty_when: Some(shown), .. }
                if self.visible(tree, shown).is_some() =>
            {
                ReadContent::NO_LIST.into()
            }
            ReadContent::Rows { .. } | ReadContent::Value(_) | ReadContent::Members(_) => {
                Value::Null
            }
        }
    }

    /// Returns the first element with a box that a selector matches.
    fn visible(&self, tree: &PageTree, selector: &str) -> Option<usize> {
        let is_visible = |index: &usize| tree.nodes.get(*index).is_some_and(|node| node.visible);
        self.find(tree, 0, selector).into_iter().find(is_visible)
    }

    fn find(&self, tree: &PageTree, scope: usize, selector: &str) -> Vec<usize> {
        find_elements(tree, scope, selector, self.select)
    }
}

/// Returns the time of an event with this number of milliseconds.
fn since_beginning(at: u64) -> TimeDelta {
    TimeDelta::milliseconds(i64::try_from(at).unwrap_or(i64::MAX / 2))
}

/// Returns the elements in a node of a page that a selector of a definition matches, also in frames and
/// open shadow roots, in document order.
#[must_use]
pub fn find_elements(
    tree: &PageTree,
    scope: usize,
    selector: &str,
    select: Select<'_>,
) -> Vec<usize> {
    let mut roots = vec![scope];
    let mut parts = selector.split(FRAME_SEPARATOR).map(str::trim).peekable();
    while let Some(part) = parts.next() {
        let found =
            roots.iter().flat_map(|root| select(tree, *root, part).into_iter().take(MAX_ELEMENTS));
        if parts.peek().is_none() {
            return found.collect();
        }
        roots = found.filter_map(|element| tree.root_of(element)).take(MAX_ROOTS).collect();
    }
    vec![]
}

/// Returns what a run would read of an element of a page; nothing of fields for secrets.
#[must_use]
pub fn element_text(tree: &PageTree, element: usize, content: &ElementContent) -> Option<String> {
    let node = tree.nodes.get(element)?;
    match content {
        ElementContent::Text => Some(tree.text_content(element).trim().to_owned()),
        ElementContent::Value | ElementContent::Attribute(_) if is_secret(&node.attributes) => None,
        ElementContent::Value => node.value.clone(),
        ElementContent::Attribute(name) => node.attributes.get(name).cloned(),
    }
}

/// Returns whether an applicant types a secret in an element, by the rule of the browser's adapter.
fn is_secret(attributes: &BTreeMap<String, String>) -> bool {
    static SECRET: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new("(?i)one-time-code|passw|passcode|pwd|otp|cvc|cvv|cc-").ok());
    let attribute = |name: &str| attributes.get(name).map(String::as_str).unwrap_or_default();
    let names = ["autocomplete", "name", "id"].map(attribute).join(" ");
    attribute("type").eq_ignore_ascii_case("password")
        || SECRET.as_ref().is_some_and(|secret| secret.is_match(&names))
}
