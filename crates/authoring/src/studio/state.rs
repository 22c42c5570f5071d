//! What a studio remembers.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use chrono::{DateTime, Utc};
use domain::{
    error_code::ErrorCode,
    workflow::{
        Action, Definition, Extraction, Field, FieldType, Fixture, Node, Observation, SeenResponse,
        Source, TraceEvent,
    },
};
use ports::driving::Finding;
use serde_json::Value;

use super::{
    addresses::{known_texts, scalar_text},
    missing::Missing,
    readings::MAX_SAMPLE_CHARS,
    responses::{Refusal, Responses},
};
use crate::{
    draft::{MAX_CONDITIONS, Marking, PageKind},
    explore::is_internal,
    signals::{KnownPage, OtherScreen},
};

const MAX_EVENTS: usize = 200;
const MAX_INSPECTIONS: usize = 5;
const MAX_FORMER: usize = 100;

/// What a run is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum RunState {
    /// The author looks around.
    #[default]
    Exploring,
    Running,
    Completed,
    Declined,
    Failed(ErrorCode),
}

impl RunState {
    pub(super) const fn has_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Declined | Self::Failed(_))
    }
}

/// Why a run did not take the consent of the applicant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unconfirmed {
    /// The signal that had to hold.
    pub(super) signal: String,
    /// The page on which it did not hold; `None` if no page settled in time.
    pub(super) url: Option<String>,
}

/// How many different texts of a fixture look like access tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TokenCounts {
    pub(super) masked: usize,
    /// Those that the definition needs.
    pub(super) kept: usize,
}

/// A page with a number.
pub(super) type Inspection = Arc<KnownPage>;

/// An event of a trace.
pub(super) struct LoggedEvent {
    pub(super) number: u64,
    pub(super) at: DateTime<Utc>,
    pub(super) text: String,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) document: String,
    pub(super) document_number: u64,
    /// `None` if the document is no definition.
    pub(super) definition: Option<Arc<Definition>>,
    /// The newest definition that the document was.
    pub(super) last_definition: Option<Arc<Definition>>,
    pub(super) findings: Vec<Finding>,
    pub(super) saved_document: Option<String>,
    /// The hosts of the browser that was opened last.
    pub(super) hosts: BTreeSet<String>,
    pub(super) embed_url: Option<String>,
    pub(super) page: Option<(String, bool)>,
    pub(super) signals: BTreeMap<String, bool>,
    pub(super) events: VecDeque<LoggedEvent>,
    event_count: u64,
    pub(super) responses: Responses,
    pub(super) run: RunState,
    pub(super) run_node: Option<String>,
    pub(super) run_data: Option<Value>,
    /// What the data of the run lacks.
    pub(super) missing: Missing,
    /// Why the run asked for the consent again; `None` if it did not, or has completed since.
    pub(super) unconfirmed: Option<Unconfirmed>,
    /// The settled page that the run has seen last, and whether a signal held on it that is not that of an
    /// interrupt, such as a banner's.
    run_page: Option<(String, bool)>,
    /// The path of the page at which the run failed since it recognized none.
    pub(super) unrecognized: Option<String>,
    /// Whether a run has ended since the studio looked last.
    pub(super) has_ended: bool,
    /// The definition of the run, if it is recorded.
    pub(super) recorded_definition: Option<Arc<Definition>>,
    /// What was read last of each field and variable, or why nothing was.
    pub(super) values: BTreeMap<String, Result<Value, String>>,
    /// The texts that fields and values had in this browser when they were added, or when a run before the
    /// last one has read them, as an address would have them. Each has at most 512 characters.
    pub(super) samples: BTreeMap<String, String>,
    /// The texts that fields had before they were read in another way, at most 100: they are still those
    /// of the author's account.
    pub(super) former: VecDeque<String>,
    /// The lists that ended at their limit when they were read last, with the limit.
    pub(super) limits: BTreeMap<String, usize>,
    /// The lists that ended with their first page when they were read last, since there was no element for the
    /// action that leads to the next one, or the action changed nothing, with the action.
    pub(super) single_pages: BTreeMap<String, Action>,
    /// The lists that ended after their last page when they were read last, with the number of pages.
    pub(super) last_pages: BTreeMap<String, u8>,
    /// The lists in a page that seemed to have a next page when their columns were chosen, with the selector of
    /// what leads to it.
    pub(super) further_pages: BTreeMap<String, String>,
    /// The rows of lists that the node has read that a run is at.
    rows: BTreeMap<String, Vec<Value>>,
    /// Each with its number and that of the browser.
    inspections: VecDeque<(u64, u64, Inspection)>,
    inspection_count: u64,
    /// The page that was looked at last on the other kind of screen, with the number of its inspection; `None` if
    /// it could not be looked at.
    pub(super) other_screen: Option<(u64, Option<Arc<OtherScreen>>)>,
    /// The number of the browser that was opened last.
    pub(super) browser: u64,
    /// The number of the newest response of the browsers before.
    responses_before: u64,
    /// The pages that were marked, by the names of their signals.
    pub(super) known: BTreeMap<String, Vec<Inspection>>,
    /// The number of the newest response when the sign-in page was marked.
    pub(super) sign_in_after: u64,
    /// The same when the page that asks for a code was marked.
    code_after: u64,
    pub(super) fixture: Option<Fixture>,
    pub(super) is_fixture_saved: bool,
    /// What became of the access tokens of the fixture; `None` if it was recorded before.
    pub(super) tokens: Option<TokenCounts>,
    /// How the replay of the fixture differs; `None` if it was not replayed.
    pub(super) differences: Option<Vec<String>>,
    /// What was published last.
    pub(super) published: Option<Arc<Definition>>,
}

