//! Reads the members of a JSON object one by one and collects all findings.

use serde_json::{Map, Value};

/// A JSON object being read. `null` counts as absent.
pub(super) struct Reader<'a> {
    object: &'a Map<String, Value>,
    /// The prefix of a field's name in a finding: empty, or the parent object, as `location.`.
    prefix: &'static str,
    findings: Vec<String>,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(object: &'a Map<String, Value>, prefix: &'static str) -> Self {
        Self { object, prefix, findings: Vec::new() }
    }

    pub(super) fn finding(&mut self, field: &str, rule: &str) {
        self.findings.push(format!("{}{field} {rule}", self.prefix));
    }

    pub(super) fn into_findings(self) -> Vec<String> {
        self.findings
    }

    pub(super) fn absorb(&mut self, inner: Reader<'_>) {
        self.findings.extend(inner.findings);
    }

    fn member(&self, field: &str) -> Option<&'a Value> {
        self.object.get(field).filter(|value| !value.is_null())
    }

    pub(super) fn has(&self, field: &str) -> bool {
        self.member(field).is_some()
    }

    /// Reads an integer. `1.0` is one, since JSON has a single number type.
    pub(super) fn integer(&mut self, field: &str) -> Option<i64> {
        let value = self.member(field)?;
        let Some(number) = value.as_number() else {
            self.finding(field, "must be a number");
            return None;
        };
        let integer = number.as_i64().or_else(|| integer_of(number.as_f64()?));
        if integer.is_none() {
            self.finding(field, "must be an integer");
        }
        integer
    }

    pub(super) fn flag(&mut self, field: &str) -> Option<bool> {
        let flag = self.member(field)?.as_bool();
        if flag.is_none() {
            self.finding(field, "must be a boolean");
        }
        flag
    }

    pub(super) fn object(&mut self, field: &str) -> Option<&'a Map<String, Value>> {
        let object = self.member(field)?.as_object();
        if object.is_none() {
            self.finding(field, "must be an object");
        }
        object
    }

    /// Reads a string of 1 to `max_chars` characters without control characters.
    pub(super) fn text(&mut self, field: &str, max_chars: usize) -> Option<&'a str> {
        let value = self.member(field)?;
        let Some(text) = value.as_str() else {
            self.finding(field, "must be a string");
            return None;
        };
        if text.trim().is_empty() {
            self.finding(field, "must not be empty");
        } else if text.chars().count() > max_chars {
            self.finding(field, &format!("must be at most {max_chars} characters long"));
        } else if text.chars().any(char::is_control) {
            self.finding(field, "must not contain control characters");
        } else {
            return Some(text);
        }
        None
    }
}

/// Converts a float to the integer that it equals, within the range where floats are exact.
fn integer_of(float: f64) -> Option<i64> {
    let exact = float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0;
    exact.then(|| format!("{float:.0}").parse().ok()).flatten()
}
