//! The contract of [`ports::suppression_store::SuppressionStore`].

use domain::{id::TeamId, notification::Mailbox};
use uuid::Uuid;

use super::{Backend, team_fixture};
use crate::sample::noon;

pub async fn keeps_the_suppressions_of_a_team(backend: &Backend) {
    let store = &backend.suppressions;
    let (home, other) = (team_fixture(backend).await, team_fixture(backend).await);
    let ada = Mailbox { team: home.team, mark: [1; 16] };
    let beside = [Mailbox { team: home.team, mark: [2; 16] }, Mailbox { team: other.team, ..ada }];
    assert!(!store.is_suppressed(&ada).await.unwrap());
    // A mail program may repeat its request, also concurrently.
    let (first, second) = tokio::join!(store.suppress(&ada, noon()), store.suppress(&ada, noon()));
    first.unwrap();
    second.unwrap();
    store.suppress(&ada, noon()).await.unwrap();
    assert!(store.is_suppressed(&ada).await.unwrap());
    for mailbox in beside {
        assert!(!store.is_suppressed(&mailbox).await.unwrap(), "{mailbox:?}");
        store.unsuppress(&mailbox).await.unwrap();
    }
    assert!(store.is_suppressed(&ada).await.unwrap());
    store.unsuppress(&ada).await.unwrap();
    assert!(!store.is_suppressed(&ada).await.unwrap());
    let gone = Mailbox { team: TeamId::from_uuid(Uuid::new_v4()), ..ada };
    store.suppress(&gone, noon()).await.unwrap();
    assert!(!store.is_suppressed(&gone).await.unwrap(), "a team that does not exist");
}
