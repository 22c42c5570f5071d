//! The statistics of definitions, and the warning of a platform that has changed.

use std::{collections::BTreeMap, sync::Arc};

use chrono::TimeDelta;
use domain::definition_health::{RunEnd, RunFacts};
use ports::{
    StoreError,
    definition_statistics::{DefinitionStatistics, MockDefinitionStatistics},
};

use crate::{definition_statistics::RunStatistics, testing::World, workers::StatisticsRecorder};

fn recorder(world: &World, statistics: Arc<dyn DefinitionStatistics>) -> StatisticsRecorder {
    StatisticsRecorder {
        runs: Arc::new(RunStatistics::default()),
        statistics,
        catalogue: world.store.clone(),
        clock: world.clock.clone(),
        watched: tokio::sync::Mutex::default(),
    }
}

fn run(recorder: &StatisticsRecorder, world: &World, is_read: bool) {
    let fields = BTreeMap::from([("balance".to_owned(), is_read)]);
    let facts = RunFacts { signals: BTreeMap::new(), fields };
    let now = recorder.clock.now();
    let version = (world.platform, "1.0.0");
    recorder.runs.record(version, (&facts, &RunEnd::Succeeded), now, now);
}

#[tokio::test]
async fn a_field_that_is_no_longer_read_is_warned_of_once() {
    let world = World::new().await;
    let recorder = recorder(&world, world.store.clone());
    for _ in 0..20 {
        run(&recorder, &world, true);
    }
    recorder.store().await.unwrap();
    assert!(recorder.watched.lock().await.warned.is_empty());
    world.clock.forward(TimeDelta::hours(30));
    for _ in 0..5 {
        run(&recorder, &world, false);
    }
    recorder.store().await.unwrap();
    let warned = recorder.watched.lock().await.warned.clone();
    assert_eq!(warned, [(world.platform, "field balance".to_owned())].into());
}

#[tokio::test]
async fn counts_are_stored_later_if_the_store_fails() {
    let world = World::new().await;
    let mut statistics = MockDefinitionStatistics::new();
    let failure = || StoreError::new("add", std::io::Error::other("down"));
    statistics.expect_add_counts().times(1).returning(move |_| Err(failure()));
    statistics.expect_add_counts().times(1).returning(|counts| {
        assert_eq!(counts.len(), 1);
        Ok(())
    });
    statistics.expect_counts().returning(|_, _, _| Ok(vec![]));
    statistics.expect_remove_counts().returning(|_| Ok(()));
    let recorder = recorder(&world, Arc::new(statistics));
    run(&recorder, &world, true);
    recorder.store().await.unwrap_err();
    recorder.store().await.unwrap();
    recorder.store().await.unwrap();
}
