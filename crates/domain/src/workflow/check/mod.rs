//! Validates a definition before it is published.

mod addresses;
mod attested;
mod conditions;
mod extractions;
mod reachability;
mod unused;

use std::collections::BTreeMap;

use super::{
    Definition, Field, FieldFormat, FieldType, Hint, InterruptTarget, JsonPath, Node, WorkflowExit,
    definition::SCHEMA,
};

/// Values of one field that have a text.
const MAX_VALUE_KEYS: usize = 100;
/// Members of an object or a row.
const MAX_MEMBERS: usize = 30;
const MAX_ROWS: u16 = 1000;
const MAX_NODES: usize = 200;
/// Signals, requests, fields of the output, and texts of a language.
const MAX_ENTRIES: usize = 500;
const MAX_NAME_CHARS: usize = 64;
/// The smallest similarity of a name that is suggested in place of an unknown one, from 0 to 1.
const MIN_SIMILARITY: f64 = 0.75;
/// The length up to which names are compared: it takes time with the product of two lengths.
const MAX_COMPARED_BYTES: usize = 256;

/// A validation error of a definition, or a warning.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct ValidationError {
    pub severity: Severity,
    pub path: JsonPath,
    /// What is wrong, and how to correct it.
    pub message: String,
}

/// Whether a definition can be published in spite of a validation error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It cannot be published.
    Error,
    /// It can; a part of it has no effect, or not the one that its author expects.
    Warning,
}

impl Severity {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// Returns all validation errors and warnings of a definition; without an error, it may be published.
#[must_use]
pub fn check(definition: &Definition) -> Vec<ValidationError> {
    let mut checker = Checker { definition, errors: vec![] };
    checker.header();
    checker.names();
    checker.hosts();
    checker.urls();
    checker.conditions();
    checker.paths();
    checker.attestation();
    checker.unused();
    checker.errors
}

struct Checker<'a> {
    definition: &'a Definition,
    errors: Vec<ValidationError>,
}

/// Returns the place of a member of the definition.
fn top(member: &str) -> JsonPath {
    JsonPath::root().member(member)
}

impl<'a> Checker<'a> {
    fn error(&mut self, path: &JsonPath, message: impl Into<String>) {
        self.add(Severity::Error, path, message.into());
    }

    fn warning(&mut self, path: &JsonPath, message: impl Into<String>) {
        self.add(Severity::Warning, path, message.into());
    }

    fn add(&mut self, severity: Severity, path: &JsonPath, message: String) {
        self.errors.push(ValidationError { severity, path: path.clone(), message });
    }

    fn header(&mut self) {
        let definition = self.definition;
        if definition.schema != SCHEMA {
            self.error(&top("schema"), format!("must be `{SCHEMA}`"));
        }
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let name = &definition.platform;
        if !(1..=64).contains(&name.len()) || !name.bytes().all(allowed) {
            self.error(&top("platform"), "must be 1 to 64 lower-case letters, digits and hyphens");
        }
        let numbers: Vec<_> = definition.version.split('.').collect();
        if numbers.len() != 3 || numbers.iter().any(|number| number.parse::<u32>().is_err()) {
            self.error(&top("version"), "must be three numbers, as 1.4.0");
        }
        let budgets = top("budgets");
        self.range(&budgets.member("totalSeconds"), definition.budgets.total_seconds, 10, 7200);
        self.range(&budgets.member("steps"), definition.budgets.steps.into(), 1, 500);
        if definition.nodes.len() > MAX_NODES {
            self.error(&top("nodes"), format!("must be at most {MAX_NODES}"));
        }
        let counts = [
            ("signals", definition.signals.len()),
            ("interrupts", definition.interrupts.len()),
            ("requests", definition.requests.len()),
            ("output", definition.output.len()),
        ];
        for (member, count) in counts {
            if count > MAX_ENTRIES {
                self.error(&top(member), format!("must be at most {MAX_ENTRIES}"));
            }
        }
    }

