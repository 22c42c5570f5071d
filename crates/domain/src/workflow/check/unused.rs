//! Warns of parts of a definition that have no effect.

use std::collections::{BTreeMap, BTreeSet};

use super::{Checker, top};
use crate::workflow::{Condition, Definition, Node, Source};

impl Checker<'_> {
    pub(super) fn unused(&mut self) {
        let definition = self.definition;
        let used = Used::of(definition);
        let entries: [(&str, Vec<&String>, &BTreeSet<&str>, &str); 3] = [
            ("signals", definition.signals.keys().collect(), &used.signals, "no node refers to it"),
            (
                "requests",
                definition.requests.keys().collect(),
                &used.requests,
                "no node makes it, and it is not attested",
            ),
            ("output", definition.output.keys().collect(), &used.fields, "no node collects it"),
        ];
        for (member, names, used, wrong) in entries {
            for name in names.into_iter().filter(|name| !used.contains(name.as_str())) {
                self.warning(&top(member).member(name), format!("is not used: {wrong}"));
            }
        }
        self.texts(&used.texts);
        self.unused_variables();
    }

    /// Warns of texts that are never shown, and of those that a language lacks.
    fn texts(&mut self, used: &BTreeSet<&str>) {
        let definition = self.definition;
        for (language, texts) in &definition.texts {
            let path = top("texts").member(language);
            for key in texts.keys().filter(|key| !used.contains(key.as_str())) {
                self.warning(&path.member(key), "is not used: no node or field refers to it");
            }
            let english = definition.texts.get("en").into_iter().flat_map(BTreeMap::keys);
            let missing =
                english.filter(|key| used.contains(key.as_str()) && !texts.contains_key(*key));
            let missing: Vec<_> = missing.map(|key| format!("`{key}`")).collect();
            if !missing.is_empty() {
                let wrong = "has no text of these keys, which are shown in English";
                self.warning(&path, format!("{wrong}: {}", missing.join(", ")));
            }
        }
    }
}

/// The names that something in the definition refers to.
#[derive(Default)]
struct Used<'a> {
    signals: BTreeSet<&'a str>,
    requests: BTreeSet<&'a str>,
    fields: BTreeSet<&'a str>,
    texts: BTreeSet<&'a str>,
}

impl<'a> Used<'a> {
    fn of(definition: &'a Definition) -> Self {
        let mut used = Self::default();
        used.signals.extend(definition.interrupts.iter().map(|interrupt| interrupt.when.as_str()));
        used.requests.extend(definition.attest.iter().map(|attest| attest.request.as_str()));
        for node in definition.nodes.values() {
            used.add_node(node);
        }
        for condition in definition.signals.values() {
            condition.walk(&mut |condition| {
                if let Condition::Signal(name) = condition {
                    used.signals.insert(name);
                }
            });
        }
        if let Some(custom) = &definition.custom_url {
            used.texts.extend([custom.text_key.as_str(), custom.wrong_text_key.as_str()]);
        }
        let members = definition.output.values().flat_map(|field| field.members.values());
        for field in definition.output.values().chain(members) {
            used.texts.insert(&field.label_key);
            used.texts.extend(field.value_keys.values().map(String::as_str));
        }
        used
    }

    fn add_node(&mut self, node: &'a Node) {
        match node {
            Node::Branch { cases, .. } => {
                self.signals.extend(cases.iter().map(|case| case.when.as_str()));
            }
            Node::AwaitUser { text_key, until, hints, .. } => {
                self.texts.insert(text_key);
                self.signals.extend(until.iter().map(String::as_str));
                self.signals.extend(hints.iter().map(|hint| hint.when.as_str()));
                self.texts.extend(hints.iter().map(|hint| hint.text_key.as_str()));
            }
            Node::Collect { via, fields, .. } => {
                self.fields.extend(fields.keys().map(String::as_str));
                if let Source::Fetch(request) = via {
                    self.requests.insert(request);
                }
            }
            Node::Review { text_key, confirm, .. } => {
                self.texts.insert(text_key);
                self.signals.extend(confirm.iter().map(|confirm| confirm.when.as_str()));
            }
            Node::Goto { .. } | Node::Act { .. } | Node::Done | Node::Fail { .. } => (),
        }
    }
}
