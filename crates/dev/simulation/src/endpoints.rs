//! Webhook endpoints, and the deliveries that wait for them.

use std::collections::VecDeque;

use chrono::{DateTime, TimeDelta, Utc};
use domain::webhook::{EndpointHealth, MAX_DELIVERY_AGE, count_failure, open_duration};

use crate::{instances::InstanceIndex, parameters::Endpoints, random::Random};

/// Time beyond [`MAX_DELIVERY_AGE`] after which a delivery that nobody attempts is given up
/// (`DeliveryGiveUp` in `application`).
const GRACE_PERIOD: TimeDelta = TimeDelta::hours(1);

/// The position of an endpoint among all.
pub(crate) type EndpointIndex = usize;

/// A delivery until it is delivered or exhausted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delivery {
    pub(crate) endpoint: EndpointIndex,
    pub(crate) created_at: DateTime<Utc>,
    /// Attempts whose results were stored.
    pub(crate) tries: u32,
    /// How often the endpoint has accepted it.
    pub(crate) accepted: u32,
}

impl Delivery {
    pub(crate) const fn new(endpoint: EndpointIndex, created_at: DateTime<Utc>) -> Self {
        Self { endpoint, created_at, tries: 0, accepted: 0 }
    }

    fn is_given_up(&self, now: DateTime<Utc>) -> bool {
        now - self.created_at >= MAX_DELIVERY_AGE + GRACE_PERIOD
    }
}

/// A call to an endpoint.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) delivery: Delivery,
    /// The instance that makes it, and its incarnation.
    pub(crate) by: (InstanceIndex, u32),
    pub(crate) began_at: DateTime<Utc>,
    /// The status of the response, if there is one.
    pub(crate) status: Option<u16>,
}

/// The endpoint of one webhook.
pub(crate) struct Endpoint {
    pub(crate) health: EndpointHealth,
    condition: Condition,
    /// Whether it never answers.
    is_dead: bool,
    /// Deliveries that are due, in the order in which they became due.
    due: VecDeque<Delivery>,
    in_flight: u32,
    /// Whether an event is on the agenda at the end of the pause.
    pub(crate) will_wake: bool,
}

/// How an endpoint answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    Up,
    /// It refuses each call at once.
    Refusing,
    /// No call is answered in time.
    Hanging,
}

/// What an endpoint allows now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Permission {
    Call,
    /// Nothing is due, or the calls that may run at once are running.
    Nothing,
    /// The circuit is open until a time.
    Paused(DateTime<Utc>),
}

impl Endpoint {
    pub(crate) fn new(is_dead: bool) -> Self {
        Self {
            health: EndpointHealth::default(),
            condition: if is_dead { Condition::Refusing } else { Condition::Up },
            is_dead,
            due: VecDeque::new(),
            in_flight: 0,
            will_wake: false,
        }
    }

    pub(crate) fn push(&mut self, delivery: Delivery) {
        self.due.push_back(delivery);
    }

    pub(crate) fn backlog(&self) -> usize {
        self.due.len()
    }

    /// Removes the deliveries that are too old to be attempted, and returns their number.
    pub(crate) fn give_up(&mut self, now: DateTime<Utc>) -> u64 {
        let mut given_up = 0_u64;
        while self.due.front().is_some_and(|delivery| delivery.is_given_up(now)) {
            self.due.pop_front();
            given_up = given_up.saturating_add(1);
        }
        given_up
    }

    pub(crate) fn permission(&self, now: DateTime<Utc>, calls_at_once: u32) -> Permission {
        if self.due.is_empty() {
            return Permission::Nothing;
        }
        if let Some(until) = self.health.paused_until.filter(|_| !self.health.permits_delivery(now))
        {
            return Permission::Paused(until);
        }
        let limit = if self.health.is_half_open() { 1 } else { calls_at_once };
        if self.in_flight < limit { Permission::Call } else { Permission::Nothing }
    }

    /// Takes the delivery that has been due for the longest time.
    pub(crate) fn begin_call(&mut self) -> Option<Delivery> {
        let delivery = self.due.pop_front()?;
        self.in_flight = self.in_flight.saturating_add(1);
        Some(delivery)
    }

    pub(crate) fn end_call(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Begins or ends an outage. One that never answers refuses or hangs afterwards as before.
    pub(crate) fn set_condition(&mut self, condition: Condition) {
        if !self.is_dead || condition != Condition::Up {
            self.condition = condition;
        }
    }

    /// Draws the status of a call and how long it takes.
    pub(crate) fn answer(
        &self,
        random: &mut Random,
        endpoints: &Endpoints,
    ) -> (Option<u16>, TimeDelta) {
        let took = random.log_normal(endpoints.answer).min(endpoints.timeout);
        match self.condition {
            Condition::Hanging => (None, endpoints.timeout),
            Condition::Refusing => (Some(503), took),
            Condition::Up if random.chance(endpoints.call_failure) => (Some(500), took),
            Condition::Up => (Some(200), took),
        }
    }

    /// Counts the result of a call in the circuit breaker, as `note_health` in `store` does: a failure
    /// during a pause is of a call before it and ignored. Returns whether the health changed.
    pub(crate) fn note_health(&mut self, is_success: bool, now: DateTime<Utc>) -> bool {
        let before = self.health;
        if is_success {
            self.health = EndpointHealth::default();
        } else if self.health.permits_delivery(now) {
            let failures = count_failure(self.health.failures, 1);
            let pause = open_duration(failures).and_then(|pause| TimeDelta::from_std(pause).ok());
            self.health = EndpointHealth {
                failures,
                failing_since: self.health.failing_since.or(Some(now)),
                paused_until: pause.map(|pause| now + pause),
            };
        }
        self.health != before
    }
}
