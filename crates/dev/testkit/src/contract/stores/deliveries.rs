//! The contract of [`ports::delivery::DeliveryQueue`].

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    id::{SessionId, WebhookId},
    webhook::{DeliveryDecision, Webhook},
};
use ports::{
    delivery::{
        AttemptResult, CLAIM_TTL, ClaimRef, ClaimRequest, Delivery, DeliveryAttempt,
        EndpointCapacity,
    },
    delivery_log::{DeliveryFilter, DeliveryScope},
    webhook_sender::{FailureCause, WebhookRequest, WebhookResponse},
};

use super::{Backend, CLAIMERS, ROUNDS, TeamFixture, commit, ended, hash, inserted, team_fixture};
use crate::sample::{key, noon, opening, webhook};

pub async fn creates_one_delivery_for_each_active_webhook(backend: &Backend) {
    let home = team_fixture(backend).await;
    let (first, second) = (webhook(home.team), webhook(home.team));
    let inactive = Webhook { active: false, ..webhook(home.team) };
    let foreign = webhook(team_fixture(backend).await.team);
    for webhook in [&first, &second, &inactive, &foreign] {
        backend.webhooks.add_webhook(webhook, &[], noon()).await.unwrap();
    }
    let session = ended_session(backend, &home).await;
    add(backend, &home).await;

    let claimed = claim(backend, noon()).await;
    assert_eq!(webhook_ids(&claimed), sorted([first.id, second.id]));
    assert!(claimed.iter().all(|delivery| delivery.session == session));
}

pub async fn creates_deliveries_only_for_the_keys_of_a_webhook(backend: &Backend) {
    let home = team_fixture(backend).await;
    let other = key(home.team);
    backend.keys.add_key(&other, &hash(), "Backend", noon()).await.unwrap();
    let (all, own, others) = (webhook(home.team), webhook(home.team), webhook(home.team));
    for (webhook, keys) in
        [(&all, &[][..]), (&own, &[home.owner, other.id][..]), (&others, &[other.id][..])]
    {
        backend.webhooks.add_webhook(webhook, keys, noon()).await.unwrap();
    }
    ended_session(backend, &home).await;
    assert_eq!(webhook_ids(&claim(backend, noon()).await), sorted([all.id, own.id]));
}

/// A store may save concurrent ends in one batch: each has one body, one delivery for each webhook
/// that is active and registered for its key, and none of another team.
pub async fn creates_the_deliveries_of_concurrent_ends(backend: &Backend) {
    let (home, stranger) = (team_fixture(backend).await, team_fixture(backend).await);
    let other = key(home.team);
    backend.keys.add_key(&other, &hash(), "Backend", noon()).await.unwrap();
    let (all, own, others) = (webhook(home.team), webhook(home.team), webhook(home.team));
    let inactive = Webhook { active: false, ..webhook(home.team) };
    let foreign = webhook(stranger.team);
    for (webhook, keys) in [
        (&all, &[][..]),
        (&own, &[home.owner][..]),
        (&others, &[other.id][..]),
        (&inactive, &[][..]),
        (&foreign, &[][..]),
    ] {
        backend.webhooks.add_webhook(webhook, keys, noon()).await.unwrap();
    }
    let mut ending = tokio::task::JoinSet::new();
    for owner in [home.owner, other.id, stranger.owner].repeat(CLAIMERS) {
        let opening = opening(owner, home.platform);
        backend.sessions.insert(&opening, None).await.unwrap();
        let (sessions, change) = (backend.sessions.clone(), ended(&opening.session));
        ending.spawn(async move {
            sessions.commit(&change, noon()).await.unwrap();
            (owner, change.session.id)
        });
    }
    for (owner, session) in ending.join_all().await {
        let of = DeliveryScope::Session(session);
        let filter = DeliveryFilter { of, state: None, limit: 100 };
        let found = backend.log.find_deliveries(&filter).await.unwrap();
        let expected = match owner {
            owner if owner == home.owner => sorted([all.id, own.id]),
            owner if owner == other.id => sorted([all.id, others.id]),
            _ => vec![foreign.id],
        };
        assert_eq!(sorted(found.iter().map(|delivery| delivery.webhook)), expected);
        assert!(found.iter().all(|delivery| delivery.created_at == noon()));
    }
    let request = ClaimRequest { limit: 100, each: 100, ..request(noon()) };
    let claimed = backend.deliveries.claim_deliveries(&request).await.unwrap().deliveries;
    assert_eq!(claimed.len(), 5 * CLAIMERS);
    for delivery in claimed {
        let body: serde_json::Value = serde_json::from_str(&delivery.body).unwrap();
        assert_eq!(body["sessionId"], delivery.session.to_string());
    }
}

