//! Comparing data with an attestation, and exporting it.

use domain::{
    id::SessionId,
    request::GivenData,
    session::{Collected, Event, IssuedAttestation, ProofHash, Status},
    workflow::AttestMode,
};
use ports::{
    attestor::{AttestationPackage, AttestationStore as _, Issuer},
    driving::{Coverage, FieldMatch, SessionError, SessionService as _},
};
use testkit::sample;

use super::use_cases;
use crate::testing::World;

#[tokio::test]
async fn data_is_compared_with_the_attested_values() {
    let world = World::new().await;
    let (id, proof) = attested(&world, br#"{"name":"Ada"}"#, true).await;
    let data = GivenData::from([("name".to_owned(), "\"Ada\"".to_owned())]);
    let partners = use_cases(&world);
    let comparison = partners.compare(&world.key, &proof, &data).await.unwrap();
    assert_eq!((comparison.session, comparison.matches), (id, true));
    assert_eq!(comparison.coverage, Coverage::AllGivenFields);
    assert_eq!(comparison.fields, [("name".to_owned(), FieldMatch::Matches)]);
    let other = sample::key(world.team);
    let foreign = partners.compare(&other, &proof, &data).await;
    assert!(matches!(foreign, Err(SessionError::NotFound)));
}

#[tokio::test]
async fn an_attestation_that_the_session_did_not_end_with_is_not_its_own() {
    let world = World::new().await;
    let (id, proof) = attested(&world, br#"{"name":"Ada"}"#, false).await;
    let partners = use_cases(&world);
    let compared = partners.compare(&world.key, &proof, &GivenData::new()).await;
    assert!(matches!(compared, Err(SessionError::NotFound)));
    assert_eq!(partners.attestation(&world.key, id).await.unwrap(), None);
}

#[tokio::test]
async fn an_attestation_is_exported_with_its_hash() {
    let world = World::new().await;
    let (id, proof) = attested(&world, br#"{"name":"Ada"}"#, true).await;
    let exported = use_cases(&world).attestation(&world.key, id).await.unwrap().unwrap();
    assert_eq!((exported.proof, exported.file), (proof, b"attestation".to_vec()));
}

#[tokio::test]
async fn an_attestation_of_an_earlier_format_is_neither_compared_nor_exported() {
    let world = World::new().await;
    let (id, proof) = attested(&world, b"outdated", true).await;
    let partners = use_cases(&world);
    let compared = partners.compare(&world.key, &proof, &GivenData::new()).await;
    assert!(matches!(compared, Err(SessionError::NotFound)));
    assert_eq!(partners.attestation(&world.key, id).await.unwrap(), None);
}

#[tokio::test]
async fn a_damaged_attestation_is_a_failure_of_the_store() {
    let world = World::new().await;
    let (id, proof) = attested(&world, b"damaged", true).await;
    let partners = use_cases(&world);
    let compared = partners.compare(&world.key, &proof, &GivenData::new()).await;
    assert!(matches!(compared, Err(SessionError::Store(_))));
    let exported = partners.attestation(&world.key, id).await;
    assert!(matches!(exported, Err(SessionError::Store(_))));
}

/// A session that ended with an attestation, or had one stored while it ended in another way.
async fn attested(world: &World, disclosure: &[u8], ends_with_it: bool) -> (SessionId, ProofHash) {
    let wanted = domain::request::AttestationRequest::Wanted;
    let id = world.insert(|session| session.terms.attestation = wanted).await;
    world.run(id).await;
    let collected = Collected::default();
    let events = [Event::CollectionStarted, Event::DataCollected { collected }];
    assert_eq!(world.apply(id, events).await.status(), Status::Verifying);
    let proof = ProofHash::new(&"0a".repeat(32)).unwrap();
    let package = AttestationPackage {
        mode: AttestMode::FullReveal,
        salt: [0; 32],
        attestation: b"attestation".to_vec(),
        disclosure: disclosure.to_vec(),
        evidence: None,
        inclusion: None,
        issuer: Issuer { public_key: [0; 32], valid_from: 0, valid_to: 0 },
    };
    assert!(world.store.keep(id, &proof, &package).await.unwrap());
    let attestation =
        IssuedAttestation { proof: proof.clone(), fields: vec!["name".into()], mode: None };
    let ending = if ends_with_it {
        Event::AttestationIssued { attestation }
    } else {
        Event::AttestationRefused
    };
    world.apply(id, [ending]).await;
    (id, proof)
}
