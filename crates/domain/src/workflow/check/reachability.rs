//! What must hold along every road through a definition.

use std::collections::{BTreeMap, BTreeSet};

use super::Checker;
use crate::workflow::{Node, WorkflowExit};

/// Combinations of a node and what was collected on the way to it.
const MOST_ROADS: usize = 20_000;

impl Checker<'_> {
    /// What must hold along every road: each node is reached, each leads to an end, the required
    /// fields are there at `done`, and the applicant has seen all of them.
    pub(super) fn roads(&mut self) {
        let definition = self.definition;
        let edges: BTreeMap<&str, BTreeSet<&str>> =
            definition.nodes.iter().map(|(name, node)| (name.as_str(), targets(node))).collect();
        let mut reached = BTreeSet::from([definition.start.as_str()]);
        let starts = definition.interrupts.iter().filter_map(|interrupt| next_of(&interrupt.then));
        reached.extend(starts);
        close_over(&mut reached, |name| edges.get(name).cloned().unwrap_or_default());
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
            if !reached.contains(name.as_str()) {
                self.flaw(format!("nodes.{name}"), "is never reached");
            } else if !ending.contains(name.as_str()) {
                self.flaw(format!("nodes.{name}"), "never leads to an end");
            }
        }
        self.collected_and_reviewed();
    }

    /// Follows every road from the start with what is collected and what is not yet reviewed.
    fn collected_and_reviewed(&mut self) {
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
            if seen.len() > MOST_ROADS {
                self.flaw("nodes", "branch and collect in too many ways to be checked");
                return;
            }
            let Some(node) = definition.nodes.get(name) else { continue };
            match node {
                Node::Collect { fields: taken, .. } => {
                    let taken = taken.keys().map(String::as_str);
                    fields.extend(taken.filter(|name| required.contains(name)));
                    reviewed = false;
                }
                Node::Review { .. } => reviewed = true,
                Node::Done => self.done(name, required.difference(&fields).next(), reviewed),
                Node::Goto { .. }
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
            self.once(&format!("nodes.{name}"), &wrong);
        }
        if !reviewed {
            let wrong = "can be reached with data the applicant has not reviewed";
            self.once(&format!("nodes.{name}"), wrong);
        }
    }

    fn once(&mut self, place: &str, wrong: &str) {
        if !self.flaws.iter().any(|flaw| flaw.place == place && flaw.wrong == wrong) {
            self.flaw(place, wrong);
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
        Node::Goto { next, on_fail, .. } => {
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
        Node::Review { next, .. } => {
            targets.insert(next.as_str());
        }
        Node::Done | Node::Fail { .. } => (),
    }
    targets
}

fn ends(node: &Node) -> bool {
    matches!(node, Node::Done | Node::Fail { .. })
}

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
