//! The active viewer of a session, on one of its devices.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    binding::{DeviceNumber, JoinedBy},
    id::SessionId,
    session::{Event, Session},
    workflow::{Definition, PromptKind},
};
use ports::{
    browser::Input,
    driving::{
        ApplicantConnection, ClientCommand, Handover, JoinRequest, ServerEvent, SessionSnapshot,
    },
};
use tokio::time::Instant;

use super::{
    applicants::{begin, with_code},
    hub::LiveSession,
    snapshot::view_of,
};
use crate::{
    advance::{AdvanceError, Core},
    detached::detached,
};

/// How often one view is given a code for another device, and how many of them.
const MIN_HANDOVER_INTERVAL: Duration = Duration::from_secs(1);
const MAX_HANDOVERS: u32 = 100;

/// How often the store is asked for what other processes did to the session.
const STORE_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// One applicant's view.
pub(super) struct ActiveViewer {
    core: Arc<Core>,
    id: SessionId,
    link: String,
    device: DeviceNumber,
    room: Arc<LiveSession>,
    me: u64,
    seen: Mutex<SentVersions>,
    handed_over: Mutex<HandoverCodes>,
}

/// When this view last gave out a code, and how many it has.
#[derive(Default)]
struct HandoverCodes {
    last: Option<Instant>,
    count: u32,
}

/// What this view has shown already.
#[derive(Default, Clone)]
struct SentVersions {
    view: Option<SessionSnapshot>,
    frame: u64,
    scene: u64,
}

impl ActiveViewer {
    /// Makes this the active view of the session.
    pub(super) fn enter(
        core: Arc<Core>,
        session: &Session,
        number: DeviceNumber,
        joining: JoinRequest,
        definition: Option<Arc<Definition>>,
    ) -> Self {
        let (id, device) = (session.id, joining.device);
        let room = core.hub.enter(id);
        room.tell(session);
        let mut me = 0;
        room.state.send_modify(|inside| {
            inside.viewer = inside.viewer.saturating_add(1);
            me = inside.viewer;
            inside.present = true;
            inside.device = device;
            inside.language = joining.language.map(|tag| tag.chars().take(35).collect());
            inside.definition = definition;
            // Another device has another size.
            if let Some(browser) = &inside.browser {
                browser.input(Input::Resize(device.viewport));
            }
        });
        let link = core.embed_url(session);
        let (seen, handed_over) = (Mutex::default(), Mutex::default());
        Self { core, id, link, device: number, room, me, seen, handed_over }
    }

    /// Whether one more code may be given out now.
    fn may_hand_over(&self) -> bool {
        let mut handed = self.handed_over.lock().unwrap_or_else(PoisonError::into_inner);
        let soon = handed.last.is_some_and(|last| last.elapsed() < MIN_HANDOVER_INTERVAL);
        if soon || handed.count >= MAX_HANDOVERS {
            return false;
        }
        *handed =
            HandoverCodes { last: Some(Instant::now()), count: handed.count.saturating_add(1) };
        true
    }

    /// Takes an answer to the question for consent, where this view was shown that question.
    async fn answer(&self, number: u32, agreed: bool) {
        let prompt = self.seen().view.and_then(|view| view.prompt);
        let shown = prompt.is_some_and(|p| p.kind == PromptKind::Consent && p.number == number);
        let mut accepted = false;
        if shown {
            self.room.state.send_if_modified(|inside| {
                accepted = inside.answer_consent(number, agreed);
                accepted
            });
        }
        if !accepted {
            tracing::warn!(session.id = %self.id, "an answer was ignored: no question for consent waits for it");
            return;
        }
        let (core, room) = (self.core.clone(), self.room.clone());
        let (id, device) = (self.id, self.device);
        let note = async move {
            let at = core.clock.now();
            let recorded = core.devices.record_consent(id, device, agreed, at).await;
            room.state.send_modify(|inside| inside.consent_recorded(number, recorded.is_ok()));
            recorded
        };
        if let Err(error) = detached(&self.core.runtime, note).await {
            let error: &dyn std::error::Error = &error;
            tracing::error!(session.id = %self.id, error, "a consent could not be recorded; the applicant can answer again");
        }
    }

    /// Lets the guest with this number join, or not.
    async fn admit(&self, number: u8, allowed: bool) {
        let asking = self.room.state.borrow().guest.clone();
        let Some(guest) = asking.filter(|guest| guest.number == number) else { return };
        let admitted = if allowed {
            let (core, id, secret) = (self.core.clone(), self.id, guest.secret.clone());
            let add = async move {
                let at = core.clock.now();
                core.devices.approve(id, &secret, at).await
            };
            detached(&self.core.runtime, add).await.unwrap_or_else(|error| {
                let error: &dyn std::error::Error = &error;
                tracing::error!(session.id = %self.id, error, "an approved device was not added");
                None
            })
        } else {
            None
        };
        self.room.state.send_modify(|inside| {
            if inside.guest.as_ref().is_some_and(|asking| asking.id == guest.id) {
                inside.guest = None;
                inside.decided = Some((guest.id, admitted.is_some()));
            }
        });
    }

