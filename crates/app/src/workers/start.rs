//! Starting a session's browser.

use std::{collections::BTreeSet, sync::Arc};

use domain::{
    error_code::ErrorCode,
    session::{Event, Lease, Session, State},
    workflow::Definition,
};
use ports::{
    browser::{BrowserSpec, Device, StartError, Watch},
    outbox::{Claim, Verdict},
};
use tokio::time::Instant;

use super::{ROOM_ATTEMPTS, START_ATTEMPTS, START_PAUSE, Workers};
use crate::{
    advance::{STARTING, Stuck},
    live::{Conductor, Recorder, conduct, nodes},
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
        let spec = self.spec(lease, &session, &definition, room.inside.borrow().device);
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
                    let definition = Arc::new(definition);
                    let conductor =
                        Conductor { core, id, lease, browser, room, workflow, definition, nodes };
                    conduct(conductor).await;
                    // Released by an effect as a rule; here when the session lost us.
                    pool.release(lease.browser).await;
                });
                Ok(Verdict::Done)
            }
            Err(StartError::Released) => Ok(Verdict::Done),
            Err(error) if claim.attempt < attempts(&error) => {
                let queued = matches!(error, StartError::NoRoom);
                room.inside.send_modify(|inside| inside.queued = queued);
                tracing::warn!(session.id = %id, %error, "a browser could not be started, trying again");
                Ok(Verdict::RetryAt(self.core.clock.now() + START_PAUSE))
            }
            Err(error) => {
                tracing::error!(session.id = %id, %error, "no browser could be started");
                let failed = Event::Failed { why: why(&error), node: None };
                self.core.advance(id, Some(lease.browser), failed).await?;
                Ok(Verdict::Done)
            }
        }
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

/// How often a start is tried. Who waits for room is told so, and may wait for a minute.
const fn attempts(error: &StartError) -> i32 {
    match error {
        StartError::NoRoom => ROOM_ATTEMPTS,
        StartError::Unavailable(_)
        | StartError::Released
        | StartError::NoExit
        | StartError::Elsewhere => START_ATTEMPTS,
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
