//! Which instance serves a session: the one that holds its browser, or the one that has most room.

use crate::{id::InstanceId, worker_region::WorkerRegion};

/// What an instance tells the others about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    pub id: InstanceId,
    /// `HOST:PORT`, where other instances reach it.
    pub address: String,
    /// Where its browsers run; `None` where the deployment has no regions.
    pub region: Option<WorkerRegion>,
    /// The number of browsers that it runs at most; 0 for an instance without browsers.
    pub slots: u32,
    /// The number of sessions that have a browser or wait for one.
    pub sessions: u32,
    /// Of these, the sessions that wait for a browser.
    pub waiting: u32,
    /// Of those that wait, the sessions whose teams allow browsers of other regions.
    pub leaving: u32,
    /// For how many seconds the one has waited that has waited for the longest time.
    pub waited: u32,
    /// Whether it begins no more sessions.
    pub is_draining: bool,
}

impl Instance {
    /// Returns whether a session can begin there.
    #[must_use]
    pub const fn begins_sessions(&self) -> bool {
        self.slots > 0 && !self.is_draining
    }

    /// The number of sessions that would get a browser there at once.
    #[must_use]
    pub const fn room(&self) -> u32 {
        if self.begins_sessions() { self.slots.saturating_sub(self.sessions) } else { 0 }
    }

    /// The number of sessions that wait there because all of its browsers are in use. Where some are
    /// free, sessions wait for their team's quota.
    const fn waiting_for_room(&self) -> u32 {
        let running = self.sessions.saturating_sub(self.waiting);
        if running >= self.slots { self.waiting } else { 0 }
    }

    /// The number of these that may leave the region.
    const fn leaving_for_room(&self) -> u32 {
        let waiting = self.waiting_for_room();
        if waiting < self.leaving { waiting } else { self.leaving }
    }

    /// Orders instances by how long their sessions have waited.
    const fn rank(&self) -> (u32, InstanceId) {
        (self.waited, self.id)
    }

    /// The regions of others that are not its own, the closest first.
    fn regions_by_distance(&self, others: &[Self]) -> Vec<Option<WorkerRegion>> {
        let distance = |region: Option<WorkerRegion>| {
            self.region.zip(region).map_or(u8::MAX, |(own, region)| own.distance_to(region))
        };
        let mut regions: Vec<_> = others.iter().map(|other| other.region).collect();
        regions.retain(|region| *region != self.region);
        regions.sort_by_key(|region| (distance(*region), *region));
        regions.dedup();
        regions
    }

    /// Compares how much of two instances is used, without division: `a/b < c/d` if `ad < cb`.
    #[must_use]
    pub fn is_less_used_than(&self, other: &Self) -> bool {
        let product = |sessions: u32, slots: u32| u64::from(sessions) * u64::from(slots);
        product(self.sessions, other.slots) < product(other.sessions, self.slots)
    }
}

/// How many others an instance compares with itself. All instances know the same reports, which are up to
/// two seconds old: if each of many compared all, they would all send their next sessions to the same one.
const COMPARED: usize = 8;

/// Returns the instance that begins the next session of `own`'s region: the least used one there. Of equal
/// ones it is `own`, since that needs no relay, or else the first. Where all of the region are full, it is
/// one of the closest region that has a browser free. `None` if no instance begins sessions.
///
/// Of more than eight others, eight are compared, which are drawn anew for each `draw`; and all of them if
/// none of these has a browser free. `distance` says how far another region is for the session; `None` if it
/// must not run there.
pub fn least_used<'a>(
    own: &'a Instance,
    others: &'a [Instance],
    distance: impl Fn(Option<WorkerRegion>) -> Option<u8>,
    draw: u64,
) -> Option<&'a Instance> {
    let draw = own.id.as_uuid().as_u64_pair().1 ^ mixed(draw);
    let near = others.iter().filter(|other| other.region == own.region);
    let near = least_used_of(Some(own), near, draw);
    if near.is_some_and(|near| near.room() > 0) {
        return near;
    }
    let far = others.iter().filter(|other| other.region != own.region);
    let far: Vec<_> = far.filter_map(|other| Some((distance(other.region)?, other))).collect();
    let with_room = || far.iter().filter(|(_, other)| other.room() > 0);
    let closest = with_room().map(|(distance, _)| distance).min();
    let closest = with_room().filter(|(distance, _)| Some(distance) == closest);
    let closest = least_used_of(None, closest.map(|(_, other)| *other), draw);
    closest.or(near).or_else(|| least_used_of(None, far.iter().map(|(_, other)| *other), draw))
}

