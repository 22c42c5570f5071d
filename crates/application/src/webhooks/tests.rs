//! Which webhooks are accepted, and what can be done with their deliveries.

use std::time::Duration;

use chrono::TimeDelta;
use domain::{
    egress::Egress,
    id::{ApiKeyId, DeliveryId, TeamId, WebhookId},
    secret::Secret,
    webhook::{Webhook, WebhookHeader},
};
use ports::{
    clock::Clock as _,
    delivery::DeliveryQueue as _,
    delivery_log::{DeliveryFilter, DeliveryScope, DeliveryState, TimeRange},
    driving::{NewWebhook, WebhookError, WebhookService as _},
    webhook_store::{HeaderChange, WebhookChange},
};
use testkit::sample::noon;
use uuid::Uuid;

use super::{WebhookUseCases, origin};
use crate::testing::World;

#[tokio::test(start_paused = true)]
async fn a_webhook_is_created_with_a_secret_of_its_own() {
    let (world, webhooks) = setup().await;
    let created = webhooks.create(wanted(&world)).await.unwrap();
    assert!(created.webhook.secret.expose().starts_with("whsec_"));
    assert_eq!(created.webhook.url, "https://partner.example/hook");
    let header = created.webhook.header.unwrap();
    assert_eq!((header.name.as_str(), header.value.expose()), ("x-token", "abc"));
    let listed = webhooks.list(world.team).await.unwrap();
    assert_eq!((listed.len(), listed[0].webhook.id), (1, created.webhook.id));
}

#[tokio::test(start_paused = true)]
async fn a_url_is_public_https_without_credentials() {
    let (world, webhooks) = setup().await;
    let long = format!("https://partner.example/{}", "a".repeat(2000));
    for (url, finding) in [
        ("nonsense", "the URL is not valid: relative URL without a base"),
        ("data:text/plain,a", "the URL has no host"),
        ("https://a:b@partner.example", "the URL can't contain credentials. Use a header instead"),
        ("ftp://partner.example", "the URL must use HTTPS"),
        ("http://partner.example", "the URL must use HTTPS"),
        ("https://127.0.0.1/hook", "the URL's host is not reachable from the internet"),
        (&long, "the URL can have up to 2000 characters"),
    ] {
        let wanted = NewWebhook { url: url.to_owned(), ..wanted(&world) };
        assert_eq!(finding_of(webhooks.create(wanted).await.map(drop)), finding, "{url}");
    }
}

#[tokio::test(start_paused = true)]
async fn limits_and_headers_are_checked() {
    let (world, webhooks) = setup().await;
    let header = |name: &str, value: &str| {
        let (name, value) = (name.to_owned(), Secret::new(value.to_owned()));
        NewWebhook { header: Some(WebhookHeader { name, value }), ..wanted(&world) }
    };
    let timeout = |seconds| NewWebhook { timeout: Duration::from_secs(seconds), ..wanted(&world) };
    let retries = NewWebhook { retries: Webhook::MAX_RETRIES + 1, ..wanted(&world) };
    for (wanted, finding) in [
        (timeout(0), "enter a timeout between 1 and 120 seconds"),
        (timeout(121), "enter a timeout between 1 and 120 seconds"),
        (retries, "enter between 0 and 10 retries"),
        (header("a b", "c"), "enter a header name of 1 to 100 letters, digits and hyphens"),
        (header("", "c"), "enter a header name of 1 to 100 letters, digits and hyphens"),
        (header("Webhook-Id", "c"), "the header webhook-id can't be set"),
        (header("a", " "), "enter a header value of 1 to 2000 printable ASCII characters"),
        (header("a", "b\r\nc"), "enter a header value of 1 to 2000 printable ASCII characters"),
    ] {
        assert_eq!(finding_of(webhooks.create(wanted).await.map(drop)), finding);
    }
}

#[tokio::test(start_paused = true)]
async fn a_webhook_is_for_keys_of_its_team() {
    let (world, webhooks) = setup().await;
    let own = NewWebhook { keys: vec![world.key.id], ..wanted(&world) };
    assert_eq!(webhooks.create(own).await.unwrap().keys, [world.key.id]);
    let foreign = ApiKeyId::from_u128(99);
    let missing = webhooks.create(NewWebhook { keys: vec![foreign], ..wanted(&world) }).await;
    assert!(matches!(missing.err(), Some(WebhookError::NotFound("API key"))));
    let many = NewWebhook { keys: vec![world.key.id; Webhook::MAX_KEYS + 1], ..wanted(&world) };
    let finding = "select up to 100 keys, or none for all keys";
    assert_eq!(finding_of(webhooks.create(many).await.map(drop)), finding);
    let team = TeamId::from_uuid(Uuid::nil());
    let missing = webhooks.create(NewWebhook { team, ..wanted(&world) }).await;
    assert!(matches!(missing.err(), Some(WebhookError::NotFound("team"))));
}

