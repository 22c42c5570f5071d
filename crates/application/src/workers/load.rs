//! Reports the load of the process in metrics: its browsers, its live sessions, its connections, and how
//! far the queues of the store are behind.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{id::InstanceId, session::Status};
use ports::{
    clock::Clock,
    store_load::{Backlog, Queue, StoreLoad},
};
use tokio::time::Instant;

use super::{Worker, log_error};
use crate::{browser_turns::BrowserTurns, live::SessionHub};

/// How often what is in memory is reported.
const PROCESS_INTERVAL: Duration = Duration::from_secs(2);
/// How often the queues are read, however often the metrics are.
const QUEUES_INTERVAL: Duration = Duration::from_secs(10);
/// How old the last answer of the store may be in a process that is ready.
const MAX_ANSWER_AGE: Duration = Duration::from_secs(25);

/// Sets the gauges of a process.
pub struct LoadReporter {
    pub hub: Arc<SessionHub>,
    pub turns: Arc<BrowserTurns>,
    pub store: Arc<dyn StoreLoad>,
    pub clock: Arc<dyn Clock>,
    pub node: InstanceId,
    /// When the store last answered; `None` if it did not answer the last time.
    pub answered_at: Mutex<Option<Instant>>,
}

#[async_trait]
impl Worker for LoadReporter {
    fn name(&self) -> &'static str {
        "load"
    }

    async fn run(&self) {
        // Two loops, since a store that does not answer must not stop the other gauges.
        tokio::join!(self.report_queues(), self.report_process());
    }
}

impl LoadReporter {
    async fn report_process(&self) {
        loop {
            self.report();
            tokio::time::sleep(PROCESS_INTERVAL).await;
        }
    }

    async fn report_queues(&self) {
        let mut was_answered = true;
        loop {
            let now = self.clock.now();
            match self.store.backlogs(self.node, now).await {
                Ok(backlogs) => {
                    was_answered = true;
                    self.set_answered(Some(Instant::now()));
                    for backlog in backlogs {
                        set_backlog(backlog, now);
                    }
                }
                Err(error) => {
                    // Once: other workers report each of their failures.
                    if std::mem::take(&mut was_answered) {
                        log_error(&error, "failed to read the load of the store, retrying");
                    }
                    self.set_answered(None);
                    for queue in Queue::ALL {
                        set_unknown(queue);
                    }
                }
            }
            tokio::time::sleep(QUEUES_INTERVAL).await;
        }
    }

    /// Sets the gauges of what is in memory.
    pub(super) fn report(&self) {
        let now = self.clock.now();
        let browsers = self.turns.load(now);
        let waited = browsers.waiting_since.map_or(0.0, |since| seconds_between(since, now));
        metrics::gauge!("avouch_browser_slots").set(float(browsers.total));
        metrics::gauge!("avouch_browser_slots_used").set(float(browsers.running));
        metrics::gauge!("avouch_browser_waiting").set(float(browsers.waiting));
        metrics::gauge!("avouch_browser_oldest_wait_seconds").set(waited);
        let sessions = self.hub.load();
        for status in Status::ALL.iter().filter(|status| !status.is_closed()) {
            let count = sessions.sessions.get(status.as_str()).copied().unwrap_or_default();
            metrics::gauge!("avouch_sessions", "status" => status.as_str()).set(f64::from(count));
        }
        for (kind, count) in [("applicant", sessions.applicants), ("observer", sessions.observers)]
        {
            metrics::gauge!("avouch_viewers", "kind" => kind).set(f64::from(count));
        }
        let in_use = float(self.store.connections_in_use());
        metrics::gauge!("avouch_database_connections_in_use").set(in_use);
        let is_draining = self.hub.is_draining();
        metrics::gauge!("avouch_draining").set(f64::from(u8::from(is_draining)));
        let is_ready = !is_draining && self.has_answered();
        metrics::gauge!("avouch_ready").set(f64::from(u8::from(is_ready)));
    }

    fn set_answered(&self, at: Option<Instant>) {
        *self.answered_at.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }

    /// Returns whether the store answered the last time, and not too long ago.
    pub(super) fn has_answered(&self) -> bool {
        let at = *self.answered_at.lock().unwrap_or_else(PoisonError::into_inner);
        at.is_some_and(|at| at.elapsed() < MAX_ANSWER_AGE)
    }
}

fn set_backlog(backlog: Backlog, now: DateTime<Utc>) {
    let queue = backlog.queue.as_str();
    let age = backlog.due_since.map_or(0.0, |since| seconds_between(since, now));
    metrics::gauge!("avouch_queue_due", "queue" => queue).set(f64::from(backlog.due));
    metrics::gauge!("avouch_queue_oldest_due_seconds", "queue" => queue).set(age);
}

/// What is not known is not a number: an aggregation takes the values of other processes.
fn set_unknown(queue: Queue) {
    let queue = queue.as_str();
    metrics::gauge!("avouch_queue_due", "queue" => queue).set(f64::NAN);
    metrics::gauge!("avouch_queue_oldest_due_seconds", "queue" => queue).set(f64::NAN);
}

fn seconds_between(since: DateTime<Utc>, now: DateTime<Utc>) -> f64 {
    (now - since).to_std().unwrap_or_default().as_secs_f64()
}

fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
