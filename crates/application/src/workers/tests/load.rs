//! The reporter of the load: whether a process counts as ready.

use std::sync::{Arc, Mutex};

use domain::fairness::Quotas;
use ports::{
    StoreError,
    store_load::{Backlog, MockStoreLoad, Queue},
};
use testkit::sample::{INSTANCE, noon};

use super::{run_for, seconds};
use crate::{browser_turns::BrowserTurns, testing::World, workers::LoadReporter};

fn reporter(world: &World, store: MockStoreLoad) -> LoadReporter {
    let quotas = Quotas { total: 2, per_team: 2, development: 2, waiting_per_team: 10 };
    LoadReporter {
        hub: world.engine.hub.clone(),
        turns: Arc::new(BrowserTurns::new(quotas)),
        store: Arc::new(store),
        clock: world.clock.clone(),
        node: INSTANCE,
        answered_at: Mutex::default(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_is_ready_while_its_store_answers() {
    let world = World::new().await;
    let mut store = MockStoreLoad::new();
    store.expect_connections_in_use().return_const(1_usize);
    store.expect_backlogs().times(2).returning(|_, _| {
        Ok(vec![Backlog { queue: Queue::Jobs, due: 3, due_since: Some(noon()) }])
    });
    store.expect_backlogs().returning(|_, _| Err(StoreError::new("count", "refused")));
    let reporter = reporter(&world, store);
    assert!(!reporter.has_answered(), "before the first answer");
    run_for(&reporter, seconds(15)).await;
    assert!(reporter.has_answered());
    run_for(&reporter, seconds(1)).await;
    assert!(!reporter.has_answered(), "the last question was not answered");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_old_does_not_count() {
    let world = World::new().await;
    let mut store = MockStoreLoad::new();
    store.expect_connections_in_use().return_const(1_usize);
    store.expect_backlogs().returning(|_, _| Ok(vec![]));
    let reporter = reporter(&world, store);
    run_for(&reporter, seconds(1)).await;
    assert!(reporter.has_answered());
    // The store hangs, and neither answers nor fails.
    tokio::time::sleep(seconds(30)).await;
    assert!(!reporter.has_answered());
}

#[tokio::test]
async fn open_sessions_and_their_viewers_are_counted() {
    let world = World::new().await;
    let id = world.session().await;
    let session = world.read(id).await;
    let live = world.engine.hub.find_or_create(id);
    live.publish(&session);
    live.state.send_modify(|state| {
        state.present = true;
        state.observers = 2;
    });
    let load = world.engine.hub.load();
    assert_eq!(load.sessions, [("CREATED", 1)].into());
    assert_eq!((load.applicants, load.observers), (1, 2));
}
