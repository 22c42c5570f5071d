//! Starting a session's browser.

use std::{collections::BTreeSet, sync::Arc};

use chrono::TimeDelta;
use domain::{
    error_code::ErrorCode,
    fairness::{Tenant, Turn},
    session::{Event, Lease, Session, State},
    workflow::Definition,
};
use ports::{
    browser::{BrowserSpec, Device, ObservedSignals, StartError},
    outbox::{ClaimOutcome, OutboxClaim},
};
use tokio::time::Instant;

use super::{MAX_START_FAILURES, START_RETRY_DELAY, Workers};
use crate::{
    advance::{AdvanceError, BROWSER_START_TTL},
    live::{LiveSession, Recorder, WorkflowRunner, nodes, run_workflow},
};

/// Each so many places in the queue, a session asks a second later.
const POSITIONS_PER_EXTRA_SECOND: usize = 16;

impl Workers {
    pub(super) async fn start_browser(
        &self,
        claim: &OutboxClaim,
        lease: Lease,
    ) -> Result<ClaimOutcome, AdvanceError> {
        let id = claim.session;
        let session = self.core.sessions.find_unscoped(id).await?.ok_or(AdvanceError::NotFound)?;
        if !matches!(session.state, State::Initializing { lease: now, .. } if now == lease) {
            self.core.queue().ended(lease.browser);
            return Ok(ClaimOutcome::Done);
        }
        let until = self.core.clock.now() + BROWSER_START_TTL;
        self.core.sessions.renew(id, lease.browser, until).await?;
        let found = self.core.catalogue.definition(session.terms.platform).await?;
        let Some((workflow, definition)) = found else {
            let failed = Event::Failed { why: ErrorCode::WorkflowNotFound, node: None };
            self.core.advance(id, Some(lease.browser), failed).await?;
            return Ok(ClaimOutcome::Done);
        };
        let room = self.core.hub.enter(id);
        let Some(key) = self.keys.key(session.owner).await? else {
            return Err(AdvanceError::NotFound);
        };
        let tenant = Tenant { team: key.team, environment: session.terms.environment };
        let turn = self.core.queue().ask(lease.browser, tenant, self.core.clock.now());
        if turn != Turn::Now {
            return self.wait(claim, lease, &room, turn).await;
        }
        let spec = self.spec(lease, &session, &definition, room.state.borrow().device);
        let began = Instant::now();
        match self.pool.start(spec).await {
            Ok(browser) => {
                let took = began.elapsed().as_millis();
                tracing::info!(session.id = %id, "a browser for session {id} was up in {took} ms");
                let (core, pool) = (self.core.clone(), self.pool.clone());
                let (nodes, noted) = nodes();
                let recorder = Recorder {
                    core: core.clone(),
                    vault: self.vault.clone(),
                    session: id,
                    browser: lease.browser,
                };
                self.tasks.spawn(recorder.record(room.clone(), browser.clone(), noted));
                self.tasks.spawn(async move {
                    let (definition, all) = (Arc::new(definition), core.clone());
                    let conductor = WorkflowRunner {
                        core,
                        id,
                        lease,
                        browser,
                        room,
                        workflow,
                        definition,
                        nodes,
                    };
                    run_workflow(conductor).await;
                    // Released by an effect as a rule; here when the session lost us.
                    pool.release(lease.browser).await;
                    all.queue().ended(lease.browser);
                });
                Ok(ClaimOutcome::Done)
            }
            Err(error) => self.not_started(claim, lease, tenant, &room, error).await,
        }
    }

