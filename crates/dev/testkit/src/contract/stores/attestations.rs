//! The contract of [`ports::attestor::AttestationStore`].

use chrono::TimeDelta;
use domain::{
    session::{ProofHash, Session},
    workflow::AttestMode,
};
use ports::attestor::{AttestationPackage, Issuer};

use super::{Backend, ROUNDS, commit, ended, inserted, team_fixture};
use crate::sample::noon;

fn package(byte: u8) -> AttestationPackage {
    AttestationPackage {
        mode: AttestMode::ZktlsRequest,
        salt: [byte; 32],
        attestation: vec![byte; 1000],
        disclosure: vec![byte, 0, 255],
        evidence: byte.is_multiple_of(2).then(|| vec![byte; 200_000]),
        inclusion: byte.is_multiple_of(3).then(|| vec![byte; 2000]),
        issuer: Issuer { public_key: [byte; 32], valid_from: 1, valid_to: u64::MAX },
    }
}

fn proof(byte: u8) -> ProofHash {
    ProofHash::new(&format!("{byte:02x}").repeat(32)).expect("a hash")
}

async fn keep(backend: &Backend, session: &Session, byte: u8) {
    assert!(kept(backend, session, byte).await);
}

async fn kept(backend: &Backend, session: &Session, byte: u8) -> bool {
    backend.attestations.keep(session.id, &proof(byte), &package(byte)).await.unwrap()
}

pub async fn keeps_the_newest_attestation_of_a_session(backend: &Backend) {
    let home = team_fixture(backend).await;
    let session = inserted(backend, &home).await;
    let other = inserted(backend, &home).await;
    let found =
        async |session: &Session| backend.attestations.attestation(session.id).await.unwrap();
    assert_eq!(found(&session).await, None);
    for byte in [1, 2] {
        keep(backend, &session, byte).await;
        assert_eq!(found(&session).await, Some((proof(byte), package(byte))));
    }
    assert_eq!(found(&other).await, None);
    let done = backend.attestations.reencrypt_attestations(None, 10).await.unwrap();
    assert_eq!(
        (done.changed, done.unreadable, done.next),
        (0, vec![], None),
        "already encrypted with the newest key"
    );
}

pub async fn finds_an_attestation_by_its_hash_only_for_its_owner(backend: &Backend) {
    let (home, others) = (team_fixture(backend).await, team_fixture(backend).await);
    let session = inserted(backend, &home).await;
    keep(backend, &session, 3).await;
    let found =
        async |owner, byte| backend.attestations.attested(owner, &proof(byte)).await.unwrap();
    assert_eq!(found(home.owner, 3).await, Some((session.id, package(3))));
    assert_eq!(found(others.owner, 3).await, None);
    assert_eq!(found(home.owner, 4).await, None);
}

pub async fn deletes_the_attestation_with_the_sessions_data(backend: &Backend) {
    let home = team_fixture(backend).await;
    let session = inserted(backend, &home).await;
    let other = inserted(backend, &home).await;
    keep(backend, &session, 5).await;
    keep(backend, &other, 6).await;
    let closed = ended(&session);
    commit(backend, &closed).await;
    let erased = closed.session.erase(noon() + TimeDelta::days(1)).unwrap();
    backend.sessions.commit(&erased, noon()).await.unwrap();
    assert_eq!(backend.attestations.attestation(session.id).await.unwrap(), None);
    assert!(!kept(backend, &session, 5).await, "an attestation of a closed session is not stored");
    assert_eq!(backend.attestations.attestation(session.id).await.unwrap(), None);
    assert!(backend.attestations.attestation(other.id).await.unwrap().is_some());
}

pub async fn stores_no_attestation_of_a_session_erased_concurrently(backend: &Backend) {
    let home = team_fixture(backend).await;
    for _ in 0..ROUNDS {
        let session = inserted(backend, &home).await;
        let (store, id) = (backend.attestations.clone(), session.id);
        let keeping = tokio::spawn(async move {
            store.keep(id, &proof(7), &package(7)).await.unwrap();
        });
        let closed = ended(&session);
        commit(backend, &closed).await;
        let erased = closed.session.erase(noon() + TimeDelta::days(1)).unwrap();
        backend.sessions.commit(&erased, noon()).await.unwrap();
        keeping.await.unwrap();
        assert_eq!(backend.attestations.attestation(id).await.unwrap(), None);
    }
}
