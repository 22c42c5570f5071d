//! The onlooker's driving port: seeing a session that runs, with what is secret left out.

use std::{mem, sync::Arc, time::Duration};

use async_trait::async_trait;
use domain::{
    id::SessionId,
    session::{Session, State},
};
use ports::{
    browser::Frame,
    driving::{Sight, WatchError, WatchService, Watching},
};
use tokio::sync::Mutex;

use super::{discreet::Discreet, room::Room, veil::Seen};
use crate::{advance::Core, detached::detached};

/// Onlookers of one session at once.
const MOST: u8 = 4;
/// How often the store is asked for what other processes did to the session.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Lets onlookers in.
pub struct Watchers {
    pub core: Arc<Core>,
}

#[async_trait]
impl WatchService for Watchers {
    async fn watch(&self, id: SessionId, pass: &str) -> Result<Arc<dyn Watching>, WatchError> {
        if !self.core.tokens.admits(id, pass, self.core.clock.now()) {
            return Err(WatchError::NotFound);
        }
        let session = self.core.sessions.open(id).await?.ok_or(WatchError::NotFound)?;
        let room = self.core.rooms.enter(id);
        room.tell(&session);
        let seated = room.inside.send_if_modified(|inside| {
            let free = inside.onlookers < MOST;
            inside.onlookers += u8::from(free);
            free
        });
        if !seated {
            return Err(WatchError::Full);
        }
        let core = self.core.clone();
        Ok(Arc::new(OneWatch { core, id, room, has: Mutex::default() }))
    }
}

/// One onlooker.
struct OneWatch {
    core: Arc<Core>,
    id: SessionId,
    room: Arc<Room>,
    has: Mutex<Has>,
}

/// What an onlooker has been told.
#[derive(Default)]
struct Has {
    told: Option<Sight>,
    /// Whether a picture is to be seen.
    open: bool,
    ended: bool,
    /// The newest picture, until it may be given.
    ready: Option<Arc<Frame>>,
    source: Option<Discreet>,
}

#[async_trait]
impl Watching for OneWatch {
    async fn next(&self, pictures: bool) -> Option<Sight> {
        let mut has = self.has.lock().await;
        let mut changes = self.room.inside.subscribe();
        loop {
            if has.ended {
                return None;
            }
            let inside = changes.borrow_and_update().clone();
            let state = inside.session.as_ref().map(sight);
            if let Some(state) = state.filter(|state| has.told.as_ref() != Some(state)) {
                has.ended = inside.session.is_some_and(|session| session.state.is_closed());
                if matches!(state, Sight::State { withheld: true, .. }) {
                    has.ready = None;
                }
                has.told = Some(state.clone());
                return Some(state);
            }
            match &inside.browser {
                Some(browser) if has.source.as_ref().is_some_and(|own| own.is_of(browser)) => (),
                Some(browser) => {
                    has.source = Some(Discreet::new(
                        self.room.clone(),
                        browser.clone(),
                        self.core.frames.clone(),
                    ));
                }
                None => has.source = None,
            }
            if let Some(frame) = has.ready.take_if(|_| pictures) {
                has.open = true;
                return Some(Sight::Frame(frame));
            }
            let Has { source, .. } = &mut *has;
            let picture = async {
                match source {
                    Some(source) => source.next().await,
                    None => None,
                }
            };
            tokio::select! {
                news = changes.changed() => news.ok()?,
                Some((_, seen)) = picture => match seen {
                    Seen::Frame(frame) => has.ready = Some(frame),
                    Seen::Covered(_) => {
                        has.ready = None;
                        if mem::take(&mut has.open) {
                            return Some(Sight::Covered);
                        }
                    }
                },
                () = tokio::time::sleep(LOOK_EVERY) => self.look().await,
            }
        }
    }
}

impl OneWatch {
    async fn look(&self) {
        let (core, room, id) = (self.core.clone(), self.room.clone(), self.id);
        let look = async move {
            if let Ok(Some(session)) = core.sessions.open(id).await {
                room.tell(&session);
            }
        };
        detached(&self.core.runtime, look).await;
    }
}

impl Drop for OneWatch {
    fn drop(&mut self) {
        self.room
            .inside
            .send_modify(|inside| inside.onlookers = inside.onlookers.saturating_sub(1));
        self.core.rooms.leave(self.id);
    }
}

fn sight(session: &Session) -> Sight {
    Sight::State {
        status: session.status(),
        progress: session.progress.percent(),
        withheld: session.state.ask().is_some(),
        over: matches!(session.state, State::Closed { .. }),
    }
}
