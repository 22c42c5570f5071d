//! What there is at a place that an author edits, and what becomes of it.

use domain::workflow::{
    Definition, ElementChoice, FieldType, Node, PageTree, ReadFailure, SeenResponse, Select,
    Source, element_text, find_elements, matches_url, rows_of, value_at,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    ChosenSource, Edit, Studio, StudioError,
    addresses::{offered_values, scalar_text},
    choices::cut,
    shown::other_page,
};
use crate::{
    draft::{KnownValues, Reading},
    selectors::is_positional,
    signals::page_language_tag,
    values::{ValueProposal, propose_json_values, propose_values},
};

/// A longer value can stand in no address.
pub(super) const MAX_SAMPLE_CHARS: usize = 512;

/// Rows of a list whose values of a column are shown.
const MAX_ROWS_SHOWN: usize = 5;
/// Rows in which a column is tried: a list has no more.
const MAX_ROWS_TRIED: usize = 1000;

/// A reading to be tried on the page that is shown, or on the newest response.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TriedReading {
    /// The node that reads it.
    node: String,
    /// The list or the object that it is a part of.
    #[serde(default)]
    within: Option<Reading>,
    reading: Reading,
    /// Whether it is that of a value for addresses, which is any text or number.
    #[serde(default)]
    for_addresses: bool,
}

impl TriedReading {
    /// Returns what the converters make of what was found, as a run does.
    fn result(&self, found: Option<&Value>) -> ReadingView {
        if !self.for_addresses {
            return converted(&self.reading, found);
        }
        let is_text = |text: &String| !text.trim().is_empty();
        let text = |value: &Value| scalar_text(value).filter(is_text).map(Value::String);
        converted_to(&self.reading, found, text)
    }
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadingView {
    /// Whether the selector counts elements.
    positional: bool,
    /// The elements that match; of a column, those in the first row that has one.
    matches: usize,
    /// The rows of the list; for a column, at most 1000.
    rows: Option<usize>,
    /// What a column of a list has in all its rows.
    column: Option<ColumnView>,
    /// The visible elements that are shown instead of a list without rows; `None` if none are named.
    instead: Option<usize>,
    /// What is there; `None` if there is nothing.
    found: Option<String>,
    value: Option<Value>,
    problem: Option<String>,
    /// What else it can be read as.
    values: Vec<ValueProposal>,
    /// The address of the page that the node reads if another one seems to be shown. It is no error: the site may
    /// lead on from that address to the page that is shown.
    other_page: Option<String>,
}

impl ReadingView {
    /// Returns it with what the page at `url` is, compared with the one that a node reads.
    pub(super) fn compared(
        self,
        definition: &Definition,
        node: &str,
        url: &str,
        known: &KnownValues,
    ) -> Self {
        let other_page = other_page(definition, (node, self.is_there()), url, known);
        Self { other_page, ..self }
    }

    /// Returns whether there is something at the place.
    fn is_there(&self) -> bool {
        self.matches > 0 || self.instead.is_some_and(|count| count > 0)
    }
}

/// What a column has in the rows of its list.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ColumnView {
    /// The number of rows in which something is there.
    found: usize,
    /// The number of rows in which something is there that cannot be read.
    unread: usize,
    /// What is read in the first rows, at most five; `None` for a row without a value.
    values: Vec<Option<Value>>,
}

impl ColumnView {
    /// `found` is what there is in each row.
    fn of(reading: &Reading, found: &[Option<Value>]) -> Self {
        let values: Vec<_> =
            found.iter().map(|found| converted(reading, found.as_ref()).value).collect();
        let is_unread =
            |(found, value): &(&Option<Value>, &Option<Value>)| found.is_some() && value.is_none();
        let shown = |value: Option<Value>| {
            value.map(|value| value.as_str().map(cut).map_or_else(|| value.clone(), Value::String))
        };
        Self {
            found: found.iter().flatten().count(),
            unread: found.iter().zip(&values).filter(is_unread).count(),
            values: values.into_iter().take(MAX_ROWS_SHOWN).map(shown).collect(),
        }
    }
}

impl Studio {
    /// Tries a reading.
    ///
    /// # Errors
    /// There is no such node, no browser, or no response of its source.
    pub async fn try_reading(&self, tried: TriedReading) -> Result<ReadingView, StudioError> {
        let definition = self.definition()?;
        let Some(Node::Collect { via, .. }) = definition.nodes.get(&tried.node) else {
            return Err(StudioError::NoDefinition);
        };
        let pattern = match via {
            Source::Dom {} => {
                let browser = self.parts.runs.browser().ok_or(StudioError::NoBrowser)?;
                let url = browser.observe().await?.url;
                let page = browser.inspect().await?.tree;
                let node = tried.node.clone();
                let syntax = self.parts.syntax.clone();
                let compute = move || {
                    let select = |page: &PageTree, scope: usize, selector: &str| {
                        syntax.select(page, scope, selector)
                    };
                    on_page(&page, &tried, &select)
                };
                let found = computed(compute).await?;
                let known = offered_values(&definition, &self.shared.state());
                return Ok(found.compared(&definition, &node, &url, &known));
            }
            Source::Response(pattern) => pattern.clone(),
            Source::Fetch(name) => {
                let request = definition.requests.get(name).ok_or(StudioError::NoResponse)?;
                path_pattern(&request.url)
            }
        };
        let is_it = |response: &&SeenResponse| {
            response.body.is_some() && matches_url(&pattern, &response.url)
        };
        let body = {
            let state = self.shared.state();
            let response = state.responses.newest_first().find(is_it);
            response.and_then(|response| response.body.clone())
        };
        let body = body.ok_or(StudioError::NoResponse)?;
        computed(move || in_body(&body, &tried)).await
    }
}

