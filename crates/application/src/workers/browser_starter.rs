//! Starts the browser of a session, in the session's turn.

use std::{
    convert::Infallible,
    sync::{Arc, atomic::AtomicBool},
};

use chrono::TimeDelta;
use domain::{
    error_code::ErrorCode,
    fairness::{Tenant, Turn},
    id::{PlatformId, SessionId},
    session::{DefinitionVersion, Event, Lease, Session, State},
    workflow::Definition,
};
use ports::{
    StoreError,
    browser::{
        Browser, BrowserPool, BrowserSpec, Device, FrameRedactor, ObservedSignals, StartError,
    },
    catalogue::Catalogue,
    key_store::KeyStore,
    outbox::{ClaimOutcome, OutboxClaim},
    places::Places,
    recording::{RecordingQueue, RecordingVault},
};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::log_error;
use crate::{
    advance::{
        AdvanceError, BROWSER_FENCE, BROWSER_LEASE_TTL, LEASE_RENEW_INTERVAL, LEASE_RETRY_DELAY,
        SessionEngine,
    },
    attestations::Attestations,
    browser_turns::{
        ABSENT_RETRY_DELAY, BrowserTurns, MAX_START_FAILURES, START_RETRY_DELAY, delay_at,
    },
    definition_statistics::RunStatistics,
    drafts::DraftSessions,
    live::{AuthorTools, LiveSession, Recorder, WorkflowRunner, nodes, run_workflow},
    session_traces::BrowserStart,
};

/// Starts browsers, and runs the workflows of their sessions.
pub struct BrowserStarter {
    pub engine: Arc<SessionEngine>,
    pub catalogue: Arc<dyn Catalogue>,
    pub keys: Arc<dyn KeyStore>,
    pub places: Arc<dyn Places>,
    pub pool: Arc<dyn BrowserPool>,
    pub turns: Arc<BrowserTurns>,
    pub attestations: Arc<Attestations>,
    pub vault: Arc<dyn RecordingVault>,
    pub recordings: Arc<dyn RecordingQueue>,
    pub frames: Arc<dyn FrameRedactor>,
    /// How long a session waits for a browser.
    pub queue_timeout: TimeDelta,
    /// For a process that runs nothing but sessions of one author.
    pub author: Option<Arc<AuthorTools>>,
    pub drafts: Arc<DraftSessions>,
    pub statistics: Arc<RunStatistics>,
    pub tasks: TaskTracker,
}

impl BrowserStarter {
    /// Starts a session's browser, or says when to try again.
    pub(super) async fn start(
        &self,
        claim: &OutboxClaim,
        lease: Lease,
    ) -> Result<ClaimOutcome, AdvanceError> {
        let (engine, id) = (&self.engine, claim.session);
        let session = engine.sessions.find_unscoped(id).await?.ok_or(AdvanceError::NotFound)?;
        let waits = |state: &State| matches!(state, State::Initializing { lease: own, .. } if own.browser == lease.browser);
        if !waits(&session.state) {
            self.turns.ended(lease.browser);
            return Ok(ClaimOutcome::Done);
        }
        let found = self.catalogue.definition_of(&session).await?;
        let Some((workflow, definition)) = found else {
            let why = ErrorCode::WorkflowNotFound;
            let failed = Event::Failed { why, node: None, retry_until: None };
            engine.advance(id, Some(lease.browser), failed).await?;
            return Ok(ClaimOutcome::Done);
        };
        let Some(key) = self.keys.key(session.owner).await? else {
            return Err(AdvanceError::NotFound);
        };
        let tenant = Tenant { team: key.team, environment: session.terms.environment };
        // After what may fail each time: then nobody renews the lease, and the attempts end with it.
        let mut fence = self.renew(id, lease).await?;
        if fence.is_none() {
            self.turns.ended(lease.browser);
            return Ok(ClaimOutcome::Done);
        }
        // From here on nothing is awaited until the session has its turn or waits: `Draining` hands over those
        // that wait, and none whose turn comes meanwhile.
        if engine.hub.is_draining() {
            return self.withdraw(id, lease).await;
        }
        let now = engine.clock.now();
        // After a browser was lost, a session may come back long after it has waited.
        let since = session.state.waiting_since();
        if let Some(since) = since.filter(|since| now - *since < self.queue_timeout) {
            self.turns.arrive(lease.browser, tenant, since, now);
        }
        let live = engine.hub.find(id).filter(|live| live.state.borrow().present);
        let Some(live) = live else { return self.hold(claim, lease, tenant).await };
        let turn = self.turns.ask(lease.browser, tenant, engine.clock.now());
        if turn != Turn::Now {
            return self.wait(claim, lease, &live, turn).await;
        }
        // Neither is it shown a place any more, nor handed over.
        live.state.send_if_modified(|state| state.place.take().is_some());
        let device = live.state.borrow().device;
        let spec = self.spec(lease, &session, &definition, device);
        let (at, began) = (engine.clock.now(), Instant::now());
        let started = tokio::select! {
            started = self.pool.start(spec) => started,
            never = self.keep_lease(id, lease, &mut fence) => match never {},
        };
        if let Some(outcome) = measure_start(&started, began) {
            let is_first = live.state.borrow().failed_starts == 0;
            let (took, error) = (began.elapsed(), outcome.err());
            let browser = BrowserStart { at, took, is_first, error };
            engine.traces.browser_started(&session, &browser);
        }
        // The applicant may have left while it started, or left and come back.
        let live = engine.hub.find(id).unwrap_or(live);
        match started {
            Ok(browser) => {
                let took = began.elapsed().as_millis();
                tracing::info!(session.id = %id, "a browser for session {id} was up in {took} ms");
                let fence = fence.filter(|fence| Instant::now() < *fence);
                let Some(fence) = fence else { return Ok(self.discard(id, lease).await) };
                let platform = (session.terms.platform, session.terms.custom_url);
                self.run((claim, lease, fence), browser, (workflow, definition), platform);
                Ok(ClaimOutcome::Done)
            }
            Err(error) => self.not_started(claim, lease, tenant, &live, error).await,
        }
    }

