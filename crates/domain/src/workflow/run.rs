//! The interpreter: where a run stands and what it has just learned, to what it wants next.
//! Pure: time is handed in, commands are handed out.

use std::{collections::BTreeSet, sync::Arc};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use super::{AskKind, Definition, Exit, Hint, Node, Observation, Source, collect::take};
use crate::{
    error_code::ErrorCode,
    session::{Ask, Collected},
};

/// What a run wants done in the browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    Goto {
        url: String,
    },
    /// Look at the page, at once or when it has changed, and in any case soon.
    Watch,
    Fetch {
        url: String,
        expect_status: u16,
        max_bytes: u32,
    },
    /// Read the body of the newest response whose path fits.
    ReadResponse {
        url: String,
    },
    /// Read the text of the first element of each selector.
    ReadDom {
        selectors: Vec<String>,
    },
    /// Ask the applicant to share this, and report the answer, or that time has passed.
    Consent {
        fields: Vec<SharedField>,
    },
    End(End),
}

/// What the applicant is shown before sharing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedField {
    pub label_key: String,
    pub value: Value,
}

/// How a run ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    Done(Collected),
    Declined,
    Failed(ErrorCode),
}

/// What came of the last command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    Begin,
    Arrived,
    Unreachable,
    Seen(Observation),
    /// A JSON document; for the DOM an object of selector and text.
    Read(Value),
    Unreadable,
    Answered {
        share: bool,
    },
    /// Nothing, but time went by.
    Waited,
}

/// The public side of where a run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    Running,
    Awaiting(Ask),
    Collecting,
}

/// One answer of the interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub shown: Shown,
    pub command: Command,
}

/// A run of a definition for one session.
#[derive(Debug, Clone)]
pub struct Run {
    definition: Arc<Definition>,
    at: String,
    entered: DateTime<Utc>,
    ends_by: DateTime<Utc>,
    steps_left: u16,
    attempts: u8,
    hints: Vec<Hinted>,
    hint: Option<String>,
    collecting: bool,
    collected: Collected,
    path: Vec<String>,
}

/// How often a hint's signal has come up, and whether it stands now.
#[derive(Debug, Clone, Copy, Default)]
struct Hinted {
    count: u8,
    stands: bool,
}

impl Run {
    /// A run that begins at the definition's start.
    #[must_use]
    pub fn new(definition: Arc<Definition>, now: DateTime<Utc>) -> Self {
        let budgets = definition.budgets;
        Self {
            at: definition.start.clone(),
            path: vec![definition.start.clone()],
            entered: now,
            ends_by: now + TimeDelta::seconds(budgets.total_seconds.into()),
            steps_left: budgets.steps,
            attempts: 0,
            hints: vec![],
            hint: None,
            collecting: false,
            collected: Collected::default(),
            definition,
        }
    }

    /// The nodes entered so far, in order.
    #[must_use]
    pub fn path(&self) -> &[String] {
        &self.path
    }

    /// Takes in what came of the last command and says what comes next.
    pub fn next(&mut self, news: News, now: DateTime<Utc>) -> Turn {
        let mut news = Some(news);
        // Each round enters a node, and the budget of steps ends them.
        loop {
            if now >= self.ends_by {
                return self.end(End::Failed(ErrorCode::UserInputTimeout));
            }
            let definition = self.definition.clone();
            let Some(node) = definition.nodes.get(&self.at) else {
                return self.end(End::Failed(ErrorCode::WorkflowInvalid));
            };
            let exit = match self.visit(node, news.take(), now) {
                Visit::Stay(turn) => return turn,
                Visit::Leave(exit) => exit,
            };
            match exit {
                Exit::Fail(code) => return self.end(End::Failed(code)),
                Exit::Next(next) => {
                    let Some(left) = self.steps_left.checked_sub(1) else {
                        return self.end(End::Failed(ErrorCode::UnexpectedPage));
                    };
                    self.steps_left = left;
                    self.enter(next, now);
                }
            }
        }
    }