    /// What becomes of a session whose browser could not be started.
    async fn not_started(
        &self,
        claim: &OutboxClaim,
        lease: Lease,
        tenant: Tenant,
        room: &LiveSession,
        error: StartError,
    ) -> Result<ClaimOutcome, AdvanceError> {
        let id = claim.session;
        if matches!(error, StartError::NoRoom) {
            // A browser that has just ended still has its place.
            let now = self.core.clock.now();
            let turn = self.core.queue().refused(lease.browser, tenant, now);
            return self.wait(claim, lease, room, turn).await;
        }
        self.core.queue().ended(lease.browser);
        if matches!(error, StartError::Released) {
            return Ok(ClaimOutcome::Done);
        }
        let mut failures = 0;
        room.state.send_modify(|inside| {
            inside.place = None;
            inside.failed_starts = inside.failed_starts.saturating_add(1);
            failures = inside.failed_starts;
        });
        // Attempts at the job count its time in the queue too.
        if failures < MAX_START_FAILURES {
            tracing::warn!(session.id = %id, %error, "a browser could not be started, trying again");
            return Ok(ClaimOutcome::RetryAt(self.core.clock.now() + START_RETRY_DELAY));
        }
        tracing::error!(session.id = %id, %error, "no browser could be started");
        let failed = Event::Failed { why: why(&error), node: None };
        self.core.advance(id, Some(lease.browser), failed).await?;
        Ok(ClaimOutcome::Done)
    }

    /// Tells the applicant the place in the queue, and asks again later; the session ends where
    /// that took too long, or where there is no place.
    async fn wait(
        &self,
        claim: &OutboxClaim,
        lease: Lease,
        room: &LiveSession,
        turn: Turn,
    ) -> Result<ClaimOutcome, AdvanceError> {
        let (id, now) = (claim.session, self.core.clock.now());
        let place = match turn {
            Turn::Now => return Ok(ClaimOutcome::RetryAt(now + START_RETRY_DELAY)),
            Turn::Wait { place, since } if now - since < self.queue_patience => place,
            Turn::Wait { place, .. } => {
                tracing::error!(session.id = %id, place, "no browser was free for session {id} in time");
                return self.give_up(claim, lease).await;
            }
            Turn::Full => {
                tracing::warn!(session.id = %id, "the queue for browsers has no place for session {id}");
                return self.give_up(claim, lease).await;
            }
        };
        let pause = pause(place);
        let place = u32::try_from(place).unwrap_or(u32::MAX);
        room.state.send_if_modified(|inside| {
            let news = inside.place != Some(place);
            inside.place = Some(place);
            news
        });
        if claim.attempt == 1 {
            tracing::info!(session.id = %id, place, "session {id} waits for a browser");
        }
        Ok(ClaimOutcome::RetryAt(now + pause))
    }

    /// Ends a session that gets no browser.
    async fn give_up(
        &self,
        claim: &OutboxClaim,
        lease: Lease,
    ) -> Result<ClaimOutcome, AdvanceError> {
        self.core.queue().ended(lease.browser);
        let failed = Event::Failed { why: ErrorCode::BrowserUnavailable, node: None };
        self.core.advance(claim.session, Some(lease.browser), failed).await?;
        Ok(ClaimOutcome::Done)
    }

    fn spec(
        &self,
        lease: Lease,
        session: &Session,
        definition: &Definition,
        device: Device,
    ) -> BrowserSpec {
        let owned = |texts: BTreeSet<&str>| texts.into_iter().map(str::to_owned).collect();
        BrowserSpec {
            id: lease.browser,
            hosts: definition.hosts.iter().chain(&definition.sso_hosts).cloned().collect(),
            watch: ObservedSignals {
                selectors: owned(definition.selectors()),
                responses: owned(definition.responses()),
            },
            device,
            place: session.terms.location.clone(),
            locale: self.places.locale(&session.terms.location.country),
        }
    }
}

/// How long one at this place waits before it asks again: those far behind ask less often, and
/// all of them some seconds before their place is lost (`WAITING_TTL`).
fn pause(place: usize) -> TimeDelta {
    let far = TimeDelta::seconds(
        i64::try_from(place / POSITIONS_PER_EXTRA_SECOND).unwrap_or(i64::MAX).min(3),
    );
    START_RETRY_DELAY + far
}

const fn why(error: &StartError) -> ErrorCode {
    match error {
        StartError::NoExit => ErrorCode::ProxyUnavailable,
        StartError::Elsewhere => ErrorCode::GeoMismatch,
        StartError::NoRoom | StartError::Unavailable(_) | StartError::Released => {
            ErrorCode::BrowserUnavailable
        }
    }
}
