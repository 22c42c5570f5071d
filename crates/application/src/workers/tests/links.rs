//! Links of sessions: sent once, retried, given up, and never sent where they are not wanted.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    id::SessionId,
    notification::{Channel, MAX_NOTIFICATION_ATTEMPTS, NotificationFailure},
    session::Event,
};
use ports::{
    notifier::{NotificationQueue as _, SendError},
    session_store::SessionQueries as _,
    spans::{SpanAttribute, SpanSubject, SpanTrace},
    suppression_store::SuppressionStore as _,
    tokens::TokenIssuer as _,
};

use super::{run_for, seconds};
use crate::{
    session_traces::SessionTraces,
    testing::{FakeNotifier, KeptSpans, World},
    workers::{LinkComposer, LinkNotifications, LinkSender, RetryPolicy, Worker as _},
};

#[tokio::test(start_paused = true)]
async fn a_link_is_sent_once() {
    let setup = Setup::new().await;
    let id = setup.world.invited().await;
    setup.run(600).await;
    let sent = setup.notifier.sent.lock().unwrap().clone();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].address, "ada@example.com");
    assert_eq!(sent[0].link, format!("https://avouch.test/embed/{id}?token=embed-{id}"));
    assert_eq!(sent[0].platform, "Sample");
    assert!(sent[0].choice.starts_with("https://avouch.test/unsubscribe/"), "{}", sent[0].choice);
    assert_eq!(setup.results(id).await, ["sent"]);
    assert_eq!(setup.worker().name(), "links");
}

#[tokio::test(start_paused = true)]
async fn the_link_of_a_started_session_lets_another_device_join() {
    let setup = Setup::new().await;
    let id = setup.world.invited().await;
    setup.world.run(id).await;
    setup.run(1).await;
    let sent = setup.notifier.sent.lock().unwrap().clone();
    let (_, code) = sent[0].link.split_once("#code=").unwrap();
    assert!(domain::binding::is_secret(code));
}

#[tokio::test(start_paused = true)]
async fn a_transient_failure_is_retried_until_the_last_attempt() {
    let setup = Setup::new().await;
    let id = setup.world.invited().await;
    for _ in 0..MAX_NOTIFICATION_ATTEMPTS {
        setup.notifier.results.push(Err(SendError::Transient("busy".into())));
    }
    setup.run(60).await;
    let attempts = setup.notifier.sent.lock().unwrap().len();
    assert_eq!(attempts, usize::try_from(MAX_NOTIFICATION_ATTEMPTS).unwrap());
    assert_eq!(setup.results(id).await, ["unreachable"]);
}

#[tokio::test(start_paused = true)]
async fn a_permanent_failure_is_not_retried() {
    let setup = Setup::new().await;
    let id = setup.world.invited().await;
    let why = NotificationFailure::UnknownReceiver;
    setup.notifier.results.push(Err(SendError::Permanent { why, detail: "550".into() }));
    setup.run(3600).await;
    assert_eq!(setup.notifier.sent.lock().unwrap().len(), 1);
    assert_eq!(setup.results(id).await, ["unknown_receiver"]);
}

#[tokio::test(start_paused = true)]
async fn a_notifier_that_hangs_is_given_up_after_a_while() {
    let setup = Setup {
        notifier: Arc::new(FakeNotifier { hangs: true, ..FakeNotifier::default() }),
        ..Setup::new().await
    };
    setup.world.invited().await;
    setup.run(120).await;
    assert_eq!(setup.notifier.sent.lock().unwrap().len(), 2, "the first one took 90 seconds");
}

#[tokio::test(start_paused = true)]
async fn a_suppressed_address_is_sent_nothing() {
    let setup = Setup::new().await;
    let mailbox = setup.world.tokens.mailbox(setup.world.team, "ADA@example.com");
    setup.world.store.suppress(&mailbox, setup.now()).await.unwrap();
    let id = setup.world.invited().await;
    setup.run(600).await;
    assert!(setup.notifier.sent.lock().unwrap().is_empty());
    assert_eq!(setup.results(id).await, ["unsubscribed"]);
}

#[tokio::test(start_paused = true)]
async fn the_link_of_a_session_that_has_ended_is_not_sent() {
    let setup = Setup::new().await;
    let ended = setup.world.invited().await;
    setup.world.apply(ended, [Event::ApplicantCancelled]).await;
    let expired = setup.world.invited().await;
    setup.world.clock.forward(TimeDelta::hours(80));
    setup.run(600).await;
    assert!(setup.notifier.sent.lock().unwrap().is_empty());
    for id in [ended, expired] {
        assert_eq!(setup.results(id).await, ["session_ended"]);
    }
}

