//! The other instances of the deployment: which of them run, and which one serves a session.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    id::{InstanceId, SessionId},
    placement::{Instance, PlannedMove, is_region_full, least_used, plan_moves},
    session::{Session, State},
    worker_region::WorkerRegion,
};
use ports::{
    clock::Clock,
    driving::SocketRouter,
    instances::{
        InstanceLinks, InstanceRegistry, LinkError, MAX_ASKED, RelayedSocket, ReportedInstance,
        SessionRegions, SocketKind, SocketRequest,
    },
    session_store::SessionStore,
};
use tokio::{runtime::Handle, time::Instant};

use crate::{
    browser_turns::BrowserTurns,
    detached::detached,
    live::{SessionHub, WaitingSession},
    settings::Addresses,
    workers::Worker,
};

mod moves;
mod studios;
#[cfg(test)]
mod tests;

pub use self::{
    moves::WaitMover,
    studios::{ForwardPlaces, MAX_FORWARDED_AT_ONCE, MAX_FORWARDED_OF_AUTHOR},
};

/// How often an instance reports, and reads what the others have reported.
pub const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// How long after its last report an instance counts as running.
pub const REPORT_TTL: Duration = Duration::from_secs(5);
/// How long after its last report the entry of an instance is deleted.
const ENTRY_TTL: Duration = Duration::from_secs(60);
/// How long an instance that did not answer is not asked again.
pub const UNREACHABLE_TTL: Duration = Duration::from_secs(5);
/// How long a session that was moved counts in addition to what its new instance reports. It is among the
/// reported ones once its applicant is connected there.
const MOVED_TTL: Duration = Duration::from_secs(5);

/// What an instance knows of the others.
pub struct InstanceDirectory {
    /// This instance; what changes while it runs is added from the hub.
    own: Instance,
    addresses: Addresses,
    hub: Arc<SessionHub>,
    turns: Arc<BrowserTurns>,
    clock: Arc<dyn Clock>,
    /// What this instance has reported last: all decide about the same reports.
    reported: Mutex<Option<Instance>>,
    known: Mutex<HashMap<InstanceId, KnownInstance>>,
    /// How often an instance was chosen for a session.
    choices: AtomicU64,
    /// Whether the others' reports were read at least once.
    is_informed: AtomicBool,
    /// Of sessions that wait here, whether their teams allow other regions.
    leaving: Mutex<HashMap<SessionId, bool>>,
}

/// An instance that a session is sent to.
struct Target {
    id: InstanceId,
    address: String,
    region: Option<WorkerRegion>,
}

impl Target {
    fn of(instance: &Instance) -> Self {
        Self { id: instance.id, address: instance.address.clone(), region: instance.region }
    }
}

struct KnownInstance {
    last: ReportedInstance,
    /// When its count was seen to grow.
    reported_at: Instant,
    unreachable_since: Option<Instant>,
    /// The sessions that were sent there since its last report.
    sent: u32,
    /// When sessions that waited here were moved there, the latest ones.
    moved: VecDeque<Instant>,
}

impl KnownInstance {
    const fn new(last: ReportedInstance, now: Instant) -> Self {
        let moved = VecDeque::new();
        Self { last, reported_at: now, unreachable_since: None, sent: 0, moved }
    }

    fn is_running(&self, now: Instant) -> bool {
        let is_reachable = self.unreachable_since.is_none_or(|since| now - since > UNREACHABLE_TTL);
        is_reachable && now - self.reported_at <= REPORT_TTL
    }

    /// Returns what it reported, with the sessions that were sent there since.
    fn expected(&self, now: Instant) -> Instance {
        let instance = self.last.instance.clone();
        let moved = self.moved.iter().filter(|at| now - **at < MOVED_TTL).count();
        let sent = self.sent.saturating_add(u32::try_from(moved).unwrap_or(u32::MAX));
        Instance { sessions: instance.sessions.saturating_add(sent), ..instance }
    }
}

