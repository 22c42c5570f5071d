//! Telling partners: claims what is owed, calls the receivers, writes down what came of it.
//!
//! No connection to the database is held during a call. A claim is a lease: when this process dies,
//! it runs out and another one calls; a receiver may hear of a session twice, never not at all.

mod settler;
mod windows;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    id::WebhookId,
    webhook::{Backoff, Effort, MOST_AGE, Reply, Verdict},
};
use ports::{
    delivery::{Attempt, Claimed, Delivery, DeliveryQueue, Settled},
    webhook_sender::{Answer, Cause, WebhookSender},
};
use tokio::{
    sync::{Notify, mpsc},
    time::Instant,
};
use tokio_util::task::TaskTracker;

use self::{
    settler::{Outcome, Settler},
    windows::{Landing, Windows},
};
use crate::{advance::Core, workers::complain};

const POLL: Duration = Duration::from_millis(250);
/// Places that get free within this time are filled by one claim.
const GATHER: Duration = Duration::from_millis(1);
/// Outcomes that wait to be written.
const OUTCOMES: usize = 2048;
const GIVE_UP_EVERY: Duration = Duration::from_secs(60);
const GIVE_UP_BATCH: u16 = 500;

/// Sends what is owed.
#[derive(Clone)]
pub(crate) struct Courier {
    pub(crate) core: Arc<Core>,
    pub(crate) queue: Arc<dyn DeliveryQueue>,
    /// The same, over another connection: outcomes are written while the next are claimed.
    pub(crate) log: Arc<dyn DeliveryQueue>,
    pub(crate) sender: Arc<dyn WebhookSender>,
    pub(crate) backoff: Backoff,
    pub(crate) tasks: TaskTracker,
}

/// What the calls under way share.
#[derive(Default)]
struct Sky {
    windows: Mutex<Windows<Delivery>>,
    /// Rung when there is a place that somebody waits for.
    landed: Notify,
}

impl Sky {
    fn windows(&self) -> MutexGuard<'_, Windows<Delivery>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, webhook: WebhookId) -> Option<Delivery> {
        let mut windows = self.windows();
        let next = windows.next(webhook, Instant::now().into_std());
        metrics::gauge!("avouch_deliveries_in_flight").set(f64::from(windows.flying()));
        next
    }
}

/// Where the claims of one round, from the first webhook to the last, have come to.
#[derive(Default)]
struct Round {
    after: Option<WebhookId>,
    /// Whether anything was claimed in it.
    gave: bool,
}

impl Round {
    /// Goes on; whether there may be more at once. A round of several claims that gave something
    /// is followed by another: what came meanwhile may be for those whom it began with.
    const fn go_on(&mut self, gave: bool, next: Option<WebhookId>) -> bool {
        let begins = self.after.is_none();
        self.gave = gave || self.gave && !begins;
        self.after = next;
        next.is_some() || self.gave && !begins
    }
}

impl Courier {
    /// Never ends; calls under way when it is dropped come to their end.
    pub(crate) async fn deliver(&self) {
        let (send, outcomes) = mpsc::channel(OUTCOMES);
        let (log, clock) = (self.log.clone(), self.core.clock.clone());
        let failing = HashSet::new();
        self.tasks.spawn(Settler { log, clock, outcomes, failing }.run());
        let sky = Arc::new(Sky::default());
        let mut round = Round::default();
        loop {
            match self.claim(&sky, &mut round, &send).await {
                Ok(true) => (),
                Ok(false) => tokio::select! {
                    () = sky.landed.notified() => tokio::time::sleep(GATHER).await,
                    () = self.core.deliveries.notified() => (),
                    () = tokio::time::sleep(POLL) => (),
                },
                Err(error) => {
                    complain(&error, "deliveries could not be claimed");
                    tokio::time::sleep(POLL).await;
                }
            }
        }
    }

    /// Whether there may be more at once.
    async fn claim(
        &self,
        sky: &Arc<Sky>,
        round: &mut Round,
        send: &mpsc::Sender<Outcome>,
    ) -> Result<bool, ports::StoreError> {
        let ask = sky.windows().ask(self.core.clock.now(), round.after);
        let Some(ask) = ask else { return Ok(false) };
        let Claimed { deliveries, next } = self.queue.claim_deliveries(&ask).await?;
        let mut given = HashMap::<_, u16>::new();
        for delivery in deliveries {
            let webhook = delivery.webhook.id;
            let count = given.entry(webhook).or_default();
            *count = count.saturating_add(1);
            sky.windows().took(webhook, delivery, Instant::now().into_std());
            self.take_off(sky, webhook, send);
        }
        if sky.windows().note_starved(&ask, &given, next) {
            sky.landed.notify_one();
        }
        Ok(round.go_on(!given.is_empty(), next))
    }

