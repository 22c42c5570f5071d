//! The contract of [`ports::outbox::Outbox`].

use chrono::TimeDelta;
use domain::session::Effect;
use ports::outbox::ClaimOutcome;

use super::{
    Backend, CLAIMERS, Household, LEASE, ROUNDS, commit, ended, household, inserted, requested,
};
use crate::sample::{NODE, OTHER_NODE, noon};

pub async fn hands_an_effect_to_one_claimer(backend: &Backend) {
    let home = household(backend).await;
    for _ in 0..ROUNDS {
        owing(backend, &home).await;
        owing(backend, &home).await;
        let claims = [(); CLAIMERS].map(|()| {
            let outbox = backend.outbox.clone();
            tokio::spawn(async move { outbox.claim(NODE, noon(), LEASE, 2).await.unwrap() })
        });
        let mut entries = Vec::new();
        for claim in claims {
            entries.extend(claim.await.unwrap().into_iter().map(|claim| claim.entry));
        }
        let claimed = entries.len();
        entries.sort_unstable();
        entries.dedup();
        assert_eq!(entries.len(), claimed, "an effect was handed out twice");
        // Who finds an entry locked may go without; it is there at the next look.
        let rest = backend.outbox.claim(NODE, noon(), LEASE, 2).await.unwrap().len();
        assert_eq!(claimed + rest, 2, "an effect was lost");
    }
}

pub async fn hands_an_effect_only_to_the_node_it_names(backend: &Backend) {
    owing(backend, &household(backend).await).await;
    assert_eq!(backend.outbox.claim(OTHER_NODE, noon(), LEASE, 10).await.unwrap(), []);
    assert_eq!(backend.outbox.claim(NODE, noon(), LEASE, 10).await.unwrap().len(), 1);
}

pub async fn hands_out_again_when_the_lease_runs_out(backend: &Backend) {
    owing(backend, &household(backend).await).await;
    let first = backend.outbox.claim(NODE, noon(), LEASE, 1).await.unwrap();
    assert_eq!(backend.outbox.claim(NODE, noon(), LEASE, 1).await.unwrap(), []);

    let again = backend.outbox.claim(NODE, noon() + LEASE, LEASE, 1).await.unwrap();
    assert_eq!((again[0].entry, again[0].attempt), (first[0].entry, 2));
}

pub async fn ignores_the_verdict_of_a_lost_claim(backend: &Backend) {
    owing(backend, &household(backend).await).await;
    let lost = backend.outbox.claim(NODE, noon(), LEASE, 1).await.unwrap().remove(0);
    let held = backend.outbox.claim(NODE, noon() + LEASE, LEASE, 1).await.unwrap().remove(0);

    assert!(!backend.outbox.complete(&lost, ClaimOutcome::Done).await.unwrap());
    assert!(backend.outbox.complete(&held, ClaimOutcome::Done).await.unwrap());
}

pub async fn keeps_a_retried_effect_until_it_is_due(backend: &Backend) {
    owing(backend, &household(backend).await).await;
    let claim = backend.outbox.claim(NODE, noon(), LEASE, 1).await.unwrap().remove(0);
    let due = noon() + TimeDelta::seconds(8);
    assert!(backend.outbox.complete(&claim, ClaimOutcome::RetryAt(due)).await.unwrap());

    let early = due - TimeDelta::microseconds(1);
    assert_eq!(backend.outbox.claim(NODE, early, LEASE, 1).await.unwrap(), []);
    assert_eq!(backend.outbox.claim(NODE, due, LEASE, 1).await.unwrap().len(), 1);
}

pub async fn hands_out_no_buried_effect(backend: &Backend) {
    owing(backend, &household(backend).await).await;
    let claim = backend.outbox.claim(NODE, noon(), LEASE, 1).await.unwrap().remove(0);
    assert!(backend.outbox.complete(&claim, ClaimOutcome::Buried).await.unwrap());
    let late = noon() + TimeDelta::days(30);
    assert_eq!(backend.outbox.claim(NODE, late, LEASE, 1).await.unwrap(), []);
}

pub async fn drops_what_a_node_that_is_gone_left(backend: &Backend) {
    let home = household(backend).await;
    let session = inserted(backend, &home).await;
    let (change, lease) = requested(&session);
    commit(backend, &change).await;
    commit(backend, &ended(&change.session)).await;

    let drop = |node, before| backend.outbox.delete_orphans(node, before);
    let later = noon() + TimeDelta::minutes(1);
    assert_eq!(drop(NODE, later).await.unwrap(), 0, "its own are not dropped");
    assert_eq!(drop(OTHER_NODE, noon()).await.unwrap(), 0, "too early");
    assert_eq!(drop(OTHER_NODE, later).await.unwrap(), 2);
    assert_eq!(backend.outbox.claim(lease.node, later, LEASE, 10).await.unwrap(), []);
}

/// A session whose outbox owes exactly one effect.
async fn owing(backend: &Backend, home: &Household) {
    let (change, _) = requested(&inserted(backend, home).await);
    assert!(matches!(change.effects.as_slice(), [Effect::StartBrowser { .. }]));
    commit(backend, &change).await;
}
