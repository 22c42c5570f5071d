//! The contract of [`ports::instances::InstanceRegistry`].

use domain::{id::InstanceId, placement::Instance, worker_region::WorkerRegion};
use ports::instances::ReportedInstance;

use super::Backend;

fn instance(id: u128) -> Instance {
    Instance {
        id: InstanceId::from_u128(id),
        address: format!("10.0.0.{id}:8443"),
        region: Some(WorkerRegion::UsWest),
        slots: 4,
        sessions: 3,
        waiting: 2,
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
