//! The API keys of a team, and the origins that may embed its sessions.

use chrono::TimeDelta;
use domain::{
    account::Role,
    api_key::Environment,
    frame_ancestors::MAX_FRAME_ANCESTORS,
    id::{ApiKeyId, TeamId},
    secret::Secret,
};
use ports::{
    clock::Clock as _,
    driving::{EmbeddingService as _, KeyService as _, NewKey, PortalError},
    key_store::{KeyStore as _, KeyVerification as _},
};
use testkit::sample::{self, noon};
use tokio::time::Instant;
use uuid::Uuid;

use super::fixture::{Fixture, OTHER_TEAM, TEAM, error, refusal};
use crate::{api_keys::ApiKeyText, trusted_keys::TRUST};

#[tokio::test]
async fn a_key_is_found_by_its_text_alone() {
    let fixture = Fixture::new().await;
    let user = fixture.user(Role::Member).await;
    let expires_at = Some(noon() + TimeDelta::days(30));
    let order = NewKey { expires_at, ..new_key(" Backend ") };
    let text = fixture.api_keys().make_key(&user, order).await.unwrap();
    let id = id_of(&fixture, &text).await.expect("a record");
    let stored = fixture.api_keys().keys(&user).await.unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!((stored[0].key.id, stored[0].label.as_str()), (id, "Backend"));
    assert_eq!((stored[0].key.team, stored[0].key.expires_at), (TEAM, expires_at));
    assert_eq!(stored[0].key.environment, Environment::Development);
    assert_eq!(stored[0].created_at, fixture.clock.now());
    assert_eq!(fixture.actions().await, [format!("key.make {id} \"Backend\" for development")]);
}

#[tokio::test]
async fn the_label_of_a_key_is_bounded() {
    let fixture = Fixture::new().await;
    let user = fixture.user(Role::Member).await;
    let keys = fixture.api_keys();
    for label in ["", "  ", "one\nline", &"é".repeat(61)] {
        let refused = keys.make_key(&user, new_key(label)).await;
        assert_eq!(refusal(refused), "enter a name of 1 to 60 characters", "{label:?}");
    }
    assert_eq!(fixture.actions().await, <[&str; 0]>::default());
    keys.make_key(&user, new_key(&"é".repeat(60))).await.unwrap();
}

#[tokio::test]
async fn a_team_has_a_limited_number_of_keys() {
    let fixture = Fixture::new().await;
    let user = fixture.user(Role::Member).await;
    for _ in 0..199 {
        add_key(&fixture, TEAM).await;
    }
    add_key(&fixture, OTHER_TEAM).await;
    let keys = fixture.api_keys();
    keys.make_key(&user, new_key("The last")).await.unwrap();
    let refused = keys.make_key(&user, new_key("One more")).await;
    assert_eq!(refusal(refused), "a team can have up to 200 API keys");
    assert_eq!(keys.keys(&user).await.unwrap().len(), 200);
}

#[tokio::test]
async fn a_rotated_key_keeps_its_record_and_loses_its_text() {
    let fixture = Fixture::new().await;
    let user = fixture.user(Role::Member).await;
    let keys = fixture.api_keys();
    let before = keys.make_key(&user, new_key("Backend")).await.unwrap();
    let id = id_of(&fixture, &before).await.expect("a record");
    let after = keys.rotate_key(&user, id).await.unwrap();
    assert!(before != after);
    assert_eq!(id_of(&fixture, &before).await, None);
    assert_eq!(id_of(&fixture, &after).await, Some(id));
    let actions = fixture.actions().await;
    assert_eq!(actions.last().unwrap(), &format!("key.rotate {id}"));
}

#[tokio::test(start_paused = true)]
async fn a_rotated_or_revoked_key_is_reported_when_no_process_trusts_it() {
    let fixture = Fixture::new().await;
    let user = fixture.user(Role::Member).await;
    let id = add_key(&fixture, TEAM).await;
    let keys = fixture.api_keys();
    let began = Instant::now();
    keys.rotate_key(&user, id).await.unwrap();
    let rotated = Instant::now();
    assert!(rotated - began > TRUST);
    keys.revoke_key(&user, id).await.unwrap();
    assert!(rotated.elapsed() > TRUST);
}

