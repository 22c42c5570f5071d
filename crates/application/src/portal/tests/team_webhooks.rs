//! The webhooks of a team, and their deliveries.

use std::time::Duration;

use chrono::TimeDelta;
use domain::{
    account::Role,
    id::{DeliveryId, SessionId, TeamId, WebhookId},
    reauthentication::AuthenticationTimes,
};
use futures_util::FutureExt as _;
use ports::{
    delivery::DeliveryQueue as _,
    delivery_log::{DeliveryLog as _, DeliveryState, TimeRange},
    driving::{NewWebhook, PortalError, SignedInUser, TeamWebhookService as _},
    webhook_store::{HeaderChange, WebhookChange, WebhookStore as _},
};
use serde_json::json;
use testkit::sample::{self, noon};
use uuid::Uuid;

use super::fixture::{Fixture, OTHER_TEAM, TEAM, error, refusal};

const URL: &str = "https://partner.example/hook?key=secret";

#[tokio::test]
async fn a_webhook_is_made_for_the_users_own_team() {
    let fixture = Fixture::new().await;
    let user = fixture.user(Role::Member).await;
    let webhooks = fixture.webhooks();
    let made = webhooks.make_webhook(&user, new_webhook()).await.unwrap();
    assert_eq!(made.webhook.team, TEAM, "whatever the form says");
    let id = made.webhook.id;
    assert_eq!(webhooks.webhook(&user, id).await.unwrap().webhook.url, URL);
    webhooks.change_webhook(&user, id, change("https://other.example/a")).await.unwrap();
    let rotated = webhooks.rotate_webhook(&user, id, Duration::from_secs(3600)).await.unwrap();
    let stored = webhooks.webhooks(&user).await.unwrap().remove(0).webhook;
    assert_eq!(stored.url, "https://other.example/a");
    assert_eq!(stored.secret.expose(), rotated.secret.expose());
    assert!(stored.secret != made.webhook.secret);
    let expected = [
        "webhook.make https://partner.example".to_owned(),
        format!("webhook.change {id} to https://other.example"),
        format!("webhook.rotate-secret {id}"),
    ];
    assert_eq!(fixture.actions().await, expected, "the log holds no path, which may be secret");
}

#[tokio::test]
async fn a_refused_webhook_or_change_is_not_recorded() {
    let fixture = Fixture::new().await;
    let user = fixture.user(Role::Member).await;
    let id = add_webhook(&fixture, TEAM).await;
    let webhooks = fixture.webhooks();
    let local = "https://127.0.0.1/hook";
    let refusals = [
        webhooks
            .make_webhook(&user, NewWebhook { url: local.into(), ..new_webhook() })
            .await
            .map(drop),
        webhooks.make_webhook(&user, NewWebhook { retries: 200, ..new_webhook() }).await.map(drop),
        webhooks.change_webhook(&user, id, change(local)).await,
    ];
    for refused in refusals {
        assert!(matches!(error(refused), PortalError::Invalid(_)));
    }
    assert_eq!(webhooks.webhooks(&user).await.unwrap().len(), 1);
    assert_eq!(fixture.actions().await, <[&str; 0]>::default());
}

#[tokio::test]
async fn a_team_has_a_limited_number_of_webhooks() {
    let fixture = Fixture::new().await;
    let user = fixture.user(Role::Member).await;
    for _ in 0..49 {
        add_webhook(&fixture, TEAM).await;
    }
    add_webhook(&fixture, OTHER_TEAM).await;
    let webhooks = fixture.webhooks();
    webhooks.make_webhook(&user, new_webhook()).await.unwrap();
    let refused = webhooks.make_webhook(&user, new_webhook()).await;
    assert_eq!(refusal(refused), "a team can have up to 50 endpoints");
}

