//! The contract of [`ports::instances::InstanceRegistry`].

use domain::{
    id::{InstanceId, SessionId, TeamId},
    placement::Instance,
    worker_region::WorkerRegion,
};
use ports::instances::ReportedInstance;
use uuid::Uuid;

use super::{Backend, inserted, team_fixture};

fn instance(id: u128) -> Instance {
    Instance {
        id: InstanceId::from_u128(id),
        address: format!("10.0.0.{id}:8443"),
        region: Some(WorkerRegion::UsWest),
        slots: 4,
        sessions: 3,
        waiting: 2,
        leaving: 1,
        waited: 7,
        is_draining: false,
    }
}

pub async fn counts_the_reports_of_each_instance(backend: &Backend) {
    let registry = &backend.instances;
    assert_eq!(registry.instances().await.unwrap(), []);
    let (one, two) = (instance(1), Instance { region: None, slots: 0, ..instance(2) });
    registry.report(&two).await.unwrap();
    registry.report(&one).await.unwrap();
    let later = Instance { sessions: u32::MAX, is_draining: true, ..one };
    registry.report(&later).await.unwrap();
    let [first, second] = <[_; 2]>::try_from(registry.instances().await.unwrap()).unwrap();
    assert_eq!((first.count, first.instance.is_draining), (2, true));
    assert!(first.instance.sessions > 1_000_000_000, "a large number is saved as a large one");
    assert_eq!(second, ReportedInstance { instance: two, count: 1 });
}

pub async fn deletes_an_entry_only_while_it_is_not_renewed(backend: &Backend) {
    let registry = &backend.instances;
    for id in [1, 1, 2] {
        registry.report(&instance(id)).await.unwrap();
    }
    registry.remove(InstanceId::from_u128(1), Some(1)).await.unwrap();
    assert_eq!(registry.instances().await.unwrap().len(), 2, "it has reported again");
    registry.remove(InstanceId::from_u128(1), Some(2)).await.unwrap();
    registry.remove(InstanceId::from_u128(2), None).await.unwrap();
    assert_eq!(registry.instances().await.unwrap(), []);
    registry.report(&instance(1)).await.unwrap();
    assert_eq!(registry.instances().await.unwrap().len(), 1, "its entry is made again");
}

pub async fn tells_which_sessions_may_leave_their_region(backend: &Backend) {
    let (home, other) = (team_fixture(backend).await, team_fixture(backend).await);
    let (first, second) = (inserted(backend, &home).await, inserted(backend, &home).await);
    let theirs = inserted(backend, &other).await;
    let ids = [first.id, theirs.id, second.id, SessionId::from_uuid(Uuid::new_v4())];
    let leaving = async |ids: &[SessionId]| {
        let mut found = backend.regions.sessions_that_may_leave(ids).await.unwrap();
        found.sort();
        found
    };
    assert_eq!(leaving(&ids).await, [], "no team has allowed it");
    assert!(!backend.teams.other_regions(home.team).await.unwrap());
    assert!(backend.teams.set_other_regions(home.team, true).await.unwrap());
    assert!(backend.teams.other_regions(home.team).await.unwrap());
    assert!(!backend.teams.other_regions(other.team).await.unwrap());
    let mut expected = [first.id, second.id];
    expected.sort();
    assert_eq!(leaving(&ids).await, expected);
    assert_eq!(leaving(&[second.id]).await, [second.id]);
    assert_eq!(leaving(&[]).await, []);
    assert!(backend.teams.set_other_regions(home.team, false).await.unwrap());
    assert_eq!(leaving(&ids).await, []);
    let unknown = TeamId::from_uuid(Uuid::new_v4());
    assert!(!backend.teams.set_other_regions(unknown, true).await.unwrap());
    assert!(!backend.teams.other_regions(unknown).await.unwrap());
}