impl State {
    pub(super) fn has_errors(&self) -> bool {
        use domain::workflow::Severity;
        self.findings.iter().any(|finding| finding.severity == Severity::Error)
    }

    /// Returns whether the document and its fixture are stored as they are.
    pub(super) fn is_saved(&self) -> bool {
        self.saved_document.as_ref() == Some(&self.document)
            && (self.fixture.is_none() || self.is_fixture_saved)
    }

    /// Returns the fixture as it is stored. Here it has all responses with JSON, so that fields of other
    /// responses can be added; what is stored has those that the definition watches.
    pub(super) fn stored_fixture(&self) -> Option<Fixture> {
        let fixture = self.fixture.clone()?;
        // A text that is no definition tells nothing, and its author still corrects it.
        Some(match &self.last_definition {
            Some(definition) => fixture.watched_by(definition),
            None => fixture,
        })
    }

    /// Returns why the definition cannot be published as it is.
    pub(super) fn publishing_obstacle(&self) -> Option<&'static str> {
        let Some(definition) = self.definition.as_ref().filter(|_| !self.has_errors()) else {
            return Some("correct the errors first");
        };
        let run = self.fixture.as_ref().map(|fixture| &fixture.expected);
        // A fixture that was stored may be of a run that failed.
        if run.is_none_or(|run| run.error.is_some() || run.data.is_empty()) {
            return Some("record a run from the beginning first");
        }
        if self.differences.as_ref().is_none_or(|differences| !differences.is_empty()) {
            return Some(
                "the recorded run has another result now: correct it, or record a new one",
            );
        }
        let published = self.published.as_ref()?;
        let is_same =
            published.platform == definition.platform && published.version == definition.version;
        is_same.then_some("this version is published: change the version to publish again")
    }

    /// Records that a run begins in the browser in which the author is signed in. What is known of the
    /// account stays known until it is read again: a run may end before it reads anything.
    pub(super) fn began_here(&mut self) {
        let read = self.values.iter().filter_map(|(name, value)| {
            let text = scalar_text(value.as_ref().ok()?)?;
            is_short(&text).then(|| (name.clone(), text))
        });
        let mut samples = std::mem::take(&mut self.samples);
        samples.extend(read);
        let former = std::mem::take(&mut self.former);
        self.began(RunState::Running, None);
        (self.samples, self.former) = (samples, former);
    }

    /// Records that a run begins. What was read before may be of another account.
    pub(super) fn began(&mut self, run: RunState, recorded: Option<Arc<Definition>>) {
        self.values.clear();
        self.samples.clear();
        self.former.clear();
        self.limits.clear();
        self.single_pages.clear();
        self.last_pages.clear();
        (self.run, self.recorded_definition, self.has_ended) = (run, recorded, false);
        (self.run_node, self.run_data, self.unconfirmed) = (None, None, None);
        (self.run_page, self.unrecognized) = (None, None);
        self.missing = Missing::default();
    }

    /// Takes over a definition, and forgets what was read of each field and value that it reads in another
    /// way than the one before, or not at all. Of a list or an object, that is the members of which it is
    /// true. `renamed` has the names of a field before and after the change, if it has another one.
    pub(super) fn defined(
        &mut self,
        definition: &Arc<Definition>,
        renamed: Option<&(String, String)>,
    ) {
        if let Some((name, new_name)) = renamed {
            rename_in(&mut self.values, name, new_name);
            rename_in(&mut self.samples, name, new_name);
            rename_in(&mut self.limits, name, new_name);
            rename_in(&mut self.single_pages, name, new_name);
            rename_in(&mut self.further_pages, name, new_name);
            rename_in(&mut self.last_pages, name, new_name);
        }
        self.further_pages.retain(|name, _| definition.output.contains_key(name));
        let before = self.last_definition.replace(definition.clone());
        let earlier = |name: &str| -> String {
            let earlier = renamed.filter(|(_, new_name)| new_name == name);
            earlier.map_or(name, |(earlier, _)| earlier.as_str()).to_owned()
        };
        let is_same = |name: &str| {
            let reading = reading_of(definition, name);
            let before = before.as_deref();
            reading.is_some() && before.and_then(|it| reading_of(it, &earlier(name))) == reading
        };
        for (name, text) in known_texts(self) {
            let is_other = !is_same(&name) && reading_of(definition, &name).is_some();
            if is_other && is_short(&text) && !self.former.contains(&text) {
                self.former.push_back(text);
            }
        }
        let excess = self.former.len().saturating_sub(MAX_FORMER);
        self.former.drain(..excess);
        self.values.retain(|name, value| {
            let members = before.as_deref().map(|before| members_of(before, &earlier(name)));
            is_same(name)
                && keep_members(value, &members.unwrap_or_default(), &members_of(definition, name))
        });
        self.samples.retain(|name, _| is_same(name));
        let values = &self.values;
        self.limits.retain(|name, _| values.contains_key(name));
        self.single_pages.retain(|name, _| values.contains_key(name));
        self.last_pages.retain(|name, _| values.contains_key(name));
    }

    /// Records that a list in a page seems to have a next page, to which the element that matches a selector
    /// leads. Returns whether that was not known.
    pub(super) fn goes_on(&mut self, list: String, next: String) -> bool {
        self.further_pages.insert(list, next).is_none()
    }

    /// Records an event, and returns whether anything has changed.
    pub(super) fn traced(&mut self, event: &TraceEvent, at: DateTime<Utc>) -> bool {
        let is_exploring = self.run != RunState::Running;
        match event {
            TraceEvent::Entered { node } if is_internal(node) => return false,
            TraceEvent::Entered { node } => {
                self.run_node = Some(node.clone());
                self.rows.clear();
            }
            TraceEvent::Observed { url, signals, settled } => {
                if *settled {
                    let shown = signals.iter().filter(|(name, _)| !is_internal(name));
                    self.signals = shown.cloned().collect();
                }
                if is_exploring {
                    return *settled;
                }
                if *settled {
                    self.run_page = Some((url.clone(), self.is_known(signals)));
                }
            }
            TraceEvent::Reloaded if is_exploring => return false,
            TraceEvent::Failed { code } if self.run == RunState::Running => {
                (self.run, self.has_ended) = (RunState::Failed(*code), true);
                self.unrecognized = self.unrecognized_page(*code);
            }
            TraceEvent::Completed { data } if self.run == RunState::Running => {
                let end = if data.is_some() { RunState::Completed } else { RunState::Declined };
                (self.run, self.run_data, self.has_ended) = (end, data.clone(), true);
                self.unconfirmed = None;
                let definition = self.last_definition.as_deref();
                let missing =
                    definition.zip(data.as_ref()).map(|(own, data)| Missing::of(own, data));
                self.missing = missing.unwrap_or_default();
                for (name, value) in data.iter().filter_map(Value::as_object).flatten() {
                    self.values.insert(name.clone(), Ok(value.clone()));
                }
            }
            TraceEvent::Failed { .. } | TraceEvent::Completed { .. } => return false,
            TraceEvent::Read { name, result, .. } => {
                let value = result.clone().map_err(|failure| failure.to_string());
                let value = value.map(|value| self.with_rows_before(name, value));
                self.limits.remove(name);
                self.single_pages.remove(name);
                self.last_pages.remove(name);
                self.values.insert(name.clone(), value);
            }
            TraceEvent::ListEnds { name, max } => {
                self.limits.insert(name.clone(), *max);
            }
            TraceEvent::NoNextPage { name, action } | TraceEvent::SamePage { name, action } => {
                self.single_pages.insert(name.clone(), action.clone());
            }
            TraceEvent::PagesEnd { name, max } => {
                self.last_pages.insert(name.clone(), *max);
            }
            TraceEvent::Unconfirmed { signal, url } => {
                let (signal, url) = (signal.clone(), url.clone());
                self.unconfirmed = Some(Unconfirmed { signal, url });
            }
            TraceEvent::Unreachable
            | TraceEvent::Reloaded
            | TraceEvent::Unreadable
            | TraceEvent::Paused { .. } => (),
        }
        self.event_count = self.event_count.saturating_add(1);
        let text = event.to_string().trim_start().to_owned();
        self.events.push_back(LoggedEvent { number: self.event_count, at, text });
        if self.events.len() > MAX_EVENTS {
            self.events.pop_front();
        }
        true
    }

    /// Returns whether one of the signals that hold tells a page from others. Those of interrupts hold on any.
    fn is_known(&self, signals: &[(String, bool)]) -> bool {
        let interrupts = self.last_definition.iter().flat_map(|own| &own.interrupts);
        let interrupts: BTreeSet<_> = interrupts.map(|one| one.when.as_str()).collect();
        signals.iter().any(|(name, holds)| *holds && !interrupts.contains(name.as_str()))
    }

    /// Returns the path of the page at which a run failed with this code if no page was recognized there.
    fn unrecognized_page(&self, code: ErrorCode) -> Option<String> {
        // A review that is not confirmed fails with the same code, and says so itself.
        if code != ErrorCode::UnexpectedPage || self.unconfirmed.is_some() {
            return None;
        }
        let (url, _) = self.run_page.as_ref().filter(|(_, is_known)| !is_known)?;
        url::Url::parse(url).ok().map(|url| url.path().to_owned())
    }

    /// Returns the rows of a list with those of its pages before; any other value as it is.
    fn with_rows_before(&mut self, name: &str, value: Value) -> Value {
        let Value::Array(read) = value else { return value };
        let limit = self.definition.as_ref().and_then(|definition| definition.output.get(name));
        let limit = limit.map_or(usize::MAX, Field::row_limit);
        let rows = self.rows.entry(name.to_owned()).or_default();
        // A button that adds rows leaves those of the pages before, as another attempt at a page does.
        let new = read.strip_prefix(rows.as_slice()).unwrap_or(&read);
        rows.extend_from_slice(new);
        rows.truncate(limit);
        rows.clone().into()
    }

    /// Records the state of the page, and returns whether it is another one.
    pub(super) fn seen(&mut self, seen: Observation) -> bool {
        let has_new = self.responses.seen(seen.responses);
        let page = Some((seen.url, seen.settled));
        let is_other = has_new || self.page != page;
        self.page = page;
        is_other
    }

    /// Forgets what was seen in the browser before, apart from what the author may still choose in.
    pub(super) fn forget_pages(&mut self) {
        self.browser = self.browser.saturating_add(1);
        self.responses_before = self.responses.newest();
        self.responses.forget();
        self.page = None;
        self.signals.clear();
    }

    /// Returns the response with this number, as it was opened if it was, or else the newest one from its
    /// address.
    pub(super) fn response(&self, number: u64) -> Option<&SeenResponse> {
        self.responses.find(number)
    }

    /// Returns the response with this number if the browser that was opened last has received it. An
    /// earlier one may be of another account.
    pub(super) fn response_here(&self, number: u64) -> Option<&SeenResponse> {
        self.response(number).filter(|response| response.number > self.responses_before)
    }

    /// Returns the response with this number, for the author to choose in it.
    pub(super) fn open_response(&mut self, number: u64) -> Option<&SeenResponse> {
        let page_url = self.page.as_ref().map(|(url, _)| url.clone());
        self.responses.open(number, page_url)
    }

    /// Returns the POST requests to hosts of the definition that were refused since the sign-in page was
    /// marked, the newest first; for a wrong code, since the page that asks for one was marked as well. What
    /// a page asks for while it loads, such as another token, is refused before.
    pub(super) fn refusals_of(&self, kind: PageKind) -> Vec<Refusal> {
        let is_code = kind == PageKind::WrongCode;
        let after =
            if is_code { self.sign_in_after.max(self.code_after) } else { self.sign_in_after };
        let hosts = self.definition.as_deref().map(hosts_of).unwrap_or_default();
        let is_ours = |refusal: &&Refusal| {
            let url = url::Url::parse(&refusal.url).ok();
            url.is_some_and(|url| url.host_str().is_some_and(|host| hosts.contains(host)))
        };
        self.responses.refusals(after).filter(is_ours).cloned().collect()
    }

    pub(super) fn add_inspection(&mut self, page: KnownPage) -> u64 {
        self.inspection_count = self.inspection_count.saturating_add(1);
        self.inspections.push_back((self.inspection_count, self.browser, Arc::new(page)));
        if self.inspections.len() > MAX_INSPECTIONS {
            self.inspections.pop_front();
        }
        self.inspection_count
    }

    pub(super) fn inspection(&self, number: u64) -> Option<Inspection> {
        let found = self.inspections.iter().find(|(own, _, _)| *own == number);
        found.map(|(_, _, page)| page.clone())
    }

    /// Returns the page with this number if it was inspected in the browser that was opened last. An
    /// earlier one may be of another account.
    pub(super) fn inspection_here(&self, number: u64) -> Option<Inspection> {
        let is_here = |(own, browser, _): &&(u64, u64, Inspection)| {
            *own == number && *browser == self.browser
        };
        self.inspections.iter().find(is_here).map(|(_, _, page)| page.clone())
    }

    /// Returns the page that was inspected last.
    pub(super) fn newest_inspection(&self) -> Option<Inspection> {
        self.inspections.back().map(|(_, _, page)| page.clone())
    }

    /// Keeps the page with this number, or else the one that was inspected last, as one of a kind, so that
    /// other pages are compared with it. Another one may have been inspected since its condition was chosen.
    pub(super) fn marked(&mut self, kind: PageKind, marking: Marking, inspection: Option<u64>) {
        if kind == PageKind::SignIn {
            self.sign_in_after = self.responses.newest();
        }
        if kind == PageKind::Code {
            self.code_after = self.responses.newest();
        }
        let page = match inspection {
            Some(number) => self.inspection(number),
            None => self.newest_inspection(),
        };
        let Some(page) = page else { return };
        let known = self.known.entry(kind.name().to_owned()).or_default();
        match marking {
            Marking::Also if known.len() >= MAX_CONDITIONS => {
                known.remove(0);
            }
            Marking::Also => (),
            Marking::Instead => known.clear(),
        }
        known.push(page);
    }

    pub(super) fn recorded(&mut self, fixture: Fixture, differences: Option<Vec<String>>) {
        (self.fixture, self.is_fixture_saved) = (Some(fixture), false);
        self.differences = differences;
    }
}

