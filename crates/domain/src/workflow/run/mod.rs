//! The interpreter of a workflow: from the state of a run and the result of its last command it
//! decides the next command. It is pure: the caller passes time in and executes the commands.

mod collecting;
mod read_trace;
mod signals;
mod visit;

use std::{collections::BTreeMap, sync::Arc};

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use serde_json::Value;

use self::{collecting::PageProgress, signals::SignalStates, visit::Visit};
use super::{
    Action, CsrfHeader, Definition, ElementChoice, ElementContent, Method, Node, Observation,
    TraceEvent, WorkflowExit, condition::Occurrence, custom_url::CustomAddress,
};
use crate::{
    definition_health::RunFacts,
    error_code::ErrorCode,
    session::{Collected, PendingPrompt},
};

/// A command of a run, to be executed in the browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    Goto {
        url: String,
    },
    /// Observe the page: at once, or when it has changed, or after a short time.
    Watch,
    /// Make a request in the page, and read the JSON of its response.
    Fetch(PageFetch),
    /// Read the body of the newest response whose path matches and whose number is higher than `after`.
    ReadResponse {
        url: String,
        after: u64,
    },
    /// Read elements of the page, each under a name.
    ReadDom {
        elements: BTreeMap<String, ElementRead>,
    },
    /// Do something in the page.
    Act(Action),
    /// Ask the applicant to share these fields, and report the answer, or that time has passed.
    Consent {
        fields: Vec<SharedField>,
        /// Whether the applicant has agreed before in this run, and the page did not confirm it: what
        /// they agreed to was dropped.
        unconfirmed: bool,
    },
    /// Ask the applicant for the address that the session opens, and report it, or that time has
    /// passed.
    AskCustomUrl,
    End(End),
}

/// A request that is made in the page, with its cookies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageFetch {
    pub url: String,
    pub method: Method,
    pub headers: BTreeMap<String, String>,
    pub csrf: Option<CsrfHeader>,
    /// JSON.
    pub body: Option<String>,
    pub expect_status: u16,
    pub max_bytes: u32,
}

/// An element that is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ElementRead {
    /// Empty in an object or a row for the element of the object or row itself.
    pub selector: String,
    pub content: ReadContent,
    pub choice: ElementChoice,
}

/// What is read of an element.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ReadContent {
    /// A text.
    Value(ElementContent),
    /// An object with what is read of elements in it.
    Members(BTreeMap<String, ElementRead>),
    /// An array with an object for each of the first `max` elements in it that `each` matches. If
    /// nothing matches the selector of the element, it is [`ReadContent::NO_LIST`] if a visible element
    /// of the page matches `empty_when`, and else null.
    Rows {
        each: String,
        empty_when: Option<String>,
        members: BTreeMap<String, ElementRead>,
        max: usize,
    },
}

impl ReadContent {
    /// What is read in place of rows where the page has what it shows in place of an empty list.
    pub const NO_LIST: &str = "noList";
}

impl ElementRead {
    /// Reads the text of the first element that a selector matches.
    #[must_use]
    pub fn text(selector: &str) -> Self {
        let content = ReadContent::Value(ElementContent::Text);
        let choice = ElementChoice::First;
        Self { selector: selector.to_owned(), content, choice }
    }
}

impl PageFetch {
    /// Gets a JSON document of at most `max_bytes`.
    #[must_use]
    pub fn get(url: &str, max_bytes: u32) -> Self {
        Self {
            url: url.to_owned(),
            method: Method::Get,
            headers: BTreeMap::new(),
            csrf: None,
            body: None,
            expect_status: 200,
            max_bytes,
        }
    }
}

/// A field that the applicant sees before sharing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedField {
    /// Its name in the output.
    pub name: String,
    pub value: Value,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    Done(Collected),
    Declined,
    Failed(ErrorCode),
}

/// The result of the last command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepResult {
    Begin,
    Arrived,
    Unreachable,
    Seen(Observation),
    /// A JSON document; for the DOM, an object with what was read, by the names of the elements.
    Read(Value),
    Unreadable,
    /// The action was done. If there was no element for it, the result is `Unreadable`.
    Acted,
    Answered {
        share: bool,
    },
    /// The address that the applicant entered.
    CustomUrl(String),
    /// Nothing happened, but time has passed: also if the page did not answer a command in time.
    Waited,
}

/// The phase of a run that partners and applicants see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublicPhase {
    Running,
    Awaiting(PendingPrompt),
    Collecting,
}

