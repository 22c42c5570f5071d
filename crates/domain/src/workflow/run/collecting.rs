//! How a run collects data: what it reads of each page, and how it gets to the next one.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use super::{Command, ElementRead, End, PageFetch, ReadContent, Run, StepResult, visit::Visit};
use crate::{
    error_code::ErrorCode,
    workflow::{
        ElementChoice, Extraction, Field, FieldType, NextPage, Node, Observation, Pages,
        ReadFailure, Request, Source, TraceEvent, WorkflowExit,
        collect::{convert, has_other_row, is_no_list, located, read_field},
        matches_url,
        placeholders::expand_body,
    },
};

/// All data of a run, as JSON.
const MAX_DATA_BYTES: usize = 256 * 1024;
/// The time in which an action must have changed the rows of a page.
const PAGE_CHANGE_TIMEOUT: TimeDelta = TimeDelta::seconds(10);
/// The time between two readings of a page that changes during a pause.
const READ_INTERVAL: TimeDelta = TimeDelta::milliseconds(250);

/// How far the pages of a node have been read.
#[derive(Debug, Clone, Default)]
pub(super) struct PageProgress {
    /// The pages that were read completely.
    count: u8,
    /// The value in requests that stands for the page, with its name.
    value: Option<(String, Value)>,
    /// What was read of the last page.
    last: Option<Value>,
    /// The digests of the rows of all pages that were read completely and are not the last.
    earlier: Vec<u64>,
    step: PageStep,
    /// The pause before the next attempt.
    pause: Option<Pause>,
    /// What the last reading of the first page had.
    taken: Vec<String>,
}

/// A pause before a further attempt, for a page that is not complete yet or a server that has failed.
#[derive(Debug, Clone, Copy)]
struct Pause {
    until: DateTime<Utc>,
    /// The earliest time at which a page that has changed is read.
    earliest: DateTime<Utc>,
    /// The digest of what the page showed when it was last read; `None` until it is observed.
    shown: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
enum PageStep {
    #[default]
    Reading,
    /// The action is under way that leads to the next page.
    Acting,
    /// The page has until then to show other rows.
    Changing(DateTime<Utc>),
}

impl PageProgress {
    pub(super) const fn is_acting(&self) -> bool {
        matches!(self.step, PageStep::Acting)
    }
}

/// A `collect` node.
struct Collect<'a> {
    via: &'a Source,
    fields: &'a BTreeMap<String, Extraction>,
    variables: &'a BTreeMap<String, Extraction>,
    pages: Option<&'a Pages>,
    retries: u8,
    on_missing: &'a WorkflowExit,
    next: &'a str,
}

impl Run {
    pub(super) fn collect(
        &mut self,
        node: &Node,
        result: Option<StepResult>,
        now: DateTime<Utc>,
    ) -> Visit {
        let Node::Collect { via, fields, variables, pages, retries, on_missing, next } = node
        else {
            return Visit::Stay(self.end(End::Failed(ErrorCode::WorkflowInvalid)));
        };
        let (pages, retries) = (pages.as_ref(), *retries);
        let node = Collect { via, fields, variables, pages, retries, on_missing, next };
        self.collecting = true;
        if let Some(pause) = self.pages.pause
            && !matches!(result, Some(StepResult::Read(_)))
        {
            return self.paused(&node, pause, result.as_ref(), now);
        }
        match (result, self.pages.step) {
            (None | Some(StepResult::Begin), _) => {
                self.pages.value = pages.and_then(|pages| first_value(&pages.next));
                self.read(&node)
            }
            // There is no element for the action.
            (Some(StepResult::Unreadable), PageStep::Acting) => {
                self.trace_single_page(&node, true);
                self.settle(&[], &node)
            }
            (Some(_), PageStep::Acting) => {
                self.pages.step = PageStep::Changing(now + PAGE_CHANGE_TIMEOUT);
                self.stay(Command::Watch)
            }
            (Some(StepResult::Read(read)), step) => self.page_read(&node, read, step, now),
            (Some(StepResult::Seen(page)), PageStep::Changing(until))
                if !page.settled && now < until =>
            {
                self.stay(Command::Watch)
            }
            // The document was replaced while it was read, or did not answer.
            (Some(StepResult::Unreadable | StepResult::Waited), PageStep::Changing(until))
                if now < until =>
            {
                self.stay(Command::Watch)
            }
            // A page that never answers must not be asked until the end of the run.
            (Some(StepResult::Unreadable | StepResult::Waited), _) => self.incomplete(&node, now),
            (Some(_), _) => self.read(&node),
        }
    }

