//! The dispatcher on an in-memory store, in paused time.

mod fakes;

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use chrono::TimeDelta;
use domain::{
    id::{SessionId, WebhookId},
    session::Event,
    webhook::{EndpointHealth, MAX_DELIVERY_AGE},
};
use ports::{
    clock::Clock as _,
    delivery_log::{
        DeliveryFilter, DeliveryLog as _, DeliveryScope, DeliveryState, StoredAttempt,
        StoredDelivery,
    },
    webhook_sender::{FailureCause, WebhookResponse},
    webhook_store::WebhookStore as _,
};

use self::fakes::{Endpoint, Flaky, status};
use super::{ClaimCursor, DeliveryGiveUp, WebhookDispatcher};
use crate::{testing::World, workers::Worker};

#[test]
fn a_pass_over_all_webhooks_ends() {
    let one = Some(WebhookId::from_u128(1));
    let mut cursor = ClaimCursor::default();
    assert!(!cursor.advance(true, None), "a completed call or a notification wakes the dispatcher");
    // A pass of two claims that return nothing.
    assert!(cursor.advance(false, one) && !cursor.advance(false, None));
    // A pass of two claims, the first of which returned deliveries, is repeated once.
    assert!(cursor.advance(true, one) && cursor.advance(false, None));
    assert!(cursor.advance(false, one) && !cursor.advance(false, None));
}