    /// Begins the calls to a receiver that there are places for.
    fn take_off(&self, sky: &Arc<Sky>, webhook: WebhookId, send: &mpsc::Sender<Outcome>) {
        while let Some(delivery) = sky.next(webhook) {
            let (me, sky, send) = (self.clone(), sky.clone(), send.clone());
            self.tasks.spawn(async move { me.fly(&sky, delivery, &send).await });
        }
    }

    /// Makes a call, and those after it that wait for its place.
    async fn fly(&self, sky: &Arc<Sky>, first: Delivery, send: &mpsc::Sender<Outcome>) {
        let mut next = Some(first);
        while let Some(delivery) = next {
            let webhook = delivery.webhook.id;
            let outcome = self.call(&delivery).await;
            let attempt = &outcome.settled.attempt;
            let how = landing(&attempt.call.answer);
            if sky.windows().landed(webhook, how, attempt.took) {
                sky.landed.notify_one();
            }
            // Full only where the database is slower than all receivers together; what waits is
            // taken after it, since its claim may run out meanwhile.
            let _ = send.send(outcome).await;
            next = sky.next(webhook);
            // A success makes one place more.
            self.take_off(sky, webhook, send);
        }
    }

    async fn call(&self, delivery: &Delivery) -> Outcome {
        let (at, began) = (self.core.clock.now(), Instant::now());
        let waited = (at - delivery.due).to_std().unwrap_or_default();
        metrics::histogram!("avouch_delivery_wait_seconds").record(waited);
        let call = self.sender.send(delivery, at).await;
        let took = began.elapsed();
        let verdict = self.judge(delivery, &call.answer);
        tell(delivery, &call.answer);
        let attempt = Attempt { at, took, call };
        let (webhook, claim) = (delivery.webhook.id, delivery.claim);
        let settled = Settled { delivery: delivery.id, webhook, claim, attempt, verdict };
        Outcome { settled, ailing: delivery.ailing }
    }

    fn judge(&self, delivery: &Delivery, answer: &Answer) -> Verdict {
        let reply = match answer {
            Answer::Status { code, retry_after, .. } => {
                Reply { code: Some(*code), retry_after: *retry_after }
            }
            Answer::Failed(_) => Reply { code: None, retry_after: None },
        };
        let effort = Effort {
            tries: delivery.tries.saturating_add(1),
            retries: if delivery.single { 0 } else { delivery.webhook.retries },
            since: delivery.since,
        };
        effort.judge(reply, self.backoff, self.core.chance.number(), self.core.clock.now())
    }

    /// Gives up on what nobody wants to have; never ends.
    pub(crate) async fn give_up(&self) {
        loop {
            let before: DateTime<Utc> = self.core.clock.now() - MOST_AGE - TimeDelta::hours(1);
            match self.queue.give_up(before, GIVE_UP_BATCH).await {
                Ok(0) => tokio::time::sleep(GIVE_UP_EVERY).await,
                Ok(count) => tracing::warn!("{count} deliveries that are too old were given up"),
                Err(error) => {
                    complain(&error, "old deliveries could not be given up");
                    tokio::time::sleep(GIVE_UP_EVERY).await;
                }
            }
        }
    }
}

const fn landing(answer: &Answer) -> Landing {
    match answer {
        Answer::Status { code: 200..=299, .. } => Landing::Success,
        Answer::Status { code: 429 | 502..=504, .. } => Landing::Overrun,
        Answer::Failed(Cause::Timeout) => Landing::Overrun,
        Answer::Status { .. } | Answer::Failed(_) => Landing::Refused,
    }
}

fn tell(delivery: &Delivery, answer: &Answer) {
    let (id, session, n) = (delivery.id, delivery.session, delivery.tries.saturating_add(1));
    let outcome = match answer {
        Answer::Status { code: 200..=299, .. } => "delivered",
        Answer::Status { .. } => "refused",
        Answer::Failed(cause) => cause.as_str(),
    };
    metrics::counter!("avouch_delivery_attempts_total", "outcome" => outcome).increment(1);
    match answer {
        Answer::Status { code: code @ 200..=299, .. } => tracing::debug!(
            delivery.id = %id, session.id = %session,
            "attempt {n} of delivery {id} was answered {code}"
        ),
        Answer::Status { code, .. } => tracing::info!(
            delivery.id = %id, session.id = %session,
            "attempt {n} of delivery {id} was answered {code}"
        ),
        Answer::Failed(cause) => tracing::warn!(
            delivery.id = %id, session.id = %session, class = cause.as_str(),
            "attempt {n} of delivery {id} failed"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn rounds_come_to_an_end() {
        let one = Some(WebhookId::from_uuid(Uuid::from_u128(1)));
        let mut round = Round::default();
        assert!(!round.go_on(true, None), "a landing or a notice says that there is more");
        // Webhooks on two pages, none of which gets anything.
        assert!(round.go_on(false, one) && !round.go_on(false, None));
        // Once more where one got something.
        assert!(round.go_on(true, one) && round.go_on(false, None));
        assert!(round.go_on(false, one) && !round.go_on(false, None));
    }
}