fn least_used_of<'a>(
    own: Option<&'a Instance>,
    others: impl Iterator<Item = &'a Instance>,
    draw: u64,
) -> Option<&'a Instance> {
    let own = own.filter(|own| own.begins_sessions());
    let others: Vec<_> = others.filter(|other| other.begins_sessions()).collect();
    let least = |others: Vec<&'a Instance>| {
        let all = own.into_iter().chain(others);
        all.reduce(|best, next| if next.is_less_used_than(best) { next } else { best })
    };
    if others.len() <= COMPARED {
        return least(others);
    }
    least(drawn(others.clone(), draw)).filter(|least| least.room() > 0).or_else(|| least(others))
}

/// Returns [`COMPARED`] of these instances, each with the same probability.
fn drawn(mut all: Vec<&Instance>, mut draw: u64) -> Vec<&Instance> {
    let mut drawn = Vec::with_capacity(COMPARED);
    while !all.is_empty() && drawn.len() < COMPARED {
        draw = mixed(draw);
        let count = u64::try_from(all.len()).unwrap_or(u64::MAX);
        drawn.push(all.swap_remove(usize::try_from(draw % count).unwrap_or(0)));
    }
    drawn
}

/// Returns the next number of `SplitMix64` (Steele, Lea and Flood 2014).
const fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Returns whether no instance of `own`'s region has a browser free, and those of others begin sessions.
#[must_use]
pub fn is_region_full(own: &Instance, others: &[Instance]) -> bool {
    let is_near = |other: &&Instance| other.region == own.region;
    own.room() == 0
        && others.iter().filter(is_near).all(|near| near.room() == 0)
        && others.iter().any(|other| !is_near(&other) && other.begins_sessions())
}

/// Sessions that are to move from one instance to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedMove {
    pub to: InstanceId,
    pub count: u32,
    /// Whether it is in another region, where not all sessions may run.
    pub is_far: bool,
}

/// Returns to which instances `own` sends sessions that wait for one of its browsers, and how many to each:
/// as many as would get a browser there at once. Instances of its region come first. To another region it
/// sends sessions that may leave theirs, and no more than that region's own sessions leave free.
///
/// All instances decide at about the same time, by what all have reported. What is free is for the instance
/// first whose session has waited for the longest time, so that they do not all send sessions to the same
/// browser.
#[must_use]
pub fn plan_moves(own: &Instance, others: &[Instance]) -> Vec<PlannedMove> {
    let sum = |counts: &mut dyn Iterator<Item = u32>| counts.fold(0, u32::saturating_add);
    let before = || others.iter().filter(|other| other.rank() > own.rank());
    let in_region = |region| move |other: &&Instance| other.region == region;
    let mut plan = Vec::new();
    let near = others.iter().filter(in_region(own.region));
    let taken = sum(&mut before().filter(in_region(own.region)).map(Instance::waiting_for_room));
    let left = own.waiting_for_room();
    let moved = share(near, taken, left, |to, count| {
        plan.push(PlannedMove { to, count, is_far: false });
    });
    let mut left = left.saturating_sub(moved).min(own.leaving);
    for region in own.regions_by_distance(others) {
        let there = || others.iter().filter(in_region(region));
        let theirs = sum(&mut there().map(Instance::waiting_for_room));
        let from_elsewhere = before().filter(|other| other.region != region);
        let taken = theirs.saturating_add(sum(&mut from_elsewhere.map(Instance::leaving_for_room)));
        let moved = share(there(), taken, left, |to, count| {
            plan.push(PlannedMove { to, count, is_far: true });
        });
        left = left.saturating_sub(moved);
    }
    plan
}