    fn enter(&mut self, next: String, now: DateTime<Utc>) {
        self.path.push(next.clone());
        self.at = next;
        self.entered = now;
        self.attempts = 0;
        self.hints.clear();
        self.hint = None;
    }

    /// `news` is `None` when the node has just been entered.
    fn visit(&mut self, node: &Node, news: Option<News>, now: DateTime<Utc>) -> Visit {
        match node {
            Node::Goto { url, next, on_fail } => match news {
                Some(News::Arrived) => Visit::to(next),
                Some(News::Unreachable) => Visit::Leave(on_fail.clone()),
                _ => self.stay(Command::Goto { url: url.clone() }),
            },
            Node::Branch { cases, settle_seconds, default } => {
                let Some(News::Seen(seen)) = news else { return self.stay(Command::Watch) };
                if let Some(exit) = self.interrupted(&seen) {
                    return Visit::Leave(exit);
                }
                let case = cases.iter().find(|case| seen.settled && self.holds(&case.when, &seen));
                match case {
                    Some(case) => Visit::to(&case.next),
                    None if self.waited(*settle_seconds, now) => Visit::Leave(default.clone()),
                    None => self.stay(Command::Watch),
                }
            }
            Node::AwaitUser { kind, text_key, timeout_seconds, until, hints, next, on_timeout } => {
                let deadline = self.entered + TimeDelta::seconds((*timeout_seconds).into());
                if let Some(News::Seen(seen)) = &news {
                    if let Some(exit) = self.interrupted(seen) {
                        return Visit::Leave(exit);
                    }
                    if seen.settled && until.iter().any(|signal| self.holds(signal, seen)) {
                        return Visit::to(next);
                    }
                    if let Some(exit) = self.hinted(hints, seen) {
                        return Visit::Leave(exit);
                    }
                }
                if now >= deadline {
                    return Visit::Leave(on_timeout.clone());
                }
                let text_key = self.hint.clone().unwrap_or_else(|| text_key.clone());
                self.ask(*kind, text_key, deadline, Command::Watch)
            }
            Node::Collect { via, fields, retries, on_missing, next } => {
                self.collecting = true;
                match news {
                    Some(News::Read(value)) => {
                        let dom = matches!(via, Source::Dom {});
                        let missing = self.take_fields(fields, &value, dom);
                        self.settle_collect(missing, *retries, via, fields, on_missing, next)
                    }
                    Some(News::Unreadable) => {
                        let missing = fields.keys().cloned().collect();
                        self.settle_collect(missing, *retries, via, fields, on_missing, next)
                    }
                    _ => self.read(via, fields),
                }
            }
            Node::Review { text_key, timeout_seconds, next } => {
                self.collecting = true;
                let deadline = self.entered + TimeDelta::seconds((*timeout_seconds).into());
                match news {
                    Some(News::Answered { share: true }) => Visit::to(next),
                    Some(News::Answered { share: false }) => Visit::Stay(self.end(End::Declined)),
                    _ if now >= deadline => Visit::Leave(Exit::Fail(ErrorCode::UserInputTimeout)),
                    _ => {
                        let command = Command::Consent { fields: self.shared() };
                        self.ask(AskKind::Consent, text_key.clone(), deadline, command)
                    }
                }
            }
            Node::Done => Visit::Stay(self.end(End::Done(self.collected.clone()))),
            Node::Fail { code } => Visit::Leave(Exit::Fail(*code)),
        }
    }

    fn settle_collect(
        &mut self,
        missing: Vec<String>,
        retries: u8,
        via: &Source,
        fields: &std::collections::BTreeMap<String, String>,
        on_missing: &Exit,
        next: &str,
    ) -> Visit {
        if !missing.is_empty() && self.attempts < retries {
            self.attempts = self.attempts.saturating_add(1);
            return self.read(via, fields);
        }
        let required = |name: &String| self.definition.output.get(name).is_some_and(|f| f.required);
        if missing.iter().any(required) {
            return Visit::Leave(on_missing.clone());
        }
        self.collected.missing.extend(missing);
        Visit::to(next)
    }