impl PublicPhase {
    /// Returns the phase with a deadline that is earlier by a time.
    #[must_use]
    pub fn earlier(self, by: TimeDelta) -> Self {
        match self {
            Self::Awaiting(prompt) => {
                Self::Awaiting(PendingPrompt { deadline: prompt.deadline - by, ..prompt })
            }
            Self::Running | Self::Collecting => self,
        }
    }
}

/// A step of the interpreter: the public phase and the next command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunStep {
    pub shown: PublicPhase,
    pub command: Command,
}

/// The time that an applicant has who leaves the page during a step, for example to fetch a code on a
/// phone that suspends pages in the background.
pub const MIN_ABSENCE: TimeDelta = TimeDelta::minutes(10);

/// A run of a definition for one session.
#[derive(Debug, Clone)]
pub struct Run {
    definition: Arc<Definition>,
    /// The name of the current node.
    node: String,
    entered_at: DateTime<Utc>,
    /// Whether the applicant has been away since the node was entered.
    was_away: bool,
    /// The time at which the run ends at the latest.
    deadline: DateTime<Utc>,
    remaining_steps: u16,
    attempts: u8,
    pages: PageProgress,
    hints: Vec<HintState>,
    /// The number of the newest response of any observation.
    newest_response: u64,
    /// The number of the newest response when the node was entered; hints are about later ones.
    responses_before: u64,
    /// The number of the newest response when an account was last forgotten; signals and fields are about
    /// later ones.
    forgotten_responses: u64,
    /// The key of the hint's text that is shown in place of the node's own.
    hint_text_key: Option<String>,
    custom_url: Option<CustomAddress>,
    /// The texts of the last observed page.
    texts: BTreeMap<String, String>,
    /// Where the platform has sent a code, since the node was entered.
    channel_hint: Option<String>,
    signals: SignalStates,
    /// Whether each field that was looked for was read.
    fields_read: BTreeMap<String, bool>,
    collecting: bool,
    collected: Collected,
    /// Values for later URLs and requests.
    variables: BTreeMap<String, Value>,
    /// Actions of interrupts since the node was entered.
    interrupt_actions: u8,
    /// The number of attempts that each interrupt has made, by its index.
    retries: BTreeMap<usize, u8>,
    /// The interrupt that waits before its next attempt, and the time of the attempt.
    retry_at: Option<(usize, DateTime<Utc>)>,
    /// The time until which what the applicant agreed to must be confirmed by the page.
    pub(super) confirm_until: Option<DateTime<Utc>>,
    /// How often each review was not confirmed, by the name of its node.
    unconfirmed: BTreeMap<String, u8>,
    path: Vec<String>,
    /// What happened since it was taken; `None` if it is not recorded.
    trace: Option<Vec<TraceEvent>>,
    /// The last observation in the trace.
    traced_page: Option<TraceEvent>,
}

/// How often a hint's signal has appeared, and by what it holds now.
#[derive(Debug, Clone, Copy, Default)]
struct HintState {
    count: u8,
    occurrence: Option<Occurrence>,
}

impl Run {
    /// Creates a run at the start of a definition.
    #[must_use]
    pub fn new(definition: Arc<Definition>, now: DateTime<Utc>) -> Self {
        let budgets = definition.budgets;
        Self {
            node: definition.start.clone(),
            path: vec![definition.start.clone()],
            entered_at: now,
            was_away: false,
            deadline: now + TimeDelta::seconds(budgets.total_seconds.into()),
            remaining_steps: budgets.steps,
            attempts: 0,
            pages: PageProgress::default(),
            hints: vec![],
            newest_response: 0,
            responses_before: 0,
            forgotten_responses: 0,
            hint_text_key: None,
            custom_url: None,
            texts: BTreeMap::new(),
            channel_hint: None,
            signals: SignalStates::new(&definition.signals),
            fields_read: BTreeMap::new(),
            collecting: false,
            collected: Collected::default(),
            variables: BTreeMap::new(),
            interrupt_actions: 0,
            retries: BTreeMap::new(),
            retry_at: None,
            confirm_until: None,
            unconfirmed: BTreeMap::new(),
            trace: None,
            traced_page: None,
            definition,
        }
    }

    /// Gives the run the address that the partner gave, so that the applicant is not asked for it. An
    /// address that the definition does not allow is ignored.
    #[must_use]
    pub fn with_custom_url(mut self, url: Option<&str>) -> Self {
        self.custom_url = url.and_then(|url| self.definition.custom_address(url));
        self
    }

    /// Returns the address that the session gave, or that the applicant entered.
    #[must_use]
    pub fn custom_url(&self) -> Option<&str> {
        self.custom_url.as_ref().map(CustomAddress::as_str)
    }

    /// Records from now on what the run sees and decides.
    pub fn record_trace(&mut self) {
        let entered = TraceEvent::Entered { node: self.node.clone() };
        self.trace.get_or_insert_with(|| vec![entered]);
    }