/// Returns whether a text is kept of the author's account.
fn is_short(text: &str) -> bool {
    text.chars().count() <= MAX_SAMPLE_CHARS
}

/// Has what is kept of a field be kept under its new name.
fn rename_in<T>(all: &mut BTreeMap<String, T>, name: &str, new_name: &str) {
    if let Some(own) = all.remove(name) {
        all.insert(new_name.to_owned(), own);
    }
}

/// Returns how a field or a value is read, without the members of a list or an object: these stand in no
/// address.
fn reading_of(
    definition: &Definition,
    name: &str,
) -> Option<(Source, Option<FieldType>, Extraction)> {
    definition.nodes.values().find_map(|node| {
        let Node::Collect { via, fields, variables, .. } = node else { return None };
        let from = fields.get(name).or_else(|| variables.get(name))?;
        let from = Extraction { members: BTreeMap::new(), ..from.clone() };
        let kind = definition.output.get(name).map(|field| field.kind);
        Some((via.clone(), kind, from))
    })
}

/// How the members of a list or an object are read, by their names.
type Members<'a> = BTreeMap<&'a str, (Option<FieldType>, &'a Extraction)>;

/// Returns how the members of a list or an object are read; none for other fields and values.
fn members_of<'a>(definition: &'a Definition, name: &str) -> Members<'a> {
    let members = definition.nodes.values().find_map(|node| {
        let Node::Collect { fields, .. } = node else { return None };
        fields.get(name).map(|from| &from.members)
    });
    let field = definition.output.get(name);
    let with_type = |(member, from): (&'a String, &'a Extraction)| {
        let kind = field.and_then(|field| field.members.get(member)).map(|own| own.kind);
        (member.as_str(), (kind, from))
    };
    members.into_iter().flatten().map(with_type).collect()
}

