//! Conducts one run: the interpreter says what comes next, the browser does it, the session moves.

use std::{sync::Arc, time::Duration};

use domain::{
    error_code::ErrorCode,
    id::SessionId,
    request::Attestation,
    session::{DefinitionVersion, Event, Lease, PendingPrompt, Session},
    workflow::{
        Command, Definition, End, PromptKind, PublicPhase, Run, RunStep, SharedField, StepResult,
    },
};
use ports::{
    browser::{Browser, BrowserError},
    driving::Prompt,
};
use serde_json::{Map, Value};

use super::{hub::LiveSession, nodes::Nodes};
use crate::advance::{AdvanceError, BROWSER_LEASE_TTL, Core, LEASE_RENEW_INTERVAL};

/// How long the applicant may be away: a reload, a lost network, the way to the phone.
const ABSENCE_TIMEOUT: Duration = Duration::from_secs(90);
/// How long the answer to the question for consent is waited for before time is checked.
const ANSWER_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// One run and all that it needs.
pub(crate) struct WorkflowRunner {
    pub(crate) core: Arc<Core>,
    pub(crate) id: SessionId,
    pub(crate) lease: Lease,
    pub(crate) browser: Arc<dyn Browser>,
    pub(crate) room: Arc<LiveSession>,
    pub(crate) workflow: DefinitionVersion,
    pub(crate) definition: Arc<Definition>,
    /// Is told of each node; dropped with the run.
    pub(crate) nodes: Nodes,
}

/// Where the session stands, as this run has moved it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RunMode {
    Running,
    Collecting,
    Awaiting(PromptKind, ResumeMode),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ResumeMode {
    Running,
    Collecting,
}

/// Runs until the session or its browser has ended. Whatever ends it, the room is cleared.
pub(crate) async fn run_workflow(conductor: WorkflowRunner) {
    conductor.room.state.send_modify(|inside| {
        inside.browser = Some(conductor.browser.clone());
        inside.place = None;
    });
    let ended = tokio::select! {
        ended = conductor.run_to_end() => ended,
        () = conductor.wait_for_loss() => conductor.apply(Event::BrowserLost).await.map(drop),
        () = conductor.wait_for_abandonment() => {
            conductor.apply(conductor.failed(ErrorCode::UserInputTimeout)).await.map(drop)
        }
        () = conductor.keep_lease() => Ok(()),
    };
    match ended {
        // Late news of a session that has ended or gone on without us.
        Ok(()) | Err(AdvanceError::Rejected(_)) => (),
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            tracing::error!(session.id = %conductor.id, error, "a run broke off");
        }
    }
    conductor.room.state.send_modify(|inside| {
        inside.browser = None;
        inside.prompt = None;
    });
    conductor.core.hub.leave(conductor.id);
}

impl WorkflowRunner {
    pub(super) async fn apply(&self, event: Event) -> Result<Session, AdvanceError> {
        self.core.advance(self.id, Some(self.lease.browser), event).await
    }

    async fn run_to_end(&self) -> Result<(), AdvanceError> {
        let mut run = Run::new(self.definition.clone(), self.core.clock.now());
        let first = run.next(StepResult::Begin, self.core.clock.now());
        self.nodes.note(&run, 0);
        // A page that is loaded while the session's moves are saved is there sooner.
        let going = async {
            let Command::Goto { .. } = &first.command else { return Ok(None) };
            self.wait_for_applicant().await;
            Ok(Some(self.command(first.command.clone()).await))
        };
        let ((), news) = tokio::try_join!(self.open(), going)?;
        self.run(run, first, news).await
    }

    /// Moves the session to where its workflow runs.
    async fn open(&self) -> Result<(), AdvanceError> {
        self.apply(Event::BrowserStarted).await?;
        self.wait_for_applicant().await;
        self.apply(Event::ApplicantConnected).await?;
        self.apply(Event::WorkflowOpened).await?;
        self.apply(Event::WorkflowLoaded { workflow: self.workflow.clone() }).await.map(drop)
    }

    /// Comes back when the applicant is there.
    async fn wait_for_applicant(&self) {
        let mut inside = self.room.state.subscribe();
        // An error means that the room is gone, and with it this run.
        let _ = inside.wait_for(|inside| inside.present).await;
    }

    fn failed(&self, why: ErrorCode) -> Event {
        Event::Failed { why, node: self.nodes.last() }
    }

    /// Goes on from the first turn, which is done already where there is news of it.
    async fn run(
        &self,
        mut run: Run,
        first: RunStep,
        mut done: Option<StepResult>,
    ) -> Result<(), AdvanceError> {
        let mut noted = run.path().len();
        let (mut turn, mut mode) = (first, RunMode::Running);
        let mut watched = false;
        loop {
            let RunStep { shown, command } = turn;
            noted = self.nodes.note(&run, noted);
            if command != Command::End(End::Declined) {
                mode = self.show(mode, &shown, &command, &self.definition).await?;
            }
            if watched && command == Command::Watch {
                self.browser.changed().await;
            }
            watched = command == Command::Watch;
            if let Command::End(end) = command {
                return self.end(end).await;
            }
            let news = match done.take() {
                Some(news) => news,
                None => self.command(command).await,
            };
            turn = run.next(news, self.core.clock.now());
        }
    }

    async fn end(&self, end: End) -> Result<(), AdvanceError> {
        let (event, collected) = match end {
            End::Done(collected) => {
                (Event::DataCollected { collected: collected.clone() }, Some(collected))
            }
            End::Declined => (Event::ConsentDeclined, None),
            End::Failed(why) => (self.failed(why), None),
        };
        let session = self.apply(event).await?;
        match collected {
            Some(collected) if !session.state.is_closed() => self.attest(&collected).await,
            _ => Ok(()),
        }
    }

