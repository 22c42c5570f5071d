//! Moves sessions that wait for a browser to instances that have one free.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    id::BrowserId,
    session::{Event, Lease, MOVES_ALLOWED},
};
use ports::{instances::InstanceLinks, random::RandomSource};

use super::{InstanceDirectory, REPORT_INTERVAL, Target};
use crate::{
    advance::{AdvanceError, SessionEngine},
    browser_turns::BrowserTurns,
    live::WaitingSession,
    workers::Worker,
};

/// Moves sessions from the queue of this instance to others.
pub struct WaitMover {
    pub engine: Arc<SessionEngine>,
    pub turns: Arc<BrowserTurns>,
    pub directory: Arc<InstanceDirectory>,
    pub links: Arc<dyn InstanceLinks>,
    pub random: Arc<dyn RandomSource>,
}

#[async_trait]
impl Worker for Arc<WaitMover> {
    fn name(&self) -> &'static str {
        "moves of waiting sessions"
    }

    async fn run(&self) {
        loop {
            tokio::time::sleep(REPORT_INTERVAL).await;
            self.move_waiting().await;
        }
    }
}

impl WaitMover {
    /// Moves those sessions whose turn comes next, as many as other instances have free browsers.
    pub async fn move_waiting(&self) {
        self.move_home().await;
        let moves = self.directory.moves();
        if moves.is_empty() {
            return;
        }
        let mut waiting = self.directory.movable();
        for (to, planned) in moves {
            if !self.is_reachable(&to).await {
                continue;
            }
            for _ in 0..planned.count {
                let next = waiting.iter().position(|(waiting, _)| {
                    !planned.is_far || self.directory.may_run_in(waiting, to.region)
                });
                let Some(next) = next else { break };
                let (session, since) = waiting.remove(next);
                self.move_one(&session, since, &to).await;
            }
        }
    }

    /// Moves sessions that wait in another region to their own, while browsers are free there.
    async fn move_home(&self) {
        for (session, since) in self.directory.movable() {
            if let Some(home) = self.directory.home(&session) {
                if !self.is_reachable(&home).await {
                    continue;
                }
                self.move_one(&session, since, &home).await;
            }
        }
    }

    /// Moves a session to the instance that begins sessions next, if there is another one.
    pub(crate) async fn move_away(&self, session: &WaitingSession) -> bool {
        let since = self.turns.waiting_since(session.lease.browser);
        let Some(since) = since.filter(|_| session.may_move()) else { return false };
        let may_leave = self.directory.may_leave(session.session);
        let Some(to) = self.directory.beginner(session.region, may_leave) else { return false };
        self.is_reachable(&to).await && self.move_one(session, since, &to).await
    }

    /// Examines whether another instance answers this one. If not, it is left out for a time: nobody could
    /// be connected to a session there.
    async fn is_reachable(&self, Target { id, address, .. }: &Target) -> bool {
        match self.links.reach(address).await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(instance.id = %id, %error, "failed to reach an instance; no session is moved there");
                self.directory.unreachable(*id);
                false
            }
        }
    }

    async fn move_one(
        &self,
        &WaitingSession { session: id, lease, .. }: &WaitingSession,
        since: DateTime<Utc>,
        &Target { id: node, region, .. }: &Target,
    ) -> bool {
        let to = Lease { browser: BrowserId::from_u128(self.random.new_id()), node, region };
        let moved = Event::WaitMoved { to, since };
        match self.engine.advance(id, Some(lease.browser), moved).await {
            Ok(_) => {
                self.turns.ended(lease.browser);
                self.directory.moved(node);
                tracing::info!(session.id = %id, instance.id = %node, "session {id} waits for a browser of another instance");
                true
            }
            // Its browser is starting, or the session has ended.
            Err(AdvanceError::Rejected(_) | AdvanceError::NotFound) => false,
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(session.id = %id, error, "failed to move a session that waits for a browser, retrying");
                false
            }
        }
    }
}

impl WaitingSession {
    /// Returns whether another instance can run the session.
    pub(super) fn may_move(&self) -> bool {
        !self.is_draft && self.moves < MOVES_ALLOWED
    }
}
