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
    /// Whether it begins no more sessions.
    pub is_draining: bool,
}

impl Instance {
    /// Returns whether a session can begin there.
    #[must_use]
    pub const fn begins_sessions(&self) -> bool {
        self.slots > 0 && !self.is_draining
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

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(id: u128, slots: u32, sessions: u32) -> Instance {
        Instance {
            id: InstanceId::from_u128(id),
            address: format!("10.0.0.{id}:8443"),
            region: None,
            slots,
            sessions,
            is_draining: false,
        }
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
}