impl InstanceDirectory {
    /// What changes of this instance while it runs is taken from the hub and the queue.
    #[must_use]
    pub fn new(
        own: Instance,
        addresses: Addresses,
        hub: Arc<SessionHub>,
        turns: Arc<BrowserTurns>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (reported, known, choices, is_informed, leaving) = Default::default();
        Self { own, addresses, hub, turns, clock, reported, known, choices, is_informed, leaving }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<InstanceId, KnownInstance>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what this instance tells of itself now.
    fn own(&self) -> Instance {
        let movable = self.movable();
        let since = movable.iter().map(|(_, since)| *since).min();
        let waited = since.map_or(0, |since| (self.clock.now() - since).num_seconds());
        let leaving = movable.iter().filter(|(waiting, _)| self.may_leave(waiting.session)).count();
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let sessions = self.hub.running(self.own.id).saturating_add(self.turns.arriving());
        Instance {
            sessions: count(sessions),
            waiting: count(movable.len()),
            leaving: count(leaving),
            waited: u32::try_from(waited).unwrap_or(0),
            is_draining: self.hub.is_draining(),
            ..self.own.clone()
        }
    }

    /// Returns the sessions that another instance could run, in the order of their turns, and since when each
    /// has waited.
    fn movable(&self) -> Vec<(WaitingSession, DateTime<Utc>)> {
        if self.turns.load(self.clock.now()).waiting == 0 {
            return vec![];
        }
        let waiting = self.hub.waiting(self.own.id).into_iter();
        let mut waiting: HashMap<_, _> =
            waiting.map(|waiting| (waiting.lease.browser, waiting)).collect();
        let order = self.turns.in_order().into_iter();
        let movable = order.filter_map(|(browser, since)| {
            let session = waiting.remove(&browser).filter(WaitingSession::may_move)?;
            Some((session, since))
        });
        movable.collect()
    }

    /// Takes over what the instances have reported. Returns those whose entries are to be deleted, since
    /// they have not reported for a long time.
    fn update(&self, reported: Vec<ReportedInstance>, now: Instant) -> Vec<(InstanceId, i64)> {
        let mut known = self.known();
        let mut before = std::mem::take(&mut *known);
        let mut gone = Vec::new();
        for last in reported.into_iter().filter(|last| last.instance.id != self.own.id) {
            let id = last.instance.id;
            let entry = match before.remove(&id) {
                Some(entry) if entry.last.count == last.count => entry,
                Some(entry) => KnownInstance {
                    unreachable_since: entry.unreachable_since,
                    moved: entry.moved,
                    ..KnownInstance::new(last, now)
                },
                None => KnownInstance::new(last, now),
            };
            if now - entry.reported_at > ENTRY_TTL {
                gone.push((id, entry.last.count));
            }
            known.insert(id, entry);
        }
        self.is_informed.store(true, Ordering::Release);
        gone
    }

    /// Returns the address of the running instance that holds a session's browser, or that has the studio of
    /// its draft, unless it is this one.
    fn holder(&self, session: &Session) -> Option<(InstanceId, String)> {
        let lease = || session.state.lease().map(|lease| lease.node);
        let holder = session.terms.studio.or_else(lease)?;
        if holder == self.own.id {
            return None;
        }
        let now = Instant::now();
        let known = self.known();
        let known = known.get(&holder).filter(|known| known.is_running(now))?;
        Some((holder, known.last.instance.address.clone()))
    }

    /// Returns what the others that run are expected to report.
    fn running(known: &HashMap<InstanceId, KnownInstance>) -> Vec<Instance> {
        let now = Instant::now();
        let running = known.values().filter(|known| known.is_running(now));
        running.map(|known| known.expected(now)).collect()
    }

    /// Returns how far another region is for a session of this one; `None` if it must not run there. It may
    /// always run where its link leads to.
    fn distance(
        &self,
        session: WorkerRegion,
        may_leave: bool,
        region: Option<WorkerRegion>,
    ) -> Option<u8> {
        if self.addresses.is_home(region, session) {
            return Some(0);
        }
        may_leave.then(|| region.map_or(u8::MAX, |region| session.distance_to(region)))
    }

    /// Returns whether a session that waits here may move to another region.
    fn may_run_in(&self, waiting: &WaitingSession, region: Option<WorkerRegion>) -> bool {
        let may_leave = self.may_leave(waiting.session);
        self.distance(waiting.region, may_leave, region).is_some()
    }

    /// Returns the instance that begins the next session of a region, unless it is this one. A session that
    /// `may_leave` its region begins in another one while all of it are full.
    fn beginner(&self, session: WorkerRegion, may_leave: bool) -> Option<Target> {
        let own = self.own();
        // Held until the session is counted, so that no other one is sent to the same browser.
        let mut known = self.known();
        let others = Self::running(&known);
        let distance = |region| self.distance(session, may_leave, region);
        let draw = self.choices.fetch_add(1, Ordering::Relaxed);
        let chosen = least_used(&own, &others, distance, draw);
        let chosen = chosen.filter(|chosen| chosen.id != own.id)?;
        if let Some(known) = known.get_mut(&chosen.id) {
            known.sent = known.sent.saturating_add(1);
        }
        Some(Target::of(chosen))
    }

    /// Returns the instance with most room where the link of a session leads to that waits in another region.
    fn home(&self, waiting: &WaitingSession) -> Option<Target> {
        self.addresses.elsewhere(waiting.region)?;
        let others = Self::running(&self.known()).into_iter();
        let home = others.filter(|other| {
            other.room() > 0 && self.addresses.is_home(other.region, waiting.region)
        });
        home.reduce(|best, next| if next.is_less_used_than(&best) { next } else { best })
            .map(|home| Target::of(&home))
    }

    /// Returns whether no browser is free in this region, while there are others.
    fn is_region_full(&self) -> bool {
        is_region_full(&self.own(), &Self::running(&self.known()))
    }

    /// Returns to which instances sessions that wait here are moved now, and how many to each.
    fn moves(&self) -> Vec<(Target, PlannedMove)> {
        let own = self.reported.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(own) = own.filter(|own| own.waiting > 0) else { return vec![] };
        let others = Self::running(&self.known());
        let moves = plan_moves(&own, &others).into_iter().filter_map(|planned| {
            let to = others.iter().find(|other| other.id == planned.to)?;
            Some((Target::of(to), planned))
        });
        moves.collect()
    }

    fn leaving(&self) -> MutexGuard<'_, HashMap<SessionId, bool>> {
        self.leaving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the team of a session that waits here is known to allow other regions.
    fn may_leave(&self, session: SessionId) -> bool {
        self.leaving().get(&session).is_some_and(|may_leave| *may_leave)
    }

    /// Returns the sessions that wait here and of which it is not known whether their teams allow other
    /// regions; none while there is no other region.
    fn unknown(&self) -> Vec<SessionId> {
        let waiting: Vec<_> = self.movable().iter().map(|(waiting, _)| waiting.session).collect();
        let mut leaving = self.leaving();
        if leaving.len() > waiting.len() {
            let still: HashSet<_> = waiting.iter().copied().collect();
            leaving.retain(|session, _| still.contains(session));
        }
        let others = Self::running(&self.known());
        if others.iter().all(|other| other.region == self.own.region) {
            return vec![];
        }
        let unknown = waiting.into_iter().filter(|session| !leaving.contains_key(session));
        unknown.take(MAX_ASKED).collect()
    }

    /// Takes over of which sessions that wait here the teams allow other regions.
    fn learned(&self, asked: &[SessionId], leaving: &[SessionId]) {
        let leaving: HashSet<_> = leaving.iter().collect();
        self.leaving().extend(asked.iter().map(|id| (*id, leaving.contains(id))));
    }

    /// Notes that a session which waited here was moved to another instance.
    fn moved(&self, to: InstanceId) {
        let now = Instant::now();
        if let Some(known) = self.known().get_mut(&to) {
            while known.moved.front().is_some_and(|at| now - *at >= MOVED_TTL) {
                known.moved.pop_front();
            }
            known.moved.push_back(now);
        }
    }

    /// Returns whether a session can begin at another instance, of whatever region: whether it may run there
    /// is decided when its page connects again.
    pub(crate) fn others_begin_sessions(&self) -> bool {
        Self::running(&self.known()).iter().any(Instance::begins_sessions)
    }

    fn unreachable(&self, id: InstanceId) {
        if let Some(known) = self.known().get_mut(&id) {
            known.unreachable_since = Some(Instant::now());
        }
    }

    fn reachable(&self, id: InstanceId) {
        if let Some(known) = self.known().get_mut(&id) {
            known.unreachable_since = None;
        }
    }
}

/// Returns whether another instance runs that holds this session's browser, or has the studio of its draft.
/// Whoever is connected to the session has to be connected there.
pub(crate) fn runs_elsewhere(
    instances: Option<&InstanceDirectory>,
    session: Option<&Session>,
) -> bool {
    let holder = instances.zip(session).and_then(|(instances, session)| instances.holder(session));
    holder.is_some()
}

/// Reports this instance to the others, and reads what they report.
pub struct InstanceReports {
    pub directory: Arc<InstanceDirectory>,
    pub registry: Arc<dyn InstanceRegistry>,
    pub regions: Arc<dyn SessionRegions>,
}

#[async_trait]
impl Worker for Arc<InstanceReports> {
    fn name(&self) -> &'static str {
        "instances"
    }

