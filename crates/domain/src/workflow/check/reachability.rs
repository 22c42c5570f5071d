//! Validates every path through the workflow of a definition.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Checker, ValidationError, top};
use crate::workflow::{Definition, FieldType, InterruptTarget, JsonPath, Node, WorkflowExit};

/// The maximum number of combinations of a node and the data collected on the path to it.
const MAX_PATH_STATES: usize = 20_000;

/// A node on a path, and what has happened before it.
struct PathState<'a> {
    node: &'a str,
    /// The required fields that are collected.
    fields: BTreeSet<&'a str>,
    reviewed: bool,
    /// The index of the last interrupt on the path, and the node that it interrupts.
    interrupt: Option<(usize, &'a str)>,
}

impl Checker<'_> {
    /// Validates every path: each node is reachable, each leads to an end, and at `done` all
    /// required fields are collected and the applicant has reviewed all data.
    pub(super) fn paths(&mut self) {
        let definition = self.definition;
        let edges: BTreeMap<&str, BTreeSet<&str>> =
            definition.nodes.iter().map(|(name, node)| (name.as_str(), targets(node))).collect();
        let mut reachable = BTreeSet::from([definition.start.as_str()]);
        let interrupts = definition.interrupts.iter();
        let starts = interrupts.flat_map(|interrupt| interrupt_targets(&interrupt.then));
        reachable.extend(starts);
        close_over(&mut reachable, |name| edges.get(name).cloned().unwrap_or_default());
        let mut ending: BTreeSet<&str> = definition
            .nodes
            .iter()
            .filter(|(_, node)| ends(node))
            .map(|(name, _)| name.as_str())
            .collect();
        close_over(&mut ending, |name| {
            edges.iter().filter(|(_, to)| to.contains(name)).map(|(from, _)| *from).collect()
        });
        for name in definition.nodes.keys() {
            if !reachable.contains(name.as_str()) {
                self.error(&top("nodes").member(name), "is never reached");
            } else if !ending.contains(name.as_str()) {
                self.error(&top("nodes").member(name), "never leads to an end");
            }
        }
        self.collection_and_review();
    }

    /// Follows every path from the start, also by interrupts, with the collected fields and whether
    /// they are reviewed.
    fn collection_and_review(&mut self) {
        let definition = self.definition;
        let required: BTreeSet<&str> = definition
            .output
            .iter()
            .filter(|(_, field)| field.required)
            .map(|(name, _)| name.as_str())
            .collect();
        let interrupts = first_interrupts(definition);
        let mut seen = BTreeSet::new();
        let start = definition.start.as_str();
        let start =
            PathState { node: start, fields: BTreeSet::new(), reviewed: true, interrupt: None };
        let mut open = vec![start];
        // These paths come last, so that an error names an interrupt only if there is none without it.
        let mut interrupted = VecDeque::new();
        while let Some(state) = open.pop().or_else(|| interrupted.pop_front()) {
            let PathState { node: name, mut fields, mut reviewed, interrupt } = state;
            if !seen.insert((name, fields.clone(), reviewed)) {
                continue;
            }
            if seen.len() > MAX_PATH_STATES {
                self.error(&top("nodes"), "branch and collect in too many ways to be checked");
                return;
            }
            let Some(node) = definition.nodes.get(name) else { continue };
            match node {
                Node::Collect { fields: collected, on_missing, .. } => {
                    reviewed = false;
                    // Any of the node's fields may be missing there.
                    let left = next_of(on_missing).map(|target| PathState {
                        node: target,
                        fields: kept(definition, node, &fields),
                        reviewed,
                        interrupt,
                    });
                    open.extend(left);
                    let collected = collected.keys().map(String::as_str);
                    fields.extend(collected.filter(|name| required.contains(name)));
                }
                Node::Review { confirm, .. } => {
                    // What is not confirmed is dropped.
                    let lost = confirm.iter().filter_map(|confirm| next_of(&confirm.otherwise));
                    let to = |node| PathState {
                        node,
                        fields: BTreeSet::new(),
                        reviewed: true,
                        interrupt,
                    };
                    open.extend(lost.map(to));
                    reviewed = true;
                }
                // What was collected before is dropped.
                Node::AwaitUser { kind, .. } if kind.may_change_account() => {
                    fields.clear();
                    reviewed = true;
                }
                Node::Done => {
                    self.done(name, required.difference(&fields).next(), reviewed, interrupt);
                }
                Node::Goto { .. }
                | Node::Act { .. }
                | Node::Branch { .. }
                | Node::AwaitUser { .. }
                | Node::Fail { .. } => (),
            }
            let to =
                |node, interrupt| PathState { node, fields: fields.clone(), reviewed, interrupt };
            if can_be_interrupted(node) {
                let by = interrupts.iter().map(|(&target, &index)| to(target, Some((index, name))));
                interrupted.extend(by);
            }
            open.extend(goes_on_to(node).into_iter().map(|target| to(target, interrupt)));
        }
    }

    fn done(
        &mut self,
        name: &str,
        missing: Option<&&str>,
        reviewed: bool,
        interrupt: Option<(usize, &str)>,
    ) {
        let missing = missing.map(|field| format!("without the required `{field}`"));
        let unseen = (!reviewed).then(|| "with data the applicant has not reviewed".to_owned());
        for wrong in [missing, unseen].into_iter().flatten() {
            if let Some((index, interrupted)) = interrupt {
                let path = top("interrupts").item(index).member("then");
                let message = format!("can lead to `{name}` {wrong}");
                self.once(&path, &message, &format!(" when it interrupts `{interrupted}`"));
            } else {
                let path = top("nodes").member(name);
                self.once(&path, &format!("can be reached {wrong}"), "");
            }
        }
    }

    /// Adds an error with an example, unless it was already added for another path.
    fn once(&mut self, path: &JsonPath, message: &str, example: &str) {
        let is_same =
            |error: &ValidationError| error.path == *path && error.message.starts_with(message);
        if !self.errors.iter().any(is_same) {
            self.error(path, format!("{message}{example}"));
        }
    }
}

