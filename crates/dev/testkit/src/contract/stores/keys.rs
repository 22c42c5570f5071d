//! The contract of [`ports::key_store::KeyStore`] and [`ports::webhook_store::WebhookStore`].

use std::time::Duration;

use chrono::TimeDelta;
use domain::{
    frame_ancestors::FrameAncestor,
    id::{SessionId, TeamId, WebhookId},
    secret::Secret,
    webhook::{RetiringSecret, WebhookHeader},
};
use ports::webhook_store::{HeaderChange, WebhookChange};
use uuid::Uuid;

use super::{Backend, hash, household, inserted};
use crate::sample::{key, noon, webhook};

pub async fn finds_a_key_by_its_hash(backend: &Backend) {
    let home = household(backend).await;
    let (key, mine) = (key(home.team), hash());
    backend.keys.add_key(&key, &mine, "Backend", noon()).await.unwrap();
    assert_eq!(backend.keys.key_by_hash(&mine).await.unwrap().unwrap().0, key);
    assert_eq!(backend.keys.key(key.id).await.unwrap(), Some(key));
    assert_eq!(backend.keys.key_by_hash(&hash()).await.unwrap(), None);
    assert!(backend.keys.has_team(home.team).await.unwrap());
    assert!(!backend.keys.has_team(TeamId::from_uuid(Uuid::new_v4())).await.unwrap());
}

pub async fn opens_nothing_with_a_rotated_key(backend: &Backend) {
    let home = household(backend).await;
    let (key, old, new) = (key(home.team), hash(), hash());
    backend.keys.add_key(&key, &old, "Backend", noon()).await.unwrap();
    assert!(backend.keys.rotate_key(key.id, &new).await.unwrap());
    assert_eq!(backend.keys.key_by_hash(&old).await.unwrap(), None);
    assert_eq!(backend.keys.key_by_hash(&new).await.unwrap().unwrap().0, key);
}

pub async fn revokes_once(backend: &Backend) {
    let home = household(backend).await;
    let (key, mine) = (key(home.team), hash());
    backend.keys.add_key(&key, &mine, "Backend", noon()).await.unwrap();
    assert!(backend.keys.revoke_key(key.id, noon()).await.unwrap());
    assert!(!backend.keys.revoke_key(key.id, noon()).await.unwrap());
    assert!(!backend.keys.rotate_key(key.id, &hash()).await.unwrap());
    let (found, _) = backend.keys.key_by_hash(&mine).await.unwrap().unwrap();
    assert_eq!(found.revoked_at, Some(noon()));
}

pub async fn lists_a_teams_keys_and_when_they_were_used(backend: &Backend) {
    let (home, other) = (household(backend).await, household(backend).await);
    let mine = key(home.team);
    let later = noon() + TimeDelta::minutes(1);
    backend.keys.add_key(&mine, &hash(), "Loan desk", later).await.unwrap();
    let uses = [(mine.id, later), (other.owner, noon())];
    backend.keys.record_key_uses(&uses).await.unwrap();
    backend.keys.record_key_uses(&[(mine.id, noon())]).await.unwrap();
    let kept = backend.keys.keys(home.team).await.unwrap();
    assert_eq!(kept.len(), 2);
    assert_eq!((&kept[0].key, kept[0].label.as_str()), (&mine, "Loan desk"), "the newest first");
    assert_eq!((kept[0].created_at, kept[0].used_at), (later, Some(later)));
    assert_eq!((kept[1].key.id, kept[1].used_at), (home.owner, None));
}

pub async fn returns_webhooks_with_their_secrets(backend: &Backend) {
    let home = household(backend).await;
    let hook = webhook(home.team);
    backend.webhooks.add_webhook(&hook, &[home.owner], noon()).await.unwrap();
    let kept = backend.webhooks.webhooks(home.team).await.unwrap().remove(0);
    assert_eq!((kept.keys, kept.created_at), (vec![home.owner], noon()));
    let found = kept.webhook;
    assert_eq!((found.id, &found.url, found.timeout), (hook.id, &hook.url, hook.timeout));
    assert_eq!((found.retries, found.active), (hook.retries, hook.active));
    assert_eq!(found.secret.expose(), hook.secret.expose());
    let (name, value) = found.header.map(|header| (header.name, header.value)).unwrap();
    assert_eq!((name.as_str(), value.expose()), ("x-partner", "header value"));
}

