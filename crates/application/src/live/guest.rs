//! A guest's connection: a device that has a session's link and does not belong to the session. It
//! is shown how the session stands and how to join; it sees no frame and moves nothing.

mod request;

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
    StoreError,
    device_store::{Binding, RedeemOutcome},
    driving::{ApplicantConnection, ClientCommand, Guest, GuestAnswer, Handover, ServerEvent},
    notifier::{NotificationQueue, ResendOutcome},
    refusals::{RefusalClass, RefusalLog},
};
use tokio::{runtime::Handle, sync::Notify, time::Instant};

use super::{
    devices::SessionDevices,
    hub::{JoinAttempt, LiveState},
    snapshot::snapshot_of,
};
use crate::{
    advance::SessionEngine,
    detached::detached,
    instances::{InstanceDirectory, runs_elsewhere},
};

/// How often the store is asked how the session stands.
const STORE_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How many commands of one guest are carried out.
const MAX_ATTEMPTS: u32 = 30;

/// What a guest's connection calls.
pub(super) struct GuestServices {
    pub(super) engine: Arc<SessionEngine>,
    pub(super) devices: Arc<SessionDevices>,
    pub(super) notifications: Arc<dyn NotificationQueue>,
    pub(super) refusals: Arc<dyn RefusalLog>,
    pub(super) instances: Option<Arc<InstanceDirectory>>,
    pub(super) runtime: Handle,
}

/// The connection of one guest.
pub(super) struct GuestConnection {
    services: GuestServices,
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
    sent: Option<Guest>,
    answer: Option<GuestAnswer>,
    /// The request to the active viewer that waits for a decision.
    asking: Option<(JoinAttempt, Instant)>,
    admitted: bool,
    over: bool,
}

impl GuestConnection {
    pub(super) fn new(
        services: GuestServices,
        session: &Session,
        secret: SecretHash,
        definition: Option<Arc<Definition>>,
        language: Option<String>,
    ) -> Self {
        let has_channel = session.terms.invitation.is_some() && session.terms.receiver.is_some();
        Self {
            services,
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

    /// Returns what to show of the session, unless it was sent already.
    fn unsent(&self, session: Session) -> Option<ServerEvent> {
        let definition = self.definition.clone();
        let (status, progress) = (session.status(), session.progress.percent());
        if session.state.is_closed() {
            let language = self.language.clone();
            let state =
                LiveState { session: Some(session), definition, language, ..LiveState::default() };
            return snapshot_of(&state).map(ServerEvent::View);
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
            let is_new = state.sent.as_ref() != Some(&guest);
            state.sent = Some(guest.clone());
            is_new.then_some(ServerEvent::Guest(guest))
        })
    }

    async fn redeem(&self, code: String) {
        let (devices, id) = (self.services.devices.clone(), self.id);
        let secret = self.secret.clone();
        let work = async move { devices.redeem(id, &code, &secret).await };
        match detached(&self.services.runtime, work).await {
            Ok(RedeemOutcome::Joined(..)) => self.admitted(),
            Ok(RedeemOutcome::Full) => self.answered(GuestAnswer::TooManyDevices),
            Ok(RedeemOutcome::Refused) => {
                if self.services.refusals.may_log(RefusalClass::Code) {
                    let class = RefusalClass::Code.as_str();
                    tracing::warn!(class, session.id = %self.id, "refused a join code");
                }
                self.answered(GuestAnswer::WrongCode);
            }
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::error!(session.id = %self.id, error, "failed to redeem a join code; the guest is asked to try again");
                self.answered(GuestAnswer::Unavailable);
            }
        }
    }

    async fn send_link(&self) {
        let (queue, id) = (self.services.notifications.clone(), self.id);
        let clock = self.services.engine.clock.clone();
        let work = async move { queue.notify_again(id, clock.now()).await };
        self.answered(match detached(&self.services.runtime, work).await {
            Ok(ResendOutcome::Queued) => GuestAnswer::LinkSent,
            Ok(ResendOutcome::NotBefore(_) | ResendOutcome::NoMore) => GuestAnswer::LinkNotSent,
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::error!(session.id = %self.id, error, "failed to queue a link for a guest");
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
            self.check_decision();
            if self.with(|state| state.admitted) {
                self.with(|state| state.over = true);
                return Some(ServerEvent::Admitted);
            }
            let (engine, devices) = (self.services.engine.clone(), self.services.devices.clone());
            let (id, secret) = (self.id, self.secret.clone());
            let poll = async move {
                let session = engine.sessions.find_unscoped(id).await?;
                Ok::<_, StoreError>((session, devices.binding(id, &secret).await?))
            };
            match detached(&self.services.runtime, poll).await {
                Ok((None, _)) => return None,
                // The page connects again, and is relayed to where the active viewer is.
                Ok((Some(session), _))
                    if runs_elsewhere(self.services.instances.as_deref(), Some(&session)) =>
                {
                    return None;
                }
                // The device has joined over another connection.
                Ok((Some(session), Binding::Bound(_))) if !session.state.is_closed() => {
                    self.admitted();
                    continue;
                }
                Ok((Some(session), _)) => {
                    let is_closed = session.state.is_closed();
                    if let Some(event) = self.unsent(session) {
                        self.with(|state| state.over = is_closed);
                        return Some(event);
                    }
                }
                Err(error) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(session.id = %self.id, error, "failed to read a session for a guest, retrying");
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
            // The session has no channel for a link, or the command is not for guests.
            ClientCommand::SendLink
            | ClientCommand::Input(_)
            | ClientCommand::Outline
            | ClientCommand::Share { .. }
            | ClientCommand::CustomUrl { .. }
            | ClientCommand::Cancel
            | ClientCommand::Retry
            | ClientCommand::DeclineRetry
            | ClientCommand::Present
            | ClientCommand::Admit { .. } => {}
        }
    }

    fn now(&self) -> DateTime<Utc> {
        self.services.engine.clock.now()
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