    /// Does not start a session's browser, since the process is to stop.
    async fn withdraw(&self, id: SessionId, lease: Lease) -> Result<ClaimOutcome, AdvanceError> {
        let engine = &self.engine;
        let waits = |live: Arc<LiveSession>| live.state.borrow().place.is_some();
        if engine.hub.find(id).is_some_and(waits) {
            // `Draining` hands it over, with its place.
            return Ok(ClaimOutcome::RetryAt(engine.clock.now() + START_RETRY_DELAY));
        }
        engine.advance(id, Some(lease.browser), Event::StartWithdrawn).await?;
        self.turns.ended(lease.browser);
        Ok(ClaimOutcome::Done)
    }

    /// Renews the lease of a session's browser. Returns until when the browser may be used unless the lease
    /// is renewed again; `None` if the session has ended, or has another browser.
    async fn renew(&self, id: SessionId, lease: Lease) -> Result<Option<Instant>, StoreError> {
        let fence = Instant::now() + BROWSER_FENCE;
        let expires_at = self.engine.clock.now() + BROWSER_LEASE_TTL;
        let is_held = self.engine.leases.renew(id, lease.browser, expires_at).await?;
        Ok(is_held.then_some(fence))
    }

    /// Renews the lease of a browser that is being started, which may take longer than the lease lasts, and
    /// sets the fence each time.
    async fn keep_lease(
        &self,
        id: SessionId,
        lease: Lease,
        fence: &mut Option<Instant>,
    ) -> Infallible {
        let mut delay = LEASE_RENEW_INTERVAL;
        loop {
            tokio::time::sleep(delay).await;
            delay = match self.renew(id, lease).await {
                Ok(renewed) => {
                    *fence = renewed;
                    if renewed.is_none() {
                        // The pool is told by an effect of the session, and ends the start.
                        std::future::pending::<()>().await;
                    }
                    LEASE_RENEW_INTERVAL
                }
                Err(error) => {
                    log_error(
                        &error,
                        "failed to renew the lease of a browser that is being started, retrying",
                    );
                    LEASE_RETRY_DELAY
                }
            };
        }
    }

    /// Releases a browser that nobody has been shown: another one may be started for its session by now.
    async fn discard(&self, id: SessionId, lease: Lease) -> ClaimOutcome {
        tracing::warn!(
            session.id = %id,
            "session {id} does not have the browser any more that was started for it, or its lease could not be renewed in time; the browser ends"
        );
        self.pool.release(lease.browser).await;
        self.turns.ended(lease.browser);
        ClaimOutcome::Done
    }

