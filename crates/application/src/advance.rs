//! Moves a session: read, decide, save; once more when somebody else was quicker.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::{DateTime, TimeDelta};
use domain::{
    fairness::BrowserQueue,
    id::{BrowserId, NodeId, SessionId},
    session::{Event, Rejected, Session, State},
};
use ports::{
    StoreError,
    attestation_reader::AttestationReader,
    attestor::{AttestationStore, Attestor},
    browser::FrameRedactor,
    catalogue::Catalogue,
    clock::{Chance, Clock, Tokens},
    device_store::DeviceStore,
    driving::{SessionError, SessionFace},
    key_store::KeyStore,
    refusals::RefusalLog,
    session_store::{CommitError, SessionStore},
};
use tokio::{runtime::Handle, sync::Notify};

use crate::{live::Rooms, settings::Addresses};

/// How often a move is tried when others move the same session.
const ATTEMPTS: usize = 12;
/// How long a browser counts as alive without being renewed.
pub const ALIVE: TimeDelta = TimeDelta::seconds(20);
/// A browser that is being started is given this long.
pub const STARTING: TimeDelta = TimeDelta::seconds(60);
/// How long a pass to watch a session lets in, and a minute less at times.
const PASS: TimeDelta = TimeDelta::minutes(5);
pub const RENEW_EVERY: Duration = Duration::from_secs(5);

/// What every use case works with.
pub struct Core {
    pub node: NodeId,
    /// The runtime that use cases run on, whatever thread asks for them.
    pub runtime: Handle,
    pub addresses: Addresses,
    pub sessions: Arc<dyn SessionStore>,
    pub devices: Arc<dyn DeviceStore>,
    pub catalogue: Arc<dyn Catalogue>,
    pub clock: Arc<dyn Clock>,
    pub chance: Arc<dyn Chance>,
    pub tokens: Arc<dyn Tokens>,
    pub frames: Arc<dyn FrameRedactor>,
    pub refusals: Arc<dyn RefusalLog>,
    pub rooms: Rooms,
    /// Sessions that have a browser of this process, or wait for one.
    pub queue: Mutex<BrowserQueue>,
    pub witness: Witness,
    /// Rung when effects were saved.
    pub effects: Notify,
    /// Rung when deliveries may have been saved.
    pub deliveries: Notify,
}

/// Who attests, and where that is kept.
pub struct Witness {
    pub attestor: Arc<dyn Attestor>,
    pub attestations: Arc<dyn AttestationStore>,
    pub reader: Arc<dyn AttestationReader>,
    /// Which team a session's key belongs to.
    pub keys: Arc<dyn KeyStore>,
}

/// Why a session did not move.
#[derive(Debug, thiserror::Error)]
pub enum Stuck {
    #[error("there is no such session")]
    NotFound,
    #[error("too many move the session at once")]
    Busy,
    #[error(transparent)]
    Rejected(#[from] Rejected),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<Stuck> for SessionError {
    fn from(stuck: Stuck) -> Self {
        match stuck {
            Stuck::NotFound => Self::NotFound,
            Stuck::Store(error) => Self::Store(error),
            Stuck::Busy | Stuck::Rejected(_) => Self::Busy,
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
    ) -> Result<Session, Stuck> {
        for _ in 0..ATTEMPTS {
            let session = self.sessions.open(id).await?.ok_or(Stuck::NotFound)?;
            let now = self.clock.now();
            let change = match from {
                Some(browser) => session.apply_from(browser, event.clone(), now)?,
                None => session.apply(event.clone(), now)?,
            };
            let Some(change) = change else { return Ok(session) };
            match self.sessions.commit(&change, now + STARTING).await {
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
                    self.rooms.tell(&change.session);
                    return Ok(change.session);
                }
                Err(CommitError::Stale) => (),
                Err(CommitError::Store(error)) => return Err(error.into()),
            }
        }
        Err(Stuck::Busy)
    }

    /// Erases a closed session; the session as it is then.
    pub async fn erase(&self, id: SessionId) -> Result<Session, Stuck> {
        for _ in 0..ATTEMPTS {
            let session = self.sessions.open(id).await?.ok_or(Stuck::NotFound)?;
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
        Err(Stuck::Busy)
    }

    /// A session with the addresses that belong to it.
    pub fn face(&self, session: Session) -> SessionFace {
        SessionFace {
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
        let until = DateTime::from_timestamp(now - now.rem_euclid(60), 0)? + PASS;
        let (id, pass) = (session.id, self.tokens.pass(session.id, until));
        let there = self.addresses.of(session.order.worker_region);
        Some(format!("{there}/watch/{id}?pass={}", pass.expose()))
    }

    pub fn embed_url(&self, session: &Session) -> String {
        let there = self.addresses.of(session.order.worker_region);
        format!("{there}/embed/{}?token={}", session.id, self.tokens.of(session.id).expose())
    }
}
