//! Authentication by API key, and the rate limits.

use std::sync::Arc;

use chrono::TimeDelta;
use domain::{rate::RateLimit, secret::Secret};
use ports::{
    driving::{AccessDenied, Authenticator as _, RequestCredentials, RequestPurpose},
    key_store::KeyStore as _,
};
use testkit::sample::noon;

use crate::{
    api_keys::KeyUses,
    sessions::KeyAuthenticator,
    settings::Limits,
    testing::{FakeLimiter, World},
};

const UNLIMITED: RateLimit = RateLimit { count: 1000, seconds: 60 };

#[tokio::test]
async fn a_key_is_known_by_its_hash_and_its_use_is_noted() {
    let world = World::new().await;
    let gate = authenticator(&world, Limits::default());
    let outcome = gate.authenticate(shown(&world, RequestPurpose::Any)).await.unwrap();
    assert_eq!(outcome.result, Ok(world.key.clone()));
    assert!(outcome.catalogue.is_some());
    let window = outcome.window.unwrap();
    assert_eq!((window.limit, window.used), (RateLimit::STANDARD, 0), "what would hold");
    assert_eq!(gate.uses.take().len(), 1);

    let unknown = crate::api_keys::ApiKeyText::new(world.key.environment, [9; 32]);
    for key in [None, Some("nonsense"), Some(unknown.expose())] {
        let credentials = credentials(key, RequestPurpose::Any);
        let outcome = gate.authenticate(credentials).await.unwrap();
        assert_eq!((outcome.result, outcome.key), (Err(AccessDenied::Unauthorized), None));
    }
    assert!(gate.uses.take().is_empty());
}

#[tokio::test]
async fn a_revoked_key_is_named_in_the_outcome_and_opens_nothing() {
    let world = World::new().await;
    world.store.revoke_key(world.key.id, noon() - TimeDelta::hours(1)).await.unwrap();
    let gate = authenticator(&world, Limits::default());
    let outcome = gate.authenticate(shown(&world, RequestPurpose::Any)).await.unwrap();
    assert_eq!(outcome.result, Err(AccessDenied::Unauthorized));
    assert_eq!(outcome.key, Some(world.key.id));
}

#[tokio::test]
async fn requests_are_charged_to_the_key_and_unknown_ones_to_the_address() {
    let world = World::new().await;
    let requests = Some(RateLimit { count: 1, seconds: 60 });
    let gate = authenticator(&world, Limits { requests, ..Limits::default() });
    let first = gate.authenticate(shown(&world, RequestPurpose::Any)).await.unwrap();
    assert_eq!(first.window.unwrap().remaining(), 0);
    let second = gate.authenticate(shown(&world, RequestPurpose::Any)).await.unwrap();
    assert_eq!(second.result, Err(AccessDenied::TooMany { retry_after: 60 }));
    for verdict in [AccessDenied::Unauthorized, AccessDenied::TooMany { retry_after: 60 }] {
        let outcome = gate.authenticate(credentials(None, RequestPurpose::Any)).await.unwrap();
        assert_eq!(outcome.result, Err(verdict));
    }
}

#[tokio::test]
async fn creations_have_limits_of_their_own_which_no_header_shows() {
    let world = World::new().await;
    let creations = Some(RateLimit { count: 1, seconds: 30 });
    let gate = authenticator(
        &world,
        Limits { requests: Some(UNLIMITED), creations, team_creations: creations, recipient: None },
    );
    gate.authenticate(shown(&world, RequestPurpose::Creation)).await.unwrap().result.unwrap();
    let outcome = gate.authenticate(shown(&world, RequestPurpose::Creation)).await.unwrap();
    assert_eq!(outcome.result, Err(AccessDenied::TooMany { retry_after: 30 }));
    assert_eq!(outcome.window.unwrap().limit, UNLIMITED);
    let other = gate.authenticate(shown(&world, RequestPurpose::Any)).await.unwrap();
    assert!(other.result.is_ok());

    let gate = authenticator(&world, Limits { creations, ..Limits::default() });
    let outcome = gate.authenticate(shown(&world, RequestPurpose::Creation)).await.unwrap();
    let shown = outcome.window.unwrap().limit;
    assert_eq!(shown, RateLimit::STANDARD, "the window of creations is not shown");
}

#[tokio::test]
async fn a_poll_returns_the_session_to_its_owner_alone() {
    let world = World::new().await;
    let id = world.session().await;
    let requests = Some(RateLimit { count: 3, seconds: 60 });
    let gate = authenticator(&world, Limits { requests, ..Limits::default() });
    let (outcome, found) = gate.poll(shown(&world, RequestPurpose::Any), Some(id)).await.unwrap();
    assert!(outcome.result.is_ok());
    let found = found.unwrap();
    assert_eq!(found.view.session.id, id);
    assert_eq!(found.platform.unwrap().id, world.platform);
    let (outcome, found) = gate.poll(shown(&world, RequestPurpose::Any), None).await.unwrap();
    assert!(outcome.result.is_ok() && found.is_none());
    let (outcome, found) =
        gate.poll(credentials(Some("nonsense"), RequestPurpose::Any), Some(id)).await.unwrap();
    assert!(outcome.result.is_err() && found.is_none());
    gate.poll(shown(&world, RequestPurpose::Any), Some(id)).await.unwrap();
    let (outcome, found) = gate.poll(shown(&world, RequestPurpose::Any), Some(id)).await.unwrap();
    assert!(outcome.result.is_err() && found.is_none(), "over the limit nothing is shown");
}

fn authenticator(world: &World, limits: Limits) -> KeyAuthenticator {
    KeyAuthenticator {
        clock: world.clock.clone(),
        urls: world.urls(),
        keys: world.store.clone(),
        sessions: world.store.clone(),
        limiter: Arc::new(FakeLimiter::default()),
        limits,
        uses: Arc::new(KeyUses::default()),
    }
}

fn shown(world: &World, purpose: RequestPurpose) -> RequestCredentials {
    credentials(Some(world.key_text.expose()), purpose)
}

fn credentials(key: Option<&str>, purpose: RequestPurpose) -> RequestCredentials {
    let key = key.map(|key| Secret::new(key.to_owned()));
    RequestCredentials { key, address: [192, 0, 2, 1].into(), purpose }
}
