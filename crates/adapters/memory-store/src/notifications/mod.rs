//! Notifications that bring applicants their links, and suppressed mailboxes.

mod queue;
mod suppressions;

use chrono::{DateTime, Utc};
use domain::{
    id::{NotificationId, SessionId, TeamId},
    notification::{Mailbox, NotificationFailure},
};

use crate::{ids::IdSequence, schedule::Schedule};

/// The notifications of all sessions, and the suppressed mailboxes.
#[derive(Default)]
pub(crate) struct Notifications {
    /// In the order of their creation.
    records: Vec<QueuedNotification>,
    suppressed: Vec<Mailbox>,
}

/// One notification of a session.
struct QueuedNotification {
    id: NotificationId,
    session: SessionId,
    team: TeamId,
    /// Counts a session's notifications from 1.
    number: i32,
    schedule: Schedule,
    created_at: DateTime<Utc>,
    /// When it was sent, or given up on and why; none while it is queued.
    ended: Option<(DateTime<Utc>, Option<NotificationFailure>)>,
}

/// An entry of a session's timeline: time, event and detail.
pub(crate) type Line = (DateTime<Utc>, &'static str, Option<String>);

impl Notifications {
    /// Queues a notification, due at once.
    pub(crate) fn enqueue(
        &mut self,
        ids: &mut IdSequence,
        (session, team): (SessionId, TeamId),
        number: i32,
        at: DateTime<Utc>,
    ) {
        let id = NotificationId::from_uuid(ids.next_at(at));
        let schedule = Schedule::due_at(at);
        let fresh =
            QueuedNotification { id, session, team, number, schedule, created_at: at, ended: None };
        self.records.push(fresh);
    }

    /// Returns the timeline entries with the results of a session's notifications.
    pub(crate) fn lines(&self, session: SessionId) -> impl Iterator<Item = Line> {
        let its = self.records.iter().filter(move |one| one.session == session);
        its.flat_map(QueuedNotification::lines)
    }
}

impl QueuedNotification {
    fn lines(&self) -> impl Iterator<Item = Line> {
        let queued = (self.created_at, "NotificationQueued", None);
        let ended = self.ended.map(|(at, failure)| match failure {
            None => (at, "NotificationSent", None),
            Some(why) => (at, "NotificationFailed", Some(why.as_str().to_owned())),
        });
        std::iter::once(queued).chain(ended)
    }
}
