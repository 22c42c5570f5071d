//! Whoever has a session's link and none of its devices: told how the session stands, and how to
//! join. Sees nothing of the platform's page, and moves nothing.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{binding::SecretHash, id::SessionId, session::Session, workflow::Definition};
use ports::{
    device_store::{Binding, RedeemOutcome},
    driving::{ApplicantConnection, ClientCommand, Guest, GuestAnswer, Handover, ServerEvent},
    notifier::{NotificationQueue, ResendOutcome},
    refusals::RefusalClass,
};
use tokio::{sync::Notify, time::Instant};

use super::{
    hub::{JoinAttempt, LiveState},
    snapshot::view_of,
};
use crate::{advance::Core, detached::detached};

/// How often the store is asked how the session stands.
const STORE_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long the active viewer has to decide about a guest.
const DECISION_TTL: Duration = Duration::from_secs(60);
/// How many guests of a session may ask its active viewer.
const MAX_JOIN_REQUESTS: u64 = 5;
/// How many things one guest may try.
const MAX_ATTEMPTS: u32 = 30;

/// A guest's view of a session.
pub(super) struct GuestConnection {
    core: Arc<Core>,
    notifications: Arc<dyn NotificationQueue>,
    id: SessionId,
    secret: SecretHash,
    definition: Option<Arc<Definition>>,
    language: Option<String>,
    has_channel: bool,
    state: Mutex<GuestState>,
    changed: Notify,
    attempts: AtomicU32,
}

#[derive(Default)]
struct GuestState {
    shown: Option<Guest>,
    answer: Option<GuestAnswer>,
    asking: Option<(JoinAttempt, Instant)>,
    admitted: bool,
    over: bool,
}

impl GuestConnection {
    pub(super) fn new(
        core: Arc<Core>,
        notifications: Arc<dyn NotificationQueue>,
        session: &Session,
        secret: SecretHash,
        definition: Option<Arc<Definition>>,
        language: Option<String>,
    ) -> Self {
        let has_channel = session.terms.invitation.is_some() && session.terms.receiver.is_some();
        Self {
            core,
            notifications,
            id: session.id,
            secret,
            definition,
            language,
            has_channel,
            state: Mutex::default(),
            changed: Notify::new(),
            attempts: AtomicU32::new(0),
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut GuestState) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn answered(&self, answer: GuestAnswer) {
        self.with(|state| state.answer = Some(answer));
        self.changed.notify_one();
    }

    fn admitted(&self) {
        self.with(|state| state.admitted = true);
        self.changed.notify_one();
    }

    /// What is to be shown for the session as it is, unless it is shown already.
    fn news(&self, session: Session) -> Option<ServerEvent> {
        let definition = self.definition.clone();
        let (status, progress) = (session.status(), session.progress.percent());
        if session.state.is_closed() {
            let language = self.language.clone();
            let inside =
                LiveState { session: Some(session), definition, language, ..LiveState::default() };
            return view_of(&inside).map(ServerEvent::View);
        }
        self.with(|state| {
            let guest = Guest {
                status,
                progress,
                platform: definition.map(|d| d.display_name.clone()).unwrap_or_default(),
                has_channel: self.has_channel,
                asking: state.asking.as_ref().map(|(asking, _)| asking.number),
                answer: state.answer,
            };
            let news = state.shown.as_ref() != Some(&guest);
            state.shown = Some(guest.clone());
            news.then_some(ServerEvent::Guest(guest))
        })
    }

    /// Takes note of what the active viewer decided, or that it did not in time.
    fn look_for_decision(&self) {
        let Some((asking, since)) = self.with(|state| state.asking.clone()) else { return };
        let room = self.core.hub.find(self.id);
        let decided = room.and_then(|room| room.state.borrow().decided);
        let decided = decided.filter(|(id, _)| *id == asking.id).map(|(_, allowed)| allowed);
        let late = since.elapsed() > DECISION_TTL;
        if decided.is_none() && !late {
            return;
        }
        self.withdraw();
        if decided == Some(true) {
            self.admitted();
        } else {
            self.answered(GuestAnswer::NotApproved);
        }
    }

    /// No longer asks the active viewer.
    fn withdraw(&self) {
        let asking = self.with(|state| state.asking.take());
        let (Some((asking, _)), Some(room)) = (asking, self.core.hub.find(self.id)) else {
            return;
        };
        room.state.send_if_modified(|inside| {
            let mine = inside.guest.as_ref().is_some_and(|guest| guest.id == asking.id);
            if mine {
                inside.guest = None;
            }
            mine
        });
    }

    fn ask(&self) {
        if self.with(|state| state.asking.is_some()) {
            return;
        }
        let number = u8::try_from(self.core.random.random_u16() % 90).unwrap_or_default();
        let number = number.saturating_add(10);
        let mut asking = None;
        if let Some(room) = self.core.hub.find(self.id) {
            room.state.send_if_modified(|inside| {
                if !inside.present || inside.guest.is_some() || inside.asked >= MAX_JOIN_REQUESTS {
                    return false;
                }
                inside.asked = inside.asked.saturating_add(1);
                let secret = self.secret.clone();
                let guest = JoinAttempt { id: inside.asked, number, secret };
                inside.guest = Some(guest.clone());
                asking = Some(guest);
                true
            });
        }
        match asking {
            Some(asking) => {
                self.with(|state| {
                    state.asking = Some((asking, Instant::now()));
                    state.answer = None;
                });
                self.changed.notify_one();
            }
            None => self.answered(GuestAnswer::NotApproved),
        }
    }

    async fn redeem(&self, typed: String) {
        let (core, id, secret) = (self.core.clone(), self.id, self.secret.clone());
        let work = async move { core.redeem(id, &typed, &secret).await };
        match detached(&self.core.runtime, work).await {
            Ok(RedeemOutcome::Joined(..)) => self.admitted(),
            Ok(RedeemOutcome::Full) => self.answered(GuestAnswer::TooManyDevices),
            Ok(RedeemOutcome::Refused) => {
                if self.core.refusals.may_log(RefusalClass::Code) {
                    let class = RefusalClass::Code.as_str();
                    tracing::warn!(class, session.id = %self.id, "a code for another device was refused");
                }
                self.answered(GuestAnswer::WrongCode);
            }
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::error!(session.id = %self.id, error, "a code could not be redeemed; the guest is told to try again");
                self.answered(GuestAnswer::Unavailable);
            }
        }
    }

