//! Validates a definition before it is published.

mod addresses;
mod attested;
mod conditions;
mod reachability;

use std::collections::BTreeMap;

use self::{conditions::is_json_pointer, reachability::targets};
use super::{
    Definition, Node, Source, WorkflowExit,
    definition::{Case, Field, FieldFormat, FieldType, Hint, SCHEMA},
};

/// Values of one field that have a text.
const MAX_VALUE_KEYS: usize = 100;

/// A validation error of a definition, with its place in the document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {wrong}")]
pub struct ValidationError {
    pub place: String,
    pub wrong: String,
}

/// Returns all validation errors of a definition; without one, it may be published.
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
    checker.errors
}

struct Checker<'a> {
    definition: &'a Definition,
    errors: Vec<ValidationError>,
}

impl<'a> Checker<'a> {
    fn error(&mut self, place: impl Into<String>, wrong: impl Into<String>) {
        self.errors.push(ValidationError { place: place.into(), wrong: wrong.into() });
    }

    fn header(&mut self) {
        let definition = self.definition;
        if definition.schema != SCHEMA {
            self.error("schema", format!("must be `{SCHEMA}`"));
        }
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let name = &definition.platform;
        if !(1..=64).contains(&name.len()) || !name.bytes().all(allowed) {
            self.error("platform", "must be 1 to 64 lower-case letters, digits and hyphens");
        }
        let numbers: Vec<_> = definition.version.split('.').collect();
        if numbers.len() != 3 || numbers.iter().any(|number| number.parse::<u32>().is_err()) {
            self.error("version", "must be three numbers, as 1.4.0");
        }
        if !(10..=7200).contains(&definition.budgets.total_seconds) {
            self.error("budgets.totalSeconds", "must be 10 to 7200");
        }
        if !(1..=500).contains(&definition.budgets.steps) {
            self.error("budgets.steps", "must be 1 to 500");
        }
        if definition.nodes.len() > 200 {
            self.error("nodes", "must be at most 200");
        }
    }

    fn names(&mut self) {
        let definition = self.definition;
        if !definition.nodes.contains_key(&definition.start) {
            self.error("start", format!("there is no node `{}`", definition.start));
        }
        for (index, interrupt) in definition.interrupts.iter().enumerate() {
            let place = format!("interrupts[{index}]");
            self.signal(&place, &interrupt.when);
            self.exit(&place, &interrupt.then);
        }
        for (name, node) in &definition.nodes {
            self.node(&format!("nodes.{name}"), node);
        }
        for (name, field) in &definition.output {
            self.field(&format!("output.{name}"), field);
        }
        for (index, name) in definition.output_order.iter().enumerate() {
            if !definition.output.contains_key(name) {
                self.error("outputOrder", format!("`{name}` is not in the output"));
            }
            if definition.output_order.iter().take(index).any(|earlier| earlier == name) {
                self.error("outputOrder", format!("`{name}` is listed twice"));
            }
        }
    }

    fn field(&mut self, place: &str, field: &Field) {
        self.text(place, &field.label_key);
        let is_text = field.kind == FieldType::String;
        let is_number = matches!(field.kind, FieldType::Integer | FieldType::Number);
        if matches!(field.format, Some(FieldFormat::Date | FieldFormat::DateTime)) && !is_text {
            self.error(place, "only a string has the format of a date");
        }
        if let Some(currency) = &field.currency {
            if !is_number {
                self.error(place, "only a number has a currency");
            }
            if currency.len() != 3 || !currency.bytes().all(|byte| byte.is_ascii_uppercase()) {
                self.error(place, "currency must be a code of ISO 4217, as EUR");
            }
        }
        if !field.value_keys.is_empty() && !is_text {
            self.error(place, "only a string has valueKeys");
        }
        if field.value_keys.len() > MAX_VALUE_KEYS {
            self.error(place, format!("valueKeys must be at most {MAX_VALUE_KEYS}"));
        }
        for key in field.value_keys.values() {
            self.text(place, key);
        }
    }

    fn node(&mut self, place: &str, node: &'a Node) {
        for target in targets(node) {
            if !self.definition.nodes.contains_key(target) {
                self.error(place, format!("there is no node `{target}`"));
            }
        }
        match node {
            Node::Branch { cases, settle_seconds, .. } => {
                self.range(place, "settleSeconds", *settle_seconds, 1, 120);
                for Case { when, .. } in cases {
                    self.signal(place, when);
                }
            }
            Node::AwaitUser { text_key, timeout_seconds, until, hints, .. } => {
                self.range(place, "timeoutSeconds", *timeout_seconds, 5, 3600);
                self.text(place, text_key);
                self.wait(place, until, hints);
            }
            Node::Collect { via, fields, retries, .. } => {
                self.range(place, "retries", (*retries).into(), 0, 5);
                self.collection(place, via, fields);
            }
            Node::Review { text_key, timeout_seconds, .. } => {
                self.range(place, "timeoutSeconds", *timeout_seconds, 5, 3600);
                self.text(place, text_key);
            }
            Node::Goto { .. } | Node::Done | Node::Fail { .. } => (),
        }
    }

    fn wait(&mut self, place: &str, until: &[String], hints: &[Hint]) {
        if until.is_empty() {
            self.error(place, "until must name at least one signal");
        }
        for signal in until {
            self.signal(place, signal);
        }
        for hint in hints {
            self.signal(place, &hint.when);
            self.text(place, &hint.text_key);
            self.range(place, "count", hint.count.into(), 1, 20);
        }
    }

    fn collection(&mut self, place: &str, via: &Source, fields: &BTreeMap<String, String>) {
        if let Source::Fetch(request) = via
            && !self.definition.requests.contains_key(request)
        {
            self.error(place, format!("there is no request `{request}`"));
        }
        for (field, pointer) in fields {
            if !self.definition.output.contains_key(field) {
                self.error(place, format!("`{field}` is not in the output"));
            }
            if !matches!(via, Source::Dom {}) && !is_json_pointer(pointer) {
                self.error(place, format!("`{pointer}` is no JSON pointer"));
            }
        }
    }

    fn range(&mut self, place: &str, member: &str, value: u32, min: u32, max: u32) {
        if !(min..=max).contains(&value) {
            self.error(place, format!("{member} must be {min} to {max}"));
        }
    }

    fn signal(&mut self, place: &str, name: &str) {
        if !self.definition.signals.contains_key(name) {
            self.error(place, format!("there is no signal `{name}`"));
        }
    }

    fn exit(&mut self, place: &str, exit: &WorkflowExit) {
        if let WorkflowExit::Next(node) = exit
            && !self.definition.nodes.contains_key(node)
        {
            self.error(place, format!("there is no node `{node}`"));
        }
    }

    fn text(&mut self, place: &str, key: &str) {
        let english = self.definition.texts.get("en");
        if english.is_none_or(|texts| !texts.contains_key(key)) {
            self.error(place, format!("there is no English text `{key}`"));
        }
    }
}
