//! How each kind of node handles the result of a command, and when the run leaves it.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use super::{
    Command, End, HintState, MIN_ABSENCE, PublicPhase, Run, RunStep, SharedField, StepResult,
};
use crate::{
    error_code::ErrorCode,
    session::PendingPrompt,
    workflow::{Field, Hint, Node, Observation, PromptKind, Source, WorkflowExit, collect::take},
};

/// The result of a visit of a node.
pub(super) enum Visit {
    Stay(RunStep),
    Leave(WorkflowExit),
}

impl Visit {
    fn to(next: &str) -> Self {
        Self::Leave(WorkflowExit::Next(next.to_owned()))
    }
}

impl Run {
    /// Visits a node. `result` is `None` if the run has just entered it.
    pub(super) fn visit(
        &mut self,
        node: &Node,
        result: Option<StepResult>,
        now: DateTime<Utc>,
    ) -> Visit {
        match node {
            Node::Goto { url, next, on_fail } => match result {
                Some(StepResult::Arrived) => Visit::to(next),
                Some(StepResult::Unreachable) => Visit::Leave(on_fail.clone()),
                Some(_) | None => self.stay(Command::Goto { url: url.clone() }),
            },
            Node::Branch { cases, settle_seconds, default } => {
                let Some(StepResult::Seen(page)) = result else {
                    return self.stay(Command::Watch);
                };
                if let Some(exit) = self.interrupt(&page) {
                    return Visit::Leave(exit);
                }
                let case = cases.iter().find(|case| page.settled && self.holds(&case.when, &page));
                match case {
                    Some(case) => Visit::to(&case.next),
                    None if now >= self.after(*settle_seconds) => Visit::Leave(default.clone()),
                    None => self.stay(Command::Watch),
                }
            }
            Node::AwaitUser { kind, text_key, timeout_seconds, until, hints, next, on_timeout } => {
                if let Some(StepResult::Seen(page)) = &result
                    && let Some(exit) = self.wait_exit(until, hints, next, page)
                {
                    return Visit::Leave(exit);
                }
                let deadline = self.user_deadline(*timeout_seconds);
                if now >= deadline {
                    return Visit::Leave(on_timeout.clone());
                }
                let text_key = self.hint_text_key.clone().unwrap_or_else(|| text_key.clone());
                self.ask(*kind, text_key, deadline, Command::Watch)
            }
            Node::Collect { via, fields, retries, on_missing, next } => {
                self.collecting = true;
                let missing = match result {
                    Some(StepResult::Read(value)) => self.take_fields(fields, &value, via),
                    Some(StepResult::Unreadable) => fields.keys().cloned().collect(),
                    Some(_) | None => return self.read(via, fields),
                };
                if !missing.is_empty() && self.attempts < *retries {
                    self.attempts = self.attempts.saturating_add(1);
                    return self.read(via, fields);
                }
                self.settle(missing, on_missing, next)
            }
            Node::Review { text_key, timeout_seconds, next } => {
                self.collecting = true;
                match result {
                    Some(StepResult::Answered { share: true }) => Visit::to(next),
                    Some(StepResult::Answered { share: false }) => {
                        Visit::Stay(self.end(End::Declined))
                    }
                    Some(_) | None => {
                        self.review(text_key, self.user_deadline(*timeout_seconds), now)
                    }
                }
            }
            Node::Done => Visit::Stay(self.end(End::Done(self.collected.clone()))),
            Node::Fail { code } => Visit::Leave(WorkflowExit::Fail(*code)),
        }
    }

    /// Asks the applicant for consent until the deadline.
    fn review(&self, text_key: &str, deadline: DateTime<Utc>, now: DateTime<Utc>) -> Visit {
        if now >= deadline {
            return Visit::Leave(WorkflowExit::Fail(ErrorCode::UserInputTimeout));
        }
        let command = Command::Consent { fields: self.shared_fields() };
        self.ask(PromptKind::Consent, text_key.to_owned(), deadline, command)
    }