    /// Runs and records the workflow in tasks of their own.
    fn run(
        &self,
        (claim, lease, fence): (&OutboxClaim, Lease, Instant),
        browser: Arc<dyn Browser>,
        (workflow, definition): (DefinitionVersion, Definition),
        (platform, custom_url): (PlatformId, Option<String>),
    ) {
        // With its browser, the live session stays although nobody is connected to it.
        let live = self.engine.hub.change(claim.session, |state| {
            state.browser = Some(browser.clone());
            state.place = None;
        });
        let spans = self.engine.traces.nodes(claim.session, self.engine.clock.clone());
        let (nodes, entered) = nodes(spans);
        let recorder = Recorder {
            sessions: self.engine.sessions.clone(),
            clock: self.engine.clock.clone(),
            frames: self.frames.clone(),
            vault: self.vault.clone(),
            recordings: self.recordings.clone(),
            session: claim.session,
            browser: lease.browser,
        };
        self.tasks.spawn(recorder.record(live.clone(), browser.clone(), entered));
        let runner = WorkflowRunner {
            engine: self.engine.clone(),
            attestations: self.attestations.clone(),
            id: claim.session,
            lease,
            fence,
            browser,
            live,
            workflow,
            definition: Arc::new(definition),
            platform,
            custom_url,
            began: self.engine.clock.now(),
            is_complete: AtomicBool::new(false),
            statistics: self.statistics.clone(),
            nodes,
            author: self.drafts.tools(claim.session).or_else(|| self.author.clone()),
        };
        let (pool, turns, clock) =
            (self.pool.clone(), self.turns.clone(), self.engine.clock.clone());
        self.tasks.spawn(async move {
            run_workflow(runner).await;
            // An effect releases the browser as a rule. This covers a session that has moved on to
            // another browser.
            pool.release(lease.browser).await;
            turns.finished(lease.browser, clock.now());
        });
    }

    /// Decides what follows a browser that could not be started.
    async fn not_started(
        &self,
        claim: &OutboxClaim,
        lease: Lease,
        tenant: Tenant,
        live: &LiveSession,
        error: StartError,
    ) -> Result<ClaimOutcome, AdvanceError> {
        let id = claim.session;
        if matches!(error, StartError::NoRoom) {
            // A browser that has just ended still occupies its slot.
            let now = self.engine.clock.now();
            let turn = self.turns.refused(lease.browser, tenant, now);
            return self.wait(claim, lease, live, turn).await;
        }
        self.turns.ended(lease.browser);
        if matches!(error, StartError::Released) {
            return Ok(ClaimOutcome::Done);
        }
        let mut failures = 0;
        live.state.send_modify(|state| {
            state.place = None;
            state.failed_starts = state.failed_starts.saturating_add(1);
            failures = state.failed_starts;
        });
        // The claim's attempts are not counted instead: they include the waits in the queue.
        if failures < MAX_START_FAILURES {
            tracing::warn!(session.id = %id, %error, "failed to start a browser, retrying");
            return Ok(ClaimOutcome::RetryAt(self.engine.clock.now() + START_RETRY_DELAY));
        }
        tracing::error!(session.id = %id, %error, "failed to start a browser; the session fails");
        let retry_until = live.retry_until(self.engine.clock.now());
        let failed = Event::Failed { why: error_code_of(&error), node: None, retry_until };
        self.engine.advance(id, Some(lease.browser), failed).await?;
        Ok(ClaimOutcome::Done)
    }

    /// Shows the applicant their position in the queue, and says when to ask again. Ends the session
    /// if it has waited for too long, or if the queue is full.
    async fn wait(
        &self,
        claim: &OutboxClaim,
        lease: Lease,
        live: &LiveSession,
        turn: Turn,
    ) -> Result<ClaimOutcome, AdvanceError> {
        let (id, now) = (claim.session, self.engine.clock.now());
        let place = match turn {
            Turn::Now => return Ok(ClaimOutcome::RetryAt(now + START_RETRY_DELAY)),
            Turn::Wait { place, since } if now - since < self.queue_timeout => place,
            Turn::Wait { place, .. } => {
                tracing::error!(session.id = %id, place, "no browser was free for session {id} in time");
                return self.give_up(claim, lease, live).await;
            }
            Turn::Full => {
                tracing::warn!(session.id = %id, "the queue for browsers is full: session {id} fails");
                return self.give_up(claim, lease, live).await;
            }
        };
        let delay = delay_at(place);
        let minutes = self.turns.expected_wait(place).map(minutes);
        let place = u32::try_from(place).unwrap_or(u32::MAX);
        live.state.send_if_modified(|state| {
            let is_changed = state.place != Some(place) || state.wait_minutes != minutes;
            state.place = Some(place);
            state.wait_minutes = minutes;
            is_changed
        });
        if claim.attempt == 1 {
            tracing::info!(session.id = %id, place, "session {id} waits for a browser");
        }
        Ok(ClaimOutcome::RetryAt(now + delay))
    }

