//! The interpreter: where a run stands and what it has just learned, to what it wants next.
//! Pure: time is handed in, commands are handed out.

mod visit;

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use self::visit::Visit;
use super::{Definition, Observation, WorkflowExit};
use crate::{
    error_code::ErrorCode,
    session::{Collected, PendingPrompt},
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
pub enum StepResult {
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
pub enum PublicPhase {
    Running,
    Awaiting(PendingPrompt),
    Collecting,
}

/// One answer of the interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunStep {
    pub shown: PublicPhase,
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

/// How often a hint's signal has come up, and in which document it stands now.
#[derive(Debug, Clone, Copy, Default)]
struct Hinted {
    count: u8,
    stands: Option<u64>,
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
    pub fn next(&mut self, news: StepResult, now: DateTime<Utc>) -> RunStep {
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
                WorkflowExit::Fail(code) => return self.end(End::Failed(code)),
                WorkflowExit::Next(next) => {
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
}
