//! The contract of [`ports::delivery::DeliveryQueue`] where it is about how receivers do.

use chrono::TimeDelta;
use domain::{id::WebhookId, webhook::open_duration};
use ports::{
    delivery::{ClaimRequest, EndpointCapacity, HealthUpdate},
    webhook_store::{HeaderChange, WebhookChange},
};

use super::{
    Backend, CLAIMERS, ROUNDS,
    deliveries::{add, ask, claim, ended_session, room},
    household,
};
use crate::sample::noon;

pub async fn lets_a_receiver_that_fails_rest(backend: &Backend) {
    let home = household(backend).await;
    let hook = add(backend, &home).await;
    for _ in 0..3 {
        ended_session(backend, &home).await;
    }
    let tally = |failures, success| HealthUpdate { webhook: hook.id, failures, success };
    let note = async |tally| backend.deliveries.note_health(&[tally], noon()).await.unwrap();
    note(tally(9, false)).await;
    assert_eq!(backend.webhooks.webhook(hook.id).await.unwrap().unwrap().health.failures, 9);
    note(tally(1, false)).await;
    let health = backend.webhooks.webhook(hook.id).await.unwrap().unwrap().health;
    let rested = noon() + TimeDelta::from_std(open_duration(10).unwrap()).unwrap();
    assert_eq!((health.failing_since, health.paused_until), (Some(noon()), Some(rested)));

    let same = WebhookChange {
        url: hook.url.clone(),
        header: HeaderChange::Keep,
        keys: vec![],
        timeout: hook.timeout,
        retries: hook.retries,
    };
    backend.webhooks.change_webhook(hook.id, &same).await.unwrap();
    assert!(claim(backend, rested - TimeDelta::microseconds(1)).await.is_empty());
    let busy = ClaimRequest {
        room: vec![EndpointCapacity { busy: true, ..room(hook.id, 3) }],
        ..ask(rested)
    };
    let claimed = backend.deliveries.claim_deliveries(&busy).await.unwrap().deliveries;
    assert!(claimed.is_empty(), "the one is under way");
    let known = ClaimRequest { room: vec![room(hook.id, 3)], ..ask(rested) };
    let claimed = backend.deliveries.claim_deliveries(&known).await.unwrap().deliveries;
    assert_eq!(claimed.len(), 1, "it is tried out with one");
    note(tally(0, true)).await;
    let health = backend.webhooks.webhook(hook.id).await.unwrap().unwrap().health;
    assert_eq!((health.failures, health.failing_since, health.paused_until), (0, None, None));

    note(tally(10, false)).await;
    let elsewhere = WebhookChange { url: "https://elsewhere.example/".into(), ..same };
    backend.webhooks.change_webhook(hook.id, &elsewhere).await.unwrap();
    let health = backend.webhooks.webhook(hook.id).await.unwrap().unwrap().health;
    assert_eq!((health.failures, health.failing_since, health.paused_until), (0, None, None));
    assert_eq!(claim(backend, noon()).await.len(), 2, "another receiver has not failed");
}

pub async fn counts_the_failures_that_several_note_at_once(backend: &Backend) {
    let home = household(backend).await;
    let hook = add(backend, &home).await;
    let notes = [(); CLAIMERS].map(|()| {
        let (deliveries, webhook) = (backend.deliveries.clone(), hook.id);
        tokio::spawn(async move {
            let one = HealthUpdate { webhook, failures: 1, success: false };
            deliveries.note_health(&[one], noon()).await.unwrap();
        })
    });
    for note in notes {
        note.await.unwrap();
    }
    let failures = backend.webhooks.webhook(hook.id).await.unwrap().unwrap().health.failures;
    assert_eq!(usize::try_from(failures), Ok(CLAIMERS));
}

/// Health is noted of many webhooks at once, and they are owed something at the same time.
pub async fn notes_health_while_sessions_end(backend: &Backend) {
    let home = household(backend).await;
    let mut hooks = vec![];
    for _ in 0..2 * CLAIMERS {
        hooks.push(add(backend, &home).await.id);
    }
    let note = async |turn: usize| {
        for round in 0..ROUNDS {
            let mut told = hooks.clone();
            told.rotate_left((turn * 5 + round) % hooks.len());
            let tally = |(at, webhook): (usize, WebhookId)| {
                let failures = u32::try_from((at + round + turn) % 3).unwrap();
                HealthUpdate { webhook, failures, success: at % 2 == 0 }
            };
            let told: Vec<_> = told.into_iter().enumerate().map(tally).collect();
            backend.deliveries.note_health(&told, noon()).await.unwrap();
        }
    };
    let end = async || {
        for _ in 0..ROUNDS {
            ended_session(backend, &home).await;
        }
    };
    tokio::join!(note(0), note(1), note(2), end(), end(), end());
}