    async fn send_link(&self) {
        let (core, queue, id) = (self.core.clone(), self.notifications.clone(), self.id);
        let work = async move { queue.notify_again(id, core.clock.now()).await };
        self.answered(match detached(&self.core.runtime, work).await {
            Ok(ResendOutcome::Queued) => GuestAnswer::LinkSent,
            Ok(ResendOutcome::NotBefore(_) | ResendOutcome::NoMore) => GuestAnswer::LinkNotSent,
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::error!(session.id = %self.id, error, "a new link could not be queued");
                GuestAnswer::LinkNotSent
            }
        });
    }
}

#[async_trait]
impl ApplicantConnection for GuestConnection {
    async fn next(&self, _pictures: bool) -> Option<ServerEvent> {
        loop {
            if self.with(|state| state.over) {
                return None;
            }
            self.look_for_decision();
            if self.with(|state| state.admitted) {
                self.with(|state| state.over = true);
                return Some(ServerEvent::Admitted);
            }
            let (core, id, secret) = (self.core.clone(), self.id, self.secret.clone());
            let look = async move {
                let session = core.sessions.find_unscoped(id).await?;
                Ok::<_, ports::StoreError>((session, core.devices.device(id, &secret).await?))
            };
            match detached(&self.core.runtime, look).await {
                Ok((None, _)) => return None,
                // It became one by other means: on another connection of the same device.
                Ok((Some(session), Binding::Bound(_))) if !session.state.is_closed() => {
                    self.admitted();
                    continue;
                }
                Ok((Some(session), _)) => {
                    let closed = session.state.is_closed();
                    if let Some(show) = self.news(session) {
                        self.with(|state| state.over = closed);
                        return Some(show);
                    }
                }
                Err(error) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(session.id = %self.id, error, "a guest could not be told news");
                }
            }
            tokio::select! {
                () = self.changed.notified() => (),
                () = tokio::time::sleep(STORE_POLL_INTERVAL) => (),
            }
        }
    }

    async fn handle(&self, act: ClientCommand) {
        let joins =
            matches!(act, ClientCommand::Redeem(_) | ClientCommand::SendLink | ClientCommand::Ask);
        if !joins || self.attempts.fetch_add(1, Ordering::Relaxed) >= MAX_ATTEMPTS {
            return;
        }
        match act {
            ClientCommand::Redeem(code) => self.redeem(code).await,
            ClientCommand::SendLink if self.has_channel => self.send_link().await,
            ClientCommand::Ask => self.ask(),
            // There is no channel to send it over, or it is not for guests.
            ClientCommand::SendLink
            | ClientCommand::Input(_)
            | ClientCommand::Share { .. }
            | ClientCommand::Cancel
            | ClientCommand::Admit { .. } => {}
        }
    }

    fn now(&self) -> DateTime<Utc> {
        self.core.clock.now()
    }

    async fn handover(&self) -> Option<Handover> {
        None
    }
}

impl Drop for GuestConnection {
    fn drop(&mut self) {
        self.withdraw();
    }
}
