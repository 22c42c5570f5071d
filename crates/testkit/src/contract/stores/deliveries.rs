//! The contract of [`ports::delivery::DeliveryQueue`].

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::{id::SessionId, webhook::Webhook};
use ports::{
    delivery::{Attempt, Delivery},
    outbox::Verdict,
    webhook_sender::Answer,
};

use super::{Backend, CLAIMERS, Household, LEASE, ROUNDS, commit, ended, household, inserted};
use crate::sample::{noon, webhook};

pub async fn owes_one_delivery_to_each_active_webhook(backend: &Backend) {
    let home = household(backend).await;
    let (first, second) = (webhook(home.team), webhook(home.team));
    let sleeping = Webhook { active: false, ..webhook(home.team) };
    let strangers = webhook(household(backend).await.team);
    for webhook in [&first, &second, &sleeping, &strangers] {
        backend.webhooks.add_webhook(webhook, noon()).await.unwrap();
    }
    let session = ended_session(backend, &home).await;
    let late = webhook(home.team);
    backend.webhooks.add_webhook(&late, noon()).await.unwrap();

    let claimed = claim(backend, noon()).await;
    let mut to: Vec<_> = claimed.iter().map(|delivery| delivery.webhook.id).collect();
    to.sort_unstable();
    let mut expected = [first.id, second.id];
    expected.sort_unstable();
    assert_eq!(to, expected);
    assert!(claimed.iter().all(|delivery| delivery.session == session));
}

pub async fn hands_a_delivery_to_one_claimer(backend: &Backend) {
    let home = household(backend).await;
    backend.webhooks.add_webhook(&webhook(home.team), noon()).await.unwrap();
    for _ in 0..ROUNDS {
        ended_session(backend, &home).await;
        ended_session(backend, &home).await;
        let claims = [(); CLAIMERS].map(|()| {
            let deliveries = backend.deliveries.clone();
            tokio::spawn(
                async move { deliveries.claim_deliveries(noon(), LEASE, 2).await.unwrap() },
            )
        });
        let mut ids = Vec::new();
        for claim in claims {
            ids.extend(claim.await.unwrap().into_iter().map(|delivery| delivery.id));
        }
        let claimed = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), claimed, "a delivery was handed out twice");
        assert_eq!(claimed + claim(backend, noon()).await.len(), 2, "a delivery was lost");
    }
}

pub async fn keeps_body_and_webhook_over_attempts(backend: &Backend) {
    let home = household(backend).await;
    let hook = webhook(home.team);
    backend.webhooks.add_webhook(&hook, noon()).await.unwrap();
    let session = ended_session(backend, &home).await;
    let first = claim(backend, noon()).await.remove(0);
    assert!(first.body.contains(&session.to_string()), "{}", first.body);
    assert_eq!(first.webhook.secret.expose(), hook.secret.expose());
    let header = first.webhook.header.as_ref().map(|header| header.value.expose());
    assert_eq!(header, Some("header value"));
    let due = noon() + TimeDelta::seconds(5);
    assert!(settle(backend, &first, Verdict::RetryAt(due)).await);

    assert!(claim(backend, due - TimeDelta::microseconds(1)).await.is_empty());
    let second = claim(backend, due).await.remove(0);
    assert_eq!((second.id, second.attempt), (first.id, 2));
    assert_eq!(second.body, first.body);
}

pub async fn ignores_the_verdict_of_a_lost_delivery(backend: &Backend) {
    let home = household(backend).await;
    backend.webhooks.add_webhook(&webhook(home.team), noon()).await.unwrap();
    ended_session(backend, &home).await;
    let lost = claim(backend, noon()).await.remove(0);
    let held = claim(backend, noon() + LEASE).await.remove(0);
    assert!(!settle(backend, &lost, Verdict::Done).await);
    assert!(settle(backend, &held, Verdict::Done).await);
}

pub async fn hands_out_no_settled_delivery(backend: &Backend) {
    let home = household(backend).await;
    backend.webhooks.add_webhook(&webhook(home.team), noon()).await.unwrap();
    for verdict in [Verdict::Done, Verdict::Buried] {
        ended_session(backend, &home).await;
        let held = claim(backend, noon()).await.remove(0);
        assert!(settle(backend, &held, verdict).await);
        assert!(claim(backend, noon() + TimeDelta::days(30)).await.is_empty());
    }
}

async fn ended_session(backend: &Backend, home: &Household) -> SessionId {
    let change = ended(&inserted(backend, home).await);
    commit(backend, &change).await;
    change.session.id
}

async fn claim(backend: &Backend, now: DateTime<Utc>) -> Vec<Delivery> {
    backend.deliveries.claim_deliveries(now, LEASE, 10).await.unwrap()
}

async fn settle(backend: &Backend, delivery: &Delivery, verdict: Verdict) -> bool {
    let answer = Answer::Failed("refused");
    let attempt = Attempt { at: noon(), took: Duration::from_millis(7), answer };
    backend.deliveries.settle_delivery(delivery, &attempt, verdict).await.unwrap()
}