    /// What happened elsewhere: another process, or a browser that was lost.
    async fn look(&self) {
        let (core, room, id) = (self.core.clone(), self.room.clone(), self.id);
        let look = async move {
            if let Ok(Some(session)) = core.sessions.find_unscoped(id).await {
                room.tell(&session);
                begin(&core, &session).await;
            }
        };
        detached(&self.core.runtime, look).await;
    }

    fn seen(&self) -> SentVersions {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn remember(&self, change: impl FnOnce(&mut SentVersions)) {
        change(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

#[async_trait]
impl ApplicantConnection for ActiveViewer {
    async fn next(&self, pictures: bool) -> Option<ServerEvent> {
        let mut changes = self.room.state.subscribe();
        loop {
            let seen = self.seen();
            if seen.view.as_ref().is_some_and(|view| view.outcome.is_some()) {
                return None;
            }
            let inside = changes.borrow_and_update().clone();
            if inside.viewer != self.me {
                return Some(ServerEvent::Replaced);
            }
            if let Some(view) = view_of(&inside).filter(|view| seen.view.as_ref() != Some(view)) {
                self.remember(|seen| seen.view = Some(view.clone()));
                return Some(ServerEvent::View(view));
            }
            let frame = async {
                match &inside.browser {
                    Some(browser) if pictures => browser.frame(seen.frame).await,
                    Some(_) | None => None,
                }
            };
            let scene = async {
                match &inside.browser {
                    Some(browser) => browser.scene(seen.scene).await,
                    None => None,
                }
            };
            tokio::select! {
                news = changes.changed() => news.ok()?,
                Some(scene) = scene => {
                    self.remember(|seen| seen.scene = scene.seq);
                    return Some(ServerEvent::Scene(scene));
                }
                Some(frame) = frame => {
                    self.remember(|seen| seen.frame = frame.seq);
                    return Some(ServerEvent::Frame(frame));
                }
                () = tokio::time::sleep(STORE_POLL_INTERVAL) => self.look().await,
            }
        }
    }

    fn now(&self) -> DateTime<Utc> {
        self.core.clock.now()
    }

    async fn handover(&self) -> Option<Handover> {
        if self.room.state.borrow().viewer != self.me || !self.may_hand_over() {
            return None;
        }
        let (core, id) = (self.core.clone(), self.id);
        let work = async move { core.offer_code(id, JoinedBy::ShownCode).await };
        match detached(&self.core.runtime, work).await {
            Ok(made) => {
                Some(Handover { link: with_code(&self.link, &made.long), code: made.short })
            }
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::error!(session.id = %self.id, error, "a code for another device was not saved");
                None
            }
        }
    }

    async fn handle(&self, act: ClientCommand) {
        let inside = self.room.state.borrow().clone();
        if inside.viewer != self.me {
            return;
        }
        match act {
            ClientCommand::Input(input) => {
                if let Input::Resize(viewport) = input {
                    self.room.state.send_if_modified(|inside| {
                        inside.device.viewport = viewport;
                        false
                    });
                }
                if input.is_text_input() {
                    self.room.text_input.send_replace(());
                }
                let closed = inside.session.is_none_or(|session| session.state.is_closed());
                if let Some(browser) = inside.browser.filter(|_| !closed) {
                    browser.input(input);
                }
            }
            ClientCommand::Share { prompt, agreed } => self.answer(prompt, agreed).await,
            ClientCommand::Admit { number, allowed } => self.admit(number, allowed).await,
            // A device of the session has joined already.
            ClientCommand::Redeem(_) | ClientCommand::SendLink | ClientCommand::Ask => (),
            ClientCommand::Cancel => {
                let (core, id) = (self.core.clone(), self.id);
                let cancel = async move { core.advance(id, None, Event::ApplicantCancelled).await };
                match detached(&self.core.runtime, cancel).await {
                    Ok(_) | Err(AdvanceError::Rejected(_)) => (),
                    Err(error) => {
                        let error: &dyn std::error::Error = &error;
                        tracing::error!(session.id = %self.id, error, "a cancel was not saved");
                    }
                }
            }
        }
    }
}

impl Drop for ActiveViewer {
    fn drop(&mut self) {
        self.room.state.send_if_modified(|inside| {
            let mine = inside.viewer == self.me && inside.present;
            if mine {
                inside.present = false;
            }
            mine
        });
        self.core.hub.leave(self.id);
    }
}