/// Returns what is found in a page or a response. A column in many rows of a large page may take seconds, in
/// which the thread's other tasks go on.
async fn computed(
    compute: impl FnOnce() -> ReadingView + Send + 'static,
) -> Result<ReadingView, StudioError> {
    tokio::task::spawn_blocking(compute).await.map_err(|_| StudioError::NoInspection)
}

/// The text of a field or a value of the author's account.
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) text: String,
    /// The number of the browser that has shown it.
    pub(super) browser: u64,
}

impl Studio {
    /// Returns the name of the field or the value that an edit adds, and the text that it has where it
    /// was chosen: at most 512 characters, as an address would have it. `None` if it has none there, or
    /// is no text and no number, or if it was chosen in an earlier browser.
    pub(super) fn sample_of(&self, edit: &Edit) -> Option<Sample> {
        let browser = self.shared.state().browser;
        let (name, from, convert, kind) =
            if let Edit::AddField { name, from, convert, kind, list: None, .. } = edit {
                (name, from, convert, Some(*kind))
            } else if let Edit::AddVariable { name, from, convert, .. } = edit {
                (name, from, convert, None)
            } else {
                return None;
            };
        let found = match from {
            ChosenSource::Page { inspection, at, read } => {
                let page = self.shared.state().inspection_here(*inspection)?;
                let found = self.select(|select| find_elements(&page.tree, 0, at, select));
                Value::String(element_text(&page.tree, *found.first()?, read)?)
            }
            ChosenSource::Response { number, pointer } => {
                let state = self.shared.state();
                let body = state.response_here(*number)?.body.as_ref()?;
                value_at(body, pointer)?.clone()
            }
        };
        let value = convert.iter().try_fold(found, |value, converter| converter.apply(&value))?;
        let value = match kind {
            Some(kind) => of_type(kind, &value)?,
            None => value,
        };
        let text = scalar_text(&value)?;
        let is_short = text.chars().count() <= MAX_SAMPLE_CHARS;
        is_short.then(|| Sample { name: name.clone(), text, browser })
    }
}

/// Returns what a reading finds on a page.
pub(super) fn on_page(page: &PageTree, tried: &TriedReading, select: Select<'_>) -> ReadingView {
    let TriedReading { within, reading, .. } = tried;
    let find = |scope: usize, selector: &str| find_elements(page, scope, selector, select);
    let rows_in = |place: &Reading| {
        let whole = chosen(&find(0, &place.at), place.element)?;
        Some(place.each.as_ref().map_or_else(|| vec![whole], |each| find(whole, each)))
    };
    if reading.kind.has_members() {
        let shown = reading.empty_when.as_ref().filter(|_| reading.kind == FieldType::List);
        let is_visible = |index: &usize| page.nodes.get(*index).is_some_and(|node| node.visible);
        let instead = shown.map(|shown| find(0, shown).into_iter().filter(is_visible).count());
        let rows = rows_in(reading).as_ref().map(Vec::len);
        // A run takes the list for empty then.
        let rows = rows.or_else(|| instead.filter(|count| *count > 0).map(|_| 0));
        let positional = is_positional(&reading.at);
        return ReadingView { positional, instead, ..grouped(reading, rows) };
    }
    let rows = within.as_ref().map(|place| {
        let mut rows = rows_in(place).unwrap_or_default();
        rows.truncate(MAX_ROWS_TRIED);
        rows
    });
    let found_in = |scope: usize| {
        if reading.at.is_empty() { vec![scope] } else { find(scope, &reading.at) }
    };
    let read = |found: &[usize]| {
        let element = chosen(found, reading.element)?;
        element_text(page, element, &reading.read)
    };
    let in_rows =
        rows.as_ref().map(|rows| rows.iter().map(|row| found_in(*row)).collect::<Vec<_>>());
    let column = in_rows.as_ref().filter(|_| is_in_list(within.as_ref())).map(|found| {
        let texts: Vec<_> = found.iter().map(|found| read(found).map(Value::String)).collect();
        ColumnView::of(reading, &texts)
    });
    let found = match in_rows {
        // Rows with headings have other elements.
        Some(found) => found.into_iter().find(|found| !found.is_empty()),
        None => Some(find(0, &reading.at)),
    };
    let found = found.unwrap_or_default();
    let text = read(&found);
    let values = text.as_ref().map(|text| propose_values(text, &page_language_tag(page)));
    ReadingView {
        positional: is_positional(&reading.at),
        matches: found.len(),
        rows: row_count(within.as_ref(), rows.as_ref().map(Vec::len)),
        column,
        values: values.unwrap_or_default(),
        ..tried.result(text.map(Value::String).as_ref())
    }
}

