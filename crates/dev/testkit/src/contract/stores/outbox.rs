//! The contract of [`ports::outbox::Outbox`].

use chrono::TimeDelta;
use domain::session::Job;
use ports::outbox::ClaimOutcome;

use super::{
    Backend, CLAIMERS, LEASE, ROUNDS, TeamFixture, commit, ended, inserted, requested, team_fixture,
};
use crate::sample::{INSTANCE, OTHER_INSTANCE, noon};

pub async fn leases_a_job_to_one_claimer(backend: &Backend) {
    let home = team_fixture(backend).await;
    for _ in 0..ROUNDS {
        with_pending_job(backend, &home).await;
        with_pending_job(backend, &home).await;
        let claims = [(); CLAIMERS].map(|()| {
            let outbox = backend.outbox.clone();
            tokio::spawn(async move { outbox.claim(INSTANCE, noon(), LEASE, 2).await.unwrap() })
        });
        let mut entries = Vec::new();
        for claim in claims {
            entries.extend(claim.await.unwrap().into_iter().map(|claim| claim.entry));
        }
        let claimed = entries.len();
        entries.sort_unstable();
        entries.dedup();
        assert_eq!(entries.len(), claimed, "a job was leased twice");
        // A claimer may skip an entry that another one has locked; the next claim finds it.
        let rest = backend.outbox.claim(INSTANCE, noon(), LEASE, 2).await.unwrap().len();
        assert_eq!(claimed + rest, 2, "a job was lost");
    }
}

pub async fn leases_a_job_only_to_its_instance(backend: &Backend) {
    with_pending_job(backend, &team_fixture(backend).await).await;
    assert_eq!(backend.outbox.claim(OTHER_INSTANCE, noon(), LEASE, 10).await.unwrap(), []);
    assert_eq!(backend.outbox.claim(INSTANCE, noon(), LEASE, 10).await.unwrap().len(), 1);
}

pub async fn leases_a_job_again_after_the_lease_expires(backend: &Backend) {
    with_pending_job(backend, &team_fixture(backend).await).await;
    let first = backend.outbox.claim(INSTANCE, noon(), LEASE, 1).await.unwrap();
    assert_eq!(backend.outbox.claim(INSTANCE, noon(), LEASE, 1).await.unwrap(), []);

    let again = backend.outbox.claim(INSTANCE, noon() + LEASE, LEASE, 1).await.unwrap();
    assert_eq!((again[0].entry, again[0].attempt), (first[0].entry, 2));
}

pub async fn ignores_the_outcome_of_a_lost_claim(backend: &Backend) {
    with_pending_job(backend, &team_fixture(backend).await).await;
    let lost = backend.outbox.claim(INSTANCE, noon(), LEASE, 1).await.unwrap().remove(0);
    let held = backend.outbox.claim(INSTANCE, noon() + LEASE, LEASE, 1).await.unwrap().remove(0);

    assert!(!backend.outbox.complete(&lost, ClaimOutcome::Done).await.unwrap());
    assert!(backend.outbox.complete(&held, ClaimOutcome::Done).await.unwrap());
}

pub async fn keeps_a_retried_job_until_it_is_due(backend: &Backend) {
    with_pending_job(backend, &team_fixture(backend).await).await;
    let claim = backend.outbox.claim(INSTANCE, noon(), LEASE, 1).await.unwrap().remove(0);
    let due = noon() + TimeDelta::seconds(8);
    assert!(backend.outbox.complete(&claim, ClaimOutcome::RetryAt(due)).await.unwrap());

    let early = due - TimeDelta::microseconds(1);
    assert_eq!(backend.outbox.claim(INSTANCE, early, LEASE, 1).await.unwrap(), []);
    assert_eq!(backend.outbox.claim(INSTANCE, due, LEASE, 1).await.unwrap().len(), 1);
}

pub async fn does_not_lease_a_buried_job(backend: &Backend) {
    with_pending_job(backend, &team_fixture(backend).await).await;
    let claim = backend.outbox.claim(INSTANCE, noon(), LEASE, 1).await.unwrap().remove(0);
    assert!(backend.outbox.complete(&claim, ClaimOutcome::Buried).await.unwrap());
    let late = noon() + TimeDelta::days(30);
    assert_eq!(backend.outbox.claim(INSTANCE, late, LEASE, 1).await.unwrap(), []);
}

pub async fn deletes_the_jobs_of_an_instance_that_is_gone(backend: &Backend) {
    let home = team_fixture(backend).await;
    let session = inserted(backend, &home).await;
    let (change, lease) = requested(&session);
    commit(backend, &change).await;
    commit(backend, &ended(&change.session)).await;

    let drop = |node, before| backend.outbox.delete_orphans(node, before);
    let later = noon() + TimeDelta::minutes(1);
    assert_eq!(drop(INSTANCE, later).await.unwrap(), 0, "its own jobs are not deleted");
    assert_eq!(drop(OTHER_INSTANCE, noon()).await.unwrap(), 0, "too early");
    assert_eq!(drop(OTHER_INSTANCE, later).await.unwrap(), 2);
    assert_eq!(backend.outbox.claim(lease.node, later, LEASE, 10).await.unwrap(), []);
}

/// Creates a session with exactly one job in the outbox.
async fn with_pending_job(backend: &Backend, home: &TeamFixture) {
    let (change, _) = requested(&inserted(backend, home).await);
    assert!(matches!(change.effects.jobs.as_slice(), [Job::StartBrowser { .. }]));
    commit(backend, &change).await;
}
