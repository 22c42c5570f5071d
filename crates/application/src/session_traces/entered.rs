//! Since when sessions have had their statuses, as far as this process has moved them.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use domain::{
    id::SessionId,
    session::{Session, Version},
};

/// The entries of a generation. There are two, so up to twice as many sessions are remembered.
const MAX_SESSIONS: usize = 16 * 1024;

/// When each session got its status. What was inserted or renewed last is remembered for the longest
/// time, so that sessions which other processes have moved on are forgotten.
#[derive(Default)]
pub(super) struct Entered {
    current: HashMap<SessionId, Since>,
    previous: HashMap<SessionId, Since>,
}

#[derive(Clone, Copy)]
struct Since {
    /// The version of the session when this was inserted. A later one is of another process.
    known: Version,
    /// The version with which the session got its status.
    entered: Version,
    at: DateTime<Utc>,
}

impl Entered {
    /// Returns with which version and when a session got its status; `None` if another process moved it.
    pub(super) fn find(&self, session: &Session) -> Option<(Version, DateTime<Utc>)> {
        if session.version == Version::FIRST {
            return Some((Version::FIRST, session.created_at));
        }
        let found = self.current.get(&session.id).or_else(|| self.previous.get(&session.id));
        let found = found.filter(|since| since.known == session.version);
        found.map(|since| (since.entered, since.at))
    }

    /// Like [`Self::find`], and forgets it.
    pub(super) fn take(&mut self, session: &Session) -> Option<(Version, DateTime<Utc>)> {
        let found = self.find(session);
        self.current.remove(&session.id);
        self.previous.remove(&session.id);
        found
    }

    pub(super) fn insert(&mut self, session: &Session, entered: Version, at: DateTime<Utc>) {
        if self.current.len() >= MAX_SESSIONS {
            self.previous = std::mem::take(&mut self.current);
        }
        self.current.insert(session.id, Since { known: session.version, entered, at });
    }
}

#[cfg(test)]
mod tests {
    use domain::id::{ApiKeyId, PlatformId};
    use testkit::sample::{noon, opening};
    use uuid::Uuid;

    use super::*;

    fn session(number: u128, version: i32) -> Session {
        let mut session = opening(ApiKeyId::from_u128(1), PlatformId(1)).session;
        session.id = SessionId::from_uuid(Uuid::from_u128(number));
        session.version = Version(version);
        session
    }

    #[test]
    fn a_session_that_another_process_has_moved_is_not_known() {
        let mut entered = Entered::default();
        entered.insert(&session(1, 2), Version(2), noon());
        assert_eq!(entered.find(&session(1, 2)), Some((Version(2), noon())));
        assert_eq!(entered.find(&session(1, 3)), None);
        assert_eq!(entered.find(&session(2, 2)), None);
        let fresh = session(3, 1);
        assert_eq!(entered.find(&fresh), Some((Version::FIRST, fresh.created_at)));
        assert!(entered.take(&session(1, 2)).is_some());
        assert_eq!(entered.find(&session(1, 2)), None);
    }

    #[test]
    fn the_number_of_sessions_is_bounded_and_the_latest_are_known() {
        let mut entered = Entered::default();
        let count = u128::try_from(3 * MAX_SESSIONS).unwrap();
        for number in 0..count {
            entered.insert(&session(number, 2), Version(2), noon());
            assert!(entered.find(&session(number, 2)).is_some());
        }
        assert!(entered.current.len() + entered.previous.len() <= 2 * MAX_SESSIONS);
        assert!(entered.find(&session(count - 1, 2)).is_some());
        assert!(entered.find(&session(0, 2)).is_none());
    }
}
