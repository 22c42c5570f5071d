//! Parses the time that a test clock is moved by.

use super::{InvalidRequest, read::Reader};
use crate::session::SkippedTime;

/// Parses `{advanceSeconds}`: 1 second to 30 days.
///
/// # Errors
/// All findings at once.
pub fn read_skipped_time(text: &[u8]) -> Result<SkippedTime, InvalidRequest> {
    let invalid_json = |_| InvalidRequest::one("the body must be valid JSON");
    let body: serde_json::Value = serde_json::from_slice(text).map_err(invalid_json)?;
    let object =
        body.as_object().ok_or_else(|| InvalidRequest::one("the body must be a JSON object"))?;
    let mut reader = Reader::new(object, "");
    let seconds = reader.integer("advanceSeconds");
    let by = seconds.and_then(|seconds| u32::try_from(seconds).ok()).filter(|by| *by > 0);
    let by = by.and_then(SkippedTime::seconds);
    if !reader.has("advanceSeconds") {
        reader.finding("advanceSeconds", "is required");
    } else if seconds.is_some() && by.is_none() {
        let rule = format!("must be between 1 and {}", SkippedTime::MAX_SECONDS);
        reader.finding("advanceSeconds", &rule);
    }
    let findings = reader.into_findings();
    by.ok_or(InvalidRequest(findings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_second_to_thirty_days() {
        let read = |text: &str| read_skipped_time(text.as_bytes());
        assert_eq!(read(r#"{"advanceSeconds":1}"#).unwrap().span().num_seconds(), 1);
        assert_eq!(read(r#"{"advanceSeconds":2592000}"#).unwrap().span().num_days(), 30);
        for (text, finding) in [
            ("", "the body must be valid JSON"),
            ("[]", "the body must be a JSON object"),
            ("{}", "advanceSeconds is required"),
            (r#"{"advanceSeconds":"1"}"#, "advanceSeconds must be a number"),
            (r#"{"advanceSeconds":1.5}"#, "advanceSeconds must be an integer"),
            (r#"{"advanceSeconds":0}"#, "advanceSeconds must be between 1 and 2592000"),
            (r#"{"advanceSeconds":-1}"#, "advanceSeconds must be between 1 and 2592000"),
            (r#"{"advanceSeconds":2592001}"#, "advanceSeconds must be between 1 and 2592000"),
            (r#"{"advanceSeconds":4294967297}"#, "advanceSeconds must be between 1 and 2592000"),
        ] {
            assert_eq!(read(text).unwrap_err().0, [finding], "{text}");
        }
    }
}
