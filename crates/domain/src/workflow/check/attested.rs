//! Validates the attestation of a definition.

use super::{Checker, conditions::is_json_pointer, not_a_pointer, top};

const MAX_HEADERS: usize = 20;
const MAX_FIELDS: usize = 32;
const MAX_HEADER_VALUE_BYTES: usize = 1000;
/// Headers whose values come from the browser.
const RESERVED_HEADERS: &[&str] = &["cookie", "user-agent"];

impl Checker<'_> {
    pub(super) fn attestation(&mut self) {
        let definition = self.definition;
        let Some(attest) = &definition.attest else { return };
        let path = top("attest");
        let names = definition.requests.keys();
        self.exists(&path.member("request"), "request", &attest.request, names);
        match definition.requests.get(&attest.request) {
            None => (),
            Some(request) => {
                let path = path.member("request");
                self.is_repeatable(&path, request);
                let authority = request.url.strip_prefix("https://").unwrap_or_default();
                let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
                if authority.is_empty() || authority.contains(':') {
                    self.error(&path, "its request must be https, on port 443");
                }
                if request.expect_status != 200 {
                    self.error(&path, "its request must expect status 200");
                }
            }
        }
        if attest.modes.len() != 1 {
            self.error(&path.member("modes"), "an attestation has exactly one mode");
        }
        let headers = path.member("headers");
        if attest.headers.len() > MAX_HEADERS {
            self.error(&headers, format!("must be at most {MAX_HEADERS}"));
        }
        for (name, value) in &attest.headers {
            let lower = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
            let valid = !name.is_empty() && name.bytes().all(lower);
            if !valid || RESERVED_HEADERS.contains(&name.as_str()) {
                self.error(&headers.member(name), format!("`{name}` cannot be given"));
            }
            let visible = value.bytes().all(|b| b == b' ' || b.is_ascii_graphic());
            let padded = value.starts_with(' ') || value.ends_with(' ');
            let in_range = (1..=MAX_HEADER_VALUE_BYTES).contains(&value.len());
            if !in_range || !visible || padded {
                let rule = "must be visible ASCII, without spaces around it";
                self.error(&headers.member(name), format!("the value of `{name}` {rule}"));
            }
        }
        let fields = path.member("fields");
        if attest.fields.is_empty() || attest.fields.len() > MAX_FIELDS {
            self.error(&fields, format!("must be 1 to {MAX_FIELDS}"));
        }
        for (field, pointer) in &attest.fields {
            self.output_field(&fields.member(field), field);
            if definition.output.get(field).is_some_and(|field| field.kind.has_members()) {
                let wrong =
                    "an object or a list is not attested as a whole: name a field for a value";
                self.error(&fields.member(field), wrong);
            }
            if !is_json_pointer(pointer) {
                self.error(&fields.member(field), not_a_pointer(pointer));
            }
        }
    }
}