    /// Returns the time until which the run pauses before a further attempt.
    pub(in crate::workflow) fn paused_until(&self) -> Option<DateTime<Utc>> {
        self.pages.pause.map(|pause| pause.until)
    }

    /// Watches the page during a pause. Reads at the end of the pause, and earlier if the page has changed.
    /// If something is still missing then, the pause goes on and no attempt is counted, so that a page that
    /// changes often has as much time as any other.
    fn paused(
        &mut self,
        node: &Collect<'_>,
        pause: Pause,
        result: Option<&StepResult>,
        now: DateTime<Utc>,
    ) -> Visit {
        if now >= pause.until {
            self.pages.pause = None;
            return self.read(node);
        }
        if let Some(StepResult::Seen(page)) = result {
            let shown = digest_of_shown(node.via, page);
            let is_loading = matches!(node.via, Source::Dom {}) && !page.settled;
            let has_changed = pause.shown.is_some_and(|before| before != shown);
            if has_changed && !is_loading && now >= pause.earliest {
                let earliest = now + READ_INTERVAL;
                self.pages.pause = Some(Pause { earliest, shown: Some(shown), ..pause });
                return self.read(node);
            }
            let shown = pause.shown.or(Some(shown));
            self.pages.pause = Some(Pause { shown, ..pause });
        }
        self.stay(Command::Watch)
    }

    /// Pauses before the next attempt, or goes on with a pause that has not ended; `None` after the last
    /// attempt.
    fn try_again(&mut self, node: &Collect<'_>, now: DateTime<Utc>) -> Option<Visit> {
        if self.pages.pause.is_some_and(|pause| now < pause.until) {
            return Some(self.stay(Command::Watch));
        }
        if self.attempts >= node.retries {
            return None;
        }
        self.attempts = self.attempts.saturating_add(1);
        let length = pause_before(self.attempts);
        let (until, earliest) = (now + length, now + READ_INTERVAL);
        self.pages.pause = Some(Pause { until, earliest, shown: None });
        if let Some(trace) = &mut self.trace {
            let (attempt, of) = (self.attempts.saturating_add(1), node.retries.saturating_add(1));
            trace.push(TraceEvent::Paused { length, attempt, of });
        }
        Some(self.stay(Command::Watch))
    }

    /// Processes what was read of a page.
    fn page_read(
        &mut self,
        node: &Collect<'_>,
        read: Value,
        step: PageStep,
        now: DateTime<Utc>,
    ) -> Visit {
        let read = self.with_empty_lists(node, read);
        if let PageStep::Changing(until) = step {
            let is_same = self.pages.last.as_ref() == Some(&read);
            if !is_same
                && self.has_rows(node, &read)
                && self.pages.earlier.contains(&self.digest_of_rows(node, &read))
            {
                return self.led_back(node, &read, now);
            }
            if is_same || !self.has_rows(node, &read) {
                return if now < until {
                    self.stay(Command::Watch)
                } else if is_same {
                    self.trace_single_page(node, false);
                    self.settle(&[], node)
                } else if self.has_lists(node, &read) {
                    self.settle(&[], node)
                } else {
                    // Another page has taken the place of the list, such as one that asks to sign in.
                    self.incomplete(node, now)
                };
            }
        }
        let is_first = self.pages.count == 0;
        if !is_first && matches!(step, PageStep::Reading) && self.has_rows(node, &read) {
            let digest = self.digest_of_rows(node, &read);
            // Many servers answer a number after that of the last page with the last page.
            if self.pages.earlier.last() == Some(&digest) {
                return self.settle(&[], node);
            }
            if self.pages.earlier.contains(&digest) {
                return self.led_back(node, &read, now);
            }
        }
        let (missing, rows) = if is_first {
            self.forget_last_reading();
            let missing = self.take_fields(node.fields, &read, node.via);
            if !self.take_variables(node.variables, &read, node.via) {
                return self.incomplete(node, now);
            }
            (missing, self.row_count(node))
        } else {
            match self.add_rows(node, &read) {
                Some(added) => (vec![], added),
                None => return self.incomplete(node, now),
            }
        };
        if !missing.is_empty()
            && let Some(visit) = self.try_again(node, now)
        {
            return visit;
        }
        (self.attempts, self.pages.pause) = (0, None);
        self.pages.count = self.pages.count.saturating_add(1);
        match node.pages {
            Some(pages)
                if self.pages.count < pages.max
                    && self.has_room(node, &read)
                    && !self.lacks_required(&missing) =>
            {
                self.turn(node, &pages.next, read, rows, &missing)
            }
            Some(_) | None => {
                self.trace_last_page(node, &read, rows);
                self.settle(&missing, node)
            }
        }
    }