#[tokio::test(start_paused = true)]
async fn a_header_is_not_sent_to_another_host_unless_its_value_is_entered_anew() {
    let (world, webhooks) = setup().await;
    let id = webhooks.create(wanted(&world)).await.unwrap().webhook.id;
    let change = |url: &str, header| WebhookChange {
        url: url.to_owned(),
        header,
        keys: vec![],
        timeout: Duration::from_secs(5),
        retries: 1,
    };
    webhooks.change(id, change("https://partner.example/other", HeaderChange::Keep)).await.unwrap();
    let elsewhere = change("https://attacker.example/", HeaderChange::Keep);
    let finding = "enter the header value again to send it to another host";
    assert_eq!(finding_of(webhooks.change(id, elsewhere).await), finding);
    let value = Secret::new("new".into());
    let header = HeaderChange::Set(WebhookHeader { name: "X-Other".into(), value });
    webhooks.change(id, change("https://other.example/", header)).await.unwrap();
    let stored = webhooks.list(world.team).await.unwrap().remove(0).webhook;
    assert_eq!(stored.header.unwrap().name, "x-other");
    webhooks.change(id, change("https://third.example/", HeaderChange::Drop)).await.unwrap();
    let stored = webhooks.list(world.team).await.unwrap().remove(0).webhook;
    assert!(stored.header.is_none());
    let unknown = WebhookId::from_uuid(Uuid::nil());
    let missing = webhooks.change(unknown, change("https://a.example/", HeaderChange::Keep)).await;
    assert!(matches!(missing, Err(WebhookError::NotFound("webhook"))));
}

#[tokio::test(start_paused = true)]
async fn an_old_secret_is_valid_for_a_week_at_most() {
    let (world, webhooks) = setup().await;
    let created = webhooks.create(wanted(&world)).await.unwrap().webhook;
    let week = Duration::from_secs(7 * 24 * 3600);
    let late = webhooks.rotate_secret(created.id, week + Duration::from_secs(1)).await;
    let finding = "the old secret can stay valid for up to 7 days";
    assert_eq!(finding_of(late.map(drop)), finding);
    let rotated = webhooks.rotate_secret(created.id, week).await.unwrap();
    assert_eq!(rotated.old_until, world.clock.now() + TimeDelta::days(7));
    let stored = webhooks.list(world.team).await.unwrap().remove(0).webhook;
    assert_eq!(stored.secret.expose(), rotated.secret.expose());
    assert_eq!(stored.retiring.unwrap().secret.expose(), created.secret.expose());
}

#[tokio::test(start_paused = true)]
async fn an_active_webhook_can_be_tested() {
    let (world, webhooks) = setup().await;
    let id = webhooks.create(wanted(&world)).await.unwrap().webhook.id;
    let delivery = webhooks.test(id).await.unwrap();
    let (stored, attempts) = webhooks.delivery(delivery).await.unwrap();
    assert!(stored.test && attempts.is_empty());
    webhooks.set_active(id, false).await.unwrap();
    assert_eq!(finding_of(webhooks.test(id).await.map(drop)), "the endpoint is disabled");
    let unknown = DeliveryId::from_uuid(Uuid::nil());
    let missing = webhooks.delivery(unknown).await;
    assert!(matches!(missing.err(), Some(WebhookError::NotFound("delivery"))));
    assert!(webhooks.send_again(unknown).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn exhausted_deliveries_of_a_time_are_sent_again() {
    let (world, webhooks) = setup().await;
    let id = webhooks.create(wanted(&world)).await.unwrap().webhook.id;
    for _ in 0..501 {
        webhooks.test(id).await.unwrap();
    }
    let later = world.clock.now() + TimeDelta::minutes(1);
    assert_eq!(world.store.give_up(later, 1000).await.unwrap(), 501);
    let of = DeliveryScope::Webhook(id);
    let count = async |state| {
        let find = DeliveryFilter { of, state: Some(state), limit: u16::MAX };
        webhooks.deliveries(find).await.unwrap().len()
    };
    assert_eq!(count(DeliveryState::Exhausted).await, 501);
    let span = |from, to| TimeRange { from, to };
    let finding = "the start must be before the end";
    let nothing = webhooks.send_exhausted_again(id, span(noon(), noon())).await;
    assert_eq!(finding_of(nothing.map(drop)), finding);
    let hour = TimeDelta::hours(1);
    let sent = webhooks.send_exhausted_again(id, span(noon() - hour, noon() + hour)).await;
    assert_eq!(sent.unwrap(), 501, "in two transactions");
    assert_eq!(count(DeliveryState::Pending).await, 501);
}

#[test]
fn an_origin_holds_neither_path_nor_credentials() {
    assert_eq!(origin("https://a:b@partner.example/hook?c=d"), "https://partner.example");
    assert_eq!(origin("nonsense"), "");
}

async fn setup() -> (World, WebhookUseCases) {
    let world = World::new().await;
    let webhooks = WebhookUseCases {
        store: world.store.clone(),
        log: world.store.clone(),
        keys: world.store.clone(),
        teams: world.store.clone(),
        clock: world.clock.clone(),
        random: world.random.clone(),
        egress: Egress::default(),
    };
    (world, webhooks)
}

fn wanted(world: &World) -> NewWebhook {
    let value = Secret::new("abc".into());
    NewWebhook {
        team: world.team,
        url: "https://Partner.example/hook".into(),
        header: Some(WebhookHeader { name: " X-Token ".into(), value }),
        keys: vec![],
        timeout: Duration::from_secs(30),
        retries: 3,
        active: true,
    }
}

fn finding_of(result: Result<(), WebhookError>) -> String {
    match result {
        Err(WebhookError::Invalid(finding)) => finding,
        other => panic!("{other:?}"),
    }
}