    async fn run(&self) {
        loop {
            if let Err(error) = self.exchange().await {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, "failed to report this instance to the others, retrying");
            }
            tokio::time::sleep(REPORT_INTERVAL).await;
        }
    }
}

impl InstanceReports {
    /// Reports once, and reads the others' reports.
    ///
    /// # Errors
    /// The store fails. Without its reports the other instances count as stopped after 5 s.
    pub async fn exchange(&self) -> Result<(), ports::StoreError> {
        let own = self.directory.own();
        self.registry.report(&own).await?;
        *self.directory.reported.lock().unwrap_or_else(PoisonError::into_inner) = Some(own);
        let reported = self.registry.instances().await?;
        for (gone, count) in self.directory.update(reported, Instant::now()) {
            self.registry.remove(gone, Some(count)).await?;
        }
        self.learn().await;
        Ok(())
    }

    /// Asks which sessions that wait here may leave the region, each once. They stay until this is known.
    async fn learn(&self) {
        let unknown = self.directory.unknown();
        if unknown.is_empty() {
            return;
        }
        match self.regions.sessions_that_may_leave(&unknown).await {
            Ok(leaving) => self.directory.learned(&unknown, &leaving),
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(
                    error,
                    "failed to find out which sessions may leave their region, retrying"
                );
            }
        }
    }

    /// Deletes the entry of this instance, which stops.
    pub async fn leave(&self) {
        if let Err(error) = self.registry.remove(self.directory.own.id, None).await {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(
                error,
                "failed to delete the entry of this instance; it is deleted later"
            );
        }
    }
}