    /// Goes to the next page, or leaves the node after the last one.
    fn turn(
        &mut self,
        node: &Collect<'_>,
        next: &NextPage,
        read: Value,
        rows: usize,
        missing: &[String],
    ) -> Visit {
        // Fields that the first page lacks are not on the others.
        self.note_missing(missing);
        let digest = self.digest_of_rows(node, &read);
        self.pages.earlier.push(digest);
        let value = match next {
            NextPage::Act(action) => {
                self.pages.step = PageStep::Acting;
                self.pages.last = Some(read);
                return self.stay(Command::Act(action.clone()));
            }
            NextPage::Number { first, .. } if rows > 0 => {
                Some(Value::from(u64::from(*first) + u64::from(self.pages.count)))
            }
            NextPage::Offset { .. } if rows > 0 => Some(Value::from(self.row_count(node))),
            NextPage::Number { .. } | NextPage::Offset { .. } => None,
            NextPage::Cursor { from, .. } => {
                let cursor = convert(from, read.pointer(&from.at)).ok();
                let is_new = |cursor: &Value| {
                    self.pages.value.as_ref().is_none_or(|(_, last)| last != cursor)
                };
                cursor.filter(|cursor| cursor.as_str() != Some("") && is_new(cursor))
            }
        };
        match next.name().zip(value) {
            Some((name, value)) => {
                self.pages.value = Some((name.to_owned(), value));
                self.read(node)
            }
            None => self.settle(missing, node),
        }
    }

    /// Handles a page with the rows of an earlier one: its rows would be collected again and again, and
    /// those of other pages perhaps never.
    fn led_back(&mut self, node: &Collect<'_>, read: &Value, now: DateTime<Utc>) -> Visit {
        for (name, from) in node.fields {
            if self.is_list(name) {
                let found = located(name, from, read, node.via);
                self.trace_read(name, found, &Err(ReadFailure::EarlierPage));
            }
        }
        self.incomplete(node, now)
    }