/// Removes from what was read of a list or an object the members that are read in another way than before,
/// or not at all. Returns whether the rest is still what the definition reads.
fn keep_members(
    value: &mut Result<Value, String>,
    before: &Members<'_>,
    after: &Members<'_>,
) -> bool {
    let is_same = |name: &str| before.get(name).is_some_and(|own| after.get(name) == Some(own));
    let same = before.keys().filter(|name| is_same(name)).count();
    if same == before.len() {
        return true;
    }
    // What was wrong may have been one of the others.
    let Ok(value) = value else { return false };
    let rows = if let Value::Array(rows) = value {
        rows.as_mut_slice()
    } else {
        std::slice::from_mut(value)
    };
    for row in rows.iter_mut().filter_map(Value::as_object_mut) {
        row.retain(|name, _| is_same(name));
    }
    same > 0
}

/// Returns the hosts that a browser of a definition visits.
pub(super) fn hosts_of(definition: &Definition) -> BTreeSet<String> {
    definition.hosts.iter().chain(&definition.sso_hosts).cloned().collect()
}

#[cfg(test)]
mod tests {
    use domain::workflow::Converter;
    use serde_json::json;

    use super::*;
    use crate::{
        draft::{FieldChange, NewMember, Reading, add_member, edit_field},
        tests::changes::with_orders,
    };

