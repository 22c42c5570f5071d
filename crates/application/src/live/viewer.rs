//! The active viewer of a session: the one connection whose input reaches the browser.

mod commands;
mod outline;
mod retry;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    binding::{DeviceNumber, JoinedBy},
    id::SessionId,
    session::{Event, Session, State},
    workflow::Definition,
};
use ports::{
    browser::{Browser, Input},
    driving::{
        ApplicantConnection, ClientCommand, Handover, JoinRequest, ServerEvent, SessionSnapshot,
    },
};
use tokio::{runtime::Handle, time::Instant};

use self::outline::{OutlineAnswer, OutlineRequests};
use self::retry::{RetryOffer, RetryStep};
use super::{
    devices::{SessionDevices, with_code},
    hub::{LiveSession, LiveState},
    snapshot::snapshot_of,
    start::SessionStarter,
};
use crate::{
    advance::{BROWSER_LEASE_TTL, SessionEngine},
    detached::detached,
    instances::{InstanceDirectory, runs_elsewhere},
};

/// How often the store is asked for transitions that other processes made.
const STORE_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// What a viewer's connection calls.
pub(super) struct ViewerServices {
    pub(super) engine: Arc<SessionEngine>,
    pub(super) starter: Arc<SessionStarter>,
    pub(super) devices: Arc<SessionDevices>,
    pub(super) instances: Option<Arc<InstanceDirectory>>,
    /// Whether the session is one of another region, which runs here since that was full.
    pub(super) is_elsewhere: bool,
    pub(super) runtime: Handle,
}

/// The connection of one device to its session.
pub(super) struct ActiveViewer {
    services: ViewerServices,
    id: SessionId,
    link: String,
    device: DeviceNumber,
    live: Arc<LiveSession>,
    /// The number of this viewer; the one with the session's last number is the active one.
    number: u64,
    sent: Mutex<SentVersions>,
    handovers: Mutex<HandoverCodes>,
    outlines: OutlineRequests,
    retry: Mutex<Option<RetryOffer>>,
    /// When this viewer connected to a session without a browser, until its first frame is sent.
    waiting_since: Mutex<Option<Instant>>,
}

/// The join codes that this connection was given.
#[derive(Default)]
struct HandoverCodes {
    last: Option<Instant>,
    count: u32,
}

/// The versions that were sent on this connection.
#[derive(Default)]
struct SentVersions {
    /// Whether the session had a browser, or waited for one.
    has_begun: bool,
    view: Option<SessionSnapshot>,
    /// The browser of which `frame` and `scene` are: each counts its own.
    browser: Option<Weak<dyn Browser>>,
    frame: u64,
    scene: u64,
    outline: u64,
}

impl SentVersions {
    /// Begins anew with the frames and page states of another browser.
    fn follow(&mut self, browser: Option<&Arc<dyn Browser>>) {
        let Some(browser) = browser.map(Arc::downgrade) else { return };
        if !self.browser.as_ref().is_some_and(|own| own.ptr_eq(&browser)) {
            (self.browser, self.frame, self.scene) = (Some(browser), 0, 0);
        }
    }
}

/// The next event, or the browser whose next event is awaited.
enum PendingEvent {
    Ready(Option<ServerEvent>),
    Awaited { browser: Option<Arc<dyn Browser>>, frame: u64, scene: u64, outline: u64 },
}

impl ActiveViewer {
    /// Connects a device as the session's active viewer, and replaces the viewer before it.
    pub(super) fn connect(
        services: ViewerServices,
        session: &Session,
        link: String,
        device: DeviceNumber,
        joining: JoinRequest,
        definition: Option<Arc<Definition>>,
    ) -> Self {
        let screen = joining.device;
        let mut number = 0;
        let live = services.engine.hub.change(session.id, |state| {
            state.viewer = state.viewer.saturating_add(1);
            number = state.viewer;
            state.present = true;
            state.device = screen;
            state.language = joining.language.map(|tag| tag.chars().take(35).collect());
            state.definition = definition;
            // The browser may still have the size of another device's screen.
            if let Some(browser) = &state.browser {
                browser.input(Input::Resize(screen.viewport));
            }
        });
        live.publish(session);
        let (sent, handovers, retry) = (Mutex::default(), Mutex::default(), Mutex::default());
        let (id, outlines) = (session.id, OutlineRequests::default());
        let is_new = matches!(session.state, State::Created { .. });
        let waiting_since = Mutex::new(is_new.then(Instant::now));
        Self {
            services,
            id,
            link,
            device,
            live,
            number,
            sent,
            handovers,
            outlines,
            retry,
            waiting_since,
        }
    }

