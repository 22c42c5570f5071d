//! The trace of a workflow run, as text.

use domain::workflow::{ReadFailure, TraceEvent};
use serde_json::Value;

const MAX_SHOWN_CHARS: usize = 80;

/// Returns the line for an event of a trace: what was read is cut to 80 characters.
#[must_use]
pub fn trace_line(event: &TraceEvent) -> String {
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
        TraceEvent::Read { name, found, result } => {
            let found = found.as_ref().map(shown);
            match (found, result) {
                (Some(found), Ok(value)) if found == shown(value) => format!("  {name}: {found}"),
                (Some(found), Ok(value)) => format!("  {name}: {found} -> {}", shown(value)),
                (Some(found), Err(failure)) => {
                    format!("  {name}: {found} -> missing: {}", reason(failure))
                }
                (None, _) => format!("  {name}: missing: {}", ReadFailure::NotFound),
            }
        }
    }
}

/// Returns why there is no value, with converters and rows counted from 1.
fn reason(failure: &ReadFailure) -> String {
    match failure {
        ReadFailure::Converter(index) => format!("converter {} does not apply", index + 1),
        ReadFailure::Row { row, member } => {
            format!("row {} has no required member `{member}`", row + 1)
        }
        ReadFailure::NotFound
        | ReadFailure::TooLong
        | ReadFailure::WrongType
        | ReadFailure::Member(_)
        | ReadFailure::TooMuch => failure.to_string(),
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
    use domain::error_code::ErrorCode;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_event_is_a_line() {
        let read = |found: Option<Value>, result| {
            trace_line(&TraceEvent::Read { name: "balance".into(), found, result })
        };
        assert_eq!(trace_line(&TraceEvent::Entered { node: "login".into() }), "node login");
        let signals = vec![("form".into(), true), ("in".into(), false)];
        let observed =
            TraceEvent::Observed { url: "https://a.test/".into(), settled: false, signals };
        let line = "  page https://a.test/ (loading); true: form; false: in";
        assert_eq!(trace_line(&observed), line);
        assert_eq!(read(Some(json!("5 \u{20ac}")), Ok(json!(5))), "  balance: \"5 \u{20ac}\" -> 5");
        let failed = TraceEvent::Failed { code: ErrorCode::UnexpectedPage };
        assert_eq!(trace_line(&failed), "failed: UNEXPECTED_PAGE");
        assert_eq!(read(Some(json!(5)), Ok(json!(5))), "  balance: 5");
        assert_eq!(read(None, Err(ReadFailure::NotFound)), "  balance: missing: nothing is there");
        let line = "  balance: \"?\" -> missing: converter 2 does not apply";
        assert_eq!(read(Some(json!("?")), Err(ReadFailure::Converter(1))), line);
        let long = read(Some(json!("a".repeat(500))), Ok(json!("a")));
        assert!(long.chars().count() < 110 && long.contains('\u{2026}'), "{long}");
        // A line of the terminal cannot be forged by a page.
        assert!(!read(Some(json!("a\n\u{1b}[2J")), Ok(json!("a"))).contains(['\n', '\u{1b}']));
    }
}
