//! The contract of [`ports::key_store::KeyStore`] and [`ports::webhook_store::WebhookStore`].

use domain::{
    ancestors::Ancestor,
    id::{SessionId, TeamId},
};
use uuid::Uuid;

use super::{Backend, hash, household, inserted};
use crate::sample::{key, noon, webhook};

pub async fn finds_a_key_by_its_hash(backend: &Backend) {
    let home = household(backend).await;
    let (key, mine) = (key(home.team), hash());
    backend.keys.add_key(&key, &mine, noon()).await.unwrap();
    assert_eq!(backend.keys.key_by_hash(&mine).await.unwrap().unwrap().0, key);
    assert_eq!(backend.keys.key(key.id).await.unwrap(), Some(key));
    assert_eq!(backend.keys.key_by_hash(&hash()).await.unwrap(), None);
    assert!(backend.keys.has_team(home.team).await.unwrap());
    assert!(!backend.keys.has_team(TeamId::from_uuid(Uuid::new_v4())).await.unwrap());
}

pub async fn opens_nothing_with_a_rotated_key(backend: &Backend) {
    let home = household(backend).await;
    let (key, old, new) = (key(home.team), hash(), hash());
    backend.keys.add_key(&key, &old, noon()).await.unwrap();
    assert!(backend.keys.rotate_key(key.id, &new).await.unwrap());
    assert_eq!(backend.keys.key_by_hash(&old).await.unwrap(), None);
    assert_eq!(backend.keys.key_by_hash(&new).await.unwrap().unwrap().0, key);
}

pub async fn revokes_once(backend: &Backend) {
    let home = household(backend).await;
    let (key, mine) = (key(home.team), hash());
    backend.keys.add_key(&key, &mine, noon()).await.unwrap();
    assert!(backend.keys.revoke_key(key.id, noon()).await.unwrap());
    assert!(!backend.keys.revoke_key(key.id, noon()).await.unwrap());
    assert!(!backend.keys.rotate_key(key.id, &hash()).await.unwrap());
    let (found, _) = backend.keys.key_by_hash(&mine).await.unwrap().unwrap();
    assert_eq!(found.revoked_at, Some(noon()));
}

pub async fn returns_webhooks_with_their_secrets(backend: &Backend) {
    let home = household(backend).await;
    let hook = webhook(home.team);
    backend.webhooks.add_webhook(&hook, noon()).await.unwrap();
    let found = backend.webhooks.webhooks(home.team).await.unwrap().remove(0);
    assert_eq!((found.id, &found.url, found.timeout), (hook.id, &hook.url, hook.timeout));
    assert_eq!((found.retries, found.active), (hook.retries, hook.active));
    assert_eq!(found.secret.expose(), hook.secret.expose());
    let (name, value) = found.header.map(|header| (header.name, header.value)).unwrap();
    assert_eq!((name.as_str(), value.expose()), ("x-partner", "header value"));
}

pub async fn tells_whose_pages_may_show_a_session(backend: &Backend) {
    let (home, other) = (household(backend).await, household(backend).await);
    let (session, theirs) = (inserted(backend, &home).await, inserted(backend, &other).await);
    assert_eq!(backend.sessions.ancestors(session.id).await.unwrap(), [], "anybody's");
    let pages = ["https://pages.example", "https://*.example.com:8443"];
    let pages = pages.map(|page| page.parse::<Ancestor>().unwrap());
    assert!(backend.keys.set_ancestors(home.team, &pages).await.unwrap());
    assert_eq!(backend.sessions.ancestors(session.id).await.unwrap(), pages);
    assert_eq!(backend.sessions.ancestors(theirs.id).await.unwrap(), [], "another team's");
    let nobody = SessionId::from_uuid(Uuid::new_v4());
    assert_eq!(backend.sessions.ancestors(nobody).await.unwrap(), []);
    assert!(backend.keys.set_ancestors(home.team, &[]).await.unwrap());
    assert_eq!(backend.sessions.ancestors(session.id).await.unwrap(), []);
    let team = TeamId::from_uuid(Uuid::new_v4());
    assert!(!backend.keys.set_ancestors(team, &pages).await.unwrap());
}
