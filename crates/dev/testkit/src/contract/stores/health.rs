//! The contract of [`ports::delivery::DeliveryQueue`] about the health of endpoints.

use chrono::TimeDelta;
use domain::{id::WebhookId, webhook::open_duration};
use ports::{
    delivery::{ClaimRequest, EndpointCapacity, HealthUpdate},
    webhook_store::{HeaderChange, WebhookChange},
};

use super::{
    Backend, CLAIMERS, ROUNDS,
    deliveries::{add, capacity, claim, ended_session, request},
    team_fixture,
};
use crate::sample::noon;

pub async fn pauses_an_endpoint_that_fails(backend: &Backend) {
    let home = team_fixture(backend).await;
    let hook = add(backend, &home).await;
    for _ in 0..3 {
        ended_session(backend, &home).await;
    }
    let update = |failures, success| HealthUpdate { webhook: hook.id, failures, success };
    let update_health =
        async |update| backend.deliveries.note_health(&[update], noon()).await.unwrap();
    update_health(update(9, false)).await;
    assert_eq!(backend.webhooks.webhook(hook.id).await.unwrap().unwrap().health.failures, 9);
    update_health(update(1, false)).await;
    let health = backend.webhooks.webhook(hook.id).await.unwrap().unwrap().health;
    let resumes_at = noon() + TimeDelta::from_std(open_duration(10).unwrap()).unwrap();
    assert_eq!((health.failing_since, health.paused_until), (Some(noon()), Some(resumes_at)));

    let same = WebhookChange {
        url: hook.url.clone(),
        header: HeaderChange::Keep,
        keys: vec![],
        timeout: hook.timeout,
        retries: hook.retries,
    };
    backend.webhooks.change_webhook(hook.id, &same).await.unwrap();
    assert!(claim(backend, resumes_at - TimeDelta::microseconds(1)).await.is_empty());
    let busy = ClaimRequest {
        capacities: vec![EndpointCapacity { busy: true, ..capacity(hook.id, 3) }],
        ..request(resumes_at)
    };
    let claimed = backend.deliveries.claim_deliveries(&busy).await.unwrap().deliveries;
    assert!(claimed.is_empty(), "its one delivery is being sent");
    let known = ClaimRequest { capacities: vec![capacity(hook.id, 3)], ..request(resumes_at) };
    let claimed = backend.deliveries.claim_deliveries(&known).await.unwrap().deliveries;
    assert_eq!(claimed.len(), 1, "a half-open endpoint gets one delivery");
    update_health(update(0, true)).await;
    let health = backend.webhooks.webhook(hook.id).await.unwrap().unwrap().health;
    assert_eq!((health.failures, health.failing_since, health.paused_until), (0, None, None));

    update_health(update(10, false)).await;
    let elsewhere = WebhookChange { url: "https://elsewhere.example/".into(), ..same };
    backend.webhooks.change_webhook(hook.id, &elsewhere).await.unwrap();
    let health = backend.webhooks.webhook(hook.id).await.unwrap().unwrap().health;
    assert_eq!((health.failures, health.failing_since, health.paused_until), (0, None, None));
    assert_eq!(claim(backend, noon()).await.len(), 2, "the new endpoint has not failed");
}

pub async fn counts_concurrent_failures(backend: &Backend) {
    let home = team_fixture(backend).await;
    let hook = add(backend, &home).await;
    let tasks = [(); CLAIMERS].map(|()| {
        let (deliveries, webhook) = (backend.deliveries.clone(), hook.id);
        tokio::spawn(async move {
            let one = HealthUpdate { webhook, failures: 1, success: false };
            deliveries.note_health(&[one], noon()).await.unwrap();
        })
    });
    for task in tasks {
        task.await.unwrap();
    }
    let failures = backend.webhooks.webhook(hook.id).await.unwrap().unwrap().health.failures;
    assert_eq!(usize::try_from(failures), Ok(CLAIMERS));
}

/// The health of many webhooks is updated concurrently, while deliveries to them are created.
pub async fn updates_health_while_sessions_end(backend: &Backend) {
    let home = team_fixture(backend).await;
    let mut hooks = vec![];
    for _ in 0..2 * CLAIMERS {
        hooks.push(add(backend, &home).await.id);
    }
    let update_health = async |turn: usize| {
        for round in 0..ROUNDS {
            let mut order = hooks.clone();
            order.rotate_left((turn * 5 + round) % hooks.len());
            let update = |(at, webhook): (usize, WebhookId)| {
                let failures = u32::try_from((at + round + turn) % 3).unwrap();
                HealthUpdate { webhook, failures, success: at % 2 == 0 }
            };
            let order: Vec<_> = order.into_iter().enumerate().map(update).collect();
            backend.deliveries.note_health(&order, noon()).await.unwrap();
        }
    };
    let end = async || {
        for _ in 0..ROUNDS {
            ended_session(backend, &home).await;
        }
    };
    tokio::join!(update_health(0), update_health(1), update_health(2), end(), end(), end());
}
