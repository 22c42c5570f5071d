//! Runs one workflow: the interpreter decides the next step, the browser carries it out, and the
//! session moves along.

mod prompts;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    definition_health::{RunEnd, RunFacts},
    error_code::ErrorCode,
    id::{PlatformId, SessionId},
    session::{DefinitionVersion, Event, Lease, Session},
    workflow::{Command, Definition, End, MIN_ABSENCE, Run, RunStep, StepResult, TraceEvent},
};
use ports::{
    browser::{Browser, BrowserError, CapturedPage, ObservedSignals},
    workflow_trace::WorkflowTrace,
};
use serde_json::{Map, Value};
use tokio::{
    sync::{Mutex, watch},
    time::Instant,
};

use self::prompts::RunMode;
use super::{
    fixture::{FixtureCapture, Moment, RecordedPage, masked_event},
    hub::LiveSession,
    nodes::Nodes,
};
use crate::{
    advance::{
        AdvanceError, BROWSER_FENCE, BROWSER_LEASE_TTL, LEASE_RENEW_INTERVAL, LEASE_RETRY_DELAY,
        SessionEngine,
    },
    attestations::Attestations,
    definition_statistics::RunStatistics,
};

/// Attempts of a page to lead elsewhere, after which the session fails: a page that goes on forever
/// cannot be used.
const MAX_REFUSED_NAVIGATIONS: u32 = 30;
/// How long a browser that is gone has to be found to have ended, before the run goes on.
const LOSS_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a browser waits for an applicant who left before it was up: for a reload or a network that
/// was lost for a moment. They have not seen the platform's page, and lose nothing with the browser.
pub const NO_SHOW_TTL: Duration = Duration::from_secs(30);

/// One run of a workflow, in one browser.
pub(crate) struct WorkflowRunner {
    pub(crate) engine: Arc<SessionEngine>,
    pub(crate) attestations: Arc<Attestations>,
    pub(crate) id: SessionId,
    pub(crate) lease: Lease,
    /// Until when the browser may be used unless the lease is renewed.
    pub(crate) fence: Instant,
    pub(crate) browser: Arc<dyn Browser>,
    pub(crate) live: Arc<LiveSession>,
    pub(crate) workflow: DefinitionVersion,
    pub(crate) definition: Arc<Definition>,
    pub(crate) platform: PlatformId,
    /// The address of the session that the partner gave.
    pub(crate) custom_url: Option<String>,
    pub(crate) began: DateTime<Utc>,
    /// Whether the run has data that the applicant has agreed to share. From then on only the store can keep
    /// it from its end.
    pub(crate) is_complete: AtomicBool,
    pub(crate) statistics: Arc<RunStatistics>,
    /// Publishes each node; dropped with the run.
    pub(crate) nodes: Nodes,
    /// For runs of authors alone.
    pub(crate) author: Option<Arc<AuthorTools>>,
}

/// What an author of a definition learns of a run. It has data of the applicant.
pub struct AuthorTools {
    pub trace: Arc<dyn WorkflowTrace>,
    /// Captures a fixture of the run.
    pub capture: Option<FixtureCapture>,
    /// The definition, each time that its author has changed it: the run then begins anew in the same
    /// browser, and does not end.
    pub reloads: Option<Mutex<watch::Receiver<Option<Arc<Definition>>>>>,
    /// For authors who choose what to read in the page itself: the browser while it runs, which then
    /// keeps all responses with JSON.
    pub browser: Option<watch::Sender<Option<Arc<dyn Browser>>>>,
}

/// Returns what the author learns of the end of a run; a failure is in the trace already.
fn completion(end: End) -> Option<TraceEvent> {
    match end {
        End::Done(collected) => {
            let data = Value::Object(collected.data.into_iter().collect());
            Some(TraceEvent::Completed { data: Some(data) })
        }
        End::Declined => Some(TraceEvent::Completed { data: None }),
        End::Failed(_) => None,
    }
}

/// Returns what was read of the page by the names of its elements, without those that are not there.
fn read_result(names: Vec<String>, values: Vec<Value>) -> StepResult {
    let found = names.into_iter().zip(values).filter(|(_, value)| !value.is_null());
    StepResult::Read(Value::Object(found.collect::<Map<_, _>>()))
}