pub async fn leases_a_delivery_to_one_claimer(backend: &Backend) {
    let home = team_fixture(backend).await;
    add(backend, &home).await;
    for _ in 0..ROUNDS {
        ended_session(backend, &home).await;
        ended_session(backend, &home).await;
        let claims = [(); CLAIMERS].map(|()| {
            let deliveries = backend.deliveries.clone();
            tokio::spawn(async move {
                let request = ClaimRequest { limit: 2, ..request(noon()) };
                deliveries.claim_deliveries(&request).await.unwrap().deliveries
            })
        });
        let mut ids = Vec::new();
        for claim in claims {
            ids.extend(claim.await.unwrap().into_iter().map(|delivery| delivery.id));
        }
        let claimed = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), claimed, "a delivery was leased twice");
        assert_eq!(claimed + claim(backend, noon()).await.len(), 2, "a delivery was lost");
    }
}

pub async fn skips_no_webhook(backend: &Backend) {
    let home = team_fixture(backend).await;
    let (first, second) = (add(backend, &home).await, add(backend, &home).await);
    for _ in 0..6 {
        ended_session(backend, &home).await;
    }
    let few = ClaimRequest { each: 2, ..request(noon()) };
    assert_eq!(
        count(&backend.deliveries.claim_deliveries(&few).await.unwrap().deliveries, first.id),
        2
    );
    let full = ClaimRequest {
        capacities: vec![capacity(first.id, 0), capacity(second.id, 3)],
        ..few.clone()
    };
    let claimed = backend.deliveries.claim_deliveries(&full).await.unwrap();
    assert_eq!(
        (count(&claimed.deliveries, first.id), count(&claimed.deliveries, second.id)),
        (0, 3)
    );
    assert_eq!(claimed.next, None, "no webhook remains");

    let one = ClaimRequest { limit: 1, ..few };
    let claimed = backend.deliveries.claim_deliveries(&one).await.unwrap();
    let lower = first.id.min(second.id);
    assert_eq!((count(&claimed.deliveries, lower), claimed.next), (1, Some(lower)));
    let on = ClaimRequest { after: claimed.next, ..one };
    let claimed = backend.deliveries.claim_deliveries(&on).await.unwrap();
    assert_eq!(count(&claimed.deliveries, first.id.max(second.id)), 1);
}

