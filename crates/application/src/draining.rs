//! Lets the sessions of a process end before the process stops.

use std::{sync::Arc, time::Duration};

use domain::{id::InstanceId, session::Event};
use tokio::time::Instant;

use crate::{
    advance::{AdvanceError, SessionEngine},
    browser_turns::BrowserTurns,
    instances::WaitMover,
    live::WaitingSession,
};

const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The end of a process.
pub struct Draining {
    pub engine: Arc<SessionEngine>,
    pub turns: Arc<BrowserTurns>,
    /// This process.
    pub node: InstanceId,
    /// Where there are other instances.
    pub mover: Option<Arc<WaitMover>>,
}

impl Draining {
    /// Begins no more sessions, hands over those that wait for a browser, and waits until the others have
    /// ended, for `at_most` this time. Returns the number of sessions that still run then.
    ///
    /// It takes `at_least` so long, also where no session runs: a load balancer sends requests to the
    /// process until it has noticed that this is not ready.
    ///
    /// Applicants whose sessions do not run here are disconnected; their pages connect again, to a
    /// process that is ready.
    pub async fn drain(&self, at_least: Duration, at_most: Duration) -> usize {
        let began = Instant::now();
        self.engine.hub.start_draining();
        loop {
            for waiting in self.engine.hub.waiting(self.node) {
                self.hand_over(waiting).await;
            }
            let running = self.engine.hub.running(self.node);
            let took = began.elapsed();
            if (running == 0 && took >= at_least) || took >= at_most {
                return running;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Moves a session to another instance, where it keeps its place. Where there is none that is known,
    /// it waits for its page to connect again, to a process that has room.
    async fn hand_over(&self, waiting: WaitingSession) {
        if let Some(mover) = &self.mover
            && mover.move_away(&waiting).await
        {
            return;
        }
        let WaitingSession { session, lease, .. } = waiting;
        match self.engine.advance(session, Some(lease.browser), Event::StartWithdrawn).await {
            Ok(_) => {
                tracing::info!(session.id = %session, "session {session} waits for a browser of another process");
            }
            // Its browser has started meanwhile, or the session has ended.
            Err(AdvanceError::Rejected(_) | AdvanceError::NotFound) => return,
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(session.id = %session, error, "failed to hand over a session that waits for a browser, retrying");
                return;
            }
        }
        self.turns.ended(lease.browser);
    }
}