#[tokio::test(start_paused = true)]
async fn each_attempt_has_a_span_without_the_address() {
    let setup = Setup::new().await;
    let id = setup.world.invited().await;
    let busy = SendError::Transient("ada@example.com is busy".into());
    setup.notifier.results.push(Err(busy));
    setup.run(60).await;
    let spans = setup.spans.all();
    let [busy, sent] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!((busy.error, sent.error), (Some("unreachable"), None));
    for (span, number) in [(busy, 1), (sent, 2)] {
        assert_eq!(span.trace, SpanTrace::Session(id));
        assert_eq!(span.subject, SpanSubject::NotificationAttempt);
        assert!(span.attributes.contains(&SpanAttribute::Attempt(number)), "{span:?}");
        assert!(span.attributes.contains(&SpanAttribute::Channel(Channel::Email)), "{span:?}");
    }
    assert!(sent.start > busy.end, "{spans:?}");
    assert!(!format!("{spans:?}").contains("example.com"), "{spans:?}");
}

#[tokio::test(start_paused = true)]
async fn the_span_of_a_notification_that_is_given_up_says_why() {
    let setup = Setup::new().await;
    let why = NotificationFailure::MailboxFull;
    setup.notifier.results.push(Err(SendError::Permanent { why, detail: "552".into() }));
    setup.world.invited().await;
    setup.run(60).await;
    let mailbox = setup.world.tokens.mailbox(setup.world.team, "ada@example.com");
    setup.world.store.suppress(&mailbox, setup.now()).await.unwrap();
    setup.world.invited().await;
    setup.run(60).await;
    let ended = setup.world.invited().await;
    setup.world.apply(ended, [Event::ApplicantCancelled]).await;
    setup.run(60).await;
    let errors: Vec<_> = setup.spans.all().into_iter().map(|span| span.error).collect();
    assert_eq!(errors, ["mailbox_full", "unsubscribed", "session_ended"].map(Some));
}

#[tokio::test(start_paused = true)]
async fn the_result_of_a_lost_claim_is_discarded() {
    let setup = Setup::new().await;
    let id = setup.world.invited().await;
    let lost = setup.claim().await;
    setup.world.clock.forward(TimeDelta::minutes(10));
    let held = setup.claim().await;
    setup.sender().send(&lost).await.unwrap();
    assert!(setup.results(id).await.is_empty());
    setup.sender().send(&held).await.unwrap();
    assert_eq!(setup.results(id).await, ["sent"]);
}

struct Setup {
    world: World,
    notifier: Arc<FakeNotifier>,
    spans: Arc<KeptSpans>,
}

impl Setup {
    async fn new() -> Self {
        let spans = Arc::new(KeptSpans::new(true));
        Self { world: World::new().await, notifier: Arc::default(), spans }
    }

    fn now(&self) -> DateTime<Utc> {
        self.world.engine.clock.now()
    }

    fn sender(&self) -> LinkSender {
        let world = &self.world;
        let composer = LinkComposer {
            sessions: world.store.clone(),
            catalogue: world.store.clone(),
            keys: world.store.clone(),
            templates: world.store.clone(),
            brands: world.store.clone(),
            urls: world.urls(),
            devices: world.devices(),
        };
        LinkSender {
            queue: world.store.clone(),
            composer,
            suppressions: world.store.clone(),
            notifier: self.notifier.clone(),
            retries: RetryPolicy {
                backoff: "1x1".parse().unwrap(),
                random: world.random.clone(),
                clock: world.clock.clone(),
            },
            traces: SessionTraces::new(self.spans.clone(), world.store.clone()),
        }
    }

    fn worker(&self) -> LinkNotifications {
        LinkNotifications {
            queue: self.world.store.clone(),
            sender: Arc::new(self.sender()),
            tasks: self.world.tasks.clone(),
        }
    }

    async fn run(&self, time: u64) {
        run_for(&self.worker(), seconds(time)).await;
    }

    async fn claim(&self) -> ports::notifier::NotificationClaim {
        let claims =
            self.world.store.claim_notifications(self.now(), TimeDelta::minutes(1), 8, None);
        claims.await.unwrap().remove(0)
    }

    /// How the session's notifications ended, as its timeline has it.
    async fn results(&self, id: SessionId) -> Vec<String> {
        let timeline = self.world.store.timeline(self.world.key.id, id).await.unwrap().unwrap();
        let ended = ["NotificationSent", "NotificationFailed"];
        let ended = timeline.into_iter().filter(|entry| ended.contains(&entry.event.as_str()));
        ended.map(|entry| entry.detail.unwrap_or_else(|| "sent".into())).collect()
    }
}
