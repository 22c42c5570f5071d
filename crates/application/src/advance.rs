//! Applies events to sessions: reads a session, decides, commits; and starts over when another
//! process committed first.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    error_code::ErrorCode,
    id::{ApiKeyId, BrowserId, SessionId},
    session::{Change, Event, InvalidTransition, Session},
};
use ports::{
    StoreError,
    clock::Clock,
    driving::SessionError,
    session_store::{BrowserLeases, CommitError, SessionStore},
};
use tokio::sync::Notify;

use crate::{live::SessionHub, session_traces::SessionTraces};

/// How often a transition is tried while other processes commit to the same session.
pub(crate) const MAX_COMMIT_ATTEMPTS: usize = 12;
/// How long a browser counts as alive after its lease was renewed, or as going to be started.
pub const BROWSER_LEASE_TTL: TimeDelta = TimeDelta::seconds(20);
/// How long a process may use a browser after it began to renew its lease for the last time. It is shorter
/// than the lease, so that the browser has ended before another process takes the session over: by the
/// time that this takes, and by how much their clocks may differ.
pub const BROWSER_FENCE: Duration = Duration::from_secs(16);
/// How often the lease of a browser is renewed that is being started or runs.
pub const LEASE_RENEW_INTERVAL: Duration = Duration::from_secs(5);

/// Moves sessions through their states; the only writer of sessions beside their creation.
pub struct SessionEngine {
    pub sessions: Arc<dyn SessionStore>,
    pub leases: Arc<dyn BrowserLeases>,
    pub clock: Arc<dyn Clock>,
    pub hub: Arc<SessionHub>,
    pub wakeups: Wakeups,
    pub traces: SessionTraces,
}

/// Wakes workers of this process before their poll interval has passed.
#[derive(Clone, Default)]
pub struct Wakeups {
    /// Notified when jobs were saved.
    pub jobs: Arc<Notify>,
    /// Notified when deliveries may have been saved.
    pub deliveries: Arc<Notify>,
}

/// Why a session was not moved.
#[derive(Debug, thiserror::Error)]
pub enum AdvanceError {
    #[error("there is no such session")]
    NotFound,
    #[error("too many callers commit to the session at once")]
    Busy,
    #[error(transparent)]
    Rejected(#[from] InvalidTransition),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<AdvanceError> for SessionError {
    fn from(error: AdvanceError) -> Self {
        match error {
            AdvanceError::NotFound => Self::NotFound,
            AdvanceError::Store(error) => Self::Store(error),
            AdvanceError::Busy | AdvanceError::Rejected(_) => Self::Busy,
        }
    }
}

impl SessionEngine {
    /// Applies an event and returns the session as it is then. With `from`, the event is refused
    /// unless that browser is still the session's own.
    pub async fn advance(
        &self,
        id: SessionId,
        from: Option<BrowserId>,
        event: Event,
    ) -> Result<Session, AdvanceError> {
        let decide = |session: &Session, now| {
            let change = match from {
                Some(browser) => session.apply_from(browser, event.clone(), now)?,
                None => session.apply(event.clone(), now)?,
            };
            Ok(change.map(|change| (change, now + BROWSER_LEASE_TTL)))
        };
        let (session, is_changed) = self.commit(id, decide).await?;
        self.announce(&session, is_changed);
        Ok(session)
    }

    /// Like [`Self::advance`], for the owner of the session. A session of another owner counts as
    /// absent.
    ///
    /// # Errors
    /// [`AdvanceError::NotFound`] if this owner has no such session, and those of
    /// [`Self::advance`].
    pub async fn advance_of(
        &self,
        owner: ApiKeyId,
        id: SessionId,
        event: Event,
    ) -> Result<Session, AdvanceError> {
        let decide = |session: &Session, now| {
            if session.owner != owner {
                return Err(AdvanceError::NotFound);
            }
            let change = session.apply(event.clone(), now)?;
            Ok(change.map(|change| (change, now + BROWSER_LEASE_TTL)))
        };
        let (session, is_changed) = self.commit(id, decide).await?;
        self.announce(&session, is_changed);
        Ok(session)
    }

    /// Logs and counts a transition, and wakes those who wait for it.
    fn announce(&self, session: &Session, is_changed: bool) {
        if is_changed {
            let id = session.id;
            tracing::info!(
                session.id = %id, session.status = %session.status(),
                "session {id} is {}", session.status()
            );
            if session.state.is_closed() {
                count_closed(session);
            }
            self.wakeups.jobs.notify_one();
            self.wakeups.deliveries.notify_one();
            self.hub.publish(session);
        }
    }

    /// Erases what a closed session knows about its applicant, and returns the session as it is
    /// then. A session that is open, or erased already, stays as it is.
    pub async fn erase(&self, id: SessionId) -> Result<Session, AdvanceError> {
        let decide = |session: &Session, now| Ok(session.erase(now).map(|change| (change, now)));
        let (session, is_changed) = self.commit(id, decide).await?;
        if is_changed {
            tracing::info!(session.id = %id, "the data of session {id} was erased");
        }
        Ok(session)
    }

    /// Commits what `decide` makes of the session, and decides anew when another process committed
    /// first. `decide` returns the change and until when the session's browser counts as alive, or
    /// `None` where there is nothing to save. Returns the session and whether it was changed.
    async fn commit(
        &self,
        id: SessionId,
        decide: impl Fn(
            &Session,
            DateTime<Utc>,
        ) -> Result<Option<(Change, DateTime<Utc>)>, AdvanceError>,
    ) -> Result<(Session, bool), AdvanceError> {
        for _ in 0..MAX_COMMIT_ATTEMPTS {
            let session = self.sessions.find_unscoped(id).await?.ok_or(AdvanceError::NotFound)?;
            let Some((change, alive_until)) = decide(&session, self.clock.now())? else {
                return Ok((session, false));
            };
            match self.sessions.commit(&change, alive_until).await {
                Ok(()) => {
                    self.traces.committed(&session, &change);
                    return Ok((change.session, true));
                }
                Err(CommitError::Stale) => (),
                Err(CommitError::Store(error)) => return Err(error.into()),
            }
        }
        Err(AdvanceError::Busy)
    }
}

/// Counts a closed session. Statuses and error codes are from catalogues, so that the number of time
/// series is bounded.
fn count_closed(session: &Session) {
    let status = session.status().as_str();
    let code = session.state.error_code().map_or("none", ErrorCode::as_str);
    metrics::counter!("avouch_sessions_closed_total", "status" => status, "error_code" => code)
        .increment(1);
}

#[cfg(test)]
mod tests;
