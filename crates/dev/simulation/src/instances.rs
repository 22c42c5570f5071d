//! The instances: their browsers, what they report of themselves, and where a session begins.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use application::{
    browser_turns::BrowserTurns,
    instances::{REPORT_INTERVAL, REPORT_TTL, UNREACHABLE_TTL},
};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    fairness::Tenant,
    id::{BrowserId, InstanceId},
    placement::{Instance, least_used},
    worker_region::WorkerRegion,
};

use crate::{parameters::Deployment, random::Random};

/// How long changes of an instance's load are remembered: the last report is of the last second, and who
/// reads it has done so in the second before.
const REMEMBERED: TimeDelta = TimeDelta::seconds(4);

/// The position of an instance among all.
pub(crate) type InstanceIndex = usize;

/// One instance. After a crash the same one comes back, with a new identifier and without sessions.
pub(crate) struct SimulatedInstance {
    pub(crate) id: InstanceId,
    pub(crate) region: usize,
    pub(crate) turns: BrowserTurns,
    /// The slots in use, those of browsers that are stopping included.
    pub(crate) occupied: usize,
    /// Counts the starts.
    pub(crate) incarnation: u32,
    pub(crate) is_up: bool,
    /// The sessions that hold a lease here.
    pub(crate) leased: BTreeSet<u64>,
    /// Those that wait, as far as the simulation knows, to check the queue's order.
    waiting: BTreeMap<Tenant, BTreeSet<(DateTime<Utc>, BrowserId)>>,
    /// The sessions of those that wait.
    pub(crate) numbers: BTreeMap<BrowserId, u64>,
    /// Whether it will look for room at other instances.
    pub(crate) will_balance: bool,
    started_at: DateTime<Utc>,
    stopped_at: DateTime<Utc>,
    /// The numbers of sessions that have a browser or wait for one, and since when.
    loads: VecDeque<(DateTime<Utc>, u32)>,
    /// When in a second it reports, in milliseconds.
    phase: i64,
    view: View,
}

/// What an instance knows of the others.
#[derive(Default)]
struct View {
    read_at: DateTime<Utc>,
    /// The sessions that were sent to each since its last report.
    sent: BTreeMap<InstanceIndex, u32>,
    unreachable: BTreeMap<InstanceIndex, DateTime<Utc>>,
    /// How often an instance was chosen for a session.
    choices: u64,
}

/// All instances.
pub(crate) struct Instances {
    all: Vec<SimulatedInstance>,
    by_region: Vec<Vec<InstanceIndex>>,
    deployment: Deployment,
    starts: u128,
}

impl SimulatedInstance {
    fn load(&self) -> u32 {
        self.loads.back().map_or(0, |(_, load)| *load)
    }

    /// Notes that one session more, or one less, has a browser here or waits for one.
    pub(crate) fn change_load(&mut self, now: DateTime<Utc>, is_more: bool) {
        let load = self.load();
        let load = if is_more { load.saturating_add(1) } else { load.saturating_sub(1) };
        self.loads.push_back((now, load));
        while self.loads.get(1).is_some_and(|(at, _)| now - *at > REMEMBERED) {
            self.loads.pop_front();
        }
    }

    /// Returns when it last reported, or read the reports of others, at a time.
    fn last_report(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        let interval = i64::try_from(REPORT_INTERVAL.as_millis()).unwrap_or(1000);
        let since = (now.timestamp_millis() - self.phase).rem_euclid(interval);
        now - TimeDelta::milliseconds(since)
    }

    /// Returns the load that it had reported when somebody read it at a time; `None` if its reports had
    /// stopped, or not begun.
    fn reported(&self, read_at: DateTime<Utc>) -> Option<u32> {
        let alive_at = if self.is_up { read_at } else { self.stopped_at.min(read_at) };
        let reported_at = self.last_report(alive_at);
        let ttl = TimeDelta::from_std(REPORT_TTL).unwrap_or_default();
        if reported_at < self.started_at || read_at - reported_at > ttl {
            return None;
        }
        let loads = self.loads.iter().rev();
        Some(loads.into_iter().find(|(at, _)| *at <= reported_at).map_or(0, |(_, load)| *load))
    }

    /// Notes that a session waits for its turn.
    pub(crate) fn waits(
        &mut self,
        tenant: Tenant,
        since: DateTime<Utc>,
        (browser, number): (BrowserId, u64),
    ) {
        self.waiting.entry(tenant).or_default().insert((since, browser));
        self.numbers.insert(browser, number);
    }

    /// Notes that a session waits no longer.
    pub(crate) fn waits_no_longer(&mut self, tenant: Tenant, since: DateTime<Utc>, id: BrowserId) {
        self.numbers.remove(&id);
        if let Some(queue) = self.waiting.get_mut(&tenant) {
            queue.remove(&(since, id));
            if queue.is_empty() {
                self.waiting.remove(&tenant);
            }
        }
    }

