//! What the plan for an attestation must hold.

use super::Checker;

const MOST_HEADERS: usize = 20;
const MOST_FIELDS: usize = 32;
const LONGEST_VALUE: usize = 1000;
/// Come from the browser.
const OWN: &[&str] = &["cookie", "user-agent"];

impl Checker<'_> {
    pub(super) fn attested(&mut self) {
        let definition = self.definition;
        let Some(wish) = &definition.attest else { return };
        match definition.requests.get(&wish.request) {
            None => self.flaw("attest", format!("there is no request `{}`", wish.request)),
            Some(request) => {
                let authority = request.url.strip_prefix("https://").unwrap_or_default();
                let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
                if authority.is_empty() || authority.contains(':') {
                    self.flaw("attest", "its request must be https, on port 443");
                }
                if request.expect_status != 200 {
                    self.flaw("attest", "its request must expect status 200");
                }
            }
        }
        if wish.modes.len() != 1 {
            self.flaw("attest.modes", "an attestation has exactly one mode");
        }
        if wish.headers.len() > MOST_HEADERS {
            self.flaw("attest.headers", format!("must be at most {MOST_HEADERS}"));
        }
        for (name, value) in &wish.headers {
            let lower = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
            let plain = !name.is_empty() && name.bytes().all(lower);
            if !plain || OWN.contains(&name.as_str()) {
                self.flaw("attest.headers", format!("`{name}` cannot be given"));
            }
            let visible = value.bytes().all(|b| b == b' ' || b.is_ascii_graphic());
            let spaced = value.starts_with(' ') || value.ends_with(' ');
            if value.is_empty() || value.len() > LONGEST_VALUE || !visible || spaced {
                let why = "must be visible ASCII, without spaces around it";
                self.flaw("attest.headers", format!("the value of `{name}` {why}"));
            }
        }
        if wish.fields.is_empty() || wish.fields.len() > MOST_FIELDS {
            self.flaw("attest.fields", format!("must be 1 to {MOST_FIELDS}"));
        }
        for (field, pointer) in &wish.fields {
            if !definition.output.contains_key(field) {
                self.flaw("attest.fields", format!("`{field}` is not in the output"));
            }
            if !pointer.starts_with('/') {
                self.flaw("attest.fields", format!("`{pointer}` is no JSON pointer"));
            }
        }
    }
}
