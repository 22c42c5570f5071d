//! The live sessions of this process: where an applicant's connection and a session's browser meet.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    binding::SecretHash,
    id::{InstanceId, SessionId},
    session::{Lease, PendingPrompt, Session, State, Status},
    worker_region::WorkerRegion,
    workflow::{Definition, PromptKind},
};
use ports::{
    browser::{Browser, Device},
    driving::Prompt,
};
use tokio::sync::watch;

#[cfg(test)]
mod tests;

/// How long an applicant who stays at the page can start another attempt.
pub const RETRY_OFFER: TimeDelta = TimeDelta::minutes(10);

/// The live sessions of this process.
#[derive(Default)]
pub struct SessionHub {
    sessions: Mutex<HashMap<SessionId, Arc<LiveSession>>>,
    is_draining: AtomicBool,
    has_no_browsers: AtomicBool,
}

/// One live session.
pub(crate) struct LiveSession {
    pub(crate) state: watch::Sender<LiveState>,
    /// Notified when the applicant enters text; the text itself is not passed on.
    pub(crate) text_input: watch::Sender<()>,
}

/// The state of a live session. Readers borrow it: it is cloned nowhere, since it is read for each
/// input and each frame.
#[derive(Default)]
pub(crate) struct LiveState {
    pub(crate) session: Option<Session>,
    pub(crate) definition: Option<Arc<Definition>>,
    pub(crate) browser: Option<Arc<dyn Browser>>,
    pub(crate) prompt: Option<Prompt>,
    /// The number of the last prompt.
    pub(crate) prompts: u32,
    /// The applicant's answer to the last prompt, where that asks for consent.
    pub(super) consent: Option<ConsentAnswer>,
    /// The address that the applicant entered, with the number of the prompt that asked for it.
    pub(super) custom_url: Option<(u32, String)>,
    pub(crate) device: Device,
    pub(crate) language: Option<String>,
    /// Counts the viewers that have connected; the last one is the active one.
    pub(crate) viewer: u64,
    /// Whether the active viewer is connected.
    pub(crate) present: bool,
    /// A guest that asks the active viewer to let it join.
    pub(crate) guest: Option<JoinAttempt>,
    /// The last guest that the active viewer decided about, and whether it was let in.
    pub(crate) decided: Option<(u64, bool)>,
    /// How many guests have asked.
    pub(crate) asked: u64,
    /// The session's position among those that wait for a browser, from 1.
    pub(crate) place: Option<u32>,
    /// For how many minutes a session at a place is expected to wait, where that is known.
    pub(crate) wait_minutes: Option<u32>,
    /// How often the session's browser could not be started.
    pub(crate) failed_starts: u32,
    /// How many observers are connected.
    pub(crate) observers: u8,
}

/// The numbers of live sessions and of the connections to them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct HubLoad {
    /// Sessions that are not closed, by the name of their status.
    pub(crate) sessions: BTreeMap<&'static str, u32>,
    /// Sessions whose applicant is connected.
    pub(crate) applicants: u32,
    pub(crate) observers: u32,
}

/// A session that waits for a browser.
pub(crate) struct WaitingSession {
    pub(crate) session: SessionId,
    pub(crate) lease: Lease,
    /// The region that its terms name.
    pub(crate) region: WorkerRegion,
    /// Whether it tries a draft, which one instance alone knows.
    pub(crate) is_draft: bool,
    /// How often the wait was moved.
    pub(crate) moves: u8,
}

/// A guest that asks to join.
#[derive(Clone)]
pub(crate) struct JoinAttempt {
    /// Counts the guests that have asked.
    pub(crate) id: u64,
    /// Two digits, shown on both devices, so that the applicant knows which device they let in.
    pub(crate) number: u8,
    pub(crate) secret: SecretHash,
}

/// The one answer that a consent prompt takes.
#[derive(Clone, Copy)]
pub(super) struct ConsentAnswer {
    /// The number of the prompt that is answered.
    prompt: u32,
    agreed: bool,
    /// Whether the store has the answer, with the device that gave it. It takes effect only then.
    recorded: bool,
}

impl SessionHub {
    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<LiveSession>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the live session, which is created if there is none.
    pub(crate) fn find_or_create(&self, id: SessionId) -> Arc<LiveSession> {
        self.sessions().entry(id).or_insert_with(|| Arc::new(LiveSession::new())).clone()
    }