#[tokio::test]
async fn a_revoked_key_is_neither_rotated_nor_revoked_again() {
    let fixture = Fixture::new().await;
    let user = fixture.user(Role::Member).await;
    let id = add_key(&fixture, TEAM).await;
    let keys = fixture.api_keys();
    keys.revoke_key(&user, id).await.unwrap();
    let revoked = fixture.store.key(id).await.unwrap().unwrap().revoked_at;
    assert_eq!(revoked, Some(fixture.clock.now()));
    fixture.clock.forward(TimeDelta::minutes(1));
    assert_eq!(refusal(keys.rotate_key(&user, id).await), "API key not found");
    assert_eq!(refusal(keys.revoke_key(&user, id).await), "API key not found");
    assert_eq!(fixture.store.key(id).await.unwrap().unwrap().revoked_at, revoked);
    assert_eq!(fixture.actions().await, [format!("key.revoke {id}")]);
}

#[tokio::test]
async fn keys_of_another_team_are_as_if_they_were_not_there() {
    let fixture = Fixture::new().await;
    let user = fixture.user(Role::Owner).await;
    let theirs = add_key(&fixture, OTHER_TEAM).await;
    let keys = fixture.api_keys();
    for id in [theirs, ApiKeyId::from_uuid(Uuid::nil())] {
        assert_eq!(refusal(keys.rotate_key(&user, id).await), "API key not found");
        assert_eq!(refusal(keys.revoke_key(&user, id).await), "API key not found");
    }
    assert_eq!(keys.keys(&user).await.unwrap(), []);
    assert_eq!(fixture.store.key(theirs).await.unwrap().unwrap().revoked_at, None);
    assert_eq!(fixture.actions().await, <[&str; 0]>::default());
}

#[tokio::test]
async fn a_key_changes_only_once_the_change_is_recorded() {
    let fixture = Fixture::new().await;
    let user = fixture.user(Role::Member).await;
    let id = add_key(&fixture, TEAM).await;
    let fixture = fixture.with_broken_audit_log();
    let keys = fixture.api_keys();
    let failures = [
        keys.make_key(&user, new_key("Backend")).await.map(drop),
        keys.rotate_key(&user, id).await.map(drop),
        keys.revoke_key(&user, id).await,
    ];
    for failed in failures {
        assert!(matches!(error(failed), PortalError::Store(_)));
    }
    assert_eq!(keys.keys(&user).await.unwrap().len(), 1);
    assert_eq!(fixture.store.key(id).await.unwrap().unwrap().revoked_at, None);
}

#[tokio::test]
async fn an_owner_sets_the_origins_of_their_own_team() {
    let fixture = Fixture::new().await;
    let user = fixture.user(Role::Owner).await;
    let embedding = fixture.embedding();
    let origin = |number: usize| format!("https://a{number}.lender.example").parse().unwrap();
    let origins: Vec<_> = (0..MAX_FRAME_ANCESTORS).map(origin).collect();
    embedding.set_embed_origins(&user, origins.clone()).await.unwrap();
    assert_eq!(embedding.embed_origins(&user).await.unwrap(), origins);
    let other = fixture.user_in(OTHER_TEAM, Role::Viewer).await;
    assert_eq!(embedding.embed_origins(&other).await.unwrap(), []);
    let more = (0..=MAX_FRAME_ANCESTORS).map(origin).collect();
    let refused = embedding.set_embed_origins(&user, more).await;
    assert_eq!(
        refusal(refused),
        format!("a team can have up to {MAX_FRAME_ANCESTORS} allowed origins")
    );
    assert_eq!(embedding.embed_origins(&user).await.unwrap(), origins);
    assert_eq!(fixture.actions().await.len(), 1);
}

fn new_key(label: &str) -> NewKey {
    NewKey { label: label.to_owned(), environment: Environment::Development, expires_at: None }
}

async fn add_key(fixture: &Fixture, team: TeamId) -> ApiKeyId {
    let key = sample::key(team);
    let hash = ApiKeyText::new(key.environment, sha(key.id)).hash();
    fixture.store.add_key(&key, &hash, "Backend", noon()).await.unwrap();
    key.id
}

fn sha(id: ApiKeyId) -> [u8; 32] {
    crate::digest::sha256(id.to_string().as_bytes())
}

async fn id_of(fixture: &Fixture, text: &Secret) -> Option<ApiKeyId> {
    let hash = ApiKeyText::read(text.expose()).expect("a key").hash();
    let found = fixture.store.key_by_hash(&hash).await.unwrap();
    found.map(|(key, _)| key.id)
}
