//! Moves a session: read, decide, save; once more when somebody else was quicker.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::{DateTime, TimeDelta};
use domain::{
    fairness::BrowserQueue,
    id::{BrowserId, InstanceId, SessionId},
    session::{Event, InvalidTransition, Session, State},
};
use ports::{
    StoreError,
    attestation_reader::AttestationReader,
    attestor::{AttestationStore, Attestor},
    browser::FrameRedactor,
    catalogue::Catalogue,
    clock::Clock,
    device_store::DeviceStore,
    driving::{SessionError, SessionView},
    key_store::KeyStore,
    random::RandomSource,
    refusals::RefusalLog,
    session_store::{CommitError, SessionStore},
    tokens::TokenIssuer,
};
use tokio::{runtime::Handle, sync::Notify};

use crate::{live::SessionHub, settings::Addresses};

/// How often a move is tried when others move the same session.
const MAX_COMMIT_ATTEMPTS: usize = 12;
/// How long a browser counts as alive without being renewed.
pub const BROWSER_LEASE_TTL: TimeDelta = TimeDelta::seconds(20);
/// A browser that is being started is given this long.
pub const BROWSER_START_TTL: TimeDelta = TimeDelta::seconds(60);
/// How long a pass to watch a session lets in, and a minute less at times.
const STREAM_TOKEN_TTL: TimeDelta = TimeDelta::minutes(5);
pub const LEASE_RENEW_INTERVAL: Duration = Duration::from_secs(5);

/// What every use case works with.
pub struct Core {
    pub node: InstanceId,
    /// The runtime that use cases run on, whatever thread asks for them.
    pub runtime: Handle,
    pub addresses: Addresses,
    pub sessions: Arc<dyn SessionStore>,
    pub devices: Arc<dyn DeviceStore>,
    pub catalogue: Arc<dyn Catalogue>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn RandomSource>,
    pub tokens: Arc<dyn TokenIssuer>,
    pub frames: Arc<dyn FrameRedactor>,
    pub refusals: Arc<dyn RefusalLog>,
    pub hub: SessionHub,
    /// Sessions that have a browser of this process, or wait for one.
    pub queue: Arc<Mutex<BrowserQueue>>,
    pub attestations: Attestations,
    /// Rung when effects were saved.
    pub effects: Notify,
    /// Rung when deliveries may have been saved.
    pub deliveries: Arc<Notify>,
}

/// Who attests, and where that is kept.
pub struct Attestations {
    pub attestor: Arc<dyn Attestor>,
    pub attestations: Arc<dyn AttestationStore>,
    pub reader: Arc<dyn AttestationReader>,
    /// Which team a session's key belongs to.
    pub keys: Arc<dyn KeyStore>,
}

/// Why a session did not move.
#[derive(Debug, thiserror::Error)]
pub enum AdvanceError {
    #[error("there is no such session")]
    NotFound,
    #[error("too many move the session at once")]
    Busy,
    #[error(transparent)]
    Rejected(#[from] InvalidTransition),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<AdvanceError> for SessionError {
    fn from(stuck: AdvanceError) -> Self {
        match stuck {
            AdvanceError::NotFound => Self::NotFound,
            AdvanceError::Store(error) => Self::Store(error),
            AdvanceError::Busy | AdvanceError::Rejected(_) => Self::Busy,
        }
    }
}

impl Core {
    pub fn queue(&self) -> MutexGuard<'_, BrowserQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves a session by an event; with `from`, only while that browser is still its own.
    pub async fn advance(
        &self,
        id: SessionId,
        from: Option<BrowserId>,
        event: Event,
    ) -> Result<Session, AdvanceError> {
        for _ in 0..MAX_COMMIT_ATTEMPTS {
            let session = self.sessions.find_unscoped(id).await?.ok_or(AdvanceError::NotFound)?;
            let now = self.clock.now();
            let change = match from {
                Some(browser) => session.apply_from(browser, event.clone(), now)?,
                None => session.apply(event.clone(), now)?,
            };
            let Some(change) = change else { return Ok(session) };
            match self.sessions.commit(&change, now + BROWSER_START_TTL).await {
                Ok(()) => {
                    tracing::info!(
                        session.id = %id, session.status = %change.session.status(),
                        "session {id} is {}", change.session.status()
                    );
                    if change.session.state.is_closed() {
                        let status = change.session.status().as_str();
                        metrics::counter!("avouch_sessions_closed_total", "status" => status)
                            .increment(1);
                    }
                    self.effects.notify_one();
                    self.deliveries.notify_one();
                    self.hub.tell(&change.session);
                    return Ok(change.session);
                }
                Err(CommitError::Stale) => (),
                Err(CommitError::Store(error)) => return Err(error.into()),
            }
        }
        Err(AdvanceError::Busy)
    }

    /// Erases a closed session; the session as it is then.
    pub async fn erase(&self, id: SessionId) -> Result<Session, AdvanceError> {
        for _ in 0..MAX_COMMIT_ATTEMPTS {
            let session = self.sessions.find_unscoped(id).await?.ok_or(AdvanceError::NotFound)?;
            let now = self.clock.now();
            let Some(change) = session.erase(now) else { return Ok(session) };
            match self.sessions.commit(&change, now).await {
                Ok(()) => {
                    tracing::info!(session.id = %id, "the data of session {id} was erased");
                    return Ok(change.session);
                }
                Err(CommitError::Stale) => (),
                Err(CommitError::Store(error)) => return Err(error.into()),
            }
        }
        Err(AdvanceError::Busy)
    }

    /// A session with the addresses that belong to it.
    pub fn with_urls(&self, session: Session) -> SessionView {
        SessionView {
            embed_url: self.embed_url(&session),
            stream_url: self.stream_url(&session),
            session,
        }
    }

    /// Another one each minute, so that those who poll see no change for nothing.
    fn stream_url(&self, session: &Session) -> Option<String> {
        if !matches!(session.state, State::Live { .. }) {
            return None;
        }
        let now = self.clock.now().timestamp();
        let until = DateTime::from_timestamp(now - now.rem_euclid(60), 0)? + STREAM_TOKEN_TTL;
        let (id, pass) = (session.id, self.tokens.stream_token(session.id, until));
        let there = self.addresses.of(session.terms.worker_region);
        Some(format!("{there}/watch/{id}?pass={}", pass.expose()))
    }

    pub fn embed_url(&self, session: &Session) -> String {
        let there = self.addresses.of(session.terms.worker_region);
        format!(
            "{there}/embed/{}?token={}",
            session.id,
            self.tokens.embed_token(session.id).expose()
        )
    }
}