    /// Reads the session from the store: another process may have moved it, or its browser may be
    /// lost, and then a new one is requested. While another attempt is offered, the session is kept
    /// open for the applicant who is at the page.
    async fn poll_store(&self) {
        let (engine, starter) = (self.services.engine.clone(), self.services.starter.clone());
        let (live, id, begins_here) = (self.live.clone(), self.id, self.begins_here());
        let step = self.retry_step();
        let poll = async move {
            match step {
                Some(RetryStep::Renew(lease)) => {
                    let until = engine.clock.now() + BROWSER_LEASE_TTL;
                    if let Err(error) = engine.leases.renew(id, lease.browser, until).await {
                        let error: &dyn std::error::Error = &error;
                        tracing::warn!(session.id = %id, error, "failed to keep a session open for another attempt, retrying");
                    }
                }
                Some(RetryStep::Expire) => {
                    // If this fails, the session ends when its lease lapses.
                    let _ = engine.advance(id, None, Event::RetryExpired).await;
                }
                None => (),
            }
            if let Ok(Some(session)) = engine.sessions.find_unscoped(id).await {
                live.publish(&session);
                if begins_here {
                    starter.start(&session).await;
                }
            }
        };
        detached(&self.services.runtime, poll).await;
    }

    /// Returns whether the session may begin here. One of another region may do so once: when it begins
    /// again, its own region may have room.
    fn begins_here(&self) -> bool {
        !self.services.is_elsewhere || !self.sent().has_begun
    }

    /// Returns whether sessions that are connected here have to begin at another instance.
    fn begins_elsewhere(&self) -> bool {
        let hub = &self.services.engine.hub;
        let others = self.services.instances.as_deref();
        let others_do = others.is_some_and(InstanceDirectory::others_begin_sessions);
        hub.is_draining() || (!hub.begins_sessions() && others_do)
    }

    /// Compares the state with what was sent.
    fn pending(&self, state: &LiveState) -> PendingEvent {
        let mut sent = self.sent();
        if sent.view.as_ref().is_some_and(|view| view.outcome.is_some()) {
            return PendingEvent::Ready(None);
        }
        if state.viewer != self.number {
            return PendingEvent::Ready(Some(ServerEvent::Replaced));
        }
        let waits = |session: &Session| matches!(session.state, State::Created { .. });
        let is_created = state.session.as_ref().is_some_and(waits);
        let is_away = self.services.is_elsewhere && sent.has_begun;
        let has_studio = |session: &Session| session.terms.studio.is_some();
        // A draft begins at the instance of its studio or nowhere.
        let may_begin_elsewhere = !state.session.as_ref().is_some_and(has_studio);
        if is_created && may_begin_elsewhere && (is_away || self.begins_elsewhere()) {
            // The page connects again, to an instance that starts the session.
            return PendingEvent::Ready(None);
        }
        sent.has_begun |= state.session.is_some() && !is_created;
        let instances = self.services.instances.as_deref();
        if runs_elsewhere(instances, state.session.as_ref()) {
            // The page connects again, and is relayed to the instance that has the browser.
            return PendingEvent::Ready(None);
        }
        if let Some(view) = snapshot_of(state).filter(|view| sent.view.as_ref() != Some(view)) {
            sent.view = Some(view.clone());
            return PendingEvent::Ready(Some(ServerEvent::View(view)));
        }
        sent.follow(state.browser.as_ref());
        PendingEvent::Awaited {
            browser: state.browser.clone(),
            frame: sent.frame,
            scene: sent.scene,
            outline: sent.outline,
        }
    }

