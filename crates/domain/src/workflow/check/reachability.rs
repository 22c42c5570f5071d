//! Validates every path through the workflow of a definition.

use std::collections::{BTreeMap, BTreeSet};

use super::{Checker, top};
use crate::workflow::{InterruptTarget, JsonPath, Node, WorkflowExit};

/// The maximum number of combinations of a node and the data collected on the path to it.
const MAX_PATH_STATES: usize = 20_000;

impl Checker<'_> {
    /// Validates every path: each node is reachable, each leads to an end, and at `done` all
    /// required fields are collected and the applicant has reviewed all data.
    pub(super) fn paths(&mut self) {
        let definition = self.definition;
        let edges: BTreeMap<&str, BTreeSet<&str>> =
            definition.nodes.iter().map(|(name, node)| (name.as_str(), targets(node))).collect();
        let mut reachable = BTreeSet::from([definition.start.as_str()]);
        let starts = definition.interrupts.iter().flat_map(|interrupt| match &interrupt.then {
            InterruptTarget::Next(node) => vec![node.as_str()],
            InterruptTarget::Retry(retry) => [Some(retry.next.as_str()), next_of(&retry.otherwise)]
                .into_iter()
                .flatten()
                .collect(),
            InterruptTarget::Fail(_) | InterruptTarget::Act(_) => vec![],
        });
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

    /// Follows every path from the start with the collected fields and whether they are reviewed.
    fn collection_and_review(&mut self) {
        let definition = self.definition;
        let required: BTreeSet<&str> = definition
            .output
            .iter()
            .filter(|(_, field)| field.required)
            .map(|(name, _)| name.as_str())
            .collect();
        let mut seen = BTreeSet::new();
        let mut open = vec![(definition.start.as_str(), BTreeSet::<&str>::new(), true)];
        while let Some((name, mut fields, mut reviewed)) = open.pop() {
            if !seen.insert((name, fields.clone(), reviewed)) {
                continue;
            }
            if seen.len() > MAX_PATH_STATES {
                self.error(&top("nodes"), "branch and collect in too many ways to be checked");
                return;
            }
            let Some(node) = definition.nodes.get(name) else { continue };
            match node {
                Node::Collect { fields: collected, .. } => {
                    let collected = collected.keys().map(String::as_str);
                    fields.extend(collected.filter(|name| required.contains(name)));
                    reviewed = false;
                }
                Node::Review { confirm, .. } => {
                    // What is not confirmed is dropped.
                    let lost = confirm.iter().filter_map(|confirm| next_of(&confirm.otherwise));
                    open.extend(lost.map(|to| (to, BTreeSet::new(), true)));
                    reviewed = true;
                }
                // What was collected before is dropped.
                Node::AwaitUser { kind, .. } if kind.may_change_account() => {
                    fields.clear();
                    reviewed = true;
                }
                Node::Done => self.done(name, required.difference(&fields).next(), reviewed),
                Node::Goto { .. }
                | Node::Act { .. }
                | Node::Branch { .. }
                | Node::AwaitUser { .. }
                | Node::Fail { .. } => (),
            }
            open.extend(targets(node).into_iter().map(|to| (to, fields.clone(), reviewed)));
        }
    }

    fn done(&mut self, name: &str, missing: Option<&&str>, reviewed: bool) {
        if let Some(field) = missing {
            let wrong = format!("can be reached without the required `{field}`");
            self.once(&top("nodes").member(name), &wrong);
        }
        if !reviewed {
            let wrong = "can be reached with data the applicant has not reviewed";
            self.once(&top("nodes").member(name), wrong);
        }
    }

    /// Adds an error unless it was already added for another path.
    fn once(&mut self, path: &JsonPath, message: &str) {
        if !self.errors.iter().any(|error| error.path == *path && error.message == message) {
            self.error(path, message);
        }
    }
}

fn next_of(exit: &WorkflowExit) -> Option<&str> {
    match exit {
        WorkflowExit::Next(node) => Some(node),
        WorkflowExit::Fail(_) => None,
    }
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