/// Returns the nodes that an interrupt may lead to.
fn interrupt_targets(target: &InterruptTarget) -> Vec<&str> {
    match target {
        InterruptTarget::Next(node) => vec![node.as_str()],
        InterruptTarget::Retry(retry) => {
            [Some(retry.next.as_str()), next_of(&retry.otherwise)].into_iter().flatten().collect()
        }
        InterruptTarget::Fail(_) | InterruptTarget::Act(_) => vec![],
    }
}

/// Returns the nodes that interrupts may lead to, each with the index of the first one that does.
fn first_interrupts(definition: &Definition) -> BTreeMap<&str, usize> {
    let mut first = BTreeMap::new();
    for (index, interrupt) in definition.interrupts.iter().enumerate() {
        for target in interrupt_targets(&interrupt.then) {
            first.entry(target).or_insert(index);
        }
    }
    first
}

/// Returns whether a run looks for interrupts while it is at a node. The confirmation of a review
/// observes the page, but is not interrupted.
fn can_be_interrupted(node: &Node) -> bool {
    matches!(node, Node::Branch { .. } | Node::AwaitUser { .. })
}

fn next_of(exit: &WorkflowExit) -> Option<&str> {
    match exit {
        WorkflowExit::Next(node) => Some(node),
        WorkflowExit::Fail(_) => None,
    }
}

/// Returns the collected fields without those that a node drops where it is left for its `onMissing`: what
/// is known of a list is a part if a further page cannot be read.
fn kept<'a>(definition: &Definition, node: &Node, fields: &BTreeSet<&'a str>) -> BTreeSet<&'a str> {
    let Node::Collect { fields: own, pages: Some(_), .. } = node else { return fields.clone() };
    let is_list =
        |name: &str| definition.output.get(name).is_some_and(|field| field.kind == FieldType::List);
    let is_kept = |name: &&str| !(own.contains_key(*name) && is_list(name));
    fields.iter().copied().filter(is_kept).collect()
}

/// Returns the nodes that follow with all that a node collects.
fn goes_on_to(node: &Node) -> BTreeSet<&str> {
    if let Node::Collect { next, .. } = node {
        return BTreeSet::from([next.as_str()]);
    }
    targets(node)
}

pub(super) fn targets(node: &Node) -> BTreeSet<&str> {
    let mut targets = BTreeSet::new();
    match node {
        Node::Goto { next, on_fail, .. } | Node::Act { next, on_fail, .. } => {
            targets.insert(next.as_str());
            targets.extend(next_of(on_fail));
        }
        Node::Branch { cases, default, .. } => {
            targets.extend(cases.iter().map(|case| case.next.as_str()));
            targets.extend(next_of(default));
        }
        Node::AwaitUser { hints, next, on_timeout, .. } => {
            targets.insert(next.as_str());
            targets.extend(hints.iter().filter_map(|hint| next_of(&hint.then)));
            targets.extend(next_of(on_timeout));
        }
        Node::Collect { next, on_missing, .. } => {
            targets.insert(next.as_str());
            targets.extend(next_of(on_missing));
        }
        Node::Review { confirm, next, .. } => {
            targets.insert(next.as_str());
            targets.extend(confirm.iter().filter_map(|confirm| next_of(&confirm.otherwise)));
        }
        Node::Done | Node::Fail { .. } => (),
    }
    targets
}

fn ends(node: &Node) -> bool {
    matches!(node, Node::Done | Node::Fail { .. })
}

/// Extends the set to its closure under `next`.
fn close_over<'a>(set: &mut BTreeSet<&'a str>, next: impl Fn(&str) -> BTreeSet<&'a str>) {
    let mut open: Vec<&str> = set.iter().copied().collect();
    while let Some(name) = open.pop() {
        for to in next(name) {
            if set.insert(to) {
                open.push(to);
            }
        }
    }
}