/// Runs until the session or its browser has ended, and then removes the browser from the live
/// session.
pub(crate) async fn run_workflow(runner: WorkflowRunner) {
    let (engine, live) = (runner.engine.clone(), runner.live.clone());
    let (author, own) = (runner.author.clone(), runner.browser.clone());
    let (id, browser) = (runner.id, runner.lease.browser);
    // A task of its own: a panic fails the session at once, not when its lease has lapsed.
    let ended = tokio::spawn(run_to_end(runner)).await;
    if ended.is_err_and(|error| error.is_panic()) {
        tracing::error!(session.id = %id, "a workflow run panicked; its session fails");
        let retry_until = live.retry_until(engine.clock.now());
        let failed = Event::Failed { why: ErrorCode::InternalError, node: None, retry_until };
        log_unless_rejected(id, engine.advance(id, Some(browser), failed).await.map(drop));
    }
    live.state.send_modify(|state| {
        state.browser = None;
        state.prompt = None;
    });
    if let Some(author) = author.as_ref().and_then(|author| author.browser.as_ref()) {
        // Another run may have begun in another browser.
        author.send_if_modified(|running| {
            let is_own = running.as_ref().is_some_and(|running| Arc::ptr_eq(running, &own));
            running.take_if(|_| is_own).is_some()
        });
    }
    engine.hub.remove_if_unused(id);
}

async fn run_to_end(runner: WorkflowRunner) {
    runner.live.state.send_modify(|state| {
        state.browser = Some(runner.browser.clone());
        state.place = None;
    });
    let ended = tokio::select! {
        ended = runner.run_until_ended() => ended,
        // Also bounds how long a transition is tried again.
        () = runner.keep_lease() => Ok(()),
    };
    log_unless_rejected(runner.id, ended);
}

fn log_unless_rejected(id: SessionId, ended: Result<(), AdvanceError>) {
    match ended {
        // Rejected: the session has ended, or has another browser.
        Ok(()) | Err(AdvanceError::Rejected(_)) => (),
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            tracing::error!(session.id = %id, error, "failed to apply a transition; the run ends");
        }
    }
}

impl WorkflowRunner {
    /// Applies an event to the session. While the store fails, this is tried again: what the applicant has
    /// done so far is in the browser, and in this run.
    pub(super) async fn apply(&self, event: Event) -> Result<Session, AdvanceError> {
        self.engine.advance_with_retries(self.id, self.lease.browser, event).await
    }

    /// Runs until the workflow has ended, or something has happened that ends the run before.
    async fn run_until_ended(&self) -> Result<(), AdvanceError> {
        tokio::select! {
            ended = self.run_to_end() => ended,
            () = self.wait_for_loss() => {
                metrics::counter!("avouch_browsers_lost_total").increment(1);
                self.apply(Event::BrowserLost).await.map(drop)
            }
            () = self.wait_for_no_show() => {
                let id = self.id;
                tracing::info!(session.id = %id, "session {id} waits for its applicant, and gives its browser back");
                self.apply(Event::ApplicantAbsent).await.map(drop)
            }
            () = self.wait_for_abandonment() => {
                self.count(&RunFacts::default(), ErrorCode::UserInputTimeout);
                self.apply(self.failed(ErrorCode::UserInputTimeout)).await.map(drop)
            }
            () = self.wait_for_refused_navigations() => {
                self.count(&RunFacts::default(), ErrorCode::NavigationBlockedLimit);
                self.apply(self.failed(ErrorCode::NavigationBlockedLimit)).await.map(drop)
            }
        }
    }

    async fn run_to_end(&self) -> Result<(), AdvanceError> {
        let now = self.now();
        let custom_url = self.custom_url.as_deref();
        let mut run = Run::new(self.definition.clone(), now).with_custom_url(custom_url);
        if self.author.is_some() {
            run.record_trace();
        }
        if let Some(capture) = self.capture() {
            capture.restart();
        }
        if let Some(browser) = self.author.as_ref().and_then(|author| author.browser.as_ref()) {
            self.browser.observe_signals(self.observed(&self.definition));
            browser.send_replace(Some(self.browser.clone()));
        }
        let first = run.next(StepResult::Begin, now);
        self.nodes.publish(&run, 0);
        // The first page is loaded while the session's transitions are saved.
        let load = async {
            let Command::Goto { .. } = &first.command else { return Ok(None) };
            self.wait_for_applicant().await;
            Ok(Some(self.command(first.command.clone(), run.path().len()).await))
        };
        let ((), result) = tokio::try_join!(self.open(), load)?;
        self.run(run, first, result).await
    }

