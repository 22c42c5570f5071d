//! What a definition must hold before it may be published.

use std::collections::{BTreeMap, BTreeSet};

use super::{Definition, Exit, Node, Source, definition::SCHEMA};

/// One thing that is wrong with a definition, with the place where it stands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {wrong}")]
pub struct Flaw {
    pub place: String,
    pub wrong: String,
}

/// All that is wrong with a definition; empty where it may be published.
#[must_use]
pub fn check(definition: &Definition) -> Vec<Flaw> {
    let mut checker = Checker { definition, flaws: vec![] };
    checker.head();
    checker.names();
    checker.urls();
    checker.roads();
    checker.flaws
}

struct Checker<'a> {
    definition: &'a Definition,
    flaws: Vec<Flaw>,
}

impl<'a> Checker<'a> {
    fn flaw(&mut self, place: impl Into<String>, wrong: impl Into<String>) {
        self.flaws.push(Flaw { place: place.into(), wrong: wrong.into() });
    }

    fn head(&mut self) {
        let definition = self.definition;
        if definition.schema != SCHEMA {
            self.flaw("schema", format!("must be `{SCHEMA}`"));
        }
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let name = &definition.platform;
        if !(1..=64).contains(&name.len()) || !name.bytes().all(plain) {
            self.flaw("platform", "must be 1 to 64 lower-case letters, digits and hyphens");
        }
        let numbers: Vec<_> = definition.version.split('.').collect();
        if numbers.len() != 3 || numbers.iter().any(|number| number.parse::<u32>().is_err()) {
            self.flaw("version", "must be three numbers, as 1.4.0");
        }
        if !(10..=7200).contains(&definition.budgets.total_seconds) {
            self.flaw("budgets.totalSeconds", "must be 10 to 7200");
        }
        if !(1..=500).contains(&definition.budgets.steps) {
            self.flaw("budgets.steps", "must be 1 to 500");
        }
        if definition.hosts.is_empty() {
            self.flaw("hosts", "must name at least one host");
        }
        if definition.nodes.len() > 200 {
            self.flaw("nodes", "must be at most 200");
        }
    }

    fn names(&mut self) {
        let definition = self.definition;
        if !definition.nodes.contains_key(&definition.start) {
            self.flaw("start", format!("there is no node `{}`", definition.start));
        }
        for (at, interrupt) in definition.interrupts.iter().enumerate() {
            let place = format!("interrupts[{at}]");
            self.signal(&place, &interrupt.when);
            self.exit(&place, &interrupt.then);
        }
        for (name, node) in &definition.nodes {
            self.node(&format!("nodes.{name}"), node);
        }
        for (name, field) in &definition.output {
            self.text(&format!("output.{name}"), &field.label_key);
        }
    }

    fn node(&mut self, place: &str, node: &'a Node) {
        for target in targets(node) {
            if !self.definition.nodes.contains_key(target) {
                self.flaw(place, format!("there is no node `{target}`"));
            }
        }
        match node {
            Node::Branch { cases, settle_seconds, .. } => {
                self.within(place, "settleSeconds", *settle_seconds, 1, 120);
                for case in cases {
                    self.signal(place, &case.when);
                }
            }
            Node::AwaitUser { text_key, timeout_seconds, until, hints, .. } => {
                self.within(place, "timeoutSeconds", *timeout_seconds, 5, 3600);
                self.text(place, text_key);
                if until.is_empty() {
                    self.flaw(place, "until must name at least one signal");
                }
                for signal in until {
                    self.signal(place, signal);
                }
                for hint in hints {
                    self.signal(place, &hint.when);
                    self.text(place, &hint.text_key);
                    self.within(place, "count", hint.count.into(), 1, 20);
                }
            }
            Node::Collect { via, fields, retries, .. } => {
                self.within(place, "retries", (*retries).into(), 0, 5);
                if let Source::Fetch(request) = via
                    && !self.definition.requests.contains_key(request)
                {
                    self.flaw(place, format!("there is no request `{request}`"));
                }
                for (field, pointer) in fields {
                    if !self.definition.output.contains_key(field) {
                        self.flaw(place, format!("`{field}` is not in the output"));
                    }
                    if !matches!(via, Source::Dom {}) && !pointer.starts_with('/') {
                        self.flaw(place, format!("`{pointer}` is no JSON pointer"));
                    }
                }
            }
            Node::Review { text_key, timeout_seconds, .. } => {
                self.within(place, "timeoutSeconds", *timeout_seconds, 5, 3600);
                self.text(place, text_key);
            }
            Node::Goto { .. } | Node::Done | Node::Fail { .. } => (),
        }
    }

