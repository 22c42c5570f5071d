//! What a run saw and decided, for authors of definitions. It has data of the applicant: it is for runs
//! in which the author plays the applicant, and is never logged.

use std::fmt;

use chrono::TimeDelta;
use serde_json::Value;

use super::{Action, collect::is_no_list};
use crate::error_code::ErrorCode;

/// Characters of a value that a line shows.
const MAX_SHOWN_CHARS: usize = 80;

/// Something that a run saw or decided.
#[derive(Debug, Clone, PartialEq)]
pub enum TraceEvent {
    /// The run entered a node.
    Entered { node: String },
    /// An observation that differs from the one before in its URL, its state or its signals.
    Observed {
        url: String,
        settled: bool,
        /// All signals, by name, and whether each holds.
        signals: Vec<(String, bool)>,
    },
    /// The page of a `goto` could not be reached.
    Unreachable,
    /// The run failed, at the node that it is at.
    Failed { code: ErrorCode },
    /// The run is complete, with this data; the applicant declined to share it if there is none.
    Completed { data: Option<Value> },
    /// The author has changed the definition, and the run begins anew in the same browser.
    Reloaded,
    /// A response to a request or to what was watched could not be used, or an element for an action
    /// was missing.
    Unreadable,
    /// Something is missing, and the run pauses before it reads again.
    Paused {
        length: TimeDelta,
        /// The number of the attempt that follows; the first reading is attempt 1.
        attempt: u8,
        /// The number of attempts that there are.
        of: u8,
    },
    /// The applicant has agreed to share, and the page did not confirm it.
    Unconfirmed {
        /// The signal that had to hold.
        signal: String,
        /// The page on which it did not hold; `None` if no page settled in time.
        url: Option<String>,
    },
    /// A field or variable was read.
    Read {
        name: String,
        /// What was at its place; `None` if there was nothing.
        found: Option<Value>,
        /// The value, or why there is none.
        result: Result<Value, ReadFailure>,
    },
    /// A list that was just read has as many rows as it has at most: further ones are left out.
    ListEnds { name: String, max: usize },
    /// There was no element on the first page of a list for the action that leads to the next one: the list
    /// ends with its first page.
    NoNextPage { name: String, action: Action },
    /// The action that leads to the next page of a list was carried out on its first page, and the page
    /// stayed as it was: the list ends with its first page.
    SamePage { name: String, action: Action },
    /// As many pages of a list were read as may be, and the list may go on: further pages are left out.
    PagesEnd { name: String, max: u8 },
}

/// Why what was read is no value of a field or variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadFailure {
    #[error("nothing is there")]
    NotFound,
    #[error("the text is longer than converters read")]
    TooLong,
    /// With its index, from 0; the text counts from 1.
    #[error("converter {} does not apply", .0 + 1)]
    Converter(usize),
    #[error("the value is empty, or of another type than the field")]
    WrongType,
    /// A required member of an object, by its name.
    #[error("the required member `{0}` is missing")]
    Member(String),
    /// A row of a list without a required member, with its index, from 0; the text counts from 1.
    #[error("row {} has no required member `{member}`", row + 1)]
    Row { row: usize, member: String },
    /// What was to lead to the next page of a list led back.
    #[error("the page has the rows of an earlier one: the way to the next page leads back")]
    EarlierPage,
    #[error("all data together is larger than 256 KiB")]
    TooMuch,
}

/// The event as one line, without its time: what was read is cut to 80 characters.
impl fmt::Display for TraceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&line(self))
    }
}

