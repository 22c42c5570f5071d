//! Sign-ins that several definitions share, such as those at a provider of single sign-on. They are
//! written out before a definition is checked, so that what is published is complete, and what runs has
//! plain nodes only.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    Condition, Interrupt, JsonPath, Node, PathSegment, Severity, ValidationError, closest_name,
};

/// The member of a document with its sign-ins.
const SIGN_INS: &str = "signIns";
/// The type of a node that uses one, and its member with the name.
const SIGN_IN: &str = "signIn";
/// The nodes that use sign-ins.
const MAX_USES: usize = 10;
/// Separates the name of a node or a sign-in from that of a part.
const SEPARATOR: char = '.';

/// The pages of a sign-in that several definitions share: hosts, signals, nodes and texts, which these
/// need not repeat. A node of type `signIn` leads to its start, and goes on where it reaches `done`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SignIn {
    /// The hosts of the provider, which are added to those of the definition.
    #[serde(default)]
    pub sso_hosts: Vec<String>,
    /// The signals, to which only the sign-in refers.
    pub signals: BTreeMap<String, Condition>,
    /// Interrupts in addition to those of the definition: each fails or acts.
    #[serde(default)]
    pub interrupts: Vec<Interrupt>,
    pub start: String,
    /// The nodes: `goto`, `act`, `branch`, `awaitUser`, `done` and `fail`.
    pub nodes: BTreeMap<String, Node>,
    /// The texts of the nodes, by language tag and then by text key.
    pub texts: BTreeMap<String, BTreeMap<String, String>>,
}

/// A document whose sign-ins are written out.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenOut {
    pub document: Value,
    /// The sign-in that each node uses.
    uses: BTreeMap<String, String>,
    /// The sign-in of each interrupt after those of the definition, with its index there.
    interrupts: Vec<(String, usize)>,
    own_interrupts: usize,
    /// What has no effect.
    pub warnings: Vec<ValidationError>,
}

impl WrittenOut {
    /// Returns the place in the document that a place of the written-out one comes from.
    #[must_use]
    pub fn original(&self, path: &JsonPath) -> JsonPath {
        self.origin(path.segments()).map_or_else(|| path.clone(), JsonPath::of)
    }

    fn origin(&self, path: &[PathSegment]) -> Option<Vec<PathSegment>> {
        let [PathSegment::Member(top), first, rest @ ..] = path else { return None };
        let name = |name: &str| PathSegment::Member(name.to_owned());
        let (sign_in, inner) = match (top.as_str(), first) {
            ("nodes", PathSegment::Member(node)) => {
                let (node, part) = node.split_once(SEPARATOR)?;
                (self.uses.get(node)?.as_str(), vec![name(part)])
            }
            ("signals", PathSegment::Member(signal)) => {
                let (sign_in, part) = self.part(signal)?;
                (sign_in, vec![name(part)])
            }
            ("interrupts", PathSegment::Item(index)) => {
                let index = index.checked_sub(self.own_interrupts)?;
                let (sign_in, index) = self.interrupts.get(index)?;
                (sign_in.as_str(), vec![PathSegment::Item(*index)])
            }
            ("texts", PathSegment::Member(language)) => {
                let [PathSegment::Member(key)] = rest else { return None };
                let (sign_in, part) = self.part(key)?;
                let path = [name(SIGN_INS), name(sign_in), name(top), name(language), name(part)];
                return Some(path.into());
            }
            _ => return None,
        };
        let mut origin = vec![name(SIGN_INS), name(sign_in), name(top)];
        origin.extend(inner);
        origin.extend_from_slice(rest);
        Some(origin)
    }

    /// Returns the sign-in and the part that a name stands for.
    fn part<'a>(&self, name: &'a str) -> Option<(&'a str, &'a str)> {
        let (sign_in, part) = name.split_once(SEPARATOR)?;
        self.uses.values().any(|used| used == sign_in).then_some((sign_in, part))
    }
}

/// Writes out the sign-ins of a document that the JSON Schema accepts; `None` if it has none.
///
/// # Errors
/// A node names no sign-in, or a sign-in has what it may not have.
pub fn write_out(document: &Value) -> Result<Option<WrittenOut>, Vec<ValidationError>> {
    let Some(sign_ins) = document.get(SIGN_INS).and_then(Value::as_object) else {
        return Ok(None);
    };
    let mut writer = Writer::new(document, sign_ins);
    writer.check();
    if writer.errors.iter().any(|error| error.severity == Severity::Error) {
        return Err(writer.errors);
    }
    Ok(Some(writer.written()))
}

/// A name with those of what it is a part of.
fn part_of(whole: &str, part: &str) -> String {
    format!("{whole}{SEPARATOR}{part}")
}

struct Writer<'a> {
    document: &'a Value,
    sign_ins: &'a Map<String, Value>,
    uses: BTreeMap<String, String>,
    errors: Vec<ValidationError>,
}