/// Shares `wanted` of what is free at instances, after the first `taken`, in the order of their identifiers.
/// Returns how many there are.
fn share<'a>(
    instances: impl Iterator<Item = &'a Instance>,
    mut taken: u32,
    wanted: u32,
    mut give: impl FnMut(InstanceId, u32),
) -> u32 {
    let mut targets: Vec<_> = instances.filter(|other| other.room() > 0).collect();
    targets.sort_by_key(|other| other.id);
    let mut left = wanted;
    for target in targets {
        let of_others = taken.min(target.room());
        taken = taken.saturating_sub(of_others);
        let count = left.min(target.room().saturating_sub(of_others));
        left = left.saturating_sub(count);
        if count > 0 {
            give(target.id, count);
        }
    }
    wanted.saturating_sub(left)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn instance(id: u128, slots: u32, sessions: u32) -> Instance {
        Instance {
            id: InstanceId::from_u128(id),
            address: format!("10.0.0.{id}:8443"),
            region: None,
            slots,
            sessions,
            waiting: 0,
            leaving: 0,
            waited: 0,
            is_draining: false,
        }
    }

    fn in_region(region: WorkerRegion, instance: Instance) -> Instance {
        Instance { region: Some(region), ..instance }
    }

    /// An instance whose browsers are all in use, with sessions that wait.
    fn full(id: u128, waiting: u32, waited: u32) -> Instance {
        Instance { waiting, waited, ..instance(id, 4, 4 + waiting) }
    }

    fn moved(own: &Instance, others: &[Instance]) -> Vec<(u128, u32)> {
        let moves = plan_moves(own, others).into_iter();
        moves.map(|planned| (planned.to.as_uuid().as_u128(), planned.count)).collect()
    }

    fn chosen(own: &Instance, others: &[Instance]) -> Option<u128> {
        least_used(own, others, |_| None, 0).map(|instance| instance.id.as_uuid().as_u128())
    }

    /// The instance for a session of `us-west` that may run in any region.
    fn chosen_anywhere(own: &Instance, others: &[Instance]) -> Option<u128> {
        let distance = |region: Option<WorkerRegion>| {
            Some(region.map_or(u8::MAX, |region| WorkerRegion::UsWest.distance_to(region)))
        };
        least_used(own, others, distance, 0).map(|instance| instance.id.as_uuid().as_u128())
    }

    #[test]
    fn the_least_used_instance_begins_a_session() {
        let others = [instance(2, 4, 1), instance(3, 8, 1), instance(4, 8, 3)];
        assert_eq!(chosen(&instance(1, 4, 2), &others), Some(3));
        assert_eq!(chosen(&instance(1, 4, 0), &others), Some(1));
    }

    #[test]
    fn many_instances_with_the_same_reports_do_not_all_choose_the_same_one() {
        let all: Vec<_> = (1..=100).map(|id| instance(id, 64, 20 + u32::from(id != 50))).collect();
        let mut chosen_by = std::collections::BTreeMap::<_, u32>::new();
        for (own, draw) in all.iter().zip(7..) {
            let others: Vec<_> = all.iter().filter(|other| *other != own).cloned().collect();
            let chosen = least_used(own, &others, |_| None, draw).unwrap();
            *chosen_by.entry(chosen.id).or_default() += 1;
        }
        let most = chosen_by.get(&InstanceId::from_u128(50)).copied().unwrap_or(0);
        assert!((2..25).contains(&most), "{most} of 100 have chosen the least used one");
    }

    #[test]
    fn the_only_one_of_many_with_a_browser_free_is_found() {
        let others: Vec<_> = (2..=100).map(|id| instance(id, 4, 4 - u32::from(id == 77))).collect();
        for draw in 0..50 {
            let chosen = least_used(&others[0], &others[1..], |_| None, draw).unwrap();
            assert_eq!(chosen.id, InstanceId::from_u128(77));
        }
    }

    #[test]
    fn of_equal_instances_the_own_one_is_chosen() {
        assert_eq!(chosen(&instance(1, 4, 1), &[instance(2, 8, 2)]), Some(1));
        // All are full: the queue with the fewest for each slot.
        assert_eq!(chosen(&instance(1, 4, 9), &[instance(2, 8, 17)]), Some(2));
    }

    #[test]
    fn no_session_begins_where_no_browser_is_or_the_process_stops() {
        let stops = Instance { is_draining: true, ..instance(2, 8, 0) };
        assert_eq!(chosen(&instance(1, 0, 0), &[stops.clone(), instance(3, 1, 1)]), Some(3));
        assert_eq!(chosen(&instance(1, 0, 0), &[stops]), None);
    }

    #[test]
    fn a_session_stays_in_its_region() {
        let west = |instance| in_region(WorkerRegion::UsWest, instance);
        assert_eq!(chosen(&west(instance(1, 1, 1)), &[instance(2, 8, 0)]), Some(1));
        assert_eq!(chosen(&west(instance(1, 1, 1)), &[west(instance(2, 8, 0))]), Some(2));
    }

    #[test]
    fn a_full_region_begins_sessions_that_may_leave_it_in_the_closest_one_with_room() {
        let own = in_region(WorkerRegion::UsWest, instance(1, 1, 1));
        let central = in_region(WorkerRegion::UsCentral, instance(2, 8, 6));
        let other_central = in_region(WorkerRegion::UsCentral, instance(3, 8, 5));
        let europe = in_region(WorkerRegion::EuropeWest, instance(4, 8, 0));
        let others = [europe.clone(), central.clone(), other_central];
        assert_eq!(chosen_anywhere(&own, &others), Some(3));
        assert!(is_region_full(&own, &others));
        // A region with room keeps its sessions.
        let near = in_region(WorkerRegion::UsWest, instance(5, 8, 7));
        let with_near = [europe.clone(), central.clone(), near];
        assert_eq!(chosen_anywhere(&own, &with_near), Some(5));
        assert!(!is_region_full(&own, &with_near));
        // Where all are full, a session waits in its own region.
        let full = Instance { sessions: 8, ..central };
        assert_eq!(chosen_anywhere(&own, std::slice::from_ref(&full)), Some(1));
        assert_eq!(chosen_anywhere(&own, &[full.clone(), europe]), Some(4));
        // Where its own begins none, it waits in another one.
        let api = in_region(WorkerRegion::UsWest, instance(1, 0, 0));
        assert!(is_region_full(&api, std::slice::from_ref(&full)));
        assert_eq!(chosen_anywhere(&api, std::slice::from_ref(&full)), Some(2));
        assert_eq!(chosen(&api, &[full]), None);
    }

    #[test]
    fn sessions_that_may_leave_a_full_region_move_to_what_others_leave_free() {
        let own = in_region(WorkerRegion::UsWest, Instance { leaving: 3, ..full(1, 5, 9) });
        let near = in_region(WorkerRegion::UsWest, instance(2, 4, 3));
        let east = in_region(WorkerRegion::UsEast, instance(3, 8, 6));
        let europe = in_region(WorkerRegion::EuropeWest, instance(4, 8, 0));
        let others = [near, europe, east.clone()];
        assert_eq!(moved(&own, &others), [(2, 1), (3, 2), (4, 1)]);
        // The region's own sessions come first, also those that have waited for a shorter time.
        let theirs = in_region(WorkerRegion::UsEast, full(5, 1, 1));
        assert_eq!(moved(&own, &[east.clone(), theirs.clone()]), [(3, 1)]);
        assert_eq!(moved(&theirs, &[east.clone(), own.clone()]), [(3, 1)]);
        // Then the region whose session has waited for the longest time.
        let asia = in_region(WorkerRegion::AsiaSouth, Instance { leaving: 1, ..full(6, 9, 20) });
        assert_eq!(moved(&own, &[east.clone(), asia.clone()]), [(3, 1)]);
        assert_eq!(moved(&asia, &[east, own]), [(3, 1)]);
    }

    #[test]
    fn large_numbers_are_compared_without_overflow() {
        let full = instance(1, u32::MAX, u32::MAX);
        assert_eq!(chosen(&full, &[instance(2, u32::MAX, u32::MAX - 1)]), Some(2));
    }

    #[test]
    fn sessions_that_wait_are_sent_where_browsers_are_free() {
        let others = [instance(3, 8, 6), instance(2, 4, 3), instance(4, 4, 4)];
        assert_eq!(moved(&full(1, 5, 9), &others), [(2, 1), (3, 2)]);
        assert_eq!(moved(&full(1, 2, 9), &others), [(2, 1), (3, 1)]);
        assert_eq!(moved(&full(1, 0, 0), &others), []);
        assert_eq!(moved(&full(1, 5, 9), &[full(2, 1, 1)]), [], "none is free");
        let stops = Instance { is_draining: true, ..instance(2, 8, 0) };
        let far = Instance { region: Some(WorkerRegion::UsWest), ..instance(3, 8, 0) };
        assert_eq!(moved(&full(1, 5, 9), &[stops, far]), []);
    }

    #[test]
    fn a_free_browser_is_for_the_instance_whose_session_has_waited_for_the_longest_time() {
        let free = instance(9, 8, 5);
        let (one, two, three) = (full(1, 2, 30), full(2, 5, 20), full(3, 5, 10));
        let sent = |own: &Instance, others: [&Instance; 2]| {
            moved(own, &[free.clone(), others[0].clone(), others[1].clone()])
        };
        assert_eq!(sent(&one, [&two, &three]), [(9, 2)]);
        assert_eq!(sent(&two, [&one, &three]), [(9, 1)]);
        assert_eq!(sent(&three, [&one, &two]), []);
        // Those that have waited for the same time are told apart by their identifiers.
        let twin = Instance { id: InstanceId::from_u128(4), ..one.clone() };
        assert_eq!(sent(&twin, [&one, &three]), [(9, 2)]);
        assert_eq!(sent(&one, [&twin, &three]), [(9, 1)]);
    }

    #[test]
    fn sessions_that_wait_for_a_quota_stay() {
        let with_room = Instance { waiting: 2, waited: 50, ..instance(1, 8, 5) };
        assert_eq!(moved(&with_room, &[instance(2, 8, 0)]), []);
        // Nor do they keep others from what is free.
        assert_eq!(moved(&full(3, 2, 5), &[with_room, instance(2, 8, 6)]), [(1, 2)]);
    }

    proptest! {
        /// Whatever instances report, not more sessions are sent than wait, nor more than are free.
        #[test]
        fn together_they_send_no_more_than_fits(
            reports in proptest::collection::vec(
                ((0..6_u32, 0..9_u32, 0..9_u32), 0..9_u32, 0..4_u32, any::<bool>(), 0..4_usize), 1..8),
        ) {
            let all: Vec<_> = (1..).zip(&reports).map(|(id, (load, leaving, waited, is_draining, region))| {
                let (slots, running, waiting) = *load;
                let report = instance(id, slots, running + waiting);
                let region = WorkerRegion::ALL.get(*region).copied().filter(|_| *region < 3);
                let (leaving, waited) = (waiting.min(*leaving), *waited);
                Instance { waiting, leaving, waited, is_draining: *is_draining, region, ..report }
            }).collect();
            let mut arrivals = std::collections::BTreeMap::<_, u32>::new();
            for own in &all {
                let others: Vec<_> = all.iter().filter(|other| other.id != own.id).cloned().collect();
                let sent = plan_moves(own, &others);
                prop_assert!(sent.iter().map(|planned| planned.count).sum::<u32>() <= own.waiting);
                let far = sent.iter().filter(|planned| planned.is_far);
                prop_assert!(far.map(|planned| planned.count).sum::<u32>() <= own.leaving);
                for PlannedMove { to, count, is_far } in sent {
                    let target = others.iter().find(|one| one.id == to).unwrap();
                    prop_assert!(count > 0 && is_far == (target.region != own.region));
                    *arrivals.entry(to).or_default() += count;
                }
            }
            for (target, count) in arrivals {
                let target = all.iter().find(|one| one.id == target).unwrap();
                prop_assert!(!target.is_draining && count <= target.slots - target.sessions);
            }
        }
    }
}