    fn within(&mut self, place: &str, what: &str, value: u32, least: u32, most: u32) {
        if !(least..=most).contains(&value) {
            self.flaw(place, format!("{what} must be {least} to {most}"));
        }
    }

    fn signal(&mut self, place: &str, name: &str) {
        if !self.definition.signals.contains_key(name) {
            self.flaw(place, format!("there is no signal `{name}`"));
        }
    }

    fn exit(&mut self, place: &str, exit: &Exit) {
        if let Exit::Next(node) = exit
            && !self.definition.nodes.contains_key(node)
        {
            self.flaw(place, format!("there is no node `{node}`"));
        }
    }

    fn text(&mut self, place: &str, key: &str) {
        let english = self.definition.texts.get("en");
        if english.is_none_or(|texts| !texts.contains_key(key)) {
            self.flaw(place, format!("there is no English text `{key}`"));
        }
    }

    fn urls(&mut self) {
        let definition = self.definition;
        let nodes = definition.nodes.iter().filter_map(|(name, node)| match node {
            Node::Goto { url, .. } => Some((format!("nodes.{name}"), url)),
            _ => None,
        });
        let requests = definition.requests.iter();
        let requests = requests.map(|(name, request)| (format!("requests.{name}"), &request.url));
        let login = std::iter::once(("loginUrl".to_owned(), &definition.login_url));
        for (place, url) in nodes.chain(requests).chain(login).collect::<Vec<_>>() {
            if let Some(wrong) = outside(url, &definition.hosts) {
                self.flaw(place, wrong);
            }
        }
        for (name, request) in &definition.requests {
            let place = format!("requests.{name}");
            self.within(&place, "maxBytes", request.max_bytes, 1, 1_048_576);
        }
    }

    /// What must hold along every road: each node is reached, each leads to an end, the required
    /// fields are there at `done`, and the applicant has seen all of them.
    fn roads(&mut self) {
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
            if !seen.insert((name, fields.clone(), reviewed)) || seen.len() > 20_000 {
                continue;
            }
            let Some(node) = definition.nodes.get(name) else { continue };
            match node {
                Node::Collect { fields: taken, .. } => {
                    fields.extend(
                        taken.keys().map(String::as_str).filter(|name| required.contains(name)),
                    );
                    reviewed = false;
                }
                Node::Review { .. } => reviewed = true,
                Node::Done => {
                    if let Some(field) = required.difference(&fields).next() {
                        let wrong = format!("can be reached without the required `{field}`");
                        self.once(&format!("nodes.{name}"), &wrong);
                    }
                    if !reviewed {
                        let wrong = "can be reached with data the applicant has not reviewed";
                        self.once(&format!("nodes.{name}"), wrong);
                    }
                }
                Node::Goto { .. }
                | Node::Branch { .. }
                | Node::AwaitUser { .. }
                | Node::Fail { .. } => (),
            }
            open.extend(targets(node).into_iter().map(|to| (to, fields.clone(), reviewed)));
        }
    }

    fn once(&mut self, place: &str, wrong: &str) {
        if !self.flaws.iter().any(|flaw| flaw.place == place && flaw.wrong == wrong) {
            self.flaw(place, wrong);
        }
    }
}

fn next_of(exit: &Exit) -> Option<&str> {
    match exit {
        Exit::Next(node) => Some(node),
        Exit::Fail(_) => None,
    }
}

fn targets(node: &Node) -> BTreeSet<&str> {
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

/// Why a URL may not stand in the definition; `http` is for the sandbox under `localhost` alone.
fn outside(url: &str, hosts: &[String]) -> Option<String> {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let host = rest.split(['/', '?', '#', ':']).next().unwrap_or_default();
    if rest.contains('@') || !hosts.iter().any(|allowed| allowed == host) {
        return Some(format!("`{url}` is not on one of the hosts"));
    }
    match scheme {
        "https" => None,
        "http" if host.ends_with(".localhost") => None,
        _ => Some(format!("`{url}` must be https")),
    }
}