    /// Moves the session to the phase in which its workflow runs.
    async fn open(&self) -> Result<(), AdvanceError> {
        self.apply(Event::BrowserStarted).await?;
        self.wait_for_applicant().await;
        self.apply(Event::ApplicantConnected).await?;
        self.apply(Event::WorkflowOpened).await?;
        self.apply(Event::WorkflowLoaded { workflow: self.workflow.clone() }).await.map(drop)
    }

    /// Returns when the applicant is connected.
    async fn wait_for_applicant(&self) {
        let mut changes = self.live.state.subscribe();
        // An error means that the live session is gone, and with it this run.
        let _ = changes.wait_for(|state| state.present).await;
    }

    fn failed(&self, why: ErrorCode) -> Event {
        let retry_until = self.live.retry_until(self.engine.clock.now());
        Event::Failed { why, node: self.nodes.last(), retry_until }
    }

    /// Goes on from the first step, which is done already where there is a result of it.
    async fn run(
        &self,
        mut run: Run,
        first: RunStep,
        mut first_result: Option<StepResult>,
    ) -> Result<(), AdvanceError> {
        let mut definition = self.definition.clone();
        let mut published = run.path().len();
        let (mut step, mut mode) = (first, RunMode::Running);
        let mut has_watched = false;
        loop {
            let RunStep { shown, command } = step;
            let shown = shown.earlier(self.skipped());
            published = self.nodes.publish(&run, published);
            self.trace(run.take_trace());
            // The transitions that follow may have to be tried again, which the browser need not outlast.
            let is_complete = matches!(command, Command::End(End::Done(_))) && !self.reloads();
            self.is_complete.store(is_complete, Ordering::Relaxed);
            if command != Command::End(End::Declined) {
                mode = self.show(mode, &shown, &command, &definition).await?;
            }
            if let (Some(capture), Some(url)) = (self.capture(), run.custom_url()) {
                capture.custom_url(url);
            }
            let (is_watch, must_wait) = (command == Command::Watch, has_watched);
            let result = if let Some(result) = first_result.take() {
                Some(result)
            } else if let Command::End(end) = command {
                if let Some(capture) = self.capture() {
                    capture.end(run.path(), &end);
                }
                self.count_end(&run.facts(), &end);
                if !self.reloads() {
                    return self.end(end).await;
                }
                self.trace(completion(end).into_iter().collect());
                definition = self.reloaded().await;
                None
            } else {
                let execute = async {
                    if is_watch && must_wait {
                        self.browser.changed().await;
                    }
                    self.command(command, run.path().len()).await
                };
                tokio::select! {
                    result = execute => Some(result),
                    changed = self.reloaded() => {
                        definition = changed;
                        None
                    }
                }
            };
            has_watched = is_watch && result.is_some();
            if !self.live.state.borrow().present {
                run.applicant_away();
            }
            let now = self.now();
            let result = if let Some(result) = result {
                result
            } else {
                (run, published) = (self.restarted(&run, &definition), 0);
                StepResult::Begin
            };
            step = run.next(result, now);
        }
    }

    /// Returns a run of the author's changed definition in the same browser.
    fn restarted(&self, run: &Run, definition: &Arc<Definition>) -> Run {
        self.trace(vec![TraceEvent::Reloaded]);
        self.browser.observe_signals(self.observed(definition));
        if let Some(capture) = self.capture() {
            // A fixture is of a run from the beginning, in a new browser.
            capture.pause();
        }
        let now = self.now();
        let mut next = Run::new(definition.clone(), now).with_custom_url(run.custom_url());
        next.record_trace();
        next
    }

    /// Returns what the browser observes for runs of a definition.
    fn observed(&self, definition: &Definition) -> ObservedSignals {
        let all_json = self.author.as_ref().is_some_and(|author| author.browser.is_some());
        ObservedSignals { all_json, ..ObservedSignals::of(definition) }
    }

    fn trace(&self, events: Vec<TraceEvent>) {
        if let Some(author) = &self.author {
            for event in events {
                author.trace.record(&masked_event(event));
            }
        }
    }

    /// Returns whether the author may change the definition during the run.
    fn reloads(&self) -> bool {
        self.author.as_ref().is_some_and(|author| author.reloads.is_some())
    }