pub async fn changes_a_webhook(backend: &Backend) {
    let home = household(backend).await;
    let hook = webhook(home.team);
    backend.webhooks.add_webhook(&hook, &[], noon()).await.unwrap();
    let read = async || backend.webhooks.webhook(hook.id).await.unwrap().unwrap();
    let change = WebhookChange {
        url: "https://elsewhere.example/hook".into(),
        header: HeaderChange::Keep,
        keys: vec![home.owner],
        timeout: Duration::from_secs(7),
        retries: 1,
    };
    assert!(backend.webhooks.change_webhook(hook.id, &change).await.unwrap());
    let kept = read().await;
    assert_eq!((kept.webhook.url, kept.keys), (change.url.clone(), vec![home.owner]));
    assert_eq!((kept.webhook.timeout, kept.webhook.retries), (change.timeout, 1));
    let value = kept.webhook.header.map(|header| header.value);
    assert_eq!(value.unwrap().expose(), "header value");
    assert_eq!(kept.webhook.secret.expose(), hook.secret.expose());
    let header = WebhookHeader { name: "x-other".into(), value: Secret::new("another".into()) };
    for (header, name) in [(HeaderChange::Set(header), Some("x-other")), (HeaderChange::Drop, None)]
    {
        let change = WebhookChange { header, keys: vec![], ..change.clone() };
        assert!(backend.webhooks.change_webhook(hook.id, &change).await.unwrap());
        let kept = read().await;
        assert_eq!(kept.webhook.header.as_ref().map(|header| header.name.as_str()), name);
        assert!(kept.keys.is_empty());
    }
    let nobodys = WebhookId::from_uuid(Uuid::new_v4());
    assert!(!backend.webhooks.change_webhook(nobodys, &change).await.unwrap());
}

pub async fn signs_with_two_secrets_while_one_is_rotated(backend: &Backend) {
    let home = household(backend).await;
    let hook = webhook(home.team);
    backend.webhooks.add_webhook(&hook, &[], noon()).await.unwrap();
    let (fresh, until) = (Secret::new("whsec_ZnJlc2g=".into()), noon() + TimeDelta::days(1));
    let retiring = RetiringSecret { secret: hook.secret.clone(), until };
    assert!(backend.webhooks.rotate_secret(hook.id, &fresh, &retiring).await.unwrap());
    let found = backend.webhooks.webhook(hook.id).await.unwrap().unwrap().webhook;
    let secrets = |now| found.secrets(now).map(Secret::expose).collect::<Vec<_>>();
    assert_eq!(secrets(noon()), [fresh.expose(), hook.secret.expose()]);
    assert_eq!(secrets(until), [fresh.expose()]);
    let nobody = WebhookId::from_uuid(Uuid::new_v4());
    assert!(!backend.webhooks.rotate_secret(nobody, &fresh, &retiring).await.unwrap());
    assert!(!backend.webhooks.set_active(nobody, true).await.unwrap());
    assert!(backend.webhooks.webhook(nobody).await.unwrap().is_none());
}

pub async fn tells_whose_pages_may_show_a_session(backend: &Backend) {
    let (home, other) = (household(backend).await, household(backend).await);
    let (session, theirs) = (inserted(backend, &home).await, inserted(backend, &other).await);
    assert_eq!(backend.sessions.frame_ancestors_of(session.id).await.unwrap(), [], "anybody's");
    let pages = ["https://pages.example", "https://*.example.com:8443"];
    let pages = pages.map(|page| page.parse::<FrameAncestor>().unwrap());
    assert!(backend.keys.set_frame_ancestors(home.team, &pages).await.unwrap());
    assert_eq!(backend.sessions.frame_ancestors_of(session.id).await.unwrap(), pages);
    assert_eq!(backend.sessions.frame_ancestors_of(theirs.id).await.unwrap(), [], "another team's");
    let nobody = SessionId::from_uuid(Uuid::new_v4());
    assert_eq!(backend.sessions.frame_ancestors_of(nobody).await.unwrap(), []);
    assert!(backend.keys.set_frame_ancestors(home.team, &[]).await.unwrap());
    assert_eq!(backend.sessions.frame_ancestors_of(session.id).await.unwrap(), []);
    let team = TeamId::from_uuid(Uuid::new_v4());
    assert!(!backend.keys.set_frame_ancestors(team, &pages).await.unwrap());
}
