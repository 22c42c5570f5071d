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
use tokio::{sync::Notify, time::Instant};

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
/// How long after a renewal of a lease failed the next one follows.
pub(crate) const LEASE_RETRY_DELAY: Duration = Duration::from_secs(1);
/// How long after the store failed a transition of a run is tried again.
const COMMIT_RETRY_DELAY: Duration = Duration::from_secs(1);
/// How long a transition of a run is tried again. A run whose lease cannot be renewed either ends at its fence
/// before that; this is for a transition that the store never takes, while it renews the lease.
const MAX_COMMIT_TIME: Duration = Duration::from_secs(30);

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

/// A change that the store failed to save, or saved without saying so.
struct UnconfirmedChange {
    before: Session,
    change: Change,
}

impl UnconfirmedChange {
    /// Returns whether a session that was read again has the change, perhaps with later ones of others: these
    /// end the session, take its browser away, or shift its times, and lead to no other status of the same
    /// browser.
    fn is_saved_in(&self, session: &Session) -> bool {
        let wanted = &self.change.session;
        let is_same_status = self.before.status() == wanted.status();
        session.version >= wanted.version
            && session.status() == wanted.status()
            && session.state.lease() == wanted.state.lease()
            && (!is_same_status || session.state.ask() == wanted.state.ask())
    }
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
        let decide = |session: &Session, now| decide_event(session, from, &event, now);
        let (session, is_changed) = self.commit(id, &mut None, decide).await?;
        self.announce(&session, is_changed);
        Ok(session)
    }

    /// Like [`Self::advance`], for the run in a browser: tries again while the store fails, or others commit
    /// to the session, for up to [`MAX_COMMIT_TIME`]. A change that was saved although its result was lost is
    /// not made twice.
    pub(crate) async fn advance_with_retries(
        &self,
        id: SessionId,
        browser: BrowserId,
        event: Event,
    ) -> Result<Session, AdvanceError> {
        let decide = |session: &Session, now| decide_event(session, Some(browser), &event, now);
        let (mut unconfirmed, mut ends_at) = (None, None);
        loop {
            let error = match self.commit(id, &mut unconfirmed, &decide).await {
                Ok((session, is_changed)) => {
                    self.announce(&session, is_changed);
                    return Ok(session);
                }
                Err(error @ (AdvanceError::Store(_) | AdvanceError::Busy)) => error,
                Err(error @ (AdvanceError::NotFound | AdvanceError::Rejected(_))) => {
                    return Err(error);
                }
            };
            let now = Instant::now();
            if now >= *ends_at.get_or_insert(now + MAX_COMMIT_TIME) {
                return Err(error);
            }
            log_retry(id, &error);
            tokio::time::sleep(COMMIT_RETRY_DELAY).await;
        }
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
            decide_event(session, None, &event, now)
        };
        let (session, is_changed) = self.commit(id, &mut None, decide).await?;
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
        let (session, is_changed) = self.commit(id, &mut None, decide).await?;
        if is_changed {
            tracing::info!(session.id = %id, "the data of session {id} was erased");
        }
        Ok(session)
    }

    /// Commits what `decide` makes of the session, and decides anew when another process committed
    /// first. `decide` returns the change and until when the session's browser counts as alive, or
    /// `None` where there is nothing to save. Returns the session and whether it was changed.
    ///
    /// Where the store fails to commit, `unconfirmed` becomes the change. With such a change of an earlier call,
    /// it is examined first whether the session has it.
    async fn commit(
        &self,
        id: SessionId,
        unconfirmed: &mut Option<Box<UnconfirmedChange>>,
        decide: impl Fn(
            &Session,
            DateTime<Utc>,
        ) -> Result<Option<(Change, DateTime<Utc>)>, AdvanceError>,
    ) -> Result<(Session, bool), AdvanceError> {
        for _ in 0..MAX_COMMIT_ATTEMPTS {
            let session = self.sessions.find_unscoped(id).await?.ok_or(AdvanceError::NotFound)?;
            if let Some(saved) = unconfirmed.take_if(|change| change.is_saved_in(&session)) {
                self.traces.committed(&saved.before, &saved.change);
                return Ok((session, true));
            }
            let Some((change, alive_until)) = decide(&session, self.clock.now())? else {
                return Ok((session, false));
            };
            match self.sessions.commit(&change, alive_until).await {
                Ok(()) => {
                    self.traces.committed(&session, &change);
                    return Ok((change.session, true));
                }
                Err(CommitError::Stale) => (),
                Err(CommitError::Store(error)) => {
                    let before = session;
                    *unconfirmed = Some(Box::new(UnconfirmedChange { before, change }));
                    return Err(error.into());
                }
            }
        }
        Err(AdvanceError::Busy)
    }
}

/// Applies an event to a session, in the name of a browser if one is given. Returns the change, and until
/// when the session's browser counts as alive.
fn decide_event(
    session: &Session,
    from: Option<BrowserId>,
    event: &Event,
    now: DateTime<Utc>,
) -> Result<Option<(Change, DateTime<Utc>)>, AdvanceError> {
    let change = match from {
        Some(browser) => session.apply_from(browser, event.clone(), now)?,
        None => session.apply(event.clone(), now)?,
    };
    Ok(change.map(|change| (change, now + BROWSER_LEASE_TTL)))
}

fn log_retry(id: SessionId, error: &AdvanceError) {
    let error: &dyn std::error::Error = error;
    tracing::warn!(session.id = %id, error, "failed to apply a transition, retrying");
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