    /// Returns the exit if the page ends the wait for the applicant.
    fn wait_exit(
        &mut self,
        until: &[String],
        hints: &[Hint],
        next: &str,
        page: &Observation,
    ) -> Option<WorkflowExit> {
        if let Some(exit) = self.interrupt(page) {
            return Some(exit);
        }
        if page.settled && until.iter().any(|signal| self.holds(signal, page)) {
            return Some(WorkflowExit::Next(next.to_owned()));
        }
        self.update_hints(hints, page)
    }

    fn settle(&mut self, missing: Vec<String>, on_missing: &WorkflowExit, next: &str) -> Visit {
        let required = |name: &String| self.definition.output.get(name).is_some_and(|f| f.required);
        if missing.iter().any(required) {
            return Visit::Leave(on_missing.clone());
        }
        self.collected.missing.extend(missing);
        Visit::to(next)
    }

    fn read(&self, via: &Source, fields: &BTreeMap<String, String>) -> Visit {
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

    /// Collects the fields that are present and returns the names of those that are missing.
    fn take_fields(
        &mut self,
        fields: &BTreeMap<String, String>,
        read: &Value,
        via: &Source,
    ) -> Vec<String> {
        let dom = matches!(via, Source::Dom {});
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

    /// Returns the collected fields in the order in which the applicant reads them.
    fn shared_fields(&self) -> Vec<SharedField> {
        let field = |(name, _): (&String, &Field)| {
            let value = self.collected.data.get(name)?.clone();
            Some(SharedField { name: name.clone(), value })
        };
        self.definition.ordered_output().filter_map(field).collect()
    }

    fn holds(&self, signal: &str, page: &Observation) -> bool {
        self.definition.signals.get(signal).is_some_and(|condition| condition.holds(page))
    }

    /// Returns the exit of the first interrupt whose signal holds on a settled page.
    fn interrupt(&self, page: &Observation) -> Option<WorkflowExit> {
        let mut interrupts = self.definition.interrupts.iter();
        interrupts.find(|i| page.settled && self.holds(&i.when, page)).map(|i| i.then.clone())
    }

    /// Counts how often each hint's signal newly appears, in the same document, in another one or by
    /// another response, and returns the exit of a hint that has appeared too often.
    fn update_hints(&mut self, hints: &[Hint], page: &Observation) -> Option<WorkflowExit> {
        self.hints.resize(hints.len(), HintState::default());
        let definition = &self.definition;
        for (hint, state) in hints.iter().zip(&mut self.hints) {
            let signal = definition.signals.get(&hint.when);
            let occurrence =
                signal.and_then(|signal| signal.occurrence(page, self.responses_before));
            if occurrence.is_some() && occurrence != state.occurrence {
                state.count = state.count.saturating_add(1);
                self.hint_text_key = Some(hint.text_key.clone());
                if state.count >= hint.count {
                    return Some(hint.then.clone());
                }
            }
            // No signal holds while another page loads; only a settled page clears a hint.
            if occurrence.is_some() || page.settled {
                state.occurrence = occurrence;
            }
        }
        None
    }

    /// Returns the time until which a node waits for the applicant.
    fn user_deadline(&self, seconds: u32) -> DateTime<Utc> {
        let deadline = self.after(seconds);
        if self.was_away { deadline.max(self.entered_at + MIN_ABSENCE) } else { deadline }
    }

    /// Returns the time a number of seconds after the node was entered.
    fn after(&self, seconds: u32) -> DateTime<Utc> {
        self.entered_at + TimeDelta::seconds(seconds.into())
    }

    fn stay(&self, command: Command) -> Visit {
        let shown = if self.collecting { PublicPhase::Collecting } else { PublicPhase::Running };
        Visit::Stay(RunStep { shown, command })
    }

    fn ask(
        &self,
        kind: PromptKind,
        text_key: String,
        deadline: DateTime<Utc>,
        command: Command,
    ) -> Visit {
        let prompt = PendingPrompt { kind, text_key, deadline: deadline.min(self.deadline) };
        Visit::Stay(RunStep { shown: PublicPhase::Awaiting(prompt), command })
    }

    pub(super) fn end(&self, end: End) -> RunStep {
        let shown = if self.collecting { PublicPhase::Collecting } else { PublicPhase::Running };
        RunStep { shown, command: Command::End(end) }
    }
}
