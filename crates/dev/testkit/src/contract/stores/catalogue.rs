//! The contract of [`ports::catalogue::Catalogue`].

use domain::{api_key::Environment, id::PlatformId};
use ports::catalogue::PublishError;

use super::{Backend, hash, team_fixture};
use crate::sample::{self, definition, noon};

pub async fn publishes_a_definition(backend: &Backend) {
    let sample = definition("sample", "1.0.0");
    let (id, published) = backend.catalogue.publish(&sample, noon()).await.unwrap();
    let (found, read) = backend.catalogue.definition(id).await.unwrap().unwrap();
    assert_eq!((found, read), (published, sample));
    let platforms = backend.catalogue.platforms(Environment::Development).await.unwrap();
    assert_eq!(platforms.len(), 1);
    assert_eq!(platforms[0].name, "sample");
    assert_eq!(backend.catalogue.platform(id).await.unwrap().as_ref(), Some(&platforms[0]));
    assert_eq!(backend.catalogue.platforms(Environment::Production).await.unwrap(), []);
    assert_eq!(backend.catalogue.platform(PlatformId(9999)).await.unwrap(), None);
}

pub async fn publishes_the_same_definition_idempotently(backend: &Backend) {
    let sample = definition("sample", "1.0.0");
    let first = backend.catalogue.publish(&sample, noon()).await.unwrap();
    assert_eq!(backend.catalogue.publish(&sample, noon()).await.unwrap(), first);
}

pub async fn refuses_other_content_under_a_published_version(backend: &Backend) {
    let mut sample = definition("sample", "1.0.0");
    backend.catalogue.publish(&sample, noon()).await.unwrap();
    "Other".clone_into(&mut sample.display_name);
    let refusal = backend.catalogue.publish(&sample, noon()).await.unwrap_err();
    assert!(matches!(refusal, PublishError::VersionTaken(_)), "{refusal:?}");
}

pub async fn returns_the_newest_version(backend: &Backend) {
    let (old, new) = (definition("sample", "1.0.0"), definition("sample", "1.1.0"));
    let (id, _) = backend.catalogue.publish(&old, noon()).await.unwrap();
    let (same, _) = backend.catalogue.publish(&new, noon()).await.unwrap();
    assert_eq!(same, id);
    let (published, _) = backend.catalogue.definition(id).await.unwrap().unwrap();
    assert_eq!(published.version, "1.1.0");
}

pub async fn changes_the_revision_with_each_change(backend: &Backend) {
    let home = team_fixture(backend).await;
    let mine = hash();
    backend.keys.add_key(&sample::key(home.team), &mine, "Backend", noon()).await.unwrap();
    let revision = async || backend.key_verification.key_by_hash(&mine).await.unwrap().unwrap().1;
    let first = revision().await;
    assert_eq!(revision().await, first, "nothing changed");
    backend.catalogue.publish(&definition("sample", "1.1.0"), noon()).await.unwrap();
    let second = revision().await;
    assert_ne!(second, first, "a new version");
    backend.catalogue.publish(&definition("other", "1.0.0"), noon()).await.unwrap();
    assert_ne!(revision().await, second, "a new platform");
}
