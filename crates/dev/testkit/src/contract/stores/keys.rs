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

use super::{Backend, hash, inserted, team_fixture};
use crate::sample::{key, noon, webhook};

pub async fn finds_a_key_by_its_hash(backend: &Backend) {
    let home = team_fixture(backend).await;
    let (key, mine) = (key(home.team), hash());
    backend.keys.add_key(&key, &mine, "Backend", noon()).await.unwrap();
    assert_eq!(backend.key_verification.key_by_hash(&mine).await.unwrap().unwrap().0, key);
    assert_eq!(backend.keys.key(key.id).await.unwrap(), Some(key));
    assert_eq!(backend.key_verification.key_by_hash(&hash()).await.unwrap(), None);
    assert!(backend.teams.has_team(home.team).await.unwrap());
    assert!(!backend.teams.has_team(TeamId::from_uuid(Uuid::new_v4())).await.unwrap());
}

pub async fn rejects_a_rotated_key(backend: &Backend) {
    let home = team_fixture(backend).await;
    let (key, old, new) = (key(home.team), hash(), hash());
    backend.keys.add_key(&key, &old, "Backend", noon()).await.unwrap();
    assert!(backend.keys.rotate_key(key.id, &new).await.unwrap());
    assert_eq!(backend.key_verification.key_by_hash(&old).await.unwrap(), None);
    assert_eq!(backend.key_verification.key_by_hash(&new).await.unwrap().unwrap().0, key);
}

pub async fn revokes_a_key_once(backend: &Backend) {
    let home = team_fixture(backend).await;
    let (key, mine) = (key(home.team), hash());
    backend.keys.add_key(&key, &mine, "Backend", noon()).await.unwrap();
    assert!(backend.keys.revoke_key(key.id, noon()).await.unwrap());
    assert!(!backend.keys.revoke_key(key.id, noon()).await.unwrap());
    assert!(!backend.keys.rotate_key(key.id, &hash()).await.unwrap());
    let (found, _) = backend.key_verification.key_by_hash(&mine).await.unwrap().unwrap();
    assert_eq!(found.revoked_at, Some(noon()));
}

pub async fn lists_a_teams_keys_with_their_last_use(backend: &Backend) {
    let (home, other) = (team_fixture(backend).await, team_fixture(backend).await);
    let mine = key(home.team);
    let later = noon() + TimeDelta::minutes(1);
    backend.keys.add_key(&mine, &hash(), "Loan desk", later).await.unwrap();
    let uses = [(mine.id, later), (other.owner, noon())];
    backend.key_verification.record_key_uses(&uses).await.unwrap();
    backend.key_verification.record_key_uses(&[(mine.id, noon())]).await.unwrap();
    let kept = backend.keys.keys(home.team).await.unwrap();
    assert_eq!(kept.len(), 2);
    assert_eq!((&kept[0].key, kept[0].label.as_str()), (&mine, "Loan desk"), "the newest first");
    assert_eq!((kept[0].created_at, kept[0].used_at), (later, Some(later)));
    assert_eq!((kept[1].key.id, kept[1].used_at), (home.owner, None));
}

pub async fn returns_webhooks_with_their_secrets(backend: &Backend) {
    let home = team_fixture(backend).await;
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
    let home = team_fixture(backend).await;
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
    let unknown = WebhookId::from_uuid(Uuid::new_v4());
    assert!(!backend.webhooks.change_webhook(unknown, &change).await.unwrap());
}

pub async fn returns_two_secrets_during_a_rotation(backend: &Backend) {
    let home = team_fixture(backend).await;
    let hook = webhook(home.team);
    backend.webhooks.add_webhook(&hook, &[], noon()).await.unwrap();
    let (new_secret, until) = (Secret::new("whsec_ZnJlc2g=".into()), noon() + TimeDelta::days(1));
    let retiring = RetiringSecret { secret: hook.secret.clone(), until };
    assert!(backend.webhooks.rotate_secret(hook.id, &new_secret, &retiring).await.unwrap());
    let found = backend.webhooks.webhook(hook.id).await.unwrap().unwrap().webhook;
    let secrets = |now| found.secrets(now).map(Secret::expose).collect::<Vec<_>>();
    assert_eq!(secrets(noon()), [new_secret.expose(), hook.secret.expose()]);
    assert_eq!(secrets(until), [new_secret.expose()]);
    let unknown = WebhookId::from_uuid(Uuid::new_v4());
    assert!(!backend.webhooks.rotate_secret(unknown, &new_secret, &retiring).await.unwrap());
    assert!(!backend.webhooks.set_active(unknown, true).await.unwrap());
    assert!(backend.webhooks.webhook(unknown).await.unwrap().is_none());
}

pub async fn returns_the_frame_ancestors_of_a_session(backend: &Backend) {
    let (home, other) = (team_fixture(backend).await, team_fixture(backend).await);
    let (session, theirs) = (inserted(backend, &home).await, inserted(backend, &other).await);
    assert_eq!(backend.sessions.frame_ancestors_of(session.id).await.unwrap(), [], "any origin");
    let pages = ["https://pages.example", "https://*.example.com:8443"];
    let pages = pages.map(|page| page.parse::<FrameAncestor>().unwrap());
    assert!(backend.teams.set_frame_ancestors(home.team, &pages).await.unwrap());
    assert_eq!(backend.sessions.frame_ancestors_of(session.id).await.unwrap(), pages);
    assert_eq!(
        backend.sessions.frame_ancestors_of(theirs.id).await.unwrap(),
        [],
        "of another team"
    );
    let unknown = SessionId::from_uuid(Uuid::new_v4());
    assert_eq!(backend.sessions.frame_ancestors_of(unknown).await.unwrap(), []);
    assert!(backend.teams.set_frame_ancestors(home.team, &[]).await.unwrap());
    assert_eq!(backend.sessions.frame_ancestors_of(session.id).await.unwrap(), []);
    let team = TeamId::from_uuid(Uuid::new_v4());
    assert!(!backend.teams.set_frame_ancestors(team, &pages).await.unwrap());
}