    /// Changes the live session, which is created if there is none. It is not removed in between.
    pub(crate) fn change(
        &self,
        id: SessionId,
        change: impl FnOnce(&mut LiveState),
    ) -> Arc<LiveSession> {
        let mut sessions = self.sessions();
        let live = sessions.entry(id).or_insert_with(|| Arc::new(LiveSession::new()));
        live.state.send_modify(change);
        live.clone()
    }

    /// Publishes a session to all who are connected to it here.
    pub(crate) fn publish(&self, session: &Session) {
        if let Some(live) = self.find(session.id) {
            live.publish(session);
        }
    }

    /// Returns the live session, if there is one.
    pub(crate) fn find(&self, id: SessionId) -> Option<Arc<LiveSession>> {
        self.sessions().get(&id).cloned()
    }

    /// Lets no more sessions begin in this process. Those that run go on.
    pub(crate) fn start_draining(&self) {
        self.is_draining.store(true, Ordering::Release);
        // At once, for a balancer or an autoscaler that reads the metrics.
        metrics::gauge!("avouch_draining").set(1.0);
    }

    /// Returns whether the process stops once its sessions have ended.
    pub fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Acquire)
    }

    /// Counts the live sessions that are not closed, and who is connected to them.
    pub(crate) fn load(&self) -> HubLoad {
        let mut load = HubLoad::default();
        for live in self.sessions().values() {
            let state = live.state.borrow();
            load.applicants = load.applicants.saturating_add(u32::from(state.present));
            load.observers = load.observers.saturating_add(state.observers.into());
            let open = state.session.as_ref().filter(|session| !session.state.is_closed());
            if let Some(session) = open {
                let count = load.sessions.entry(session.status().as_str()).or_default();
                *count = count.saturating_add(1);
            }
        }
        load
    }

    /// Lets no session begin in this process, which has no browsers.
    pub fn set_without_browsers(&self) {
        self.has_no_browsers.store(true, Ordering::Release);
    }

    /// Returns whether sessions can begin in this process.
    pub(crate) fn begins_sessions(&self) -> bool {
        !self.is_draining() && !self.has_no_browsers.load(Ordering::Acquire)
    }

    /// Returns the sessions that wait for a browser of this process.
    pub(crate) fn waiting(&self, node: InstanceId) -> Vec<WaitingSession> {
        let waits = |(id, live): (&SessionId, &Arc<LiveSession>)| {
            let state = live.state.borrow();
            let session = state.session.as_ref().filter(|_| state.place.is_some())?;
            let State::Initializing { lease, history } = session.state else { return None };
            (lease.node == node).then(|| WaitingSession {
                session: *id,
                lease,
                region: session.terms.worker_region,
                is_draft: session.terms.platform.is_of_drafts(),
                moves: history.moves,
            })
        };
        self.sessions().iter().filter_map(waits).collect()
    }

    /// Returns how many sessions have a browser in this process, or are about to get one.
    pub(crate) fn running(&self, node: InstanceId) -> usize {
        let runs = |live: &&Arc<LiveSession>| {
            let state = live.state.borrow();
            let begins = state.session.as_ref().and_then(|session| initializing(session, node));
            state.browser.is_some() || begins.is_some()
        };
        self.sessions().values().filter(runs).count()
    }

    /// Removes the live session if it has no viewer, no browser and no observer.
    pub(crate) fn remove_if_unused(&self, id: SessionId) {
        let mut sessions = self.sessions();
        let is_unused = sessions.get(&id).is_some_and(|live| {
            let state = live.state.borrow();
            !state.present && state.browser.is_none() && state.observers == 0
        });
        if is_unused {
            sessions.remove(&id);
        }
    }
}

/// Returns the lease of a session whose browser is to be started by this process.
fn initializing(session: &Session, node: InstanceId) -> Option<Lease> {
    let is_initializing = matches!(session.state, State::Initializing { .. });
    session.state.lease().filter(|lease| is_initializing && lease.node == node)
}