#[tokio::test]
async fn what_makes_deliveries_due_wakes_the_dispatcher() {
    let fixture = Fixture::new().await;
    let user = fixture.user(Role::Member).await;
    let id = add_webhook(&fixture, TEAM).await;
    let webhooks = fixture.webhooks();
    let is_woken = || fixture.deliveries.notified().now_or_never().is_some();
    assert!(!is_woken());
    let delivery = webhooks.test_webhook(&user, id).await.unwrap();
    assert!(is_woken());
    let (stored, attempts) = webhooks.webhook_delivery(&user, delivery).await.unwrap();
    assert!(stored.test && attempts.is_empty());
    webhooks.send_delivery_again(&user, delivery).await.unwrap();
    assert!(is_woken());
    webhooks.switch_webhook(&user, id, false).await.unwrap();
    assert!(!webhooks.webhook(&user, id).await.unwrap().webhook.active);
    webhooks.switch_webhook(&user, id, true).await.unwrap();
    assert!(webhooks.webhook(&user, id).await.unwrap().webhook.active);
    assert!(is_woken());
    let hour = TimeDelta::hours(1);
    fixture.store.give_up(noon() + hour, 10).await.unwrap();
    let exhausted = Some(DeliveryState::Exhausted);
    assert_eq!(webhooks.webhook_deliveries(&user, id, exhausted).await.unwrap().len(), 1);
    let range = TimeRange { from: noon() - hour, to: noon() + hour };
    assert_eq!(webhooks.send_all_again(&user, id, range).await.unwrap(), 1);
    assert!(is_woken());
    assert_eq!(webhooks.webhook_deliveries(&user, id, exhausted).await.unwrap(), []);
    let actions = fixture.actions().await;
    assert_eq!(
        actions[..2],
        [format!("webhook.test {id}"), format!("delivery.send-again {delivery}")]
    );
    assert_eq!(
        actions[2..4],
        [format!("webhook.switch-off {id}"), format!("webhook.switch-on {id}")]
    );
    assert!(actions[4].starts_with(&format!("webhook.send-again {id} from ")));
}

#[tokio::test]
async fn webhooks_and_deliveries_of_another_team_are_as_if_they_were_not_there() {
    let fixture = Fixture::new().await;
    let user = fixture.user(Role::Owner).await;
    let theirs = add_webhook(&fixture, OTHER_TEAM).await;
    let delivery = test_delivery(&fixture, theirs).await;
    let webhooks = fixture.webhooks();
    let range = TimeRange { from: noon(), to: noon() + TimeDelta::hours(1) };
    let nil = Uuid::nil();
    for id in [theirs, WebhookId::from_uuid(nil)] {
        let refusals = [
            webhooks.webhook(&user, id).await.map(drop),
            webhooks.change_webhook(&user, id, change(URL)).await,
            webhooks.switch_webhook(&user, id, false).await,
            webhooks.rotate_webhook(&user, id, Duration::ZERO).await.map(drop),
            webhooks.test_webhook(&user, id).await.map(drop),
            webhooks.webhook_deliveries(&user, id, None).await.map(drop),
            webhooks.send_all_again(&user, id, range).await.map(drop),
        ];
        for refused in refusals {
            assert_eq!(refusal(refused), "endpoint not found");
        }
    }
    for id in [delivery, DeliveryId::from_uuid(nil)] {
        let read = webhooks.webhook_delivery(&user, id).await;
        assert_eq!(refusal(read), "delivery not found");
        let read = webhooks.delivery_payload(&user, id).await;
        assert_eq!(refusal(read), "delivery not found");
        let sent = webhooks.send_delivery_again(&user, id).await;
        assert_eq!(refusal(sent), "delivery not found");
    }
    assert!(webhooks.webhooks(&user).await.unwrap().is_empty());
    assert!(fixture.store.webhook(theirs).await.unwrap().expect("a webhook").webhook.active);
    assert_eq!(fixture.actions().await, <[&str; 0]>::default());
}

#[tokio::test]
async fn deliveries_of_a_session_are_read_by_its_team_only() {
    let fixture = Fixture::new().await;
    let [own, theirs] =
        [fixture.add_session(TEAM).await.id, fixture.add_session(OTHER_TEAM).await.id];
    let user = fixture.user(Role::Viewer).await;
    let webhooks = fixture.webhooks();
    let webhook = add_webhook(&fixture, TEAM).await;
    let delivery = fixture.store.enqueue_test(webhook, own, "{}", noon()).await.unwrap();
    let read = webhooks.session_deliveries(&user, own).await.unwrap();
    assert_eq!(read.iter().map(|stored| stored.id).collect::<Vec<_>>(), [delivery]);
    for id in [theirs, SessionId::from_uuid(Uuid::nil())] {
        let refused = webhooks.session_deliveries(&user, id).await;
        assert_eq!(refusal(refused), "session not found");
    }
}

#[tokio::test]
async fn a_payload_is_shown_without_data_of_the_applicant() {
    let fixture = Fixture::new().await;
    let viewer = fixture.user(Role::Viewer).await;
    let webhook = add_webhook(&fixture, TEAM).await;
    let session = SessionId::from_uuid(Uuid::from_u128(7));
    let webhooks = fixture.webhooks();
    for (body, shown) in [
        (
            r#"{"status":"COMPLETED","extractedData":{"name":"Ada"}}"#,
            json!({ "status": "COMPLETED", "extractedData": { "name": "(redacted)" } }),
        ),
        ("Ada", json!("(redacted)")),
    ] {
        let id = fixture.store.enqueue_test(webhook, session, body, noon()).await.unwrap();
        let payload = webhooks.delivery_payload(&viewer, id).await.unwrap();
        assert_eq!(payload, format!("{shown:#}"));
    }
}