fn line(event: &TraceEvent) -> String {
    match event {
        TraceEvent::Entered { node } => format!("node {node}"),
        TraceEvent::Observed { url, settled, signals } => {
            let state = if *settled { "" } else { " (loading)" };
            let names = |wanted: bool| {
                let names = signals.iter().filter(|(_, holds)| *holds == wanted);
                let names: Vec<_> = names.map(|(name, _)| name.as_str()).collect();
                if names.is_empty() { "none".to_owned() } else { names.join(" ") }
            };
            format!("  page {url}{state}; true: {}; false: {}", names(true), names(false))
        }
        TraceEvent::Unreachable => "  the page could not be reached: no answer, or a host or port \
            that is not allowed"
            .to_owned(),
        TraceEvent::Completed { data: Some(data) } => format!("complete: {data}"),
        TraceEvent::Completed { data: None } => "complete: you declined to share".to_owned(),
        TraceEvent::Reloaded => "the definition has changed: starting over".to_owned(),
        TraceEvent::Failed { code } => format!("failed: {}", code.as_str()),
        TraceEvent::Unreadable => {
            "  nothing was read: no element, or no response as expected".to_owned()
        }
        // A list is read of rows, so that no value of the page is taken for this.
        TraceEvent::Read { name, found, result: Ok(Value::Array(_)) }
            if is_no_list(found.as_ref()) =>
        {
            format!("  {name}: [] (no list; the page has what `emptyWhen` names)")
        }
        TraceEvent::Paused { length, attempt, of } => {
            let seconds = length.to_std().unwrap_or_default().as_secs_f64();
            format!("  something is missing: waiting {seconds} s before attempt {attempt} of {of}")
        }
        TraceEvent::Unconfirmed { signal, url: Some(url) } => {
            format!("  the review was not confirmed: `{signal}` did not hold on {url}")
        }
        TraceEvent::Unconfirmed { signal, url: None } => {
            format!(
                "  the review was not confirmed: no page settled on which `{signal}` could hold"
            )
        }
        TraceEvent::ListEnds { name, max } => {
            format!(
                "  {name}: the list ends at its limit (`maxRows` {max}): further rows are left out"
            )
        }
        TraceEvent::NoNextPage { name, action } => {
            let selector = action.selector();
            format!("  {name}: nothing on the first page leads to a next page (no `{selector}`)")
        }
        TraceEvent::SamePage { name, action } => {
            let selector = action.selector();
            format!("  {name}: what leads to a next page changes nothing (`{selector}`)")
        }
        TraceEvent::PagesEnd { name, max } => {
            format!("  {name}: the list ends after {max} pages (`max`): further ones are left out")
        }
        TraceEvent::Read { name, found, result } => {
            let found = found.as_ref().map(shown);
            match (found, result) {
                (Some(found), Ok(value)) if found == shown(value) => format!("  {name}: {found}"),
                (Some(found), Ok(value)) => format!("  {name}: {found} -> {}", shown(value)),
                (Some(found), Err(failure)) => {
                    format!("  {name}: {found} -> missing: {failure}")
                }
                (None, _) => format!("  {name}: missing: {}", ReadFailure::NotFound),
            }
        }
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= MAX_SHOWN_CHARS {
        return text;
    }
    text.chars().take(MAX_SHOWN_CHARS).chain(['\u{2026}']).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::workflow::ReadContent;

    #[test]
    fn each_event_is_a_line() {
        let read = |found: Option<Value>, result| {
            line(&TraceEvent::Read { name: "balance".into(), found, result })
        };
        assert_eq!(line(&TraceEvent::Entered { node: "login".into() }), "node login");
        let signals = vec![("form".into(), true), ("in".into(), false)];
        let observed =
            TraceEvent::Observed { url: "https://a.test/".into(), settled: false, signals };
        let expected = "  page https://a.test/ (loading); true: form; false: in";
        assert_eq!(line(&observed), expected);
        assert_eq!(read(Some(json!("5 \u{20ac}")), Ok(json!(5))), "  balance: \"5 \u{20ac}\" -> 5");
        let failed = TraceEvent::Failed { code: ErrorCode::UnexpectedPage };
        assert_eq!(line(&failed), "failed: UNEXPECTED_PAGE");
        assert_eq!(read(Some(json!(5)), Ok(json!(5))), "  balance: 5");
        let no_list = Some(json!(ReadContent::NO_LIST));
        let expected = "  balance: [] (no list; the page has what `emptyWhen` names)";
        assert_eq!(read(no_list.clone(), Ok(json!([]))), expected);
        assert_eq!(read(no_list, Ok(json!("noList"))), "  balance: \"noList\"");
        assert_eq!(read(None, Err(ReadFailure::NotFound)), "  balance: missing: nothing is there");
        let expected = "  balance: \"?\" -> missing: converter 2 does not apply";
        assert_eq!(read(Some(json!("?")), Err(ReadFailure::Converter(1))), expected);
        let paused = TraceEvent::Paused { length: TimeDelta::milliseconds(500), attempt: 2, of: 4 };
        let expected = "  something is missing: waiting 0.5 s before attempt 2 of 4";
        assert_eq!(line(&paused), expected);
        let unconfirmed = |url: Option<&str>| {
            let url = url.map(str::to_owned);
            line(&TraceEvent::Unconfirmed { signal: "in".into(), url })
        };
        let expected = "  the review was not confirmed: `in` did not hold on https://a.test/x";
        assert_eq!(unconfirmed(Some("https://a.test/x")), expected);
        let expected = "  the review was not confirmed: no page settled on which `in` could hold";
        assert_eq!(unconfirmed(None), expected);
        let ends = TraceEvent::ListEnds { name: "orders".into(), max: 100 };
        let expected =
            "  orders: the list ends at its limit (`maxRows` 100): further rows are left out";
        assert_eq!(line(&ends), expected);
        let action = Action::Click("a.next".into());
        let expected = "  orders: nothing on the first page leads to a next page (no `a.next`)";
        assert_eq!(line(&TraceEvent::NoNextPage { name: "orders".into(), action }), expected);
        let action = Action::Click("a.next".into());
        let expected = "  orders: what leads to a next page changes nothing (`a.next`)";
        assert_eq!(line(&TraceEvent::SamePage { name: "orders".into(), action }), expected);
        let expected = "  orders: the list ends after 4 pages (`max`): further ones are left out";
        assert_eq!(line(&TraceEvent::PagesEnd { name: "orders".into(), max: 4 }), expected);
        let long = read(Some(json!("a".repeat(500))), Ok(json!("a")));
        assert!(long.chars().count() < 110 && long.contains('\u{2026}'), "{long}");
        // A line of the terminal cannot be forged by a page.
        assert!(!read(Some(json!("a\n\u{1b}[2J")), Ok(json!("a"))).contains(['\n', '\u{1b}']));
    }
}