    fn names(&mut self) {
        let definition = self.definition;
        self.node_exists(&top("start"), &definition.start);
        for (index, interrupt) in definition.interrupts.iter().enumerate() {
            let path = top("interrupts").item(index);
            self.signal(&path.member("when"), &interrupt.when);
            let path = path.member("then");
            match &interrupt.then {
                InterruptTarget::Next(node) => self.node_exists(&path.member("next"), node),
                InterruptTarget::Fail(_) => (),
                InterruptTarget::Act(action) => self.action(&path.member("act"), action),
                InterruptTarget::Retry(retry) => {
                    let path = path.member("retry");
                    self.range(&path.member("times"), u32::from(retry.times), 1, 5);
                    self.range(&path.member("afterSeconds"), retry.after_seconds, 1, 60);
                    self.node_exists(&path.member("next"), &retry.next);
                    self.exit(&path.member("otherwise"), &retry.otherwise);
                }
            }
        }
        for (name, node) in &definition.nodes {
            let path = top("nodes").member(name);
            self.name(&path, name);
            self.node(&path, node);
        }
        for name in definition.signals.keys() {
            self.name(&top("signals").member(name), name);
        }
        for name in definition.requests.keys() {
            self.name(&top("requests").member(name), name);
        }
        for (name, field) in &definition.output {
            let path = top("output").member(name);
            self.name(&path, name);
            self.field(&path, field);
        }
        for (index, name) in definition.output_order.iter().enumerate() {
            let path = top("outputOrder").item(index);
            self.output_field(&path, name);
            if definition.output_order.iter().take(index).any(|earlier| earlier == name) {
                self.error(&path, format!("`{name}` is listed twice"));
            }
        }
    }

    /// Validates the name of a node, a signal, a request or a field.
    fn name(&mut self, path: &JsonPath, name: &str) {
        let chars = name.chars().count();
        let visible = !name.chars().any(char::is_control) && name.trim() == name;
        if !(1..=MAX_NAME_CHARS).contains(&chars) || !visible {
            let rule = "without control characters, and without spaces around it";
            self.error(path, format!("a name has 1 to {MAX_NAME_CHARS} characters, {rule}"));
        }
    }

    fn field(&mut self, path: &JsonPath, field: &Field) {
        self.text(&path.member("labelKey"), &field.label_key);
        let is_text = field.kind == FieldType::String;
        let is_number = matches!(field.kind, FieldType::Integer | FieldType::Number);
        if matches!(field.format, Some(FieldFormat::Date | FieldFormat::DateTime)) && !is_text {
            self.error(&path.member("format"), "only a string has the format of a date");
        }
        self.members(path, field);
        if let Some(currency) = &field.currency {
            let path = path.member("currency");
            if !is_number {
                self.error(&path, "only a number has a currency");
            }
            if currency.len() != 3 || !currency.bytes().all(|byte| byte.is_ascii_uppercase()) {
                self.error(&path, "must be a code of ISO 4217, as EUR");
            }
        }
        let path = path.member("valueKeys");
        if !field.value_keys.is_empty() && !is_text {
            self.error(&path, "only a string has valueKeys");
        }
        if field.value_keys.len() > MAX_VALUE_KEYS {
            self.error(&path, format!("must be at most {MAX_VALUE_KEYS}"));
        }
        for (value, key) in &field.value_keys {
            self.text(&path.member(value), key);
        }
    }

    /// Validates the members of an object or a list.
    fn members(&mut self, path: &JsonPath, field: &Field) {
        let members = path.member("members");
        match (field.kind.has_members(), field.members.len()) {
            (true, 1..=MAX_MEMBERS) | (false, 0) => (),
            (true, _) => {
                self.error(&members, format!("an object or a list has 1 to {MAX_MEMBERS} members"));
            }
            (false, _) => self.error(&members, "only an object or a list has members"),
        }
        if field.kind.has_members() && field.format.is_some() {
            self.error(
                &path.member("format"),
                "an object or a list has no format, its members have",
            );
        }
        for (name, member) in &field.members {
            let path = members.member(name);
            self.name(&path, name);
            if member.kind.has_members() {
                self.error(&path.member("type"), "a member cannot be an object or a list itself");
            } else {
                self.field(&path, member);
            }
        }
        for (index, name) in field.member_order.iter().enumerate() {
            let path = path.member("memberOrder").item(index);
            self.exists(&path, "member", name, field.members.keys());
            if field.member_order.iter().take(index).any(|earlier| earlier == name) {
                self.error(&path, format!("`{name}` is listed twice"));
            }
        }
        if let Some(max) = field.max_rows {
            let path = path.member("maxRows");
            self.range(&path, max.into(), 1, MAX_ROWS.into());
            if field.kind != FieldType::List {
                self.error(&path, "only a list has rows");
            }
        }
    }