    /// Returns how many sessions of a tenant wait for longer than one that has waited since a time.
    pub(crate) fn waiting_before(&self, tenant: Tenant, since: DateTime<Utc>) -> usize {
        let queue = self.waiting.get(&tenant);
        queue.map_or(0, |queue| queue.iter().take_while(|(other, _)| *other < since).count())
    }
}

impl Instances {
    pub(crate) fn new(deployment: &Deployment, now: DateTime<Utc>, random: &mut Random) -> Self {
        let regions = deployment.regions.max(1);
        let mut by_region = vec![vec![]; regions];
        let mut all = Vec::with_capacity(deployment.instances);
        for index in 0..deployment.instances {
            let region = index % regions;
            if let Some(members) = by_region.get_mut(region) {
                members.push(index);
            }
            all.push(SimulatedInstance {
                id: InstanceId::from_u128(random.id()),
                region,
                turns: BrowserTurns::new(deployment.quotas),
                occupied: 0,
                incarnation: 0,
                is_up: true,
                leased: BTreeSet::new(),
                waiting: BTreeMap::new(),
                numbers: BTreeMap::new(),
                will_balance: false,
                // They have run for a while.
                started_at: now - TimeDelta::hours(1),
                stopped_at: now,
                loads: VecDeque::new(),
                phase: i64::try_from(random.below(1000)).unwrap_or(0),
                view: View::default(),
            });
        }
        Self { all, by_region, deployment: deployment.clone(), starts: 0 }
    }

    pub(crate) fn get(&self, index: InstanceIndex) -> Option<&SimulatedInstance> {
        self.all.get(index)
    }