    fn digest_of_rows(&self, node: &Collect<'_>, read: &Value) -> u64 {
        let mut hasher = DefaultHasher::new();
        for (name, from) in node.fields.iter().filter(|(name, _)| self.is_list(name)) {
            let rows = located(name, from, read, node.via);
            rows.map(Value::to_string).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Reads a page again, or leaves the node without its lists: what is known of them is a part.
    fn incomplete(&mut self, node: &Collect<'_>, now: DateTime<Utc>) -> Visit {
        if let Some(visit) = self.try_again(node, now) {
            return visit;
        }
        let is_known = |name: &&String| {
            if self.pages.count > 0 {
                !self.is_list(name)
            } else {
                self.collected.data.contains_key(*name)
            }
        };
        let missing: Vec<_> = node.fields.keys().filter(|name| !is_known(name)).cloned().collect();
        if self.pages.count > 0 {
            self.collected.data.retain(|name, _| !missing.contains(name));
        }
        let has_variables = node.variables.keys().all(|name| self.variables.contains_key(name));
        if !has_variables {
            return Visit::Leave(node.on_missing.clone());
        }
        self.settle(&missing, node)
    }

    /// Leaves the node.
    fn settle(&mut self, missing: &[String], node: &Collect<'_>) -> Visit {
        if self.lacks_required(missing) {
            return Visit::Leave(node.on_missing.clone());
        }
        self.note_missing(missing);
        Visit::to(node.next)
    }

    /// Returns what was read of a page, in which a list is not there if the page shows what it shows in
    /// place of rows, and has a single row that is none of the list.
    fn with_empty_lists(&self, node: &Collect<'_>, mut read: Value) -> Value {
        if matches!(node.via, Source::Dom {})
            && let Some(found) = read.as_object_mut()
        {
            for (name, from) in node.fields {
                let shown = found.remove(&shown_instead_of(name));
                let field = self.definition.output.get(name);
                if is_no_list(shown.as_ref())
                    && field.is_some_and(|field| has_other_row(field, from, found.get(name)))
                {
                    found.insert(name.clone(), ReadContent::NO_LIST.into());
                }
            }
        }
        read
    }

    fn lacks_required(&self, missing: &[String]) -> bool {
        let required = |name: &String| self.definition.output.get(name).is_some_and(|f| f.required);
        missing.iter().any(required)
    }

    fn note_missing(&mut self, missing: &[String]) {
        for name in missing {
            if !self.collected.missing.contains(name) {
                self.collected.missing.push(name.clone());
            }
        }
    }

    fn is_list(&self, name: &str) -> bool {
        self.definition.output.get(name).is_some_and(|field| field.kind == FieldType::List)
    }

    /// Returns the number of collected rows of the node's longest list.
    fn row_count(&self, node: &Collect<'_>) -> usize {
        let rows = |name: &String| self.collected.data.get(name)?.as_array().map(Vec::len);
        node.fields.keys().filter_map(rows).max().unwrap_or_default()
    }

    /// Returns whether a list of the node may have further rows. One whose place the page has left out,
    /// since there are no rows, has none.
    fn has_room(&self, node: &Collect<'_>, read: &Value) -> bool {
        let is_left_out = |name: &str, from: &Extraction| {
            matches!(node.via, Source::Dom {}) && is_no_list(located(name, from, read, node.via))
        };
        let lists = node.fields.iter().filter(|(name, _)| self.is_list(name));
        lists.filter(|(name, from)| !is_left_out(name, from)).any(|(name, _)| {
            let limit = self.definition.output.get(name).map_or(0, Field::row_limit);
            let rows = self.collected.data.get(name).and_then(Value::as_array);
            rows.is_some_and(|rows| rows.len() < limit)
        })
    }

    /// Returns whether each list that was read of the first page is there, with or without rows.
    fn has_lists(&self, node: &Collect<'_>, read: &Value) -> bool {
        let known = |name: &String| self.collected.data.contains_key(name) && self.is_list(name);
        node.fields
            .iter()
            .filter(|(name, _)| known(name))
            .map(|(name, from)| located(name, from, read, node.via))
            .all(|found| found.is_some_and(Value::is_array) || is_no_list(found))
    }

    fn has_rows(&self, node: &Collect<'_>, read: &Value) -> bool {
        node.fields.iter().filter(|(name, _)| self.is_list(name)).any(|(name, from)| {
            let found = located(name, from, read, node.via).and_then(Value::as_array);
            found.is_some_and(|rows| !rows.is_empty())
        })
    }

    /// Adds the rows of a further page, and returns how many there are; `None` if a list is missing.
    fn add_rows(&mut self, node: &Collect<'_>, read: &Value) -> Option<usize> {
        let (mut most, mut lists) = (0, Vec::new());
        let definition = self.definition.clone();
        for (name, from) in node.fields {
            let Some(field) = definition.output.get(name) else { continue };
            if field.kind != FieldType::List {
                continue;
            }
            // A list that the first page lacks is missing.
            let Some(Value::Array(known)) = self.collected.data.get(name).cloned() else {
                continue;
            };
            let found = located(name, from, read, node.via);
            let result = read_field(field, from, found, node.via);
            self.trace_read(name, found, &result);
            let Ok(Value::Array(rows)) = result else { return None };
            // A button that adds rows leaves those of the pages before.
            let new = rows.strip_prefix(known.as_slice()).unwrap_or(&rows);
            let mut all = known.clone();
            all.extend_from_slice(new);
            self.trace_limit(name, found, all.len());
            all.truncate(field.row_limit());
            most = most.max(all.len().saturating_sub(known.len()));
            lists.push((name, all));
        }
        // All at once: if a list is missing, another attempt would add the rows of the others again.
        for (name, rows) in lists {
            self.insert(name, rows.into()).ok()?;
        }
        Some(most)
    }

    fn read(&self, node: &Collect<'_>) -> Visit {
        let command = match node.via {
            Source::Fetch(name) => match self.definition.requests.get(name) {
                Some(request) => match self.page_fetch(request) {
                    Some(request) => Command::Fetch(request),
                    // A value that it needs is missing.
                    None => return Visit::Leave(node.on_missing.clone()),
                },
                None => Command::End(End::Failed(ErrorCode::WorkflowInvalid)),
            },
            Source::Response(url) => {
                Command::ReadResponse { url: url.clone(), after: self.forgotten_responses }
            }
            Source::Dom {} => {
                let elements = node.fields.iter().chain(node.variables).map(|(name, from)| {
                    (name.clone(), element_read(from, self.definition.output.get(name)))
                });
                let instead = node.fields.iter().filter_map(|(name, from)| {
                    Some((shown_instead_of(name), empty_read(from.empty_when.clone()?)))
                });
                Command::ReadDom { elements: elements.chain(instead).collect() }
            }
        };
        self.stay(command)
    }

    /// Returns a request with collected values in place of their names; `None` if one is missing.
    fn page_fetch(&self, request: &Request) -> Option<PageFetch> {
        let value = |name: &str| self.value(name);
        let body = match &request.body {
            Some(body) => Some(expand_body(body, &value)?.to_string()),
            None => None,
        };
        Some(PageFetch {
            url: self.expanded(&request.url)?,
            method: request.method,
            headers: request.headers.clone(),
            csrf: request.csrf.clone(),
            body,
            expect_status: request.expect_status,
            max_bytes: request.max_bytes,
        })
    }

    /// Returns the value that stands for a page, a variable, or a collected field.
    pub(in crate::workflow) fn value(&self, name: &str) -> Option<&Value> {
        let page = self.pages.value.as_ref().filter(|(page, _)| page == name);
        let value = page.map(|(_, value)| value).or_else(|| self.variables.get(name));
        value.or_else(|| self.collected.data.get(name))
    }

    /// Collects a value, unless all data would be too large.
    fn insert(&mut self, name: &str, value: Value) -> Result<(), ReadFailure> {
        let others = self.collected.data.iter().filter(|(other, _)| *other != name);
        let size = |(name, value): (&String, &Value)| name.len() + value.to_string().len();
        let others: usize = others.map(size).sum();
        if others + name.len() + value.to_string().len() > MAX_DATA_BYTES {
            return Err(ReadFailure::TooMuch);
        }
        self.collected.missing.retain(|missing| missing != name);
        self.collected.data.insert(name.to_owned(), value);
        Ok(())
    }

    /// Collects the fields that are present and returns the names of those that are missing.
    fn take_fields(
        &mut self,
        fields: &BTreeMap<String, Extraction>,
        read: &Value,
        via: &Source,
    ) -> Vec<String> {
        let mut missing = Vec::new();
        for (name, from) in fields {
            let found = located(name, from, read, via);
            let field = self.definition.output.get(name);
            let result = field.ok_or(ReadFailure::WrongType);
            let mut result = result.and_then(|field| read_field(field, from, found, via));
            if let Ok(value) = &result
                && let Err(failure) = self.insert(name, value.clone())
            {
                result = Err(failure);
            }
            self.trace_read(name, found, &result);
            match result {
                Ok(_) => {
                    self.trace_limit(name, found, 0);
                    self.pages.taken.push(name.clone());
                }
                Err(_) if self.collected.data.contains_key(name) => (),
                Err(_) => missing.push(name.clone()),
            }
        }
        missing
    }

    /// Records that the lists end with their first page: nothing leads to a next one, or what does changes
    /// nothing. It is no error: a short list has no link to a next page, or one that is switched off.
    fn trace_single_page(&mut self, node: &Collect<'_>, is_missing: bool) {
        let Some(NextPage::Act(action)) = node.pages.map(|pages| &pages.next) else { return };
        if self.pages.count == 1 {
            self.trace_lists(node, |name| {
                let action = action.clone();
                if is_missing {
                    TraceEvent::NoNextPage { name, action }
                } else {
                    TraceEvent::SamePage { name, action }
                }
            });
        }
    }

    /// Records that the lists end with the last page that is read, if they may have further ones.
    fn trace_last_page(&mut self, node: &Collect<'_>, read: &Value, rows: usize) {
        let Some(pages) = node.pages.filter(|pages| self.pages.count >= pages.max) else { return };
        let goes_on = match &pages.next {
            NextPage::Act(_) | NextPage::Number { .. } | NextPage::Offset { .. } => rows > 0,
            NextPage::Cursor { from, .. } => convert(from, read.pointer(&from.at))
                .is_ok_and(|cursor| cursor.as_str() != Some("")),
        };
        if goes_on && self.has_room(node, read) {
            self.trace_lists(node, |name| TraceEvent::PagesEnd { name, max: pages.max });
        }
    }

    /// Records how the lists end that were read.
    fn trace_lists(&mut self, node: &Collect<'_>, end: impl Fn(String) -> TraceEvent) {
        let lists = node.fields.keys().filter(|name| self.is_list(name)).cloned();
        let lists: Vec<_> = lists.filter(|name| self.collected.data.contains_key(name)).collect();
        if let Some(trace) = &mut self.trace {
            trace.extend(lists.into_iter().map(end));
        }
    }

    /// Drops what an earlier attempt has read: the page may have become that of another account since.
    fn forget_last_reading(&mut self) {
        for name in std::mem::take(&mut self.pages.taken) {
            self.collected.data.remove(&name);
            self.variables.remove(&name);
        }
    }

    /// Stores the variables that are present, and returns whether all are.
    fn take_variables(
        &mut self,
        variables: &BTreeMap<String, Extraction>,
        read: &Value,
        via: &Source,
    ) -> bool {
        for (name, from) in variables {
            let found = located(name, from, read, via);
            let result = convert(from, found);
            self.trace_read(name, found, &result);
            if let Ok(value) = result {
                self.pages.taken.push(name.clone());
                self.variables.insert(name.clone(), value);
            }
        }
        variables.keys().all(|name| self.variables.contains_key(name))
    }
}

/// Returns the value that stands for the first page in requests, with its name.
fn first_value(next: &NextPage) -> Option<(String, Value)> {
    let value = match next {
        NextPage::Act(_) => return None,
        NextPage::Number { first, .. } => Value::from(*first),
        NextPage::Offset { .. } => Value::from(0),
        NextPage::Cursor { first, .. } => first.as_deref().map_or(Value::Null, Value::from),
    };
    next.name().map(|name| (name.to_owned(), value))
}

/// Returns the length of the pause before a further attempt, from 1: together at most 7.5 seconds before
/// the five that a page can have.
const fn pause_before(attempt: u8) -> TimeDelta {
    match attempt {
        0 | 1 => TimeDelta::milliseconds(500),
        2 => TimeDelta::seconds(1),
        _ => TimeDelta::seconds(2),
    }
}

/// Returns a digest of a page, which differs from an earlier one if the source may have other data since.
fn digest_of_shown(via: &Source, page: &Observation) -> u64 {
    let newest = |pattern: Option<&str>| {
        let is_of = |url: &str| pattern.is_none_or(|pattern| matches_url(pattern, url));
        let responses = page.responses.iter().filter(|response| is_of(&response.url));
        responses.map(|response| response.number).max()
    };
    let mut hasher = DefaultHasher::new();
    match via {
        // A server that could not answer is not asked any earlier because of the page.
        Source::Fetch(_) => (),
        Source::Response(pattern) => newest(Some(pattern.as_str())).hash(&mut hasher),
        Source::Dom {} => {
            let address = (&page.url, page.document, page.settled);
            (address, &page.present, &page.texts, newest(None)).hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Returns the name under which it is read whether the page shows something in place of the rows of a
/// list. No field has such a name, since names have no control characters.
fn shown_instead_of(list: &str) -> String {
    format!("{list}\nemptyWhen")
}

/// Returns a list that nothing in the page can be, so that only what is shown in its place counts.
fn empty_read(empty_when: String) -> ElementRead {
    let nothing = || ":not(*)".to_owned();
    let (empty_when, members) = (Some(empty_when), BTreeMap::new());
    ElementRead {
        selector: nothing(),
        content: ReadContent::Rows { each: nothing(), empty_when, members, max: 0 },
        choice: ElementChoice::First,
    }
}

/// Returns what the page is asked for.
fn element_read(from: &Extraction, field: Option<&Field>) -> ElementRead {
    let Extraction { at, read, element, each, empty_when, members, .. } = from.clone();
    let members = || members.iter().map(|(name, from)| (name.clone(), element_read(from, None)));
    let content = match (field.map(|field| field.kind), each) {
        (Some(FieldType::List), Some(each)) => {
            let max = field.map_or(0, Field::row_limit);
            ReadContent::Rows { each, empty_when, members: members().collect(), max }
        }
        (Some(FieldType::Object), _) => ReadContent::Members(members().collect()),
        _ => ReadContent::Value(read),
    };
    ElementRead { selector: at, content, choice: element }
}
