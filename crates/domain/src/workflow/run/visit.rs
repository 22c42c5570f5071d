//! How each kind of node handles the result of a command, and when the run leaves it.

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    Command, End, HintState, MIN_ABSENCE, PublicPhase, Run, RunStep, SharedField, StepResult,
};
use crate::{
    error_code::ErrorCode,
    session::{Collected, PendingPrompt},
    workflow::{
        Action, Case, Confirmation, Field, Hint, InterruptRetry, InterruptTarget, Node,
        Observation, PromptKind, TraceEvent, WorkflowExit, condition::SignalEvaluation, custom_url,
        placeholders::expand_url,
    },
};

/// Actions of interrupts in one node.
const MAX_INTERRUPT_ACTIONS: u8 = 5;
/// The time that the page has to settle after the applicant has agreed.
const CONFIRMATION_TIMEOUT: TimeDelta = TimeDelta::seconds(10);
/// How often a review may not be confirmed before the run fails.
const MAX_UNCONFIRMED: u8 = 3;

/// The result of a visit of a node.
pub(super) enum Visit {
    Stay(RunStep),
    Leave(WorkflowExit),
}

/// What an interrupt leads to.
enum Interruption {
    Exit(WorkflowExit),
    Act(Action),
    Wait,
}

impl Visit {
    pub(super) fn to(next: &str) -> Self {
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
                result => self.goto(url, on_fail, result, now),
            },
            Node::Act { action, next, on_fail } => match result {
                Some(StepResult::Acted) => Visit::to(next),
                // A page that did not answer may have done it; it must not be done twice.
                Some(StepResult::Unreadable | StepResult::Waited) => Visit::Leave(on_fail.clone()),
                Some(_) | None => self.stay(Command::Act(action.clone())),
            },
            Node::Branch { cases, settle_seconds, default } => {
                self.branch(cases, self.after(*settle_seconds), default, result, now)
            }
            Node::AwaitUser { .. } => self.await_user(node, result.as_ref(), now),
            Node::Collect { .. } => self.collect(node, result, now),
            Node::Review { text_key, timeout_seconds, confirm, next } => {
                let deadline = self.user_deadline(*timeout_seconds);
                self.review(text_key, deadline, (confirm.as_ref(), next), result, now)
            }
            Node::Done => Visit::Stay(self.end(self.done())),
            Node::Fail { code } => Visit::Leave(WorkflowExit::Fail(*code)),
        }
    }

    /// Returns the end with the collected data. It is a failure without a required field: the validation
    /// refuses definitions that lead to it, but one may have been published before it did.
    fn done(&self) -> End {
        let is_missing = |(name, field): (&String, &Field)| {
            field.required && !self.collected.data.contains_key(name)
        };
        if self.definition.output.iter().any(is_missing) {
            return End::Failed(ErrorCode::ExtractionFailed);
        }
        End::Done(self.collected.clone())
    }

    fn goto(
        &mut self,
        url: &str,
        on_fail: &WorkflowExit,
        result: Option<StepResult>,
        now: DateTime<Utc>,
    ) -> Visit {
        let definition = self.definition.clone();
        if custom_url::is_used_in(url)
            && self.custom_url.is_none()
            && let Some(custom) = &definition.custom_url
        {
            if let Some(StepResult::CustomUrl(text)) = result {
                self.custom_url = definition.custom_address(&text);
                self.hint_text_key = Some(custom.wrong_text_key.clone());
            }
            if self.custom_url.is_none() {
                let deadline = self.user_deadline(custom.timeout_seconds);
                if now >= deadline {
                    return Visit::Leave(WorkflowExit::Fail(ErrorCode::UserInputTimeout));
                }
                let key = self.hint_text_key.clone().unwrap_or_else(|| custom.text_key.clone());
                return self.ask(PromptKind::CustomUrl, key, deadline, Command::AskCustomUrl);
            }
            self.hint_text_key = None;
        }
        match self.expanded(url) {
            Some(url) => self.stay(Command::Goto { url }),
            None => Visit::Leave(on_fail.clone()),
        }
    }

    /// Returns a URL of the definition with the values of this run in place of the placeholders.
    pub(super) fn expanded(&self, url: &str) -> Option<String> {
        if url == custom_url::CUSTOM_URL {
            // Braces in it are its own.
            return self.custom_url().map(ToOwned::to_owned);
        }
        let url = custom_url::expand(url, self.custom_url.as_ref())?;
        expand_url(&url, |name| self.value(name))
    }

    fn branch(
        &mut self,
        cases: &[Case],
        deadline: DateTime<Utc>,
        default: &WorkflowExit,
        result: Option<StepResult>,
        now: DateTime<Utc>,
    ) -> Visit {
        let Some(StepResult::Seen(page)) = result else {
            return self.stay(Command::Watch);
        };
        match self.interrupt(&page, now) {
            Some(Interruption::Exit(exit)) => return Visit::Leave(exit),
            Some(Interruption::Act(action)) => return self.stay(Command::Act(action)),
            Some(Interruption::Wait) => return self.stay(Command::Watch),
            None => (),
        }
        let case = cases.iter().find(|case| page.settled && self.signals.holds(&case.when));
        match case {
            Some(case) => Visit::to(&case.next),
            None if now >= deadline => Visit::Leave(default.clone()),
            None => self.stay(Command::Watch),
        }
    }

    fn await_user(
        &mut self,
        node: &Node,
        result: Option<&StepResult>,
        now: DateTime<Utc>,
    ) -> Visit {
        let Node::AwaitUser {
            kind,
            text_key,
            timeout_seconds,
            until,
            hints,
            channel_hint,
            next,
            on_timeout,
        } = node
        else {
            return Visit::Stay(self.end(End::Failed(ErrorCode::WorkflowInvalid)));
        };
        if result.is_none() && kind.may_change_account() {
            self.forget_account();
        }
        if let Some(hint) = channel_hint
            && let Some(text) = self.texts.get(&hint.selector)
        {
            self.channel_hint = Some(hint.masked(text));
        }
        let mut command = Command::Watch;
        if let Some(StepResult::Seen(page)) = result {
            match self.interrupt(page, now) {
                Some(Interruption::Exit(exit)) => return Visit::Leave(exit),
                Some(Interruption::Act(action)) => command = Command::Act(action),
                Some(Interruption::Wait) => (),
                None => {
                    if let Some(exit) = self.wait_exit(until, hints, next, page) {
                        return Visit::Leave(exit);
                    }
                }
            }
        }
        let deadline = self.user_deadline(*timeout_seconds);
        if now >= deadline {
            return Visit::Leave(on_timeout.clone());
        }
        let text_key = self.hint_text_key.clone().unwrap_or_else(|| text_key.clone());
        self.ask(*kind, text_key, deadline, command)
    }

    /// Asks the applicant for consent until the deadline, and then has the page confirm what was agreed
    /// to.
    fn review(
        &mut self,
        text_key: &str,
        deadline: DateTime<Utc>,
        (confirm, next): (Option<&Confirmation>, &str),
        result: Option<StepResult>,
        now: DateTime<Utc>,
    ) -> Visit {
        self.collecting = true;
        match (result, confirm) {
            (Some(StepResult::Answered { share: true }), None) => return Visit::to(next),
            (Some(StepResult::Answered { share: true }), Some(_)) => {
                self.confirm_until = Some(now + CONFIRMATION_TIMEOUT);
                return self.stay(Command::Watch);
            }
            (Some(StepResult::Answered { share: false }), _) => {
                return Visit::Stay(self.end(End::Declined));
            }
            (result, Some(confirm)) if self.confirm_until.is_some() => {
                return self.confirm(confirm, result, next, now);
            }
            _ => (),
        }
        if now >= deadline {
            return Visit::Leave(WorkflowExit::Fail(ErrorCode::UserInputTimeout));
        }
        let (fields, unconfirmed) = (self.shared_fields(), !self.unconfirmed.is_empty());
        let command = Command::Consent { fields, unconfirmed };
        self.ask(PromptKind::Consent, text_key.to_owned(), deadline, command)
    }

    /// Goes on if what the applicant has agreed to share is still that of the page's account, and drops
    /// it if not.
    fn confirm(
        &mut self,
        confirm: &Confirmation,
        result: Option<StepResult>,
        next: &str,
        now: DateTime<Utc>,
    ) -> Visit {
        if let Some(StepResult::Seen(page)) = result
            && page.settled
        {
            if self.signals.holds(&confirm.when) {
                return Visit::to(next);
            }
            return self.not_confirmed(confirm, Some(page.url));
        }
        if self.confirm_until.is_some_and(|until| now >= until) {
            return self.not_confirmed(confirm, None);
        }
        self.stay(Command::Watch)
    }

    /// Drops what the applicant has agreed to share. The run takes the exit of the confirmation, and fails if
    /// the same review was not confirmed too often: where the signal does not hold on the last page that
    /// is read, the applicant would be asked again and again.
    fn not_confirmed(&mut self, confirm: &Confirmation, url: Option<String>) -> Visit {
        self.forget_account();
        if let Some(trace) = &mut self.trace {
            trace.push(TraceEvent::Unconfirmed { signal: confirm.when.clone(), url });
        }
        let count = self.unconfirmed.entry(self.node.clone()).or_default();
        *count = count.saturating_add(1);
        if *count >= MAX_UNCONFIRMED {
            return Visit::Leave(WorkflowExit::Fail(ErrorCode::UnexpectedPage));
        }
        Visit::Leave(confirm.otherwise.clone())
    }

    /// Returns the exit if the page ends the wait for the applicant.
    fn wait_exit(
        &mut self,
        until: &[String],
        hints: &[Hint],
        next: &str,
        page: &Observation,
    ) -> Option<WorkflowExit> {
        if page.settled && until.iter().any(|signal| self.signals.holds(signal)) {
            return Some(WorkflowExit::Next(next.to_owned()));
        }
        self.update_hints(hints, page)
    }

    /// Drops what was read of an account, because what follows may be read of another one. The browser
    /// keeps the responses that the page has received; those seen so far do not count any more. Responses to
    /// a sign-in that begins now are received later.
    fn forget_account(&mut self) {
        self.collected = Collected::default();
        self.variables.clear();
        self.forgotten_responses = self.newest_response;
    }

    /// Returns the collected fields in the order in which the applicant reads them.
    fn shared_fields(&self) -> Vec<SharedField> {
        let field = |(name, _): (&String, &Field)| {
            let value = self.collected.data.get(name)?.clone();
            Some(SharedField { name: name.clone(), value })
        };
        self.definition.ordered_output().filter_map(field).collect()
    }

    /// Returns what the first interrupt leads to whose signal holds on a settled page.
    fn interrupt(&mut self, page: &Observation, now: DateTime<Utc>) -> Option<Interruption> {
        if !page.settled {
            return None;
        }
        let definition = self.definition.clone();
        let waiting = self.retry_at.take();
        for (index, interrupt) in definition.interrupts.iter().enumerate() {
            if !self.signals.holds(&interrupt.when) {
                continue;
            }
            return Some(match &interrupt.then {
                InterruptTarget::Next(node) => Interruption::Exit(WorkflowExit::Next(node.clone())),
                InterruptTarget::Fail(code) => Interruption::Exit(WorkflowExit::Fail(*code)),
                InterruptTarget::Act(_) if self.interrupt_actions == MAX_INTERRUPT_ACTIONS => {
                    continue;
                }
                InterruptTarget::Act(action) => {
                    self.interrupt_actions += 1;
                    Interruption::Act(action.clone())
                }
                InterruptTarget::Retry(retry) => {
                    self.retry((index, retry), waiting.filter(|(other, _)| *other == index), now)
                }
            });
        }
        None
    }

    /// Waits for the next attempt of an interrupt, or makes it.
    fn retry(
        &mut self,
        (index, retry): (usize, &InterruptRetry),
        waiting: Option<(usize, DateTime<Utc>)>,
        now: DateTime<Utc>,
    ) -> Interruption {
        let made = self.retries.entry(index).or_default();
        if *made >= retry.times {
            return Interruption::Exit(retry.otherwise.clone());
        }
        let wait = TimeDelta::seconds(retry.after_seconds.into());
        let at = waiting.map_or(now + wait, |(_, at)| at);
        if now >= at {
            *made += 1;
            return Interruption::Exit(WorkflowExit::Next(retry.next.clone()));
        }
        self.retry_at = Some((index, at));
        Interruption::Wait
    }

    /// Counts how often each hint's signal newly appears, in the same document, in another one or by
    /// another response, and returns the exit of a hint that has appeared too often.
    fn update_hints(&mut self, hints: &[Hint], page: &Observation) -> Option<WorkflowExit> {
        self.hints.resize(hints.len(), HintState::default());
        let signals = &self.definition.signals;
        let evaluation = SignalEvaluation::new(signals, page, self.responses_before);
        for (hint, state) in hints.iter().zip(&mut self.hints) {
            let occurrence = evaluation.occurrence(&hint.when);
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

    pub(super) fn stay(&self, command: Command) -> Visit {
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
        let (deadline, hint) = (deadline.min(self.deadline), self.channel_hint.clone());
        let prompt = PendingPrompt { kind, text_key, deadline, hint };
        Visit::Stay(RunStep { shown: PublicPhase::Awaiting(prompt), command })
    }

    pub(super) fn end(&self, end: End) -> RunStep {
        let shown = if self.collecting { PublicPhase::Collecting } else { PublicPhase::Running };
        RunStep { shown, command: Command::End(end) }
    }
}
