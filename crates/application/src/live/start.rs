//! Starts a session whose applicant has come.

use std::sync::Arc;

use domain::{
    id::{BrowserId, InstanceId},
    session::{Event, Lease, Session, State},
    worker_region::WorkerRegion,
};
use ports::random::RandomSource;

use crate::advance::{AdvanceError, SessionEngine};

/// Requests browsers for sessions, to be run by this process.
pub struct SessionStarter {
    pub engine: Arc<SessionEngine>,
    pub random: Arc<dyn RandomSource>,
    /// This process, on which the browsers run.
    pub node: InstanceId,
    /// Its region; `None` where the deployment has no regions.
    pub region: Option<WorkerRegion>,
}

impl SessionStarter {
    /// Requests a browser for a session that has none yet, unless this process is to stop or runs no
    /// browsers, or the session tries a draft that another one knows. A failure is logged: the applicant's connection tries again.
    pub(super) async fn start(&self, session: &Session) {
        if !matches!(session.state, State::Created { .. }) || !self.engine.hub.begins_sessions() {
            return;
        }
        if session.terms.studio.is_some_and(|studio| studio != self.node) {
            return;
        }
        let browser = BrowserId::from_u128(self.random.new_id());
        let lease = Lease { browser, node: self.node, region: self.region };
        match self.engine.advance(session.id, None, Event::BrowserRequested { lease }).await {
            // Rejected: another connection requested one at the same moment.
            Ok(_) | Err(AdvanceError::Rejected(_)) => (),
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::error!(session.id = %session.id, error, "failed to request a browser for a session, retrying");
            }
        }
    }
}
