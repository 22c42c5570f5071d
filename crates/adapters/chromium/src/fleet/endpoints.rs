//! Selects an endpoint for each browser, by weight among those that work.

use std::{
    cmp::Reverse,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::fleet_address::FleetEndpoint;

/// The time for which an endpoint is left out after its first failure. It doubles with each further one.
const FIRST_BACK_OFF: Duration = Duration::from_secs(5);
const MAX_BACK_OFF: Duration = Duration::from_secs(60);

/// The endpoints of a fleet, with what is known of each.
pub(super) struct Endpoints {
    all: Vec<FleetEndpoint>,
    states: Mutex<Vec<EndpointState>>,
}

#[derive(Default, Clone)]
struct EndpointState {
    /// Grows by the weight with each request for a browser; the endpoint that is tried pays for it.
    credit: i64,
    /// Failures since the last success.
    failures: u32,
    retry_at: Option<Instant>,
    last_error: Option<String>,
}

/// An endpoint that may be tried for a browser.
pub(super) struct Candidate<'a> {
    pub(super) index: usize,
    pub(super) endpoint: &'a FleetEndpoint,
    /// The sum of its weight and of those of the endpoints after it.
    price: i64,
}

impl Endpoints {
    pub(super) fn new(all: Vec<FleetEndpoint>) -> Self {
        let states = vec![EndpointState::default(); all.len()];
        Self { all, states: Mutex::new(states) }
    }

    pub(super) fn all(&self) -> &[FleetEndpoint] {
        &self.all
    }