impl LiveState {
    /// Prompts the applicant, under a new number. Returns `false` if the same prompt is shown
    /// already. A prompt that differs only in its deadline keeps its number and its answer.
    pub(super) fn ask(&mut self, prompt: Prompt) -> bool {
        let number = self.prompts;
        if let Some(shown) = &mut self.prompt
            && *shown == (Prompt { number, deadline: shown.deadline, ..prompt.clone() })
        {
            let is_changed = shown.deadline != prompt.deadline;
            shown.deadline = prompt.deadline;
            return is_changed;
        }
        let number = number.wrapping_add(1);
        self.prompts = number;
        self.prompt = Some(Prompt { number, ..prompt });
        self.consent = None;
        self.custom_url = None;
        true
    }

    /// Takes the address that answers the prompt with this number. Returns `false` if another prompt
    /// is shown.
    pub(super) fn enter_custom_url(&mut self, prompt: u32, url: String) -> bool {
        let is_shown = self
            .prompt
            .as_ref()
            .is_some_and(|shown| shown.kind == PromptKind::CustomUrl && shown.number == prompt);
        if is_shown {
            self.custom_url = Some((prompt, url));
        }
        is_shown
    }

    /// Returns the address that was entered for the current prompt, once.
    pub(super) fn take_custom_url(&mut self) -> Option<String> {
        let (number, url) = self.custom_url.take()?;
        self.prompt.as_ref().is_some_and(|prompt| prompt.number == number).then_some(url)
    }

    /// Accepts the answer to the consent prompt with this number; the caller records it next.
    /// Returns `false` if another prompt is shown, or this one has an answer already.
    pub(super) fn answer_consent(&mut self, prompt: u32, agreed: bool) -> bool {
        let is_shown = self
            .prompt
            .as_ref()
            .is_some_and(|shown| shown.kind == PromptKind::Consent && shown.number == prompt);
        let is_accepted = is_shown && self.consent.is_none();
        if is_accepted {
            self.consent = Some(ConsentAnswer { prompt, agreed, recorded: false });
        }
        is_accepted
    }

    /// Lets the answer to this prompt take effect once it is recorded. Where recording failed, the
    /// prompt can be answered again.
    pub(super) fn consent_recorded(&mut self, prompt: u32, recorded: bool) {
        self.consent = self.consent.filter(|answer| recorded || answer.prompt != prompt);
        if let Some(answer) = self.consent.as_mut().filter(|answer| answer.prompt == prompt) {
            answer.recorded = true;
        }
    }

    /// Returns whether the applicant agreed, once their answer to the current prompt is recorded.
    pub(super) fn consent(&self) -> Option<bool> {
        let prompt = self.prompt.as_ref()?;
        let answer = self.consent.filter(|answer| answer.prompt == prompt.number)?;
        answer.recorded.then_some(answer.agreed)
    }

    /// Returns whether the applicant is shown the remote page, and no page of the service in its place.
    pub(super) fn shows_page(&self) -> bool {
        let asks = self.prompt.as_ref().is_some_and(|prompt| prompt.kind.is_asked_by_service());
        let status = self.session.as_ref().map(Session::status);
        !asks && status != Some(Status::Verifying) && !self.is_closed()
    }

    /// Returns whether the session is closed, or not known.
    pub(super) fn is_closed(&self) -> bool {
        self.session.as_ref().is_none_or(|session| session.state.is_closed())
    }
}

impl LiveSession {
    fn new() -> Self {
        Self { state: watch::Sender::default(), text_input: watch::Sender::default() }
    }

    /// Returns until when an applicant may start another attempt if one fails now; `None` unless they
    /// are at the page.
    pub(crate) fn retry_until(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.state.borrow().present.then_some(now + RETRY_OFFER)
    }

    /// Returns whether the session has another hint than a prompt.
    pub(super) fn is_hint_new(&self, prompt: &PendingPrompt) -> bool {
        let state = self.state.borrow();
        let known = state.session.as_ref().and_then(|session| session.state.ask());
        known.is_some_and(|known| known.hint != prompt.hint)
    }

    /// Takes the session over, unless a newer version came before.
    pub(crate) fn publish(&self, session: &Session) {
        self.state.send_if_modified(|state| {
            let is_newer = state.session.as_ref().is_none_or(|old| old.version < session.version);
            if is_newer {
                state.session = Some(session.clone());
                if session.state.ask().is_none() {
                    state.prompt = None;
                }
            }
            is_newer
        });
    }
}