    /// Keeps the place of a session whose applicant is not at the page, and says when to look again.
    /// After as long as a session may wait, it begins anew when they come.
    ///
    /// The applicant of a session is connected to the instance that starts its browser, unless that is
    /// not reachable; there the session could not be shown to them either.
    async fn hold(
        &self,
        claim: &OutboxClaim,
        lease: Lease,
        tenant: Tenant,
    ) -> Result<ClaimOutcome, AdvanceError> {
        let (id, now) = (claim.session, self.engine.clock.now());
        if let Some(live) = self.engine.hub.find(id) {
            // Observers may be there still; the next position is known when the applicant is back.
            live.state.send_if_modified(|state| state.place.take().is_some());
        }
        let since = self.turns.hold(lease.browser, tenant, now);
        if since.is_some_and(|since| now - since < self.queue_timeout) {
            return Ok(ClaimOutcome::RetryAt(now + ABSENT_RETRY_DELAY));
        }
        self.turns.ended(lease.browser);
        tracing::info!(session.id = %id, "session {id} waits for its applicant, and no longer for a browser");
        self.engine.advance(id, Some(lease.browser), Event::ApplicantAbsent).await?;
        Ok(ClaimOutcome::Done)
    }

    /// Ends a session that gets no browser.
    async fn give_up(
        &self,
        claim: &OutboxClaim,
        lease: Lease,
        live: &LiveSession,
    ) -> Result<ClaimOutcome, AdvanceError> {
        self.turns.ended(lease.browser);
        let why = ErrorCode::BrowserUnavailable;
        let retry_until = live.retry_until(self.engine.clock.now());
        let failed = Event::Failed { why, node: None, retry_until };
        self.engine.advance(claim.session, Some(lease.browser), failed).await?;
        Ok(ClaimOutcome::Done)
    }

    fn spec(
        &self,
        lease: Lease,
        session: &Session,
        definition: &Definition,
        device: Device,
    ) -> BrowserSpec {
        BrowserSpec {
            id: lease.browser,
            hosts: definition.hosts.iter().chain(&definition.sso_hosts).cloned().collect(),
            watch: ObservedSignals::of(definition),
            device,
            place: session.terms.location.clone(),
            locale: self.places.locale(&session.terms.location.country),
        }
    }
}

/// Records how long a start took, and returns its outcome: why it failed, if it did. `None` for one for
/// which no slot was free, or whose session has ended: it was not begun.
fn measure_start(
    started: &Result<Arc<dyn Browser>, StartError>,
    began: Instant,
) -> Option<Result<(), &'static str>> {
    let outcome = match started {
        Ok(_) => Ok(()),
        Err(StartError::NoEgress) => Err("no_proxy"),
        Err(StartError::Elsewhere) => Err("wrong_country"),
        Err(StartError::Unavailable(_)) => Err("failed"),
        Err(StartError::NoRoom | StartError::Released) => return None,
    };
    let name = outcome.err().unwrap_or("started");
    metrics::histogram!("avouch_browser_start_seconds", "outcome" => name).record(began.elapsed());
    Some(outcome)
}

/// Returns a wait in minutes, rounded up.
fn minutes(wait: TimeDelta) -> u32 {
    let seconds = wait.num_seconds().max(1);
    u32::try_from(seconds.saturating_add(59) / 60).unwrap_or(u32::MAX)
}

const fn error_code_of(error: &StartError) -> ErrorCode {
    match error {
        StartError::NoEgress => ErrorCode::ProxyUnavailable,
        StartError::Elsewhere => ErrorCode::GeoMismatch,
        StartError::NoRoom | StartError::Unavailable(_) | StartError::Released => {
            ErrorCode::BrowserUnavailable
        }
    }
}