/// Returns the one of several elements that is read.
pub(super) fn chosen(found: &[usize], choice: ElementChoice) -> Option<usize> {
    match choice {
        ElementChoice::First => found.first().copied(),
        ElementChoice::Last => found.last().copied(),
    }
}

/// Returns what a reading finds in the body of a response.
pub(super) fn in_body(body: &Value, tried: &TriedReading) -> ReadingView {
    let TriedReading { within, reading, .. } = tried;
    let at = value_at(body, within.as_ref().map_or(&reading.at, |place| &place.at));
    if reading.kind.has_members() {
        let count = match reading.kind {
            FieldType::List => at.and_then(rows_of).map(<[Value]>::len),
            FieldType::String
            | FieldType::Integer
            | FieldType::Number
            | FieldType::Boolean
            | FieldType::Object => at.map(|_| 1),
        };
        return grouped(reading, count);
    }
    let rows = at.and_then(rows_of).map(|rows| rows.get(..MAX_ROWS_TRIED).unwrap_or(rows));
    // An object is a single row.
    let group = rows.unwrap_or_else(|| at.map(std::slice::from_ref).unwrap_or_default());
    let member = |row: &Value| row.pointer(&reading.at).filter(|value| !value.is_null()).cloned();
    let column = rows.filter(|_| is_in_list(within.as_ref())).map(|rows| {
        let found: Vec<_> = rows.iter().map(member).collect();
        ColumnView::of(reading, &found)
    });
    let has_value = |value: &&Value| !value.is_null();
    let in_group = || group.iter().find_map(|row| row.pointer(&reading.at).filter(has_value));
    let found = if within.is_some() { in_group() } else { at.filter(has_value) };
    ReadingView {
        matches: usize::from(found.is_some()),
        rows: row_count(within.as_ref(), rows.map(<[Value]>::len)),
        column,
        values: found.map(|value| propose_json_values(value, "en")).unwrap_or_default(),
        ..tried.result(found)
    }
}

fn row_count(within: Option<&Reading>, count: Option<usize>) -> Option<usize> {
    count.filter(|_| is_in_list(within))
}

fn is_in_list(within: Option<&Reading>) -> bool {
    within.is_some_and(|place| place.kind == FieldType::List)
}

/// Returns what is shown of the place of a list or an object.
fn grouped(reading: &Reading, count: Option<usize>) -> ReadingView {
    let rows = count.filter(|_| reading.kind == FieldType::List);
    let problem = count.is_none().then(|| ReadFailure::NotFound.to_string());
    ReadingView { matches: usize::from(count.is_some()), rows, problem, ..ReadingView::default() }
}

/// Returns what converters make of a value, as a run does.
fn converted(reading: &Reading, found: Option<&Value>) -> ReadingView {
    converted_to(reading, found, |value| of_type(reading.kind, value))
}

/// Returns what converters make of a value, and `typed` of the result: `None` if it is of another type.
fn converted_to(
    reading: &Reading,
    found: Option<&Value>,
    typed: impl Fn(&Value) -> Option<Value>,
) -> ReadingView {
    let sample = found.map(|value| value.as_str().map_or_else(|| value.to_string(), cut));
    let result = found.ok_or(ReadFailure::NotFound).and_then(|found| {
        let converters = reading.convert.iter().enumerate();
        let value =
            converters.into_iter().try_fold(found.clone(), |value, (index, converter)| {
                converter.apply(&value).ok_or(ReadFailure::Converter(index))
            })?;
        typed(&value).ok_or(ReadFailure::WrongType)
    });
    let problem = result.as_ref().err().map(ToString::to_string);
    ReadingView { found: sample, value: result.ok(), problem, ..ReadingView::default() }
}

/// Returns a value if it is of a type. A page has texts alone, which stand for numbers as well.
fn of_type(kind: FieldType, value: &Value) -> Option<Value> {
    let text = value.as_str().map(str::trim);
    match kind {
        FieldType::String => text.filter(|text| !text.is_empty()).map(|_| value.clone()),
        FieldType::Integer => match text {
            Some(text) => text.parse::<i64>().ok().map(Value::from),
            None => (value.is_i64() || value.is_u64()).then(|| value.clone()),
        },
        FieldType::Number => match text {
            Some(text) => text.parse::<f64>().ok().map(Value::from),
            None => value.is_number().then(|| value.clone()),
        },
        FieldType::Boolean => match text {
            Some(text) => text.parse::<bool>().ok().map(Value::from),
            None => value.is_boolean().then(|| value.clone()),
        },
        FieldType::Object | FieldType::List => None,
    }
}

/// Returns a pattern for the path of a request's URL, with `*` in place of values.
pub(super) fn path_pattern(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/");
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let mut pattern = String::new();
    for part in path.split_inclusive('}') {
        let (before, name) = part.split_once('{').map_or((part, None), |(b, n)| (b, Some(n)));
        pattern.push_str(before);
        pattern.extend(name.map(|_| '*'));
    }
    pattern
}