impl<'a> Writer<'a> {
    fn new(document: &'a Value, sign_ins: &'a Map<String, Value>) -> Self {
        let nodes = document.get("nodes").and_then(Value::as_object);
        let uses = nodes.into_iter().flatten().filter_map(|(name, node)| {
            let sign_in = node.get(SIGN_IN)?.as_str()?;
            (node.get("type")? == SIGN_IN).then(|| (name.clone(), sign_in.to_owned()))
        });
        Self { document, sign_ins, uses: uses.collect(), errors: vec![] }
    }

    fn error(&mut self, path: JsonPath, message: impl Into<String>) {
        self.add(Severity::Error, path, message);
    }

    fn add(&mut self, severity: Severity, path: JsonPath, message: impl Into<String>) {
        self.errors.push(ValidationError { severity, path, message: message.into() });
    }

    fn check(&mut self) {
        let root = JsonPath::root();
        if self.uses.len() > MAX_USES {
            let message = format!("must have at most {MAX_USES} of type `{SIGN_IN}`");
            self.error(root.member("nodes"), message);
        }
        for (node, used) in self.uses.clone() {
            let path = root.member("nodes").member(&node).member(SIGN_IN);
            if !self.sign_ins.contains_key(&used) {
                let closest = closest_name(&used, self.sign_ins.keys().map(String::as_str));
                let closest = closest.map(|closest| format!("; did you mean `{closest}`?"));
                let closest = closest.unwrap_or_default();
                self.error(path, format!("there is no sign-in `{used}`{closest}"));
            }
        }
        for member in ["nodes", "signals"] {
            for (name, _) in members(self.document, member) {
                if name.contains(SEPARATOR) {
                    let message = format!("a name must not contain `{SEPARATOR}` beside sign-ins");
                    self.error(root.member(member).member(name), message);
                }
            }
        }
        for (language, texts) in members(self.document, "texts") {
            for key in texts.as_object().into_iter().flatten().map(|(key, _)| key) {
                let sign_in = key.split_once(SEPARATOR).map(|(sign_in, _)| sign_in);
                if sign_in.is_some_and(|sign_in| self.sign_ins.contains_key(sign_in)) {
                    let path = root.member("texts").member(language).member(key);
                    self.error(path, "the key is one of a sign-in: choose another one");
                }
            }
        }
        for (name, sign_in) in self.sign_ins {
            let path = root.member(SIGN_INS).member(name);
            if name.contains(SEPARATOR) {
                self.error(path.clone(), format!("the name must not contain `{SEPARATOR}`"));
            }
            if !self.is_used(name) {
                let message = "is not used: no node refers to it";
                self.add(Severity::Warning, path.clone(), message);
            }
            self.check_sign_in(&path, sign_in);
        }
    }

    fn is_used(&self, sign_in: &str) -> bool {
        self.uses.values().any(|used| used == sign_in)
    }

    fn check_sign_in(&mut self, path: &JsonPath, sign_in: &Value) {
        for (name, node) in members(sign_in, "nodes") {
            let kind = node.get("type").and_then(Value::as_str).unwrap_or_default();
            if matches!(kind, SIGN_IN | "collect" | "review") {
                let path = path.member("nodes").member(name).member("type");
                self.error(path, format!("a sign-in has no node of type `{kind}`"));
            }
        }
        let start = sign_in.get("start").and_then(Value::as_str).unwrap_or_default();
        match node_type(sign_in, start) {
            Some("done") => self.error(path.member("start"), "must not be the end"),
            Some(_) => (),
            None => self.error(path.member("start"), format!("there is no node `{start}`")),
        }
        let interrupts = sign_in.get("interrupts").and_then(Value::as_array);
        for (index, interrupt) in interrupts.into_iter().flatten().enumerate() {
            let then = interrupt.get("then");
            if then.is_some_and(|then| then.get("next").is_some() || then.get("retry").is_some()) {
                let path = path.member("interrupts").item(index).member("then");
                self.error(path, "must fail or act: a sign-in may be used by several nodes");
            }
        }
    }

    fn written(self) -> WrittenOut {
        let mut document = self.document.clone();
        if let Some(members) = document.as_object_mut() {
            members.remove(SIGN_INS);
        }
        self.lead_to_starts(&mut document);
        let own = document.get("interrupts").and_then(Value::as_array).map_or(0, Vec::len);
        let mut interrupts = vec![];
        for (name, sign_in) in self.sign_ins.iter().filter(|(name, _)| self.is_used(name)) {
            self.add_shared(&mut document, name, sign_in);
            for (index, interrupt) in list(sign_in, "interrupts").enumerate() {
                let mut interrupt = interrupt.clone();
                rename(&mut interrupt, &Names { sign_in: name, next: &|next| next.to_owned() });
                push(&mut document, "interrupts", interrupt);
                interrupts.push((name.clone(), index));
            }
        }
        for (node, used) in &self.uses {
            if let Some(sign_in) = self.sign_ins.get(used) {
                self.add_nodes(&mut document, node, (used, sign_in));
            }
        }
        WrittenOut {
            document,
            uses: self.uses,
            interrupts,
            own_interrupts: own,
            warnings: self.errors,
        }
    }