    /// Records how long the applicant has waited for the remote page, at the first frame.
    fn measure_first_frame(&self) {
        let since = self.waiting_since.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(since) = since {
            metrics::histogram!("avouch_session_first_frame_seconds").record(since.elapsed());
        }
    }

    fn sent(&self) -> MutexGuard<'_, SentVersions> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ApplicantConnection for ActiveViewer {
    async fn next(&self, pictures: bool) -> Option<ServerEvent> {
        let mut changes = self.live.state.subscribe();
        loop {
            let pending = self.pending(&changes.borrow_and_update());
            let (browser, sent_frame, sent_scene, sent_outline) = match pending {
                PendingEvent::Ready(event) => return event,
                PendingEvent::Awaited { browser, frame, scene, outline } => {
                    (browser, frame, scene, outline)
                }
            };
            let frame = async {
                match &browser {
                    Some(browser) if pictures => browser.frame(sent_frame).await,
                    Some(_) | None => None,
                }
            };
            let scene = async {
                match &browser {
                    Some(browser) => browser.page_state(sent_scene).await,
                    None => None,
                }
            };
            tokio::select! {
                change = changes.changed() => change.ok()?,
                Some(scene) = scene => {
                    self.sent().scene = scene.seq;
                    return Some(ServerEvent::Scene(scene));
                }
                Some(frame) = frame => {
                    self.sent().frame = frame.seq;
                    self.measure_first_frame();
                    return Some(ServerEvent::Frame(frame));
                }
                Some(OutlineAnswer { number, outline }) = self.outlines.answer(sent_outline) => {
                    self.sent().outline = number;
                    // A question for consent may have come while the outline was made.
                    if self.live.state.borrow().shows_page() {
                        return Some(ServerEvent::Outline(outline));
                    }
                }
                () = tokio::time::sleep(STORE_POLL_INTERVAL) => self.poll_store().await,
            }
        }
    }

    fn now(&self) -> DateTime<Utc> {
        self.services.engine.clock.now()
    }

    async fn handover(&self) -> Option<Handover> {
        if self.live.state.borrow().viewer != self.number || !self.may_hand_over() {
            return None;
        }
        let (devices, id) = (self.services.devices.clone(), self.id);
        let offer = async move { devices.offer_code(id, JoinedBy::ShownCode).await };
        match detached(&self.services.runtime, offer).await {
            Ok(code) => {
                Some(Handover { link: with_code(&self.link, &code.long), code: code.short })
            }
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::error!(session.id = %self.id, error, "failed to save a join code; none is shown");
                None
            }
        }
    }

    async fn handle(&self, act: ClientCommand) {
        if self.live.state.borrow().viewer != self.number {
            return;
        }
        match act {
            ClientCommand::Input(input) => self.input(input),
            ClientCommand::Outline => self.request_outline(),
            ClientCommand::Share { prompt, agreed } => self.answer(prompt, agreed).await,
            ClientCommand::CustomUrl { prompt, url } => {
                self.live.state.send_if_modified(|state| state.enter_custom_url(prompt, url));
            }
            ClientCommand::Admit { number, allowed } => self.admit(number, allowed).await,
            ClientCommand::Cancel => self.end(Event::ApplicantCancelled).await,
            ClientCommand::Retry => self.retry().await,
            ClientCommand::DeclineRetry => self.end(Event::RetryDeclined).await,
            ClientCommand::Present => self.applicant_acted(),
            // These are for guests; this device has joined already.
            ClientCommand::Redeem(_) | ClientCommand::SendLink | ClientCommand::Ask => (),
        }
    }
}

impl Drop for ActiveViewer {
    fn drop(&mut self) {
        self.live.state.send_if_modified(|state| {
            let is_active = state.viewer == self.number && state.present;
            if is_active {
                state.present = false;
            }
            is_active
        });
        self.services.engine.hub.remove_if_unused(self.id);
    }
}