#[tokio::test(start_paused = true)]
async fn a_closed_session_is_delivered_once_to_each_webhook() {
    let setup = Setup::new().await;
    setup.world.webhook().await;
    setup.world.webhook().await;
    let id = setup.closed().await;
    setup.run(60).await;
    let bodies = setup.endpoint.bodies();
    assert_eq!(bodies.len(), 2);
    assert!(bodies.iter().all(|body| body.contains(&id.to_string())), "{bodies:?}");
    assert_eq!(setup.states(id).await, [DeliveryState::Delivered; 2]);
    assert_eq!(setup.dispatcher().name(), "deliveries");
}

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_is_repeated_after_the_backoff() {
    let setup = Setup::new().await;
    setup.world.webhook().await;
    setup.endpoint.answers.push(status(500));
    setup.endpoint.answers.push(WebhookResponse::Failed(FailureCause::Connect));
    let id = setup.closed().await;
    setup.run(3).await;
    assert_eq!(setup.states(id).await, [DeliveryState::Pending]);
    setup.run(60).await;
    assert_eq!(setup.states(id).await, [DeliveryState::Delivered]);
    let attempts = setup.attempts(id).await;
    let statuses: Vec<_> = attempts.iter().map(|attempt| attempt.status).collect();
    assert_eq!(statuses, [Some(500), None, Some(200)]);
    let waits: Vec<_> =
        attempts.windows(2).map(|pair| (pair[1].at - pair[0].at).num_seconds()).collect();
    assert!((4..=6).contains(&waits[0]) && (24..=36).contains(&waits[1]), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_can_ask_for_a_longer_wait() {
    let setup = Setup::new().await;
    setup.world.webhook().await;
    let retry_after = Some(Duration::from_secs(600));
    let busy = WebhookResponse::Status { code: 503, body: String::new(), retry_after };
    setup.endpoint.answers.push(busy);
    let id = setup.closed().await;
    setup.run(590).await;
    assert_eq!(setup.states(id).await, [DeliveryState::Pending]);
    setup.run(20).await;
    assert_eq!(setup.states(id).await, [DeliveryState::Delivered]);
}

#[tokio::test(start_paused = true)]
async fn a_delivery_is_exhausted_after_its_retries_or_at_once_where_the_endpoint_is_gone() {
    let setup = Setup::new().await;
    let webhook = setup.world.webhook().await;
    let attempts = u32::from(webhook.retries) + 1;
    for _ in 0..attempts {
        setup.endpoint.answers.push(status(500));
    }
    let id = setup.closed().await;
    setup.run(600).await;
    assert_eq!(setup.states(id).await, [DeliveryState::Exhausted]);
    assert_eq!(setup.attempts(id).await.len(), usize::try_from(attempts).unwrap());
    setup.endpoint.answers.push(status(410));
    let id = setup.closed().await;
    setup.run(60).await;
    assert_eq!(setup.states(id).await, [DeliveryState::Exhausted]);
    assert_eq!(setup.attempts(id).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_test_delivery_is_not_repeated() {
    let setup = Setup::new().await;
    let webhook = setup.world.webhook().await;
    setup.endpoint.answers.push(status(500));
    let (session, now) = (SessionId::from_u128(7), setup.world.clock.now());
    let store = &setup.world.store;
    let id = store.enqueue_test(webhook.id, session, "{}", now).await.unwrap();
    setup.run(60).await;
    let (delivery, attempts) = store.delivery(id).await.unwrap().unwrap();
    assert_eq!((delivery.state, attempts.len()), (DeliveryState::Exhausted, 1));
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_fails_again_and_again_is_given_pauses_until_it_recovers() {
    let setup = Setup::new().await;
    let webhook = setup.world.webhook().await;
    for _ in 0..12 {
        setup.closed().await;
        setup.endpoint.answers.push(status(500));
    }
    setup.run(1).await;
    let health = setup.health(webhook.id).await;
    assert!(health.failures >= 10 && health.paused_until.is_some(), "{health:?}");
    let calls = setup.endpoint.bodies().len();
    setup.closed().await;
    setup.run_until_pause_ends(&health).await;
    assert_eq!(setup.endpoint.bodies().len(), calls, "nothing is sent during a pause");
    setup.run(120).await;
    assert_eq!(setup.health(webhook.id).await, EndpointHealth::default());
    assert_eq!(setup.pending().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_slow_endpoint_has_few_calls_at_a_time_and_delays_no_other() {
    let setup = Setup::new().await;
    let slow = setup.world.webhook().await;
    let endpoint = Arc::new(Endpoint::slow_for(slow.id));
    let setup = Setup { endpoint, ..setup };
    setup.world.webhook().await;
    for _ in 0..40 {
        setup.closed().await;
    }
    setup.run(1).await;
    let delivered = setup.delivered().await;
    assert_eq!(delivered, 40, "those of the fast endpoint");
    assert_eq!(setup.endpoint.slow_calls.load(Ordering::Relaxed), 4);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_runs_while_the_service_stops_completes() {
    let setup = Setup::new().await;
    let slow = setup.world.webhook().await;
    let endpoint = Arc::new(Endpoint::slow_for(slow.id));
    let setup = Setup { endpoint, ..setup };
    let id = setup.closed().await;
    setup.run(1).await;
    assert_eq!(setup.states(id).await, [DeliveryState::Pending]);
    setup.world.tasks.close();
    setup.world.tasks.wait().await;
    assert_eq!(setup.states(id).await, [DeliveryState::Delivered]);
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_call_is_renewed_until_its_result_is_stored() {
    let setup = Setup::new().await;
    setup.world.webhook().await;
    setup.endpoint.delays.push(Duration::from_secs(28));
    let id = setup.closed().await;
    let other = setup.dispatcher();
    tokio::join!(setup.run(40), run_for(&other, 40));
    assert_eq!(setup.states(id).await, [DeliveryState::Delivered]);
    assert_eq!((setup.attempts(id).await.len(), setup.endpoint.bodies().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_process_was_sending_is_sent_again_within_seconds() {
    let setup = Setup::new().await;
    setup.world.webhook().await;
    setup.endpoint.delays.push(Duration::from_secs(28));
    let id = setup.closed().await;
    // A process that is dead to the database: nothing that it writes arrives.
    let flaky = Arc::new(Flaky::new(setup.world.store.clone()));
    for _ in 0..1000 {
        flaky.failures.push(());
    }
    let dead = WebhookDispatcher { log: flaky, ..setup.dispatcher() };
    run_for(&dead, 1).await;
    assert_eq!(setup.endpoint.bodies().len(), 1);
    setup.run(4).await;
    assert_eq!(setup.endpoint.bodies().len(), 1, "its lease is still running");
    setup.run(2).await;
    assert_eq!(setup.states(id).await, [DeliveryState::Delivered]);
    assert_eq!(setup.endpoint.bodies().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_lease_expired_is_not_repeated_by_its_own_process() {
    let setup = Setup::new().await;
    setup.world.webhook().await;
    setup.endpoint.delays.push(Duration::from_secs(28));
    let id = setup.closed().await;
    let flaky = Arc::new(Flaky::new(setup.world.store.clone()));
    // Renewals are attempted every 500 ms; the first results come after 28 s.
    for _ in 0..30 {
        flaky.failures.push(());
    }
    let dispatcher = WebhookDispatcher { log: flaky.clone(), ..setup.dispatcher() };
    run_for(&dispatcher, 40).await;
    assert_eq!(setup.states(id).await, [DeliveryState::Delivered]);
    assert_eq!((setup.attempts(id).await.len(), setup.endpoint.bodies().len()), (1, 1));
    assert_eq!(flaky.failures.next(), None);
}

#[tokio::test(start_paused = true)]
async fn the_result_of_a_call_that_outlived_its_lease_is_discarded() {
    let setup = Setup::new().await;
    setup.world.webhook().await;
    setup.endpoint.delays.push(Duration::from_secs(28));
    setup.endpoint.answers.push(status(410));
    let id = setup.closed().await;
    // A process that cannot renew its leases.
    let flaky = Arc::new(Flaky::new(setup.world.store.clone()));
    for _ in 0..30 {
        flaky.failures.push(());
    }
    let cut_off = WebhookDispatcher { log: flaky, ..setup.dispatcher() };
    run_for(&cut_off, 1).await;
    setup.run(8).await;
    assert_eq!(setup.states(id).await, [DeliveryState::Delivered], "by another claim");
    setup.world.tasks.close();
    setup.world.tasks.wait().await;
    assert_eq!(setup.states(id).await, [DeliveryState::Delivered]);
    let statuses: Vec<_> = setup.attempts(id).await.iter().map(|attempt| attempt.status).collect();
    assert_eq!((statuses, setup.endpoint.bodies().len()), (vec![Some(200)], 2));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_is_tried_again() {
    let setup = Setup::new().await;
    setup.world.webhook().await;
    setup.endpoint.answers.push(status(500));
    let flaky = Arc::new(Flaky::new(setup.world.store.clone()));
    // A claim, two writes of the result, a write of the endpoint's health.
    for _ in 0..4 {
        flaky.failures.push(());
    }
    let dispatcher =
        WebhookDispatcher { queue: flaky.clone(), log: flaky.clone(), ..setup.dispatcher() };
    let id = setup.closed().await;
    run_for(&dispatcher, 60).await;
    assert_eq!(setup.states(id).await, [DeliveryState::Delivered]);
    assert_eq!(setup.attempts(id).await.len(), 2);
    assert_eq!(flaky.failures.next(), None);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_cannot_be_written_is_given_up_and_the_delivery_is_sent_again() {
    let setup = Setup::new().await;
    setup.world.webhook().await;
    let flaky = Arc::new(Flaky::new(setup.world.store.clone()));
    // A write is repeated every 250 ms for a minute, the renewal of the lease every 500 ms.
    for _ in 0..400 {
        flaky.failures.push(());
    }
    let dispatcher = WebhookDispatcher { log: flaky.clone(), ..setup.dispatcher() };
    let id = setup.closed().await;
    run_for(&dispatcher, 200).await;
    assert_eq!(setup.states(id).await, [DeliveryState::Delivered]);
    assert!(setup.endpoint.bodies().len() > 1);
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_no_process_sends_is_given_up_in_the_end() {
    let setup = Setup::new().await;
    setup.world.webhook().await;
    let id = setup.closed().await;
    let flaky = Arc::new(Flaky::new(setup.world.store.clone()));
    flaky.failures.push(());
    let give_up = DeliveryGiveUp { queue: flaky, clock: setup.world.clock.clone() };
    setup.world.clock.forward(MAX_DELIVERY_AGE);
    run_for(&give_up, 1).await;
    assert_eq!(setup.states(id).await, [DeliveryState::Pending]);
    setup.world.clock.forward(TimeDelta::hours(1));
    run_for(&give_up, 1).await;
    assert_eq!(setup.states(id).await, [DeliveryState::Exhausted]);
    assert_eq!(give_up.name(), "old deliveries");
}

struct Setup {
    world: World,
    endpoint: Arc<Endpoint>,
}

impl Setup {
    async fn new() -> Self {
        Self { world: World::new().await, endpoint: Arc::default() }
    }

    fn dispatcher(&self) -> WebhookDispatcher {
        WebhookDispatcher {
            clock: self.world.clock.clone(),
            random: self.world.random.clone(),
            wakeup: self.world.engine.wakeups.deliveries.clone(),
            queue: self.world.store.clone(),
            log: self.world.store.clone(),
            sender: self.endpoint.clone(),
            backoff: "5x6".parse().unwrap(),
            tasks: self.world.tasks.clone(),
            traces: self.world.engine.traces.clone(),
        }
    }

    async fn run(&self, seconds: u64) {
        run_for(&self.dispatcher(), seconds).await;
    }

    /// Runs until just before the end of an endpoint's pause.
    async fn run_until_pause_ends(&self, health: &EndpointHealth) {
        let pause = health.paused_until.unwrap() - self.world.clock.now();
        let time = pause.to_std().unwrap_or_default().saturating_sub(Duration::from_millis(10));
        let _ = tokio::time::timeout(time, self.dispatcher().run()).await;
    }

    /// A session that has just closed.
    async fn closed(&self) -> SessionId {
        let id = self.world.session().await;
        self.world.apply(id, [Event::TerminatedByPartner]).await;
        id
    }

    async fn deliveries(&self, id: SessionId) -> Vec<StoredDelivery> {
        let find = DeliveryFilter { of: DeliveryScope::Session(id), state: None, limit: 100 };
        self.world.store.find_deliveries(&find).await.unwrap()
    }

    async fn states(&self, id: SessionId) -> Vec<DeliveryState> {
        self.deliveries(id).await.into_iter().map(|delivery| delivery.state).collect()
    }

    async fn attempts(&self, id: SessionId) -> Vec<StoredAttempt> {
        let delivery = self.deliveries(id).await.remove(0);
        self.world.store.delivery(delivery.id).await.unwrap().unwrap().1
    }

    async fn health(&self, id: WebhookId) -> EndpointHealth {
        self.world.store.webhook(id).await.unwrap().unwrap().health
    }

    /// How many deliveries of all webhooks are in a state.
    async fn count(&self, state: DeliveryState) -> usize {
        let mut count = 0;
        for stored in self.world.store.webhooks(self.world.team).await.unwrap() {
            let of = DeliveryScope::Webhook(stored.webhook.id);
            let find = DeliveryFilter { of, state: Some(state), limit: 1000 };
            count += self.world.store.find_deliveries(&find).await.unwrap().len();
        }
        count
    }

    async fn pending(&self) -> usize {
        self.count(DeliveryState::Pending).await
    }

    async fn delivered(&self) -> usize {
        self.count(DeliveryState::Delivered).await
    }
}

/// Runs a worker for so long, in the time of tokio.
async fn run_for(worker: &dyn Worker, seconds: u64) {
    let time = Duration::from_secs(seconds);
    assert!(tokio::time::timeout(time, worker.run()).await.is_err(), "{}", worker.name());
}