#[tokio::test]
async fn a_viewer_reads_deliveries_and_sends_none() {
    let fixture = Fixture::new().await;
    let viewer = fixture.user(Role::Viewer).await;
    let id = add_webhook(&fixture, TEAM).await;
    let delivery = test_delivery(&fixture, id).await;
    let webhooks = fixture.webhooks();
    assert_eq!(webhooks.webhook_deliveries(&viewer, id, None).await.unwrap().len(), 1);
    assert!(webhooks.webhook_delivery(&viewer, delivery).await.is_ok());
    let range = TimeRange { from: noon(), to: noon() + TimeDelta::hours(1) };
    let refusals = [
        webhooks.make_webhook(&viewer, new_webhook()).await.map(drop),
        webhooks.change_webhook(&viewer, id, change(URL)).await,
        webhooks.rotate_webhook(&viewer, id, Duration::ZERO).await.map(drop),
        webhooks.test_webhook(&viewer, id).await.map(drop),
        webhooks.send_delivery_again(&viewer, delivery).await,
        webhooks.send_all_again(&viewer, id, range).await.map(drop),
    ];
    for refused in refusals {
        assert!(matches!(error(refused), PortalError::Forbidden));
    }
}

#[tokio::test]
async fn a_viewer_is_not_asked_to_reauthenticate_for_what_they_may_not_do() {
    let fixture = Fixture::new().await;
    let authenticated = AuthenticationTimes { signed_in_at: None, confirmed_at: None };
    let viewer = SignedInUser { authenticated, ..fixture.user(Role::Viewer).await };
    let id = add_webhook(&fixture, TEAM).await;
    let webhooks = fixture.webhooks();
    let refusals = [
        webhooks.make_webhook(&viewer, new_webhook()).await.map(drop),
        webhooks.change_webhook(&viewer, id, change(URL)).await,
        webhooks.rotate_webhook(&viewer, id, Duration::ZERO).await.map(drop),
    ];
    for refused in refusals {
        assert!(matches!(error(refused), PortalError::Forbidden));
    }
}

#[tokio::test]
async fn a_webhook_changes_only_once_the_change_is_recorded() {
    let fixture = Fixture::new().await;
    let user = fixture.user(Role::Member).await;
    let id = add_webhook(&fixture, TEAM).await;
    let before = fixture.store.webhook(id).await.unwrap().expect("a webhook").webhook;
    let delivery = test_delivery(&fixture, id).await;
    let fixture = fixture.with_broken_audit_log();
    let webhooks = fixture.webhooks();
    let elsewhere =
        WebhookChange { header: HeaderChange::Drop, ..change("https://other.example/") };
    let failures = [
        webhooks.make_webhook(&user, new_webhook()).await.map(drop),
        webhooks.change_webhook(&user, id, elsewhere).await,
        webhooks.switch_webhook(&user, id, false).await,
        webhooks.rotate_webhook(&user, id, Duration::ZERO).await.map(drop),
        webhooks.test_webhook(&user, id).await.map(drop),
        webhooks.send_delivery_again(&user, delivery).await,
    ];
    for failed in failures {
        assert!(matches!(error(failed), PortalError::Store(_)));
    }
    let stored = webhooks.webhooks(&user).await.unwrap();
    assert_eq!((stored.len(), stored[0].webhook.url.as_str()), (1, before.url.as_str()));
    assert!(stored[0].webhook.active && stored[0].webhook.secret == before.secret);
    assert_eq!(webhooks.webhook_deliveries(&user, id, None).await.unwrap().len(), 1);
    assert!(fixture.deliveries.notified().now_or_never().is_none());
}

fn new_webhook() -> NewWebhook {
    NewWebhook {
        team: OTHER_TEAM,
        url: URL.to_owned(),
        header: None,
        keys: vec![],
        timeout: Duration::from_secs(30),
        retries: 3,
        active: true,
    }
}

fn change(url: &str) -> WebhookChange {
    WebhookChange {
        url: url.to_owned(),
        header: HeaderChange::Keep,
        keys: vec![],
        timeout: Duration::from_secs(30),
        retries: 3,
    }
}

async fn add_webhook(fixture: &Fixture, team: TeamId) -> WebhookId {
    let webhook = sample::webhook(team);
    fixture.store.add_webhook(&webhook, &[], noon()).await.unwrap();
    webhook.id
}

async fn test_delivery(fixture: &Fixture, webhook: WebhookId) -> DeliveryId {
    let session = SessionId::from_uuid(Uuid::from_u128(7));
    fixture.store.enqueue_test(webhook, session, "{}", noon()).await.unwrap()
}
