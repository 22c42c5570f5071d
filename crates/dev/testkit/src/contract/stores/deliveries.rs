//! The contract of [`ports::delivery::DeliveryQueue`].

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    id::{SessionId, WebhookId},
    webhook::{DeliveryDecision, Webhook},
};
use ports::{
    delivery::{
        AttemptResult, CLAIM_MARGIN, ClaimRequest, Delivery, DeliveryAttempt, EndpointCapacity,
    },
    webhook_sender::{FailureCause, WebhookRequest, WebhookResponse},
};

use super::{Backend, CLAIMERS, Household, ROUNDS, commit, ended, hash, household, inserted};
use crate::sample::{key, noon, webhook};

pub async fn owes_one_delivery_to_each_active_webhook(backend: &Backend) {
    let home = household(backend).await;
    let (first, second) = (webhook(home.team), webhook(home.team));
    let sleeping = Webhook { active: false, ..webhook(home.team) };
    let strangers = webhook(household(backend).await.team);
    for webhook in [&first, &second, &sleeping, &strangers] {
        backend.webhooks.add_webhook(webhook, &[], noon()).await.unwrap();
    }
    let session = ended_session(backend, &home).await;
    add(backend, &home).await;

    let claimed = claim(backend, noon()).await;
    assert_eq!(told(&claimed), sorted([first.id, second.id]));
    assert!(claimed.iter().all(|delivery| delivery.session == session));
}

pub async fn tells_a_webhook_of_the_keys_it_is_for(backend: &Backend) {
    let home = household(backend).await;
    let other = key(home.team);
    backend.keys.add_key(&other, &hash(), "Backend", noon()).await.unwrap();
    let (all, own, others) = (webhook(home.team), webhook(home.team), webhook(home.team));
    for (webhook, keys) in
        [(&all, &[][..]), (&own, &[home.owner, other.id][..]), (&others, &[other.id][..])]
    {
        backend.webhooks.add_webhook(webhook, keys, noon()).await.unwrap();
    }
    ended_session(backend, &home).await;
    assert_eq!(told(&claim(backend, noon()).await), sorted([all.id, own.id]));
}