    pub(crate) fn get_mut(&mut self, index: InstanceIndex) -> Option<&mut SimulatedInstance> {
        self.all.get_mut(index)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &SimulatedInstance> {
        self.all.iter()
    }

    /// Returns the instance if it runs and was not restarted since.
    pub(crate) fn same_run(
        &mut self,
        (index, incarnation): (InstanceIndex, u32),
    ) -> Option<&mut SimulatedInstance> {
        let instance = self.all.get_mut(index)?;
        (instance.is_up && instance.incarnation == incarnation).then_some(instance)
    }

    /// Returns a running instance of a region, as a load balancer chooses it.
    pub(crate) fn any_of_region(
        &self,
        region: usize,
        random: &mut Random,
    ) -> Option<InstanceIndex> {
        let members = self.by_region.get(region)?;
        let first = random.below(members.len());
        let mut order = members.iter().cycle().skip(first).take(members.len());
        order.find(|index| self.get(**index).is_some_and(|one| one.is_up)).copied()
    }

    /// Returns a running instance of any region.
    pub(crate) fn any(&self, random: &mut Random) -> Option<InstanceIndex> {
        let first = random.below(self.by_region.len());
        let mut regions = (0..self.by_region.len()).cycle().skip(first).take(self.by_region.len());
        regions.find_map(|region| self.any_of_region(region, random))
    }

    /// Returns the instance that begins a session whose applicant has reached `own`: the least used one,
    /// as far as `own` knows. One that does not answer is left out for a time, and the session begins at
    /// `own`.
    pub(crate) fn choose(&mut self, own: InstanceIndex, now: DateTime<Utc>) -> InstanceIndex {
        let Some(asking) = self.get(own) else { return own };
        let read_at = asking.last_report(now);
        let own_instance = self.described(asking, asking.load());
        let is_new = read_at > asking.view.read_at;
        let ttl = TimeDelta::from_std(UNREACHABLE_TTL).unwrap_or_default();
        let members = self.by_region.get(asking.region).map(Vec::as_slice).unwrap_or_default();
        let others = members.iter().filter(|index| **index != own).filter_map(|index| {
            let other = self.get(*index)?;
            let since = asking.view.unreachable.get(index);
            if since.is_some_and(|since| now - *since <= ttl) {
                return None;
            }
            let sent = asking.view.sent.get(index).copied().filter(|_| !is_new).unwrap_or(0);
            Some((*index, self.described(other, other.reported(read_at)?.saturating_add(sent))))
        });
        let (indices, others): (Vec<_>, Vec<_>) = others.unzip();
        let chosen = least_used(&own_instance, &others, |_| None, asking.view.choices);
        let chosen = chosen.map_or(own_instance.id, |instance| instance.id);
        let chosen = others.iter().position(|instance| instance.id == chosen);
        let chosen = chosen.and_then(|position| indices.get(position).copied()).unwrap_or(own);
        let is_reachable = self.get(chosen).is_some_and(|instance| instance.is_up);
        if let Some(asking) = self.get_mut(own) {
            asking.view.choices = asking.view.choices.wrapping_add(1);
            if is_new {
                asking.view.sent.clear();
                asking.view.read_at = read_at;
            }
            if !is_reachable {
                asking.view.unreachable.insert(chosen, now);
                return own;
            }
            if chosen != own {
                let sent = asking.view.sent.entry(chosen).or_default();
                *sent = sent.saturating_add(1);
            }
        }
        chosen
    }

    /// Returns an instance as it is, and the others of its region as it knows them.
    pub(crate) fn seen_by(
        &self,
        own: InstanceIndex,
        now: DateTime<Utc>,
    ) -> Option<(Instance, Vec<Instance>)> {
        let described = |instance: &SimulatedInstance, sessions| {
            let load = instance.turns.load(now);
            let waited = load.waiting_since.map_or(0, |since| (now - since).num_seconds());
            Instance {
                waiting: u32::try_from(load.waiting).unwrap_or(u32::MAX),
                waited: u32::try_from(waited).unwrap_or(0),
                ..self.described(instance, sessions)
            }
        };
        let asking = self.get(own)?;
        let read_at = asking.last_report(now);
        let members = self.by_region.get(asking.region).map(Vec::as_slice).unwrap_or_default();
        let others = members.iter().filter(|index| **index != own).filter_map(|index| {
            let other = self.get(*index)?;
            // What was moved there is among its sessions already.
            let sessions = other.reported(read_at)?.max(other.load());
            Some(described(other, sessions))
        });
        Some((described(asking, asking.load()), others.collect()))
    }

    /// Returns the running instance with an identifier.
    pub(crate) fn with_id(&self, id: InstanceId) -> Option<InstanceIndex> {
        self.all.iter().position(|instance| instance.is_up && instance.id == id)
    }

    fn described(&self, instance: &SimulatedInstance, sessions: u32) -> Instance {
        Instance {
            id: instance.id,
            address: String::new(),
            region: WorkerRegion::ALL.get(instance.region).copied(),
            slots: u32::try_from(self.deployment.quotas.total).unwrap_or(u32::MAX),
            sessions,
            waiting: 0,
            leaving: 0,
            waited: 0,
            is_draining: false,
        }
    }

    /// Stops an instance without warning. Returns the sessions that hold a lease there.
    pub(crate) fn crash(&mut self, index: InstanceIndex, now: DateTime<Utc>) -> Vec<u64> {
        let quotas = self.deployment.quotas;
        let Some(instance) = self.all.get_mut(index).filter(|instance| instance.is_up) else {
            return vec![];
        };
        instance.is_up = false;
        instance.stopped_at = now;
        instance.turns = BrowserTurns::new(quotas);
        instance.occupied = 0;
        instance.waiting.clear();
        instance.numbers.clear();
        instance.view = View::default();
        std::mem::take(&mut instance.leased).into_iter().collect()
    }

    /// Starts an instance again.
    pub(crate) fn restart(&mut self, index: InstanceIndex, now: DateTime<Utc>) {
        self.starts = self.starts.saturating_add(1);
        let id = InstanceId::from_u128(self.starts);
        if let Some(instance) = self.all.get_mut(index) {
            instance.id = id;
            instance.is_up = true;
            instance.incarnation = instance.incarnation.saturating_add(1);
            instance.started_at = now;
            instance.loads.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> DateTime<Utc> {
        DateTime::from_timestamp(1_767_225_600, 0).unwrap()
    }

    fn instances(count: usize) -> Instances {
        Instances::new(&Deployment::with(count, 4), start(), &mut Random::new(3))
    }

    #[test]
    fn sessions_that_were_sent_since_the_last_report_count() {
        let mut all = instances(3);
        let chosen: Vec<_> = (0..6).map(|_| all.choose(0, start())).collect();
        // No load of its own is noted here, so that it takes what is equal.
        assert_eq!(chosen, [0; 6]);
        (0..4).for_each(|_| all.get_mut(0).unwrap().change_load(start(), true));
        let chosen: Vec<_> = (0..6).map(|_| all.choose(0, start())).collect();
        assert_eq!(chosen, [1, 2, 1, 2, 1, 2]);
    }

    #[test]
    fn a_load_is_seen_after_it_is_reported_and_read() {
        let mut all = instances(2);
        (0..2).for_each(|_| all.get_mut(0).unwrap().change_load(start(), true));
        (0..3).for_each(|_| all.get_mut(1).unwrap().change_load(start(), true));
        assert_eq!(all.choose(0, start()), 1, "not reported yet");
        assert_eq!(all.choose(0, start() + TimeDelta::seconds(3)), 0);
    }

    #[test]
    fn an_instance_that_crashed_is_left_out() {
        let mut all = instances(2);
        all.get_mut(0).unwrap().change_load(start(), true);
        assert_eq!(all.choose(0, start()), 1);
        all.crash(1, start());
        let soon = start() + TimeDelta::seconds(1);
        // It is sent there, cannot be reached, and begins here.
        assert_eq!(all.choose(0, soon), 0);
        assert!(all.get(0).unwrap().view.unreachable.contains_key(&1));
        assert_eq!(all.any_of_region(0, &mut Random::new(1)), Some(0));
        all.restart(1, start() + TimeDelta::seconds(30));
        assert_eq!(all.choose(0, start() + TimeDelta::seconds(40)), 1);
    }
}