pub async fn keeps_body_and_webhook_across_attempts(backend: &Backend) {
    let home = team_fixture(backend).await;
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

pub async fn leases_an_unsettled_delivery_again(backend: &Backend) {
    let home = team_fixture(backend).await;
    add(backend, &home).await;
    ended_session(backend, &home).await;
    let lost = claim(backend, noon()).await.remove(0);
    let claim_end = noon() + CLAIM_TTL;
    assert!(claim(backend, claim_end - TimeDelta::microseconds(1)).await.is_empty());
    let held = claim(backend, claim_end).await.remove(0);
    assert_eq!((held.id, held.attempts), (lost.id, 0), "no attempt is used up by a crash");
    assert!(!settle(backend, &lost, DeliveryDecision::Delivered).await);
    assert!(settle(backend, &held, DeliveryDecision::Delivered).await);
}

pub async fn renews_held_claims_alone(backend: &Backend) {
    let home = team_fixture(backend).await;
    add(backend, &home).await;
    for _ in 0..3 {
        ended_session(backend, &home).await;
    }
    let claimed = claim(backend, noon()).await;
    let reference = |one: &Delivery| ClaimRef { delivery: one.id, claim: one.claim };
    let [held, settled, lost] = claimed.as_slice() else { panic!("three deliveries") };
    let due = noon() + TimeDelta::seconds(1);
    assert!(settle(backend, settled, DeliveryDecision::RetryAt(due)).await);
    let until = noon() + TimeDelta::minutes(1);
    let renewals = [
        reference(held),
        reference(settled),
        ClaimRef { claim: lost.claim + 1, ..reference(lost) },
    ];
    backend.deliveries.renew_claims(&renewals, until).await.unwrap();
    let claim_end = noon() + CLAIM_TTL;
    let mut free: Vec<_> = claim(backend, claim_end).await.iter().map(|one| one.id).collect();
    free.sort();
    let mut expected = vec![settled.id, lost.id];
    expected.sort();
    assert_eq!(free, expected);
    // An expired claim that nobody else has taken can be renewed.
    backend.deliveries.renew_claims(&[reference(held)], until + CLAIM_TTL).await.unwrap();
    let others = claim(backend, until).await;
    assert!(others.iter().all(|one| one.id != held.id), "renewed after it had expired");
    backend.deliveries.renew_claims(&[], until).await.unwrap();
    assert!(settle(backend, held, DeliveryDecision::Delivered).await);
}

pub async fn settles_a_batch(backend: &Backend) {
    let home = team_fixture(backend).await;
    add(backend, &home).await;
    for _ in 0..4 {
        ended_session(backend, &home).await;
    }
    let claimed = claim(backend, noon()).await;
    let due = noon() + TimeDelta::seconds(5);
    let decisions =
        [DeliveryDecision::Delivered, DeliveryDecision::Exhausted, DeliveryDecision::RetryAt(due)];
    let mut results: Vec<_> = claimed
        .iter()
        .zip(decisions)
        .map(|(one, decision)| attempt_result(one, decision))
        .collect();
    results.push(AttemptResult {
        claim: 7,
        ..attempt_result(&claimed[3], DeliveryDecision::Delivered)
    });
    let held = backend.deliveries.settle_deliveries(&results).await.unwrap();
    assert_eq!(held, [true, true, true, false]);
    let again = backend.deliveries.settle_deliveries(&results[..3]).await.unwrap();
    assert_eq!(again, [false; 3], "an attempt is stored once");
    let later: Vec<_> = claim(backend, due).await.iter().map(|one| one.id).collect();
    assert_eq!(later, [claimed[2].id]);
}

pub async fn does_not_lease_a_settled_delivery(backend: &Backend) {
    let home = team_fixture(backend).await;
    add(backend, &home).await;
    for decision in [DeliveryDecision::Delivered, DeliveryDecision::Exhausted] {
        ended_session(backend, &home).await;
        let held = claim(backend, noon()).await.remove(0);
        assert!(settle(backend, &held, decision).await);
        assert!(claim(backend, noon() + TimeDelta::days(30)).await.is_empty());
    }
}

pub async fn keeps_the_deliveries_of_an_inactive_webhook(backend: &Backend) {
    let home = team_fixture(backend).await;
    let hook = add(backend, &home).await;
    ended_session(backend, &home).await;
    assert!(backend.webhooks.set_active(hook.id, false).await.unwrap());
    assert!(claim(backend, noon()).await.is_empty());
    assert!(backend.webhooks.set_active(hook.id, true).await.unwrap());
    assert_eq!(claim(backend, noon()).await.len(), 1);
}

pub async fn exhausts_deliveries_that_are_too_old(backend: &Backend) {
    let home = team_fixture(backend).await;
    add(backend, &home).await;
    ended_session(backend, &home).await;
    assert_eq!(backend.deliveries.give_up(noon(), 10).await.unwrap(), 0);
    let later = noon() + TimeDelta::days(8);
    assert_eq!(backend.deliveries.give_up(later, 10).await.unwrap(), 1);
    assert!(claim(backend, later).await.is_empty());
}

pub(super) async fn add(backend: &Backend, home: &TeamFixture) -> Webhook {
    let webhook = webhook(home.team);
    backend.webhooks.add_webhook(&webhook, &[], noon()).await.unwrap();
    webhook
}

pub(super) async fn ended_session(backend: &Backend, home: &TeamFixture) -> SessionId {
    let change = ended(&inserted(backend, home).await);
    commit(backend, &change).await;
    change.session.id
}

pub(super) const fn request(now: DateTime<Utc>) -> ClaimRequest {
    ClaimRequest { now, after: None, limit: 10, each: 10, capacities: vec![] }
}

pub(super) const fn capacity(webhook: WebhookId, most: u16) -> EndpointCapacity {
    EndpointCapacity { webhook, most, busy: false }
}

pub(super) async fn claim(backend: &Backend, now: DateTime<Utc>) -> Vec<Delivery> {
    backend.deliveries.claim_deliveries(&request(now)).await.unwrap().deliveries
}

fn webhook_ids(deliveries: &[Delivery]) -> Vec<WebhookId> {
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

fn attempt_result(delivery: &Delivery, decision: DeliveryDecision) -> AttemptResult {
    let call = WebhookRequest {
        sent: "a: b\n".to_owned(),
        answer: WebhookResponse::Failed(FailureCause::Connect),
    };
    AttemptResult {
        delivery: delivery.id,
        webhook: delivery.webhook.id,
        claim: delivery.claim,
        attempt: DeliveryAttempt { at: noon(), took: Duration::from_millis(7), call },
        decision,
    }
}

pub(super) async fn settle(
    backend: &Backend,
    delivery: &Delivery,
    decision: DeliveryDecision,
) -> bool {
    backend.deliveries.settle_deliveries(&[attempt_result(delivery, decision)]).await.unwrap()[0]
}
