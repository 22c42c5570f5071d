//! Guarantees of the in-memory store beyond the contract of all stores.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests panic to fail")]

use chrono::TimeDelta;
use domain::{
    account::Role,
    api_key::KeyHash,
    id::{DeliveryId, PlatformId, SessionId, TeamId, UserId, WebhookId},
    session::Event,
    webhook::DeliveryDecision,
};
use memory_store::MemoryStore;
use ports::{
    account_store::{TeamMembers as _, User, UserStore as _},
    catalogue::Catalogue as _,
    delivery::{
        AttemptResult, CLAIM_TTL, ClaimRequest, Delivery, DeliveryAttempt, DeliveryQueue as _,
    },
    delivery_log::DeliveryLog as _,
    invitations::InvitationStore as _,
    key_store::{KeyStore as _, TeamStore as _},
    session_store::{BrowserLeases as _, SessionStore as _},
    webhook_sender::{FailureCause, WebhookRequest, WebhookResponse},
    webhook_store::WebhookStore as _,
};
use testkit::sample::{definition, key, noon, opening, transition, webhook};

const TEAM: TeamId = TeamId::from_u128(1);

#[tokio::test]
async fn the_same_calls_make_the_same_identifiers() {
    let first = owing(&MemoryStore::new()).await;
    let second = owing(&MemoryStore::new()).await;
    assert_eq!(first, second);
}

#[tokio::test]
async fn a_reference_to_nothing_is_refused() {
    let store = MemoryStore::new();
    store.add_key(&key(TEAM), &KeyHash([1; 32]), "Backend", noon()).await.unwrap_err();
    store.add_team(TEAM, "Lender", noon()).await.unwrap();
    let key = key(TEAM);
    store.insert(&opening(key.id, PlatformId(1)), None).await.unwrap_err();
    store.add_key(&key, &KeyHash([1; 32]), "Backend", noon()).await.unwrap();
    store.insert(&opening(key.id, PlatformId(1)), None).await.unwrap_err();
    store.publish(&definition("sample", "1.0.0"), None, noon()).await.unwrap();
    store.insert(&opening(key.id, PlatformId(1)), None).await.unwrap();
}

#[tokio::test]
async fn a_claim_from_before_a_delivery_was_sent_again_settles_nothing() {
    let store = MemoryStore::new();
    let id = owing(&store).await;
    let lost = claimed(&store, TimeDelta::zero()).await;
    let expired = CLAIM_TTL;
    let held = claimed(&store, expired).await;
    assert!(settle(&store, &held).await);
    assert!(store.send_again(id, noon() + expired).await.unwrap());
    let again = claimed(&store, expired).await;
    assert!(!settle(&store, &lost).await);
    assert!(settle(&store, &again).await);
}

#[tokio::test]
async fn at_most_as_many_sessions_are_due_as_were_asked_for() {
    let store = MemoryStore::new();
    store.add_team(TEAM, "Lender", noon()).await.unwrap();
    let key = key(TEAM);
    store.add_key(&key, &KeyHash([1; 32]), "Backend", noon()).await.unwrap();
    let (platform, _) = store.publish(&definition("sample", "1.0.0"), None, noon()).await.unwrap();
    for _ in 0..2 {
        let opening = opening(key.id, platform);
        store.insert(&opening, None).await.unwrap();
        let lease = testkit::sample::lease();
        let change = transition(&opening.session, Event::BrowserRequested { lease });
        store.commit(&change, noon()).await.unwrap();
    }
    let late = noon() + TimeDelta::days(30);
    assert_eq!(store.find_due(late, 3).await.unwrap().len(), 3);
}

#[tokio::test]
async fn members_are_sorted_by_the_address_that_their_team_sees() {
    let store = MemoryStore::new();
    store.add_team(TEAM, "Lender", noon()).await.unwrap();
    let user = |number: u128, name: &str| User {
        id: UserId::from_u128(number),
        team: TEAM,
        email: format!("{name}@people.example").parse().unwrap(),
        role: Role::Member,
        has_password: false,
        has_second_factor: false,
        created_at: noon(),
    };
    store.add_user(&user(1, "bob"), None, noon()).await.unwrap();
    store.add_invited(&user(2, "cy"), noon()).await.unwrap();
    store.add_user(&user(3, "ada"), None, noon()).await.unwrap();
    store.add_user(&user(4, "dot"), None, noon()).await.unwrap();
    let members = store.users(TEAM).await.unwrap();
    let names = members.iter().map(|member| member.email.as_str());
    assert!(names.is_sorted());
}

/// Adds a webhook and queues a test delivery for it.
async fn owing(store: &MemoryStore) -> DeliveryId {
    store.add_team(TEAM, "Lender", noon()).await.unwrap();
    let mut hook = webhook(TEAM);
    hook.id = WebhookId::from_u128(2);
    store.add_webhook(&hook, &[], noon()).await.unwrap();
    let session = SessionId::from_u128(3);
    store.enqueue_test(hook.id, session, "{}", noon()).await.unwrap()
}

async fn claimed(store: &MemoryStore, after: TimeDelta) -> Delivery {
    let ask =
        ClaimRequest { now: noon() + after, after: None, limit: 1, each: 1, capacities: vec![] };
    store.claim_deliveries(&ask).await.unwrap().deliveries.remove(0)
}

async fn settle(store: &MemoryStore, delivery: &Delivery) -> bool {
    let call = WebhookRequest {
        sent: String::new(),
        answer: WebhookResponse::Failed(FailureCause::Timeout),
    };
    let settled = AttemptResult {
        delivery: delivery.id,
        webhook: delivery.webhook.id,
        claim: delivery.claim,
        attempt: DeliveryAttempt { at: noon(), took: delivery.webhook.timeout, call },
        decision: DeliveryDecision::Exhausted,
    };
    store.settle_deliveries(&[settled]).await.unwrap()[0]
}