pub async fn hands_a_delivery_to_one_claimer(backend: &Backend) {
    let home = household(backend).await;
    add(backend, &home).await;
    for _ in 0..ROUNDS {
        ended_session(backend, &home).await;
        ended_session(backend, &home).await;
        let claims = [(); CLAIMERS].map(|()| {
            let deliveries = backend.deliveries.clone();
            tokio::spawn(async move {
                let ask = ClaimRequest { limit: 2, ..ask(noon()) };
                deliveries.claim_deliveries(&ask).await.unwrap().deliveries
            })
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

pub async fn passes_no_webhook_over(backend: &Backend) {
    let home = household(backend).await;
    let (first, second) = (add(backend, &home).await, add(backend, &home).await);
    for _ in 0..6 {
        ended_session(backend, &home).await;
    }
    let few = ClaimRequest { each: 2, ..ask(noon()) };
    assert_eq!(
        count(&backend.deliveries.claim_deliveries(&few).await.unwrap().deliveries, first.id),
        2
    );
    let full = ClaimRequest { room: vec![room(first.id, 0), room(second.id, 3)], ..few.clone() };
    let claimed = backend.deliveries.claim_deliveries(&full).await.unwrap();
    assert_eq!(
        (count(&claimed.deliveries, first.id), count(&claimed.deliveries, second.id)),
        (0, 3)
    );
    assert_eq!(claimed.next, None, "there is no more to look at");

    let one = ClaimRequest { limit: 1, ..few };
    let claimed = backend.deliveries.claim_deliveries(&one).await.unwrap();
    let lower = first.id.min(second.id);
    assert_eq!((count(&claimed.deliveries, lower), claimed.next), (1, Some(lower)));
    let on = ClaimRequest { after: claimed.next, ..one };
    let claimed = backend.deliveries.claim_deliveries(&on).await.unwrap();
    assert_eq!(count(&claimed.deliveries, first.id.max(second.id)), 1);
}

pub async fn keeps_body_and_webhook_over_attempts(backend: &Backend) {
    let home = household(backend).await;
    let hook = add(backend, &home).await;
    let session = ended_session(backend, &home).await;
    let first = claim(backend, noon()).await.remove(0);
    assert!(first.body.contains(&session.to_string()), "{}", first.body);
    assert_eq!(first.webhook.secret.expose(), hook.secret.expose());
    let header = first.webhook.header.as_ref().map(|header| header.value.expose());
    assert_eq!((header, first.attempts), (Some("header value"), 0));
    let due = noon() + TimeDelta::seconds(5);
    assert!(settle(backend, &first, DeliveryDecision::RetryAt(due)).await);

    assert!(claim(backend, due - TimeDelta::microseconds(1)).await.is_empty());
    let second = claim(backend, due).await.remove(0);
    assert_eq!((second.id, second.attempts, second.due), (first.id, 1, due));
    assert_eq!(second.body, first.body);
}

pub async fn hands_out_again_what_was_claimed_and_not_settled(backend: &Backend) {
    let home = household(backend).await;
    let hook = add(backend, &home).await;
    ended_session(backend, &home).await;
    let lost = claim(backend, noon()).await.remove(0);
    let over = noon() + TimeDelta::from_std(hook.timeout).unwrap() + CLAIM_MARGIN;
    assert!(claim(backend, over - TimeDelta::microseconds(1)).await.is_empty());
    let held = claim(backend, over).await.remove(0);
    assert_eq!((held.id, held.attempts), (lost.id, 0), "no attempt is used up by a crash");
    assert!(!settle(backend, &lost, DeliveryDecision::Delivered).await);
    assert!(settle(backend, &held, DeliveryDecision::Delivered).await);
}

pub async fn settles_many_at_once(backend: &Backend) {
    let home = household(backend).await;
    add(backend, &home).await;
    for _ in 0..4 {
        ended_session(backend, &home).await;
    }
    let claimed = claim(backend, noon()).await;
    let due = noon() + TimeDelta::seconds(9);
    let verdicts =
        [DeliveryDecision::Delivered, DeliveryDecision::Exhausted, DeliveryDecision::RetryAt(due)];
    let mut settled: Vec<_> =
        claimed.iter().zip(verdicts).map(|(one, verdict)| outcome(one, verdict)).collect();
    settled.push(AttemptResult { claim: 7, ..outcome(&claimed[3], DeliveryDecision::Delivered) });
    let held = backend.deliveries.settle_deliveries(&settled).await.unwrap();
    assert_eq!(held, [true, true, true, false]);
    let again = backend.deliveries.settle_deliveries(&settled[..3]).await.unwrap();
    assert_eq!(again, [false; 3], "an attempt is written down once");
    let later: Vec<_> = claim(backend, due).await.iter().map(|one| one.id).collect();
    assert_eq!(later, [claimed[2].id]);
}

pub async fn hands_out_no_settled_delivery(backend: &Backend) {
    let home = household(backend).await;
    add(backend, &home).await;
    for verdict in [DeliveryDecision::Delivered, DeliveryDecision::Exhausted] {
        ended_session(backend, &home).await;
        let held = claim(backend, noon()).await.remove(0);
        assert!(settle(backend, &held, verdict).await);
        assert!(claim(backend, noon() + TimeDelta::days(30)).await.is_empty());
    }
}

pub async fn keeps_what_an_inactive_webhook_is_owed(backend: &Backend) {
    let home = household(backend).await;
    let hook = add(backend, &home).await;
    ended_session(backend, &home).await;
    assert!(backend.webhooks.set_active(hook.id, false).await.unwrap());
    assert!(claim(backend, noon()).await.is_empty());
    assert!(backend.webhooks.set_active(hook.id, true).await.unwrap());
    assert_eq!(claim(backend, noon()).await.len(), 1);
}

pub async fn gives_up_on_what_is_too_old(backend: &Backend) {
    let home = household(backend).await;
    add(backend, &home).await;
    ended_session(backend, &home).await;
    assert_eq!(backend.deliveries.give_up(noon(), 10).await.unwrap(), 0);
    let later = noon() + TimeDelta::days(8);
    assert_eq!(backend.deliveries.give_up(later, 10).await.unwrap(), 1);
    assert!(claim(backend, later).await.is_empty());
}

pub(super) async fn add(backend: &Backend, home: &Household) -> Webhook {
    let webhook = webhook(home.team);
    backend.webhooks.add_webhook(&webhook, &[], noon()).await.unwrap();
    webhook
}

pub(super) async fn ended_session(backend: &Backend, home: &Household) -> SessionId {
    let change = ended(&inserted(backend, home).await);
    commit(backend, &change).await;
    change.session.id
}

pub(super) const fn ask(now: DateTime<Utc>) -> ClaimRequest {
    ClaimRequest { now, after: None, limit: 10, each: 10, room: vec![] }
}

pub(super) const fn room(webhook: WebhookId, most: u16) -> EndpointCapacity {
    EndpointCapacity { webhook, most, busy: false }
}

pub(super) async fn claim(backend: &Backend, now: DateTime<Utc>) -> Vec<Delivery> {
    backend.deliveries.claim_deliveries(&ask(now)).await.unwrap().deliveries
}

fn told(deliveries: &[Delivery]) -> Vec<WebhookId> {
    sorted(deliveries.iter().map(|delivery| delivery.webhook.id))
}

fn sorted(ids: impl IntoIterator<Item = WebhookId>) -> Vec<WebhookId> {
    let mut ids: Vec<_> = ids.into_iter().collect();
    ids.sort_unstable();
    ids
}

fn count(deliveries: &[Delivery], webhook: WebhookId) -> usize {
    deliveries.iter().filter(|delivery| delivery.webhook.id == webhook).count()
}

fn outcome(delivery: &Delivery, verdict: DeliveryDecision) -> AttemptResult {
    let call = WebhookRequest {
        sent: "a: b\n".to_owned(),
        answer: WebhookResponse::Failed(FailureCause::Connect),
    };
    AttemptResult {
        delivery: delivery.id,
        webhook: delivery.webhook.id,
        claim: delivery.claim,
        attempt: DeliveryAttempt { at: noon(), took: Duration::from_millis(7), call },
        verdict,
    }
}

pub(super) async fn settle(
    backend: &Backend,
    delivery: &Delivery,
    verdict: DeliveryDecision,
) -> bool {
    backend.deliveries.settle_deliveries(&[outcome(delivery, verdict)]).await.unwrap()[0]
}