/// Relays the sockets of sessions to the instances that serve them, and forwards requests for the pages of
/// studios.
pub struct InstanceRouter {
    pub directory: Arc<InstanceDirectory>,
    pub links: Arc<dyn InstanceLinks>,
    pub sessions: Arc<dyn SessionStore>,
    pub regions: Arc<dyn SessionRegions>,
    pub places: ForwardPlaces,
    /// The runtime that statements run on.
    pub runtime: Handle,
}

impl InstanceRouter {
    /// Returns the instance that serves a session, unless it is this one.
    async fn route(&self, id: SessionId, kind: SocketKind) -> Option<(InstanceId, String)> {
        let sessions = self.sessions.clone();
        let read = detached(&self.runtime, async move { sessions.find_unscoped(id).await }).await;
        let session = match read {
            Ok(session) => session?,
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::error!(session.id = %id, error, "failed to find the instance of a session");
                return None;
            }
        };
        // A draft is known to the instance of its studio alone, in every state.
        let begins = kind == SocketKind::Applicant && !session.terms.platform.is_of_drafts();
        if begins && matches!(session.state, State::Created { .. }) {
            // The page is sent to the processes of the session's region, which decide.
            let region = session.terms.worker_region;
            if self.directory.addresses.elsewhere(region).is_some() {
                return None;
            }
            let may_leave = self.directory.is_region_full() && self.may_leave(id).await;
            return self.directory.beginner(region, may_leave).map(|to| (to.id, to.address));
        }
        self.directory.holder(&session)
    }

    async fn may_leave(&self, id: SessionId) -> bool {
        let regions = self.regions.clone();
        let asked = async move { regions.sessions_that_may_leave(&[id]).await };
        match detached(&self.runtime, asked).await {
            Ok(leaving) => leaving.contains(&id),
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(session.id = %id, error, "failed to find out whether a session may leave its region; it stays");
                false
            }
        }
    }
}

#[async_trait]
impl SocketRouter for InstanceRouter {
    async fn relay(&self, request: SocketRequest) -> Option<RelayedSocket> {
        let session = request.session;
        let (instance, address) = self.route(session, request.kind).await?;
        match self.links.open(&address, request).await {
            Ok(socket) => {
                self.directory.reachable(instance);
                Some(socket)
            }
            Err(error) => {
                // What a client sent wrongly says nothing of the instance.
                if matches!(error, LinkError::Unreachable(_)) {
                    self.directory.unreachable(instance);
                }
                tracing::warn!(session.id = %session, instance.id = %instance, %error, "failed to relay a connection to another instance");
                None
            }
        }
    }
}