    fn node(&mut self, path: &JsonPath, node: &'a Node) {
        match node {
            Node::Goto { next, on_fail, .. } => {
                self.node_exists(&path.member("next"), next);
                self.exit(&path.member("onFail"), on_fail);
            }
            Node::Act { action, next, on_fail } => {
                self.action(&path.member("action"), action);
                self.node_exists(&path.member("next"), next);
                self.exit(&path.member("onFail"), on_fail);
            }
            Node::Branch { cases, settle_seconds, default } => {
                if cases.is_empty() {
                    self.error(&path.member("cases"), "must name at least one case");
                }
                self.range(&path.member("settleSeconds"), *settle_seconds, 1, 120);
                for (index, case) in cases.iter().enumerate() {
                    let path = path.member("cases").item(index);
                    self.signal(&path.member("when"), &case.when);
                    self.node_exists(&path.member("next"), &case.next);
                }
                self.exit(&path.member("default"), default);
            }
            Node::AwaitUser {
                kind,
                text_key,
                timeout_seconds,
                until,
                hints,
                next,
                on_timeout,
                ..
            } => {
                if kind.is_asked_by_service() {
                    let wrong = "is asked by the service itself: use a `review` node for consent, \
                                 and `customUrl` for an address";
                    self.error(&path.member("kind"), wrong);
                }
                self.range(&path.member("timeoutSeconds"), *timeout_seconds, 5, 3600);
                self.text(&path.member("textKey"), text_key);
                self.wait(path, until, hints);
                self.node_exists(&path.member("next"), next);
                self.exit(&path.member("onTimeout"), on_timeout);
            }
            Node::Collect { via, fields, variables, pages, retries, on_missing, next } => {
                self.range(&path.member("retries"), (*retries).into(), 0, 5);
                self.collection(path, via, fields, variables);
                if let Some(pages) = pages {
                    self.pages(&path.member("pages"), via, fields, pages);
                }
                self.exit(&path.member("onMissing"), on_missing);
                self.node_exists(&path.member("next"), next);
            }
            Node::Review { text_key, timeout_seconds, confirm, next } => {
                if let Some(confirm) = confirm {
                    let path = path.member("confirm");
                    self.signal(&path.member("when"), &confirm.when);
                    self.exit(&path.member("otherwise"), &confirm.otherwise);
                }
                self.range(&path.member("timeoutSeconds"), *timeout_seconds, 5, 3600);
                self.text(&path.member("textKey"), text_key);
                self.node_exists(&path.member("next"), next);
            }
            Node::Done | Node::Fail { .. } => (),
        }
    }

    fn wait(&mut self, path: &JsonPath, until: &[String], hints: &[Hint]) {
        if until.is_empty() {
            self.error(&path.member("until"), "must name at least one signal");
        }
        for (index, signal) in until.iter().enumerate() {
            self.signal(&path.member("until").item(index), signal);
        }
        for (index, hint) in hints.iter().enumerate() {
            let path = path.member("hints").item(index);
            self.signal(&path.member("when"), &hint.when);
            self.text(&path.member("textKey"), &hint.text_key);
            self.range(&path.member("count"), hint.count.into(), 1, 20);
            self.exit(&path.member("then"), &hint.then);
        }
    }

    fn range(&mut self, path: &JsonPath, value: u32, min: u32, max: u32) {
        if !(min..=max).contains(&value) {
            self.error(path, format!("must be {min} to {max}"));
        }
    }

    fn signal(&mut self, path: &JsonPath, name: &str) {
        self.exists(path, "signal", name, self.definition.signals.keys());
    }

    fn exit(&mut self, path: &JsonPath, exit: &WorkflowExit) {
        if let WorkflowExit::Next(node) = exit {
            self.node_exists(&path.member("next"), node);
        }
    }

    fn node_exists(&mut self, path: &JsonPath, name: &str) {
        self.exists(path, "node", name, self.definition.nodes.keys());
    }

    fn output_field(&mut self, path: &JsonPath, name: &str) {
        self.exists(path, "field of the output", name, self.definition.output.keys());
    }

    fn text(&mut self, path: &JsonPath, key: &str) {
        let english = self.definition.texts.get("en").into_iter().flat_map(BTreeMap::keys);
        self.exists(path, "English text", key, english);
    }

    /// Validates that there is an entry with a name.
    fn exists<'b>(
        &mut self,
        path: &JsonPath,
        kind: &str,
        name: &str,
        names: impl Iterator<Item = &'b String>,
    ) {
        let names: Vec<_> = names.map(String::as_str).collect();
        if names.contains(&name) {
            return;
        }
        let suggestion = closest_name(name, names)
            .map(|closest| format!("; did you mean `{closest}`?"))
            .unwrap_or_default();
        self.error(path, format!("there is no {kind} `{name}`{suggestion}"));
    }
}

/// Returns the name that an author probably meant, in letters of either case; `None` if none is
/// similar.
#[must_use]
pub fn closest_name<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > MAX_COMPARED_BYTES {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let known = known.into_iter().filter(|known| known.len() <= MAX_COMPARED_BYTES);
    let similar =
        known.map(|known| (strsim::jaro_winkler(&known.to_ascii_lowercase(), &name), known));
    let similar = similar.filter(|(similarity, _)| *similarity >= MIN_SIMILARITY);
    similar.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, known)| known)
}

fn not_a_pointer(text: &str) -> String {
    format!("`{text}` is no JSON pointer, as /user/id")
}