    /// Returns the endpoints to try for one browser, in this order: those that are not left out, so that
    /// the first ones of many calls follow the weights. If all are left out it is the one whose time ends
    /// first, since there is nothing better. Each is to be charged when it is tried.
    pub(super) fn candidates(&self, now: Instant) -> Vec<Candidate<'_>> {
        let mut states = self.states();
        let is_left_out = |state: &EndpointState| state.retry_at.is_some_and(|at| at > now);
        let mut order: Vec<_> = (0..).zip(&self.all).collect();
        if states.iter().all(is_left_out) {
            let retry_at = |index: usize| states.get(index).and_then(|state| state.retry_at);
            order.sort_by_key(|(index, _)| retry_at(*index));
            order.truncate(1);
        } else {
            order.retain(|(index, _)| states.get(*index).is_some_and(|state| !is_left_out(state)));
            for (index, endpoint) in &order {
                if let Some(state) = states.get_mut(*index) {
                    state.credit = state.credit.saturating_add(i64::from(endpoint.weight));
                }
            }
            let credit = |index: usize| states.get(index).map(|state| state.credit);
            order.sort_by_key(|(index, _)| Reverse(credit(*index)));
        }
        let mut rest: i64 = order.iter().map(|(_, endpoint)| i64::from(endpoint.weight)).sum();
        let candidates = order.into_iter().map(|(index, endpoint)| {
            let price = rest;
            rest = rest.saturating_sub(i64::from(endpoint.weight));
            Candidate { index, endpoint, price }
        });
        candidates.collect()
    }

    /// Charges an endpoint for a browser. This is done before the browser is there, so that concurrent
    /// requests are distributed.
    pub(super) fn charge(&self, candidate: &Candidate<'_>) {
        if let Some(state) = self.states().get_mut(candidate.index) {
            state.credit = state.credit.saturating_sub(candidate.price);
        }
    }

    /// Records that an endpoint works and has no free browser.
    pub(super) fn record_full(&self, candidate: &Candidate<'_>) {
        self.record_success(candidate.index);
        if let Some(state) = self.states().get_mut(candidate.index) {
            state.credit = state.credit.saturating_add(candidate.price);
        }
    }

    /// Records that an endpoint works.
    pub(super) fn record_success(&self, index: usize) {
        if let Some(state) = self.states().get_mut(index) {
            *state = EndpointState { credit: state.credit, ..EndpointState::default() };
        }
    }

    /// Records that an endpoint failed, and leaves it out for a time. Returns that time.
    pub(super) fn record_failure(&self, index: usize, error: String, now: Instant) -> Duration {
        let mut states = self.states();
        let Some(state) = states.get_mut(index) else { return FIRST_BACK_OFF };
        let doublings = state.failures.min(10);
        let back_off = FIRST_BACK_OFF.saturating_mul(1 << doublings).min(MAX_BACK_OFF);
        state.failures = state.failures.saturating_add(1);
        state.retry_at = now.checked_add(back_off);
        state.last_error = Some(error);
        // It does not save up a turn for each browser that it could not have.
        state.credit = 0;
        back_off
    }

    /// Returns the last error of each endpoint that failed last.
    pub(super) fn errors(&self) -> String {
        let states = self.states();
        let failed = self.all.iter().zip(states.iter()).filter_map(|(endpoint, state)| {
            state.last_error.as_ref().map(|error| format!("{}: {error}", endpoint.name))
        });
        failed.collect::<Vec<_>>().join("; ")
    }

    fn states(&self) -> MutexGuard<'_, Vec<EndpointState>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use crate::fleet_address::FleetAddress;

    use super::*;

    #[test]
    fn endpoints_are_selected_by_their_weights_in_turns() {
        let endpoints = endpoints("ws://a#weight=3 ws://b ws://c#weight=2");
        let now = Instant::now();
        let firsts: Vec<_> = (0..12).map(|_| first(&endpoints, now)).collect();
        assert_eq!(firsts, [0, 2, 0, 1, 2, 0, 0, 2, 0, 1, 2, 0]);
        assert_eq!(endpoints.candidates(now).len(), 3);
    }

    #[test]
    fn a_failed_endpoint_is_left_out_for_a_time_that_doubles_up_to_a_minute() {
        let endpoints = endpoints("ws://a ws://b");
        let mut now = Instant::now();
        for seconds in [5, 10, 20, 40, 60, 60] {
            let back_off = endpoints.record_failure(0, "refused".to_owned(), now);
            assert_eq!(back_off, Duration::from_secs(seconds));
            let before = now + back_off.saturating_sub(Duration::from_millis(1));
            assert_eq!(indices(&endpoints, before), [1]);
            now += back_off;
            assert_eq!(indices(&endpoints, now).len(), 2);
        }
        endpoints.record_success(0);
        assert_eq!(endpoints.errors(), "");
        let back_off = endpoints.record_failure(0, "refused".to_owned(), now);
        assert_eq!(back_off, FIRST_BACK_OFF);
    }

    #[test]
    fn an_endpoint_that_works_again_does_not_catch_up() {
        let endpoints = endpoints("ws://a ws://b");
        let mut now = Instant::now();
        endpoints.record_failure(0, "refused".to_owned(), now);
        for _ in 0..100 {
            assert_eq!(first(&endpoints, now), 1);
        }
        now += FIRST_BACK_OFF;
        endpoints.record_success(0);
        let firsts: Vec<_> = (0..10).map(|_| first(&endpoints, now)).collect();
        assert_eq!(firsts.iter().filter(|first| **first == 0).count(), 5, "{firsts:?}");
    }

    #[test]
    fn without_a_working_endpoint_the_one_that_is_due_first_is_tried() {
        let endpoints = endpoints("ws://a ws://b");
        let now = Instant::now();
        endpoints.record_failure(0, "refused".to_owned(), now);
        endpoints.record_failure(0, "refused again".to_owned(), now);
        endpoints.record_failure(1, "no route".to_owned(), now);
        assert_eq!(indices(&endpoints, now), [1]);
        assert_eq!(endpoints.errors(), "a: refused again; b: no route");
    }

    #[test]
    fn a_full_endpoint_keeps_its_turn_and_the_next_one_pays() {
        let endpoints = endpoints("ws://a#weight=5 ws://b ws://c#weight=2");
        let now = Instant::now();
        let used: Vec<_> = (0..6)
            .map(|_| {
                let mut candidates = endpoints.candidates(now).into_iter();
                let full = candidates.next().filter(|first| first.index == 0);
                let full = full.unwrap_or_else(|| panic!("the full one stays first"));
                endpoints.charge(&full);
                endpoints.record_full(&full);
                let next = candidates.next().unwrap();
                endpoints.charge(&next);
                next.index
            })
            .collect();
        assert_eq!(used, [2, 1, 2, 2, 1, 2]);
    }

    fn first(endpoints: &Endpoints, now: Instant) -> usize {
        let candidates = endpoints.candidates(now);
        endpoints.charge(candidates.first().unwrap());
        candidates.first().unwrap().index
    }

    fn indices(endpoints: &Endpoints, now: Instant) -> Vec<usize> {
        endpoints.candidates(now).into_iter().map(|candidate| candidate.index).collect()
    }

    fn endpoints(urls: &str) -> Endpoints {
        let address = FleetAddress::new(urls, "10.0.0.7:8181".parse().unwrap(), None).unwrap();
        Endpoints::new(address.endpoints)
    }
}