    /// Returns what happened since the last call.
    pub fn take_trace(&mut self) -> Vec<TraceEvent> {
        self.trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Returns the names of the nodes entered so far, in order.
    #[must_use]
    pub fn path(&self) -> &[String] {
        &self.path
    }

    /// Records that the applicant is away. A node that waits for the applicant then waits for at least
    /// [`MIN_ABSENCE`], within the run's own deadline.
    pub const fn applicant_away(&mut self) {
        self.was_away = true;
    }

    /// Processes the result of the last command and returns the next step.
    pub fn next(&mut self, result: StepResult, now: DateTime<Utc>) -> RunStep {
        let step = self.advance(result, now);
        if let (Some(trace), Command::End(End::Failed(code))) = (&mut self.trace, &step.command) {
            trace.push(TraceEvent::Failed { code: *code });
        }
        step
    }

    fn advance(&mut self, result: StepResult, now: DateTime<Utc>) -> RunStep {
        if let StepResult::Seen(page) = &result {
            let newest = page.responses.iter().map(|response| response.number).max();
            self.newest_response = self.newest_response.max(newest.unwrap_or_default());
            self.texts.clone_from(&page.texts);
            // The page that still loads is of interest to authors only: no signal counts on it.
            if page.settled || self.trace.is_some() {
                let after = self.forgotten_responses;
                self.signals.update(&self.definition.signals, page, after);
            } else {
                self.signals.clear();
            }
        }
        self.trace_result(&result);
        let mut result = Some(result);
        // Each iteration enters a node, so that the budget of steps bounds the loop.
        loop {
            if now >= self.deadline {
                return self.end(End::Failed(ErrorCode::UserInputTimeout));
            }
            let definition = self.definition.clone();
            let Some(node) = definition.nodes.get(&self.node) else {
                return self.end(End::Failed(ErrorCode::WorkflowInvalid));
            };
            let exit = match self.visit(node, result.take(), now) {
                Visit::Stay(step) => return step,
                Visit::Leave(exit) => exit,
            };
            match exit {
                WorkflowExit::Fail(code) => return self.end(End::Failed(code)),
                WorkflowExit::Next(next) => {
                    let Some(remaining) = self.remaining_steps.checked_sub(1) else {
                        return self.end(End::Failed(ErrorCode::UnexpectedPage));
                    };
                    self.remaining_steps = remaining;
                    self.enter(next, now);
                }
            }
        }
    }

    /// Returns which signals held and which fields were read so far.
    #[must_use]
    pub fn facts(&self) -> RunFacts {
        let signals = self.signals.ever(&self.definition.signals);
        RunFacts { signals, fields: self.fields_read.clone() }
    }

    fn trace_result(&mut self, result: &StepResult) {
        let node = self.definition.nodes.get(&self.node);
        let needs_answer = matches!(node, Some(Node::Act { .. } | Node::Collect { .. }));
        let Some(trace) = &mut self.trace else { return };
        match result {
            StepResult::Seen(page) => {
                let signals = self.signals.now(&self.definition.signals);
                let url = page.url.clone();
                let event = TraceEvent::Observed { url, settled: page.settled, signals };
                if self.traced_page.as_ref() != Some(&event) {
                    trace.push(event.clone());
                    self.traced_page = Some(event);
                }
            }
            // There is no further page.
            StepResult::Unreadable if self.pages.is_acting() => (),
            StepResult::Unreadable => trace.push(TraceEvent::Unreadable),
            StepResult::Waited if needs_answer => trace.push(TraceEvent::Unreadable),
            StepResult::Unreachable => trace.push(TraceEvent::Unreachable),
            StepResult::Begin
            | StepResult::Arrived
            | StepResult::Read(_)
            | StepResult::Acted
            | StepResult::Answered { .. }
            | StepResult::CustomUrl(_)
            | StepResult::Waited => (),
        }
    }

    fn enter(&mut self, next: String, now: DateTime<Utc>) {
        if let Some(trace) = &mut self.trace {
            trace.push(TraceEvent::Entered { node: next.clone() });
            // What the node sees first is of interest, also if it is the same page.
            self.traced_page = None;
        }
        self.path.push(next.clone());
        self.node = next;
        self.entered_at = now;
        self.was_away = false;
        self.attempts = 0;
        self.pages = PageProgress::default();
        self.interrupt_actions = 0;
        self.retry_at = None;
        self.confirm_until = None;
        self.hints.clear();
        self.responses_before = self.newest_response;
        self.hint_text_key = None;
        self.channel_hint = None;
    }
}
