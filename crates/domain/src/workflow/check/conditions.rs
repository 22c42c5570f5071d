//! Validates what the conditions of a definition compare.

use std::collections::BTreeMap;

use super::{Checker, not_a_pointer, top};
use crate::workflow::{
    Condition, FRAME_SEPARATOR, JsonPath, Node, Source, condition::MAX_CONDITION_DEPTH,
};

const MAX_PATTERN_BYTES: usize = 2048;
const MAX_SELECTOR_BYTES: usize = 2048;
const MAX_PARAMETER_BYTES: usize = 200;
/// Texts of one condition, in all languages.
const MAX_PHRASES: usize = 100;
const MAX_PHRASE_CHARS: usize = 300;
/// Conditions within one signal.
const MAX_PARTS: usize = 500;

/// The result of counting the parts of a signal.
enum Size {
    Fits,
    Circular,
    TooLarge,
}

impl Checker<'_> {
    /// Validates the conditions of signals, and the places that data is read from.
    pub(super) fn conditions(&mut self) {
        let definition = self.definition;
        for (name, condition) in &definition.signals {
            let path = top("signals").member(name);
            self.condition(&path, condition);
            self.size(&path, name);
        }
        for (name, node) in &definition.nodes {
            if let Node::Collect { via: Source::Response(pattern), .. } = node {
                let path = top("nodes").member(name).member("via").member("response");
                self.pattern(&path, pattern);
            }
        }
    }

    fn condition(&mut self, path: &JsonPath, condition: &Condition) {
        match condition {
            Condition::All(inner) => {
                if inner.is_empty() {
                    self.error(path, "`all` of nothing always holds: name at least one condition");
                }
                self.inner_conditions(&path.member("all"), inner);
            }
            Condition::Any(inner) => {
                if inner.is_empty() {
                    self.error(path, "`any` of nothing never holds: name at least one condition");
                }
                self.inner_conditions(&path.member("any"), inner);
            }
            Condition::Not(inner) => self.condition(&path.member("not"), inner),
            Condition::Signal(name) => self.signal(&path.member("signal"), name),
            Condition::Selector(selector) => self.selector(&path.member("selector"), selector),
            Condition::Text { selector, contains } => {
                let path = path.member("text");
                self.selector(&path.member("selector"), selector);
                self.phrases(&path.member("contains"), contains);
            }
            Condition::Host(host) => {
                let definition = self.definition;
                let hosts = definition.hosts.iter().chain(&definition.sso_hosts);
                self.exists(&path.member("host"), "host", host, hosts);
            }
            Condition::Query { name, value } => {
                let path = path.member("query");
                if !(1..=MAX_PARAMETER_BYTES).contains(&name.len()) {
                    let rule = format!("must be 1 to {MAX_PARAMETER_BYTES} bytes");
                    self.error(&path.member("name"), rule);
                }
                if value.as_ref().is_some_and(|value| value.len() > MAX_PATTERN_BYTES) {
                    let rule = format!("must be at most {MAX_PATTERN_BYTES} bytes");
                    self.error(&path.member("value"), rule);
                }
            }
            Condition::Fragment(pattern) => {
                let path = path.member("fragment");
                if pattern.starts_with('#') {
                    self.error(&path, "is compared without `#`, as /account");
                } else if !(1..=MAX_PATTERN_BYTES).contains(&pattern.len()) {
                    self.error(&path, format!("must be 1 to {MAX_PATTERN_BYTES} bytes"));
                }
            }
            Condition::Url(pattern) => self.pattern(&path.member("url"), pattern),
            Condition::Cookie(name) => self.cookie(&path.member("cookie"), name),
            Condition::Response { url, status, has } => {
                let path = path.member("response");
                self.pattern(&path.member("url"), url);
                self.status(&path.member("status"), *status);
                if let Some(pointer) = has
                    && !is_json_pointer(pointer)
                {
                    self.error(&path.member("has"), not_a_pointer(pointer));
                }
            }
            Condition::HttpStatus(statuses) => {
                let path = path.member("httpStatus");
                if statuses.is_empty() {
                    self.error(&path, "must name at least one status");
                }
                for (index, status) in statuses.iter().enumerate() {
                    self.status(&path.item(index), *status);
                }
            }
        }
    }

    fn inner_conditions(&mut self, path: &JsonPath, inner: &[Condition]) {
        for (index, condition) in inner.iter().enumerate() {
            self.condition(&path.item(index), condition);
        }
    }

    fn status(&mut self, path: &JsonPath, status: u16) {
        if !(100..=599).contains(&status) {
            self.error(path, format!("{status} is no HTTP status: 100 to 599"));
        }
    }

    pub(super) fn selector(&mut self, path: &JsonPath, selector: &str) {
        let is_empty = selector.split(FRAME_SEPARATOR).any(|part| part.trim().is_empty());
        if is_empty || selector.len() > MAX_SELECTOR_BYTES {
            self.error(path, format!("a selector must be 1 to {MAX_SELECTOR_BYTES} bytes"));
        }
    }

    pub(super) fn cookie(&mut self, path: &JsonPath, name: &str) {
        // A token of RFC 9110, section 5.6.2, as RFC 6265 demands.
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if name.is_empty() || !name.bytes().all(is_token) {
            self.error(path, format!("`{name}` cannot be the name of a cookie"));
        }
    }

    fn phrases(&mut self, path: &JsonPath, phrases: &BTreeMap<String, Vec<String>>) {
        let count = phrases.values().map(Vec::len).sum::<usize>();
        if !(1..=MAX_PHRASES).contains(&count) {
            self.error(path, format!("must have 1 to {MAX_PHRASES} texts"));
        }
        let fits = |text: &str| (1..=MAX_PHRASE_CHARS).contains(&text.trim().chars().count());
        for (language, texts) in phrases {
            if !texts.iter().all(|text| fits(text)) {
                let rule = format!("each text must have 1 to {MAX_PHRASE_CHARS} characters");
                self.error(&path.member(language), rule);
            }
        }
    }

    /// Validates that a signal does not depend on itself, and has a bound on its parts.
    fn size(&mut self, path: &JsonPath, name: &str) {
        let mut budget = MAX_PARTS;
        let mut open = vec![name];
        match self.spend(&mut open, &mut budget) {
            Size::Fits => (),
            Size::Circular => self.error(path, "depends on itself"),
            Size::TooLarge => {
                let rule =
                    format!("with the signals that it names, has more than {MAX_PARTS} parts");
                self.error(path, format!("{rule}, or is nested deeper than {MAX_CONDITION_DEPTH}"));
            }
        }
    }

    /// Counts the parts of the last signal of `open`, each of which depends on the next.
    fn spend<'b>(&'b self, open: &mut Vec<&'b str>, budget: &mut usize) -> Size {
        let Some(condition) = open.last().and_then(|name| self.definition.signals.get(*name))
        else {
            return Size::Fits;
        };
        self.spend_condition(condition, open, budget, open.len())
    }

    fn spend_condition<'b>(
        &'b self,
        condition: &'b Condition,
        open: &mut Vec<&'b str>,
        budget: &mut usize,
        depth: usize,
    ) -> Size {
        let Some(rest) = budget.checked_sub(1).filter(|_| depth <= MAX_CONDITION_DEPTH) else {
            return Size::TooLarge;
        };
        *budget = rest;
        let inner: &[Condition] = match condition {
            Condition::All(inner) | Condition::Any(inner) => inner,
            Condition::Not(inner) => std::slice::from_ref(&**inner),
            Condition::Signal(name) if open.contains(&name.as_str()) => return Size::Circular,
            Condition::Signal(name) => {
                let Some(condition) = self.definition.signals.get(name) else { return Size::Fits };
                open.push(name);
                let size = self.spend_condition(condition, open, budget, depth + 1);
                open.pop();
                return size;
            }
            Condition::Selector(_)
            | Condition::Text { .. }
            | Condition::Url(_)
            | Condition::Host(_)
            | Condition::Query { .. }
            | Condition::Fragment(_)
            | Condition::Cookie(_)
            | Condition::Response { .. }
            | Condition::HttpStatus(_) => &[],
        };
        for condition in inner {
            match self.spend_condition(condition, open, budget, depth + 1) {
                Size::Fits => (),
                size @ (Size::Circular | Size::TooLarge) => return size,
            }
        }
        Size::Fits
    }

    /// Validates a pattern, which is compared with the path of a URL.
    fn pattern(&mut self, path: &JsonPath, pattern: &str) {
        let is_path = pattern.starts_with(['/', '*']);
        if pattern.contains("://") {
            let rule = "never matches: it is compared with the path alone, as /account";
            self.error(path, format!("`{pattern}` {rule}"));
        } else if pattern.contains(['?', '#']) {
            let rule = "never matches: the query and the fragment are not compared";
            self.error(path, format!("`{pattern}` {rule}"));
        } else if !is_path || pattern.len() > MAX_PATTERN_BYTES {
            let rule =
                format!("must begin with / or *, and have at most {MAX_PATTERN_BYTES} bytes");
            self.error(path, format!("`{pattern}` {rule}"));
        }
    }
}

/// Returns whether the text is a JSON pointer (RFC 6901) to a member or an item.
pub(super) fn is_json_pointer(text: &str) -> bool {
    let mut escapes = text.split('~').skip(1);
    text.starts_with('/') && escapes.all(|rest| rest.starts_with(['0', '1']))
}