    /// Returns a change of a column of the orders that leaves it as it is, apart from its name and label.
    fn column(definition: &Definition, name: &str, new_name: &str) -> FieldChange {
        let own = definition.output.get("orders").unwrap().members.get(name).unwrap();
        let from = definition.nodes.values().find_map(|node| {
            let Node::Collect { fields, .. } = node else { return None };
            fields.get("orders")?.members.get(name)
        });
        FieldChange {
            within: Some("orders".to_owned()),
            name: name.to_owned(),
            new_name: new_name.to_owned(),
            label: "Column".to_owned(),
            required: own.required,
            pii: own.pii,
            reading: Some(Reading::of(own, from.unwrap())),
        }
    }

    #[test]
    fn the_values_of_a_column_are_forgotten_once_it_is_read_in_another_way() {
        let mut definition = with_orders();
        let mut state = State::default();
        let mut after = |definition: &Definition, read: Option<Result<Value, String>>| {
            if let Some(value) = read {
                state.values.insert("orders".to_owned(), value);
            }
            state.defined(&definition.clone().into(), None);
            state.values.get("orders").cloned()
        };
        after(&definition, None);
        let rows = json!([{ "number": "1", "total": "2" }, { "number": "3" }]);
        let read = Some(Ok(rows));
        // The name that applicants read does not matter.
        let label = column(&definition, "total", "total");
        edit_field(&mut definition, label).unwrap();
        assert_eq!(after(&definition, read.clone()), read);
        let mut change = column(&definition, "total", "total");
        change.reading.as_mut().unwrap().convert.push(Converter::Trim);
        edit_field(&mut definition, change).unwrap();
        let numbers = Some(Ok(json!([{ "number": "1" }, { "number": "3" }])));
        assert_eq!(after(&definition, None), numbers, "the other column is read as before");
        let reading = column(&definition, "total", "total").reading.unwrap();
        let new = NewMember {
            within: "orders".to_owned(),
            name: "date".to_owned(),
            label: "Date".to_owned(),
            required: false,
            pii: false,
            reading,
        };
        add_member(&mut definition, new).unwrap();
        assert_eq!(after(&definition, None), numbers);
        // A reason may have been that of the column.
        let failed = Some(Err("converter 1 does not apply".to_owned()));
        assert_eq!(after(&definition, failed.clone()), failed);
        let renamed = column(&definition, "number", "id");
        edit_field(&mut definition, renamed).unwrap();
        assert_eq!(after(&definition, None), None);
        after(&definition, Some(Ok(json!([{ "id": "1" }]))));
        for name in ["id", "total", "date"] {
            let renamed = column(&definition, name, &format!("{name}2"));
            edit_field(&mut definition, renamed).unwrap();
        }
        assert_eq!(after(&definition, None), None, "no column is left");
    }

    #[test]
    fn a_response_that_was_made_anew_is_found_by_its_earlier_number() {
        let mut state = State::default();
        let mut sees = |responses: &[(u64, &str)]| {
            let responses = responses.iter().map(|(number, path)| SeenResponse {
                number: *number,
                url: format!("https://shop.test{path}"),
                status: 200,
                ..SeenResponse::default()
            });
            state.seen(Observation { responses: responses.collect(), ..Observation::default() });
            let found = |number| state.response(number).map(|found| found.number);
            [1, 2, 3, 4, 5].map(found)
        };
        assert_eq!(sees(&[(1, "/me"), (2, "/orders")]), [Some(1), Some(2), None, None, None]);
        assert_eq!(sees(&[(2, "/orders"), (3, "/me")]), [Some(3), Some(2), Some(3), None, None]);
        assert_eq!(sees(&[(4, "/me")]), [Some(4), Some(2), Some(4), Some(4), None]);
        // A new browser counts anew. Its responses have numbers of their own.
        assert_eq!(sees(&[(1, "/orders")]), [None, None, None, None, Some(5)]);
    }
}