    /// Returns the node that a name of the definition leads to.
    fn entry(&self, name: &str) -> String {
        let start = self.uses.get(name).and_then(|used| self.sign_ins.get(used));
        let start = start.and_then(|sign_in| sign_in.get("start")).and_then(Value::as_str);
        start.map_or_else(|| name.to_owned(), |start| part_of(name, start))
    }

    /// Has everything that leads to a node with a sign-in lead to its start, and removes the node.
    fn lead_to_starts(&self, document: &mut Value) {
        for member in ["nodes", "interrupts"] {
            if let Some(value) = document.get_mut(member) {
                lead(value, &|next| self.entry(next));
            }
        }
        if let Some(start) = document.get_mut("start")
            && let Some(name) = start.as_str()
        {
            *start = self.entry(name).into();
        }
        if let Some(nodes) = document.get_mut("nodes").and_then(Value::as_object_mut) {
            nodes.retain(|name, _| !self.uses.contains_key(name));
        }
    }

    /// Adds what all uses of a sign-in have in common.
    fn add_shared(&self, document: &mut Value, name: &str, sign_in: &Value) {
        let known: Vec<_> =
            list(self.document, "hosts").chain(list(self.document, "ssoHosts")).collect();
        for host in list(sign_in, "ssoHosts").filter(|host| !known.contains(host)) {
            push(document, "ssoHosts", host.clone());
        }
        for (signal, condition) in members(sign_in, "signals") {
            let mut condition = condition.clone();
            rename(&mut condition, &Names { sign_in: name, next: &|next| next.to_owned() });
            insert(document, &["signals"], part_of(name, signal), condition);
        }
        for (language, texts) in members(sign_in, "texts") {
            // Other languages would lack the texts of the definition.
            if self.document.pointer("/texts").is_some_and(|all| all.get(language).is_some()) {
                for (key, text) in texts.as_object().into_iter().flatten() {
                    insert(document, &["texts", language], part_of(name, key), text.clone());
                }
            }
        }
    }

    /// Adds the nodes of a sign-in for the node that uses it.
    fn add_nodes(&self, document: &mut Value, node: &str, (name, sign_in): (&str, &Value)) {
        let after = self.document.pointer("/nodes").and_then(|nodes| nodes.get(node)?.get("next"));
        let after = self.entry(after.and_then(Value::as_str).unwrap_or_default());
        let next = |next: &str| match node_type(sign_in, next) {
            Some("done") => after.clone(),
            Some(_) | None => part_of(node, next),
        };
        for (part, inner) in members(sign_in, "nodes") {
            if inner.get("type").is_some_and(|kind| kind != "done") {
                let mut inner = inner.clone();
                rename(&mut inner, &Names { sign_in: name, next: &next });
                insert(document, &["nodes"], part_of(node, part), inner);
            }
        }
    }
}

/// How the names in a sign-in are written out.
struct Names<'a> {
    sign_in: &'a str,
    next: &'a dyn Fn(&str) -> String,
}

/// Writes out the names in a part of a sign-in.
fn rename(value: &mut Value, names: &Names<'_>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, names)),
        Value::Object(members) => {
            for (member, value) in members {
                match (member.as_str(), &mut *value) {
                    ("next", Value::String(name)) => *name = (names.next)(name),
                    ("when" | "signal" | "textKey", Value::String(name)) => {
                        *name = part_of(names.sign_in, name);
                    }
                    ("until", Value::Array(signals)) => {
                        for signal in signals {
                            if let Value::String(name) = signal {
                                *name = part_of(names.sign_in, name);
                            }
                        }
                    }
                    // Its members are languages.
                    ("contains", _) => (),
                    _ => rename(value, names),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (),
    }
}

/// Replaces the names of nodes that anything in a value leads to.
fn lead(value: &mut Value, next: &dyn Fn(&str) -> String) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| lead(item, next)),
        Value::Object(members) => {
            for (member, value) in members {
                match (member.as_str(), &mut *value) {
                    ("next", Value::String(name)) => *name = next(name),
                    // Names of fields, of which one may be `next`.
                    ("fields" | "variables", _) => (),
                    _ => lead(value, next),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (),
    }
}

fn node_type<'a>(sign_in: &'a Value, name: &str) -> Option<&'a str> {
    sign_in.get("nodes")?.get(name)?.get("type")?.as_str()
}

fn members<'a>(value: &'a Value, member: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value.get(member).and_then(Value::as_object).into_iter().flatten()
}

fn list<'a>(value: &'a Value, member: &str) -> impl Iterator<Item = &'a Value> {
    value.get(member).and_then(Value::as_array).into_iter().flatten()
}

/// Adds an item to a list of the document, which it may not have.
fn push(document: &mut Value, member: &str, item: Value) {
    let Some(members) = document.as_object_mut() else { return };
    let list = members.entry(member).or_insert_with(|| Value::Array(vec![]));
    if let Some(list) = list.as_array_mut() {
        list.push(item);
    }
}

/// Adds a member to an object of the document.
fn insert(document: &mut Value, path: &[&str], name: String, value: Value) {
    let found = path.iter().try_fold(document, |value, member| value.get_mut(*member));
    if let Some(members) = found.and_then(Value::as_object_mut) {
        members.insert(name, value);
    }
}
