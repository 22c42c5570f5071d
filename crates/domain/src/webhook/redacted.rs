//! The body of a delivery without data about the applicant, for members of the team.

use serde_json::{Map, Value};

/// What stands in the place of a value.
const REDACTED: &str = "(redacted)";
/// The members of the body that hold no data about the applicant.
const SHOWN: [&str; 9] = [
    "sessionId",
    "status",
    "platformId",
    "attempts",
    "externalReferenceId",
    "proofHash",
    "attestedFields",
    "attestationType",
    "completedAt",
];
/// The members of `metadata` that the service adds. Others come from the partner, who may have put
/// data about the applicant there.
const SHOWN_METADATA: [&str; 6] =
    ["errorCode", "errorMessage", "missing", "environment", "workflowVersion", "test"];

/// Returns the body of a delivery with the names of all members, but with the values of those only
/// that hold no data about the applicant.
#[must_use]
pub fn redacted(body: &Value) -> Value {
    let Value::Object(body) = body else { return REDACTED.into() };
    let member = |(name, value): (&String, &Value)| {
        let value = match (name.as_str(), value) {
            ("metadata", Value::Object(metadata)) => with_values_of(&SHOWN_METADATA, metadata),
            ("extractedData", Value::Object(data)) => with_values_of(&[], data),
            (shown, value) if SHOWN.contains(&shown) => value.clone(),
            _ => REDACTED.into(),
        };
        (name.clone(), value)
    };
    Value::Object(body.iter().map(member).collect())
}

fn with_values_of(shown: &[&str], members: &Map<String, Value>) -> Value {
    let member = |(name, value): (&String, &Value)| {
        let is_shown = shown.contains(&name.as_str());
        (name.clone(), if is_shown { value.clone() } else { REDACTED.into() })
    };
    Value::Object(members.iter().map(member).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_values_without_data_of_the_applicant_are_shown() {
        let body = json!({
            "sessionId": "s", "status": "COMPLETED", "platformId": 7,
            "extractedData": { "name": "Ada", "accounts": [{ "iban": "XX" }] },
            "completedAt": "2026-01-01T12:00:00.123Z", "later": { "email": "ada@example.com" },
            "metadata": { "loan": "4711", "environment": "production", "missing": ["balance"] },
        });
        let expected = json!({
            "sessionId": "s", "status": "COMPLETED", "platformId": 7,
            "extractedData": { "name": "(redacted)", "accounts": "(redacted)" },
            "completedAt": "2026-01-01T12:00:00.123Z", "later": "(redacted)",
            "metadata": { "loan": "(redacted)", "environment": "production", "missing": ["balance"] },
        });
        assert_eq!(redacted(&body), expected);
        assert_eq!(
            redacted(&json!({ "extractedData": "Ada", "metadata": ["Ada"] })),
            json!({
                "extractedData": "(redacted)", "metadata": "(redacted)",
            })
        );
        assert_eq!(redacted(&json!("Ada")), json!("(redacted)"));
    }
}
