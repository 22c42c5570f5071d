//! Deliveries: calls, retries by the domain's backoff, and the circuit breaker.

use chrono::TimeDelta;
use domain::webhook::{AttemptContext, Backoff, DeliveryDecision, ResponseSummary};
use ports::delivery::CLAIM_TTL;

use crate::{
    endpoints::{Call, Delivery, EndpointIndex, Permission},
    simulation::{Occurrence, Simulation},
    writes::Write,
};

/// How long deliveries wait while no instance runs.
const NO_INSTANCE_DELAY: TimeDelta = TimeDelta::seconds(1);

impl Simulation<'_> {
    pub(crate) fn delivery_due(&mut self, delivery: Delivery) {
        if let Some(endpoint) = self.endpoints.get_mut(delivery.endpoint) {
            endpoint.push(delivery);
            self.call(delivery.endpoint);
        }
    }

    pub(crate) fn pause_ended(&mut self, index: EndpointIndex) {
        if let Some(endpoint) = self.endpoints.get_mut(index) {
            endpoint.will_wake = false;
            let given_up = endpoint.give_up(self.now);
            self.tally.exhausted = self.tally.exhausted.saturating_add(given_up);
            self.writes.add(Write::QueueEntryDeleted, given_up);
            self.writes.add(Write::DeliveryExhausted, given_up);
            self.call(index);
        }
    }

    /// Begins as many calls to an endpoint as it allows.
    fn call(&mut self, index: EndpointIndex) {
        let (now, limit) = (self.now, self.parameters.endpoints.calls_at_once);
        while let Some(endpoint) = self.endpoints.get_mut(index) {
            let until = match endpoint.permission(now, limit) {
                Permission::Nothing => return,
                Permission::Paused(until) => Some(until),
                Permission::Call => None,
            };
            let by = self.instances.any(&mut self.random).filter(|_| until.is_none());
            let Some(by) = by else {
                if !endpoint.will_wake {
                    endpoint.will_wake = true;
                    let until = until.unwrap_or(now + NO_INSTANCE_DELAY);
                    self.agenda.add(until, Occurrence::PauseEnded(index));
                }
                return;
            };
            let Some(delivery) = endpoint.begin_call() else { return };
            let (status, took) = endpoint.answer(&mut self.random, &self.parameters.endpoints);
            let incarnation = self.instances.get(by).map_or(0, |instance| instance.incarnation);
            let by = (by, incarnation);
            self.writes.add(Write::QueueEntryClaimed, 1);
            self.tally.calls = self.tally.calls.saturating_add(1);
            self.after(took, Occurrence::CallEnded(Call { delivery, by, began_at: now, status }));
        }
    }

    pub(crate) fn call_ended(&mut self, call: &Call) {
        let is_success = matches!(call.status, Some(200..=299));
        let accepted = call.delivery.accepted.saturating_add(u32::from(is_success));
        let delivery = Delivery { accepted, ..call.delivery };
        let index = delivery.endpoint;
        if let Some(endpoint) = self.endpoints.get_mut(index) {
            endpoint.end_call();
        }
        if self.instances.same_run(call.by).is_some() {
            self.settle(delivery, call.status);
        } else {
            // The result is lost with the instance. The claim is not renewed any more, and another
            // instance makes the call again.
            self.tally.results_lost = self.tally.results_lost.saturating_add(1);
            let claimed_until = call.began_at + CLAIM_TTL;
            self.agenda.add(claimed_until.max(self.now), Occurrence::DeliveryDue(delivery));
        }
        self.call(index);
    }

    /// Stores the result of a call, and decides what follows.
    fn settle(&mut self, delivery: Delivery, status: Option<u16>) {
        let now = self.now;
        self.writes.add(Write::AttemptInserted, 1);
        // When the session's retention is over.
        self.writes.add(Write::AttemptErased, 1);
        self.writes.add(Write::AttemptDeleted, 1);
        let is_success = matches!(status, Some(200..=299));
        let endpoint = self.endpoints.get_mut(delivery.endpoint);
        if endpoint.is_some_and(|endpoint| endpoint.note_health(is_success, now)) {
            self.writes.add(Write::HealthUpdated, 1);
        }
        let attempt = AttemptContext {
            tries: delivery.tries.saturating_add(1),
            retries: self.parameters.endpoints.retries,
            since: delivery.created_at,
        };
        let response = ResponseSummary { code: status, retry_after: None };
        match attempt.decide(response, Backoff::default(), self.random.jitter(), now) {
            DeliveryDecision::Delivered => {
                self.writes.add(Write::QueueEntryDeleted, 1);
                self.tally.delivered(delivery, now);
            }
            DeliveryDecision::RetryAt(due) => {
                self.writes.add(Write::QueueEntryPutOff, 1);
                let tries = delivery.tries.saturating_add(1);
                let delivery = Delivery { tries, ..delivery };
                self.agenda.add(due, Occurrence::DeliveryDue(delivery));
            }
            DeliveryDecision::Exhausted => {
                self.writes.add(Write::QueueEntryDeleted, 1);
                self.writes.add(Write::DeliveryExhausted, 1);
                self.tally.exhausted = self.tally.exhausted.saturating_add(1);
            }
        }
    }
}
