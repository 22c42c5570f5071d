//! The driving port of observers: a live session's frames, redacted.

use std::{mem, sync::Arc, time::Duration};

use async_trait::async_trait;
use domain::{
    id::SessionId,
    session::{Session, State},
};
use ports::{
    browser::{Browser, Frame, FrameRedactor},
    driving::{ObserveError, ObserverConnection, ObserverEvent, ObserverService},
    tokens::TokenIssuer,
};
use tokio::{runtime::Handle, sync::Mutex};

use super::{
    hub::{LiveSession, LiveState},
    redacted_stream::RedactedStream,
    redactor::RedactedFrame,
};
use crate::{
    advance::SessionEngine,
    detached::detached,
    instances::{InstanceDirectory, runs_elsewhere},
};

/// Observers of one session at the same time.
const MAX_OBSERVERS: u8 = 4;
/// How often the store is asked for transitions that other processes made.
const STORE_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Admits observers.
#[derive(Clone)]
pub struct Observers {
    pub engine: Arc<SessionEngine>,
    pub tokens: Arc<dyn TokenIssuer>,
    pub frames: Arc<dyn FrameRedactor>,
    /// The other instances; `None` for a process that is alone.
    pub instances: Option<Arc<InstanceDirectory>>,
    /// The runtime that connections run their statements on.
    pub runtime: Handle,
}

#[async_trait]
impl ObserverService for Observers {
    async fn watch(
        &self,
        id: SessionId,
        pass: &str,
    ) -> Result<Arc<dyn ObserverConnection>, ObserveError> {
        if !self.tokens.verify_stream_token(id, pass, self.engine.clock.now()) {
            return Err(ObserveError::NotFound);
        }
        let session = self.engine.sessions.find_unscoped(id).await?;
        let session = session.ok_or(ObserveError::NotFound)?;
        let live = self.engine.hub.find_or_create(id);
        live.publish(&session);
        let is_admitted = live.state.send_if_modified(|state| {
            let is_free = state.observers < MAX_OBSERVERS;
            state.observers += u8::from(is_free);
            is_free
        });
        if !is_admitted {
            return Err(ObserveError::Full);
        }
        Ok(Arc::new(Observer { services: self.clone(), id, live, sent: Mutex::default() }))
    }
}

/// The connection of one observer.
struct Observer {
    services: Observers,
    id: SessionId,
    live: Arc<LiveSession>,
    sent: Mutex<ObserverState>,
}

/// What an observer was sent, and what comes next.
#[derive(Default)]
struct ObserverState {
    last: Option<ObserverEvent>,
    /// Whether a frame is visible.
    open: bool,
    ended: bool,
    /// The newest frame, until the observer takes it.
    ready: Option<Arc<Frame>>,
    source: Option<RedactedStream>,
}

impl ObserverState {
    /// Compares the live session's state with what was sent. Returns the state event to send, if
    /// there is one, and the session's browser.
    fn take_in(&mut self, state: &LiveState) -> (Option<ObserverEvent>, Option<Arc<dyn Browser>>) {
        let event = state.session.as_ref().map(event_of);
        let event = event.filter(|event| self.last.as_ref() != Some(event));
        if let Some(event) = &event {
            self.ended = state.is_closed();
            if matches!(event, ObserverEvent::State { withheld: true, .. }) {
                self.ready = None;
            }
            self.last = Some(event.clone());
        }
        (event, state.browser.clone())
    }
}

#[async_trait]
impl ObserverConnection for Observer {
    async fn next(&self, pictures: bool) -> Option<ObserverEvent> {
        let mut sent = self.sent.lock().await;
        let mut changes = self.live.state.subscribe();
        loop {
            let instances = self.services.instances.as_deref();
            let runs_elsewhere = runs_elsewhere(instances, changes.borrow().session.as_ref());
            if sent.ended || runs_elsewhere {
                return None;
            }
            let (event, browser) = sent.take_in(&changes.borrow_and_update());
            if event.is_some() {
                return event;
            }
            match browser {
                Some(browser) if sent.source.as_ref().is_some_and(|own| own.is_of(&browser)) => (),
                Some(browser) => {
                    let frames = self.services.frames.clone();
                    sent.source = Some(RedactedStream::new(self.live.clone(), browser, frames));
                }
                None => sent.source = None,
            }
            if let Some(frame) = sent.ready.take_if(|_| pictures) {
                sent.open = true;
                return Some(ObserverEvent::Frame(frame));
            }
            let ObserverState { source, .. } = &mut *sent;
            let frame = async {
                match source {
                    Some(source) => source.next().await,
                    None => None,
                }
            };
            tokio::select! {
                change = changes.changed() => change.ok()?,
                Some((_, frame)) = frame => match frame {
                    RedactedFrame::Frame(frame) => sent.ready = Some(frame),
                    RedactedFrame::Hidden(_) => {
                        sent.ready = None;
                        if mem::take(&mut sent.open) {
                            return Some(ObserverEvent::Covered);
                        }
                    }
                },
                () = tokio::time::sleep(STORE_POLL_INTERVAL) => self.poll_store().await,
            }
        }
    }
}

impl Observer {
    async fn poll_store(&self) {
        let (engine, live, id) = (self.services.engine.clone(), self.live.clone(), self.id);
        let poll = async move {
            if let Ok(Some(session)) = engine.sessions.find_unscoped(id).await {
                live.publish(&session);
            }
        };
        detached(&self.services.runtime, poll).await;
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.live.state.send_modify(|state| state.observers = state.observers.saturating_sub(1));
        self.services.engine.hub.remove_if_unused(self.id);
    }
}

fn event_of(session: &Session) -> ObserverEvent {
    ObserverEvent::State {
        status: session.status(),
        progress: session.progress.percent(),
        withheld: session.state.ask().is_some(),
        over: matches!(session.state, State::Closed { .. }),
    }
}
