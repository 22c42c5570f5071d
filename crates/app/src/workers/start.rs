//! Starting a session's browser.

use std::{
    collections::BTreeSet,
    sync::{Arc, PoisonError},
};

use domain::{
    error_code::ErrorCode,
    fairness::{Tenant, Turn},
    session::{Event, Lease, Session, State},
    workflow::Definition,
};
use ports::{
    browser::{BrowserSpec, Device, StartError, Watch},
    outbox::{Claim, Verdict},
};
use tokio::time::Instant;

use super::{MAX_START_FAILURES, START_PAUSE, Workers};
use crate::{
    advance::{STARTING, Stuck},
    live::{Conductor, Recorder, Room, conduct, nodes},
};

impl Workers {
    pub(super) async fn start_browser(
        &self,
        claim: &Claim,
        lease: Lease,
    ) -> Result<Verdict, Stuck> {
        let id = claim.session;
        let session = self.core.sessions.open(id).await?.ok_or(Stuck::NotFound)?;
        if !matches!(session.state, State::Initializing { lease: now, .. } if now == lease) {
            self.queue().ended(lease.browser);
            return Ok(Verdict::Done);
        }
        let until = self.core.clock.now() + STARTING;
        self.core.sessions.renew(id, lease.browser, until).await?;
        let found = self.core.catalogue.definition(session.order.platform).await?;
        let Some((workflow, definition)) = found else {
            let failed = Event::Failed { why: ErrorCode::WorkflowNotFound, node: None };
            self.core.advance(id, Some(lease.browser), failed).await?;
            return Ok(Verdict::Done);
        };
        let room = self.core.rooms.enter(id);
        let Some(key) = self.keys.key(session.owner).await? else { return Err(Stuck::NotFound) };
        let tenant = Tenant { team: key.team, environment: session.order.environment };
        let turn = self.queue().ask(lease.browser, tenant, self.core.clock.now());
        if let Turn::Wait { place } = turn {
            return self.wait(claim, lease, &room, place).await;
        }
        let spec = self.spec(lease, &session, &definition, room.inside.borrow().device);
        let began = Instant::now();
        match self.pool.start(spec).await {
            Ok(browser) => {
                let took = began.elapsed().as_millis();
                tracing::info!(session.id = %id, "a browser for session {id} was up in {took} ms");
                let (core, pool) = (self.core.clone(), self.pool.clone());
                let queue = self.queue.clone();
                let (nodes, noted) = nodes();
                let recorder = Recorder {
                    core: core.clone(),
                    vault: self.vault.clone(),
                    session: id,
                    browser: lease.browser,
                };
                self.tasks.spawn(recorder.record(room.clone(), browser.clone(), noted));
                self.tasks.spawn(async move {
                    let definition = Arc::new(definition);
                    let conductor =
                        Conductor { core, id, lease, browser, room, workflow, definition, nodes };
                    conduct(conductor).await;
                    // Released by an effect as a rule; here when the session lost us.
                    pool.release(lease.browser).await;
                    queue.lock().unwrap_or_else(PoisonError::into_inner).ended(lease.browser);
                });
                Ok(Verdict::Done)
            }
            Err(error) => self.not_started(claim, lease, tenant, &room, error).await,
        }
    }

    /// What becomes of a session whose browser could not be started.
    async fn not_started(
        &self,
        claim: &Claim,
        lease: Lease,
        tenant: Tenant,
        room: &Room,
        error: StartError,
    ) -> Result<Verdict, Stuck> {
        let id = claim.session;
        if matches!(error, StartError::NoRoom) {
            // A browser that has just ended still has its place.
            let now = self.core.clock.now();
            let Turn::Wait { place } = self.queue().refused(lease.browser, tenant, now) else {
                return Ok(Verdict::RetryAt(now + START_PAUSE));
            };
            return self.wait(claim, lease, room, place).await;
        }
        self.queue().ended(lease.browser);
        if matches!(error, StartError::Released) {
            return Ok(Verdict::Done);
        }
        let mut failures = 0;
        room.inside.send_modify(|inside| {
            inside.place = None;
            inside.failed_starts = inside.failed_starts.saturating_add(1);
            failures = inside.failed_starts;
        });
        // Attempts at the job count its time in the queue too.
        if failures < MAX_START_FAILURES {
            tracing::warn!(session.id = %id, %error, "a browser could not be started, trying again");
            return Ok(Verdict::RetryAt(self.core.clock.now() + START_PAUSE));
        }
        tracing::error!(session.id = %id, %error, "no browser could be started");
        let failed = Event::Failed { why: why(&error), node: None };
        self.core.advance(id, Some(lease.browser), failed).await?;
        Ok(Verdict::Done)
    }

    /// Tells the applicant the place in the queue, and asks again later; the session ends where
    /// that took too long.
    async fn wait(
        &self,
        claim: &Claim,
        lease: Lease,
        room: &Room,
        place: usize,
    ) -> Result<Verdict, Stuck> {
        let id = claim.session;
        if START_PAUSE * claim.attempt >= self.queue_patience {
            self.queue().ended(lease.browser);
            tracing::error!(session.id = %id, place, "no browser was free for session {id} in time");
            let failed = Event::Failed { why: ErrorCode::BrowserUnavailable, node: None };
            self.core.advance(id, Some(lease.browser), failed).await?;
            return Ok(Verdict::Done);
        }
        let place = u32::try_from(place).unwrap_or(u32::MAX);
        room.inside.send_if_modified(|inside| {
            let news = inside.place != Some(place);
            inside.place = Some(place);
            news
        });
        if claim.attempt == 1 {
            tracing::info!(session.id = %id, place, "session {id} waits for a browser");
        }
        Ok(Verdict::RetryAt(self.core.clock.now() + START_PAUSE))
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
            watch: Watch {
                selectors: owned(definition.selectors()),
                responses: owned(definition.responses()),
            },
            device,
            place: session.order.location.clone(),
            locale: self.places.locale(&session.order.location.country),
        }
    }
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