    /// Returns the definition when the author has changed it.
    async fn reloaded(&self) -> Arc<Definition> {
        if let Some(reloads) = self.author.as_ref().and_then(|author| author.reloads.as_ref()) {
            let mut reloads = reloads.lock().await;
            while reloads.changed().await.is_ok() {
                if let Some(definition) = reloads.borrow_and_update().clone() {
                    return definition;
                }
            }
        }
        std::future::pending().await
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

    /// Returns the time of the run: that of the clock, and what the partner has skipped.
    fn now(&self) -> DateTime<Utc> {
        self.engine.clock.now() + self.skipped()
    }

    fn skipped(&self) -> TimeDelta {
        let state = self.live.state.borrow();
        let session = state.session.as_ref();
        session.map(|session| session.state.skipped().span()).unwrap_or_default()
    }

    /// Counts the end of the run in the statistics of its definition.
    fn count_end(&self, facts: &RunFacts, end: &End) {
        match end {
            End::Done(_) => self.count_as(facts, &RunEnd::Succeeded),
            End::Declined => self.count_as(facts, &RunEnd::Abandoned),
            End::Failed(code) => self.count(facts, *code),
        }
    }

    fn count(&self, facts: &RunFacts, code: ErrorCode) {
        self.count_as(facts, &RunEnd::failed(code, self.nodes.last()));
    }

    fn count_as(&self, facts: &RunFacts, end: &RunEnd) {
        if self.platform.is_of_drafts() {
            return;
        }
        let definition = (self.platform, self.workflow.version.as_str());
        let now = self.engine.clock.now();
        self.statistics.record(definition, (facts, end), self.began, now);
    }

    fn capture(&self) -> Option<&FixtureCapture> {
        self.author.as_ref()?.capture.as_ref()
    }

    /// Carries a command out, and returns its result for the interpreter.
    async fn command(&self, command: Command, nodes: usize) -> StepResult {
        // Pages are captured for the record alone.
        let capture = self.capture().filter(|capture| capture.is_recording());
        let Some(capture) = capture else { return self.execute(command).await };
        let (result, page) = self.execute_captured(command.clone()).await;
        let moment = Moment { now: self.engine.clock.now(), nodes };
        capture.record(&*self.browser, &command, &result, page, moment).await;
        result
    }

    /// Carries a command out, and captures the page if the command looks at it. The result is that of the
    /// captured elements: a page that changes by itself would lead a replay elsewhere if they were of a moment
    /// later.
    async fn execute_captured(&self, command: Command) -> (StepResult, Option<RecordedPage>) {
        let is_watch = command == Command::Watch;
        let (names, reads): (Vec<_>, Vec<_>) = match command {
            Command::Watch => (vec![], vec![]),
            Command::ReadDom { elements } => elements.into_iter().unzip(),
            Command::Goto { .. }
            | Command::Fetch(_)
            | Command::ReadResponse { .. }
            | Command::Act(_)
            | Command::Consent { .. }
            | Command::AskCustomUrl
            | Command::End(_) => return (self.execute(command).await, None),
        };
        let is_typing = self.live.state.borrow().prompt.is_some();
        let CapturedPage { seen, values, tree } =
            match self.browser.capture(&reads, is_typing).await {
                Ok(page) => page,
                Err(error) => return (self.unanswered(error).await, None),
            };
        let result = if is_watch {
            StepResult::Seen(seen.clone())
        } else {
            match values {
                Ok(values) => read_result(names, values),
                Err(error) => self.unanswered(error).await,
            }
        };
        (result, Some(RecordedPage { seen, tree }))
    }

    async fn execute(&self, command: Command) -> StepResult {
        let done =
            match command {
                Command::Goto { url } => match self.browser.navigate(&url).await {
                    Err(BrowserError::Refused(_) | BrowserError::TimedOut) => {
                        Ok(StepResult::Unreachable)
                    }
                    arrived => arrived.map(|()| StepResult::Arrived),
                },
                Command::Watch => self.browser.observe().await.map(StepResult::Seen),
                Command::Fetch(request) => self.browser.fetch(&request).await.map(|fetched| {
                    let value = serde_json::from_str(&fetched.body).ok();
                    let read = value.filter(|_| fetched.status == request.expect_status);
                    read.map_or(StepResult::Unreadable, StepResult::Read)
                }),
                Command::ReadResponse { url, after } => {
                    self.browser.response(&url, after).await.map(|body| {
                        let value = body.and_then(|body| serde_json::from_str(&body).ok());
                        value.map_or(StepResult::Unreadable, StepResult::Read)
                    })
                }
                Command::ReadDom { elements } => {
                    let (names, reads): (Vec<_>, Vec<_>) = elements.into_iter().unzip();
                    self.browser.read(&reads).await.map(|values| read_result(names, values))
                }
                Command::Act(action) => self.browser.act(&action).await.map(|is_done| {
                    if is_done { StepResult::Acted } else { StepResult::Unreadable }
                }),
                Command::Consent { .. } => Ok(self.answer().await),
                Command::AskCustomUrl => Ok(self.entered_url().await),
                Command::End(_) => Ok(StepResult::Waited),
            };
        match done {
            Ok(result) => result,
            Err(error) => self.unanswered(error).await,
        }
    }

    /// Returns the result of a command that the browser did not carry out.
    async fn unanswered(&self, error: BrowserError) -> StepResult {
        match error {
            BrowserError::Gone => self.gone().await,
            BrowserError::TimedOut => StepResult::Waited,
            BrowserError::Refused(_) => StepResult::Unreadable,
        }
    }

    /// Leaves it to `wait_for_loss` to end this run where the browser has ended: a session that gets
    /// another browser must not fail first because this one answers nothing.
    async fn gone(&self) -> StepResult {
        if tokio::time::timeout(LOSS_TIMEOUT, self.browser.ended()).await.is_ok() {
            std::future::pending::<()>().await;
        }
        StepResult::Waited
    }

    /// Returns when the applicant has not been at the page since the run began, for [`NO_SHOW_TTL`].
    async fn wait_for_no_show(&self) {
        if tokio::time::timeout(NO_SHOW_TTL, self.wait_for_applicant()).await.is_ok() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns when the applicant has been away for [`MIN_ABSENCE`] while still needed and no step
    /// waits any longer: for a reload, a lost network, or to fetch a code.
    async fn wait_for_abandonment(&self) {
        let absence = MIN_ABSENCE.to_std().unwrap_or_default();
        let mut changes = self.live.state.subscribe();
        loop {
            let _ = changes.wait_for(|state| !state.present).await;
            let back = changes.wait_for(|state| state.present);
            let is_back = tokio::time::timeout(absence, back).await.is_ok();
            if is_back || self.has_all_data() {
                continue;
            }
            // The step ends itself at its deadline, or goes on and leads to another one.
            let _ = changes.wait_for(|state| state.present || state.prompt.is_none()).await;
            if !self.live.state.borrow().present && !self.has_all_data() {
                return;
            }
        }
    }

    /// Returns when the page has tried too often to lead to another host.
    async fn wait_for_refused_navigations(&self) {
        let mut seen = 0;
        while let Some(state) = self.browser.page_state(seen).await {
            if state.refused_navigations >= MAX_REFUSED_NAVIGATIONS && !self.has_all_data() {
                return;
            }
            seen = state.seq;
        }
        // The browser has ended; `wait_for_loss` decides what follows.
        std::future::pending::<()>().await;
    }

    /// Renews the browser's lease. Returns when the session has another browser, or none, or may have
    /// one soon because the lease could not be renewed: then this browser must not be used any more.
    async fn keep_lease(&self) {
        let mut fence = self.fence;
        loop {
            let began = Instant::now();
            if began >= fence {
                let id = self.id;
                tracing::error!(session.id = %id, "the lease of the browser of session {id} could not be renewed in time; the browser ends");
                return;
            }
            let expires_at = self.engine.clock.now() + BROWSER_LEASE_TTL;
            let renewal = self.engine.leases.renew(self.id, self.lease.browser, expires_at);
            let next = match tokio::time::timeout_at(fence, renewal).await {
                Ok(Ok(true)) => {
                    fence = began + BROWSER_FENCE;
                    LEASE_RENEW_INTERVAL
                }
                Ok(Ok(false)) => return,
                Ok(Err(error)) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(session.id = %self.id, error, "failed to renew the lease of a browser, retrying");
                    LEASE_RETRY_DELAY
                }
                // The database does not answer.
                Err(_) => continue,
            };
            tokio::time::sleep_until(fence.min(Instant::now() + next)).await;
        }
    }
}
