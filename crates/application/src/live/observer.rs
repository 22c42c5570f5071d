//! The onlooker's driving port: seeing a session that runs, with what is secret left out.

use std::{mem, sync::Arc, time::Duration};

use async_trait::async_trait;
use domain::{
    id::SessionId,
    session::{Session, State},
};
use ports::{
    browser::Frame,
    driving::{ObserveError, ObserverConnection, ObserverEvent, ObserverService},
};
use tokio::sync::Mutex;

use super::{hub::LiveSession, redacted_stream::RedactedStream, redactor::RedactedFrame};
use crate::{advance::Core, detached::detached};

/// Onlookers of one session at once.
const MAX_OBSERVERS: u8 = 4;
/// How often the store is asked for what other processes did to the session.
const STORE_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Lets onlookers in.
pub struct Observers {
    pub core: Arc<Core>,
}

#[async_trait]
impl ObserverService for Observers {
    async fn watch(
        &self,
        id: SessionId,
        pass: &str,
    ) -> Result<Arc<dyn ObserverConnection>, ObserveError> {
        if !self.core.tokens.verify_stream_token(id, pass, self.core.clock.now()) {
            return Err(ObserveError::NotFound);
        }
        let session = self.core.sessions.find_unscoped(id).await?.ok_or(ObserveError::NotFound)?;
        let room = self.core.hub.enter(id);
        room.tell(&session);
        let seated = room.state.send_if_modified(|inside| {
            let free = inside.onlookers < MAX_OBSERVERS;
            inside.onlookers += u8::from(free);
            free
        });
        if !seated {
            return Err(ObserveError::Full);
        }
        let core = self.core.clone();
        Ok(Arc::new(Observer { core, id, room, has: Mutex::default() }))
    }
}

/// One onlooker.
struct Observer {
    core: Arc<Core>,
    id: SessionId,
    room: Arc<LiveSession>,
    has: Mutex<ObserverState>,
}

/// What an onlooker has been told.
#[derive(Default)]
struct ObserverState {
    told: Option<ObserverEvent>,
    /// Whether a picture is to be seen.
    open: bool,
    ended: bool,
    /// The newest picture, until it may be given.
    ready: Option<Arc<Frame>>,
    source: Option<RedactedStream>,
}

#[async_trait]
impl ObserverConnection for Observer {
    async fn next(&self, pictures: bool) -> Option<ObserverEvent> {
        let mut has = self.has.lock().await;
        let mut changes = self.room.state.subscribe();
        loop {
            if has.ended {
                return None;
            }
            let inside = changes.borrow_and_update().clone();
            let state = inside.session.as_ref().map(sight);
            if let Some(state) = state.filter(|state| has.told.as_ref() != Some(state)) {
                has.ended = inside.session.is_some_and(|session| session.state.is_closed());
                if matches!(state, ObserverEvent::State { withheld: true, .. }) {
                    has.ready = None;
                }
                has.told = Some(state.clone());
                return Some(state);
            }
            match &inside.browser {
                Some(browser) if has.source.as_ref().is_some_and(|own| own.is_of(browser)) => (),
                Some(browser) => {
                    has.source = Some(RedactedStream::new(
                        self.room.clone(),
                        browser.clone(),
                        self.core.frames.clone(),
                    ));
                }
                None => has.source = None,
            }
            if let Some(frame) = has.ready.take_if(|_| pictures) {
                has.open = true;
                return Some(ObserverEvent::Frame(frame));
            }
            let ObserverState { source, .. } = &mut *has;
            let picture = async {
                match source {
                    Some(source) => source.next().await,
                    None => None,
                }
            };
            tokio::select! {
                news = changes.changed() => news.ok()?,
                Some((_, seen)) = picture => match seen {
                    RedactedFrame::Frame(frame) => has.ready = Some(frame),
                    RedactedFrame::Hidden(_) => {
                        has.ready = None;
                        if mem::take(&mut has.open) {
                            return Some(ObserverEvent::Covered);
                        }
                    }
                },
                () = tokio::time::sleep(STORE_POLL_INTERVAL) => self.look().await,
            }
        }
    }
}

impl Observer {
    async fn look(&self) {
        let (core, room, id) = (self.core.clone(), self.room.clone(), self.id);
        let look = async move {
            if let Ok(Some(session)) = core.sessions.find_unscoped(id).await {
                room.tell(&session);
            }
        };
        detached(&self.core.runtime, look).await;
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.room.state.send_modify(|inside| inside.onlookers = inside.onlookers.saturating_sub(1));
        self.core.hub.leave(self.id);
    }
}

fn sight(session: &Session) -> ObserverEvent {
    ObserverEvent::State {
        status: session.status(),
        progress: session.progress.percent(),
        withheld: session.state.ask().is_some(),
        over: matches!(session.state, State::Closed { .. }),
    }
}