    fn read(&self, via: &Source, fields: &std::collections::BTreeMap<String, String>) -> Visit {
        let command = match via {
            Source::Fetch(name) => match self.definition.requests.get(name) {
                Some(request) => Command::Fetch {
                    url: request.url.clone(),
                    expect_status: request.expect_status,
                    max_bytes: request.max_bytes,
                },
                None => Command::End(End::Failed(ErrorCode::WorkflowInvalid)),
            },
            Source::Response(url) => Command::ReadResponse { url: url.clone() },
            Source::Dom {} => Command::ReadDom { selectors: fields.values().cloned().collect() },
        };
        self.stay(command)
    }

    /// Takes what is there; answers the names of what is not.
    fn take_fields(
        &mut self,
        fields: &std::collections::BTreeMap<String, String>,
        read: &Value,
        dom: bool,
    ) -> Vec<String> {
        let mut missing = Vec::new();
        for (name, place) in fields {
            let value = if dom { read.get(place) } else { read.pointer(place) };
            match self.definition.output.get(name).and_then(|field| take(field, value)) {
                Some(value) => {
                    self.collected.data.insert(name.clone(), value);
                }
                None if self.collected.data.contains_key(name) => (),
                None => missing.push(name.clone()),
            }
        }
        missing
    }

    fn shared(&self) -> Vec<SharedField> {
        let field = |(name, value): (&String, &Value)| {
            let label_key = self.definition.output.get(name)?.label_key.clone();
            Some(SharedField { label_key, value: value.clone() })
        };
        self.collected.data.iter().filter_map(field).collect()
    }

    fn holds(&self, signal: &str, seen: &Observation) -> bool {
        self.definition.signals.get(signal).is_some_and(|condition| condition.holds(seen))
    }

    fn interrupted(&self, seen: &Observation) -> Option<Exit> {
        let mut interrupts = self.definition.interrupts.iter();
        interrupts.find(|i| seen.settled && self.holds(&i.when, seen)).map(|i| i.then.clone())
    }

    /// Counts each time a hint's signal newly appears.
    fn hinted(&mut self, hints: &[Hint], seen: &Observation) -> Option<Exit> {
        self.hints.resize(hints.len(), Hinted::default());
        let standing: BTreeSet<usize> = hints
            .iter()
            .enumerate()
            .filter(|(_, hint)| self.holds(&hint.when, seen))
            .map(|(at, _)| at)
            .collect();
        for (at, (hint, hinted)) in hints.iter().zip(&mut self.hints).enumerate() {
            let stands = standing.contains(&at);
            if stands && !hinted.stands {
                hinted.count = hinted.count.saturating_add(1);
                self.hint = Some(hint.text_key.clone());
                if hinted.count >= hint.count {
                    return Some(hint.then.clone());
                }
            }
            // Between two pages nothing stands; only a settled page takes a hint back.
            if stands || seen.settled {
                hinted.stands = stands;
            }
        }
        None
    }

    fn waited(&self, seconds: u32, now: DateTime<Utc>) -> bool {
        now >= self.entered + TimeDelta::seconds(seconds.into())
    }

    fn stay(&self, command: Command) -> Visit {
        let shown = if self.collecting { Shown::Collecting } else { Shown::Running };
        Visit::Stay(Turn { shown, command })
    }

    fn ask(
        &self,
        kind: AskKind,
        text_key: String,
        deadline: DateTime<Utc>,
        command: Command,
    ) -> Visit {
        let ask = Ask { kind, text_key, deadline: deadline.min(self.ends_by) };
        Visit::Stay(Turn { shown: Shown::Awaiting(ask), command })
    }

    fn end(&self, end: End) -> Turn {
        let shown = if self.collecting { Shown::Collecting } else { Shown::Running };
        Turn { shown, command: Command::End(end) }
    }
}

/// What became of a node.
enum Visit {
    Stay(Turn),
    Leave(Exit),
}

impl Visit {
    fn to(next: &str) -> Self {
        Self::Leave(Exit::Next(next.to_owned()))
    }
}
