//! Validates what the conditions of a definition compare.

use super::Checker;
use crate::workflow::{Condition, Node, Source};

const MAX_PATTERN_BYTES: usize = 2048;
const MAX_SELECTOR_BYTES: usize = 2048;

impl Checker<'_> {
    /// Validates the conditions of signals, and the places that data is read from.
    pub(super) fn conditions(&mut self) {
        let definition = self.definition;
        for (name, condition) in &definition.signals {
            let place = format!("signals.{name}");
            condition.walk(&mut |condition| self.condition(&place, condition));
        }
        for (name, node) in &definition.nodes {
            let Node::Collect { via, fields, .. } = node else { continue };
            let place = format!("nodes.{name}");
            if let Source::Response(pattern) = via {
                self.pattern(&place, pattern);
            }
            if matches!(via, Source::Dom {}) {
                for selector in fields.values() {
                    self.selector(&place, selector);
                }
            }
        }
    }

    fn condition(&mut self, place: &str, condition: &Condition) {
        match condition {
            Condition::All(inner) if inner.is_empty() => {
                self.error(place, "`all` of nothing always holds: name at least one condition");
            }
            Condition::Any(inner) if inner.is_empty() => {
                self.error(place, "`any` of nothing never holds: name at least one condition");
            }
            Condition::All(_) | Condition::Any(_) | Condition::Not(_) => (),
            Condition::Selector(selector) => self.selector(place, selector),
            Condition::Url(pattern) => self.pattern(place, pattern),
            Condition::Cookie(name) => {
                // A token of RFC 9110, section 5.6.2, as RFC 6265 demands.
                let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
                if name.is_empty() || !name.bytes().all(is_token) {
                    self.error(place, format!("`{name}` cannot be the name of a cookie"));
                }
            }
            Condition::Response { url, status, has } => {
                self.pattern(place, url);
                self.status(place, *status);
                if let Some(pointer) = has
                    && !is_json_pointer(pointer)
                {
                    self.error(place, format!("`{pointer}` is no JSON pointer, as /user/id"));
                }
            }
            Condition::HttpStatus(statuses) => {
                if statuses.is_empty() {
                    self.error(place, "`httpStatus` must name at least one status");
                }
                for status in statuses {
                    self.status(place, *status);
                }
            }
        }
    }

    fn status(&mut self, place: &str, status: u16) {
        if !(100..=599).contains(&status) {
            self.error(place, format!("{status} is no HTTP status: 100 to 599"));
        }
    }

    fn selector(&mut self, place: &str, selector: &str) {
        if selector.trim().is_empty() || selector.len() > MAX_SELECTOR_BYTES {
            let rule = format!("must be 1 to {MAX_SELECTOR_BYTES} bytes");
            self.error(place, format!("a selector {rule}"));
        }
    }

    /// Validates a pattern, which is compared with the path of a URL.
    fn pattern(&mut self, place: &str, pattern: &str) {
        let is_path = pattern.starts_with(['/', '*']);
        if pattern.contains("://") {
            let rule = "never matches: it is compared with the path alone, as /account";
            self.error(place, format!("`{pattern}` {rule}"));
        } else if pattern.contains(['?', '#']) {
            let rule = "never matches: the query and the fragment are not compared";
            self.error(place, format!("`{pattern}` {rule}"));
        } else if !is_path || pattern.len() > MAX_PATTERN_BYTES {
            let rule =
                format!("must begin with / or *, and have at most {MAX_PATTERN_BYTES} bytes");
            self.error(place, format!("`{pattern}` {rule}"));
        }
    }
}

/// Returns whether the text is a JSON pointer (RFC 6901) to a member or an item.
pub(super) fn is_json_pointer(text: &str) -> bool {
    let mut escapes = text.split('~').skip(1);
    text.starts_with('/') && escapes.all(|rest| rest.starts_with(['0', '1']))
}
