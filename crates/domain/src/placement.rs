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
    const fn room(&self) -> u32 {
        if self.begins_sessions() { self.slots.saturating_sub(self.sessions) } else { 0 }
    }

    /// The number of sessions that wait there because all of its browsers are in use. Where some are
    /// free, sessions wait for their team's quota.
    const fn waiting_for_room(&self) -> u32 {
        let running = self.sessions.saturating_sub(self.waiting);
        if running >= self.slots { self.waiting } else { 0 }
    }

    /// Compares how much of two instances is used, without division: `a/b < c/d` if `ad < cb`.
    fn is_less_used_than(&self, other: &Self) -> bool {
        let product = |sessions: u32, slots: u32| u64::from(sessions) * u64::from(slots);
        product(self.sessions, other.slots) < product(other.sessions, self.slots)
    }
}

/// Returns the instance that begins the next session of `own`'s region: the least used one. Of equal ones
/// it is `own`, since that needs no relay, or else the first. `None` if no instance begins sessions.
pub fn least_used<'a>(
    own: &'a Instance,
    others: impl IntoIterator<Item = &'a Instance>,
) -> Option<&'a Instance> {
    let near = others.into_iter().filter(|other| other.region == own.region);
    [own].into_iter().chain(near).filter(|instance| instance.begins_sessions()).reduce(
        |best, next| {
            if next.is_less_used_than(best) { next } else { best }
        },
    )
}

/// Returns to which instances of its region `own` sends sessions that wait for one of its browsers, and how
/// many to each: as many as would get a browser there at once.
///
/// All instances decide at about the same time, by what all have reported. What is free is for the instance
/// first whose session has waited for the longest time, so that they do not all send sessions to the same
/// browser.
#[must_use]
pub fn plan_moves(own: &Instance, others: &[Instance]) -> Vec<(InstanceId, u32)> {
    let near = || others.iter().filter(|other| other.region == own.region);
    let rank = |instance: &Instance| (instance.waited, instance.id);
    let before = near().filter(|other| rank(other) > rank(own));
    let mut taken = before.map(Instance::waiting_for_room).fold(0, u32::saturating_add);
    let mut left = own.waiting_for_room();
    let mut targets: Vec<_> = near().filter(|other| other.room() > 0).collect();
    targets.sort_by_key(|other| other.id);
    let mut moves = Vec::new();
    for target in targets {
        let of_others = taken.min(target.room());
        taken = taken.saturating_sub(of_others);
        let count = left.min(target.room().saturating_sub(of_others));
        left = left.saturating_sub(count);
        if count > 0 {
            moves.push((target.id, count));
        }
    }
    moves
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
            waited: 0,
            is_draining: false,
        }
    }

    /// An instance whose browsers are all in use, with sessions that wait.
    fn full(id: u128, waiting: u32, waited: u32) -> Instance {
        Instance { waiting, waited, ..instance(id, 4, 4 + waiting) }
    }

    fn moved(own: &Instance, others: &[Instance]) -> Vec<(u128, u32)> {
        let moves = plan_moves(own, others).into_iter();
        moves.map(|(id, count)| (id.as_uuid().as_u128(), count)).collect()
    }

    fn chosen(own: &Instance, others: &[Instance]) -> Option<u128> {
        least_used(own, others).map(|instance| instance.id.as_uuid().as_u128())
    }

    #[test]
    fn the_least_used_instance_begins_a_session() {
        let others = [instance(2, 4, 1), instance(3, 8, 1), instance(4, 8, 3)];
        assert_eq!(chosen(&instance(1, 4, 2), &others), Some(3));
        assert_eq!(chosen(&instance(1, 4, 0), &others), Some(1));
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
        let west = |instance| Instance { region: Some(WorkerRegion::UsWest), ..instance };
        assert_eq!(chosen(&west(instance(1, 1, 1)), &[instance(2, 8, 0)]), Some(1));
        assert_eq!(chosen(&west(instance(1, 1, 1)), &[west(instance(2, 8, 0))]), Some(2));
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
            reports in proptest::collection::vec((0..6_u32, 0..9_u32, 0..9_u32, 0..4_u32, any::<bool>()), 1..8),
        ) {
            let all: Vec<_> = (1..).zip(&reports).map(|(id, (slots, running, waiting, waited, is_draining))| {
                let sessions = running + waiting;
                let report = instance(id, *slots, sessions);
                Instance { waiting: *waiting, waited: *waited, is_draining: *is_draining, ..report }
            }).collect();
            let mut arrivals = std::collections::BTreeMap::<_, u32>::new();
            for own in &all {
                let others: Vec<_> = all.iter().filter(|other| other.id != own.id).cloned().collect();
                let sent = plan_moves(own, &others);
                prop_assert!(sent.iter().map(|(_, count)| count).sum::<u32>() <= own.waiting);
                for (target, count) in sent {
                    prop_assert!(target != own.id && count > 0);
                    *arrivals.entry(target).or_default() += count;
                }
            }
            for (target, count) in arrivals {
                let target = all.iter().find(|one| one.id == target).unwrap();
                prop_assert!(!target.is_draining && count <= target.slots - target.sessions);
            }
        }
    }
}
