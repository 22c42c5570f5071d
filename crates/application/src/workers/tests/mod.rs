//! Each worker on an in-memory store, in paused time.

mod jobs;
mod links;
mod load;
mod mails;
mod recordings;
mod statistics;
mod upkeep;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Worker, spawn};

/// Runs a worker for so long, in the time of tokio.
async fn run_for(worker: &dyn Worker, time: Duration) {
    assert!(tokio::time::timeout(time, worker.run()).await.is_err(), "{}", worker.name());
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn workers_run_until_the_service_stops() {
    let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
    let rounds = Arc::new(AtomicUsize::new(0));
    let workers: Vec<Box<dyn Worker>> =
        vec![Box::new(Ticking(rounds.clone())), Box::new(EndsEarly)];
    spawn(workers, &stop, &tasks);
    tokio::time::sleep(seconds(10)).await;
    assert_eq!(tasks.len(), 1, "one ended early, which is logged");
    stop.cancel();
    tasks.close();
    tasks.wait().await;
    assert!((10..=11).contains(&rounds.load(Ordering::Relaxed)));
}

struct Ticking(Arc<AtomicUsize>);

#[async_trait]
impl Worker for Ticking {
    fn name(&self) -> &'static str {
        "ticking"
    }

    async fn run(&self) {
        loop {
            self.0.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(seconds(1)).await;
        }
    }
}

struct EndsEarly;

#[async_trait]
impl Worker for EndsEarly {
    fn name(&self) -> &'static str {
        "ends early"
    }

    async fn run(&self) {}
}