    /// Has the browser do something, and puts what came of it into words.
    async fn command(&self, command: Command) -> StepResult {
        let done = match command {
            Command::Goto { url } => match self.browser.navigate(&url).await {
                Err(BrowserError::Refused(_) | BrowserError::TimedOut) => {
                    Ok(StepResult::Unreachable)
                }
                arrived => arrived.map(|()| StepResult::Arrived),
            },
            Command::Watch => self.browser.observe().await.map(StepResult::Seen),
            Command::Fetch { url, expect_status, max_bytes } => {
                self.browser.fetch(&url, max_bytes).await.map(|fetched| {
                    let value = serde_json::from_str(&fetched.body).ok();
                    let read = value.filter(|_| fetched.status == expect_status);
                    read.map_or(StepResult::Unreadable, StepResult::Read)
                })
            }
            Command::ReadResponse { url } => self.browser.response(&url).await.map(|body| {
                let value = body.and_then(|body| serde_json::from_str(&body).ok());
                value.map_or(StepResult::Unreadable, StepResult::Read)
            }),
            Command::ReadDom { selectors } => self.browser.texts(&selectors).await.map(|texts| {
                let found = selectors.into_iter().zip(texts);
                let found = found.filter_map(|(s, text)| Some((s, Value::from(text?))));
                StepResult::Read(Value::Object(found.collect::<Map<_, _>>()))
            }),
            Command::Consent { .. } => Ok(self.answer().await),
            Command::End(_) => Ok(StepResult::Waited),
        };
        done.unwrap_or_else(|error| match error {
            // The end of the browser ends this run in another place.
            BrowserError::Gone | BrowserError::TimedOut => StepResult::Waited,
            BrowserError::Refused(_) => StepResult::Unreadable,
        })
    }

    /// Moves the session to where the run is, and the page with it.
    async fn show(
        &self,
        mode: RunMode,
        shown: &PublicPhase,
        command: &Command,
        definition: &Definition,
    ) -> Result<RunMode, AdvanceError> {
        let mut mode = mode;
        if let (RunMode::Awaiting(kind, before), shown) = (mode, shown) {
            let same = matches!(shown, PublicPhase::Awaiting(ask) if ask.kind == kind);
            if !same {
                self.apply(Event::InputGiven).await?;
                mode = match before {
                    ResumeMode::Running => RunMode::Running,
                    ResumeMode::Collecting => RunMode::Collecting,
                };
            }
        }
        match (mode, shown) {
            (RunMode::Running, PublicPhase::Collecting) => {
                self.apply(Event::CollectionStarted).await?;
                Ok(RunMode::Collecting)
            }
            (RunMode::Running | RunMode::Collecting, PublicPhase::Awaiting(ask)) => {
                self.apply(Event::InputNeeded { ask: ask.clone() }).await?;
                self.prompt(ask, command, definition);
                let before = if mode == RunMode::Running {
                    ResumeMode::Running
                } else {
                    ResumeMode::Collecting
                };
                Ok(RunMode::Awaiting(ask.kind, before))
            }
            (RunMode::Awaiting(..), PublicPhase::Awaiting(ask)) => {
                self.prompt(ask, command, definition);
                Ok(mode)
            }
            (mode, _) => Ok(mode),
        }
    }

    fn prompt(&self, ask: &PendingPrompt, command: &Command, definition: &Definition) {
        self.room.state.send_if_modified(|inside| {
            let language = inside.language.as_deref();
            let wanted = inside.session.as_ref().map(|session| session.terms.attestation);
            let witnessed = matches!(command, Command::Consent { .. })
                && wanted == Some(Attestation::Wanted)
                && definition.opens_all();
            let share = if let Command::Consent { fields } = command {
                fields.iter().map(|field| labelled(field, definition, language)).collect()
            } else {
                vec![]
            };
            let text = definition.text(language, &ask.text_key).to_owned();
            let (kind, deadline) = (ask.kind, ask.deadline);
            inside.ask(Prompt { number: 0, kind, text, deadline, share, witnessed })
        });
    }

    async fn answer(&self) -> StepResult {
        let mut changes = self.room.state.subscribe();
        let answered = changes.wait_for(|inside| inside.consent().is_some());
        match tokio::time::timeout(ANSWER_POLL_INTERVAL, answered).await {
            Ok(Ok(inside)) => {
                inside.consent().map_or(StepResult::Waited, |share| StepResult::Answered { share })
            }
            Ok(Err(_)) | Err(_) => StepResult::Waited,
        }
    }

    /// Comes back when the applicant has been away for too long, and is still needed.
    async fn wait_for_abandonment(&self) {
        let mut inside = self.room.state.subscribe();
        loop {
            let _ = inside.wait_for(|inside| !inside.present).await;
            let back = inside.wait_for(|inside| inside.present);
            if tokio::time::timeout(ABSENCE_TIMEOUT, back).await.is_err() && !self.is_verifying() {
                return;
            }
        }
    }

    /// Comes back when the session has another browser, or none.
    async fn keep_lease(&self) {
        loop {
            let until = self.core.clock.now() + BROWSER_LEASE_TTL;
            match self.core.sessions.renew(self.id, self.lease.browser, until).await {
                Ok(true) => (),
                Ok(false) => return,
                Err(error) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(session.id = %self.id, error, "a lease was not renewed");
                }
            }
            tokio::time::sleep(LEASE_RENEW_INTERVAL).await;
        }
    }
}

fn labelled(
    field: &SharedField,
    definition: &Definition,
    language: Option<&str>,
) -> (String, String) {
    let value = field.value.as_str().map_or_else(|| field.value.to_string(), str::to_owned);
    (definition.text(language, &field.label_key).to_owned(), value)
}
