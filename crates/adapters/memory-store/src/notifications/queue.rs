//! The queue of notifications, from which teams are served in turn.

use std::collections::BTreeSet;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    id::{SessionId, TeamId},
    notification::{MAX_NOTIFICATIONS, MIN_NOTIFICATION_INTERVAL},
};
use ports::{
    StoreError,
    notifier::{NotificationClaim, NotificationOutcome, NotificationQueue, ResendOutcome},
};

use super::{Notifications, QueuedNotification};
use crate::{MemoryStore, State, schedule::earliest};

impl Notifications {
    pub(crate) fn delete_of(&mut self, session: SessionId) {
        self.records.retain(|one| one.session != session);
    }

    fn queued(&self, now: DateTime<Utc>) -> impl Iterator<Item = (usize, &QueuedNotification)> {
        let all = self.records.iter().enumerate();
        all.filter(move |(_, one)| one.ended.is_none() && one.schedule.is_due(now))
    }

    /// Returns up to `limit` teams that have a due notification, beginning after `after` and
    /// wrapping around to it.
    fn teams_due(&self, now: DateTime<Utc>, limit: u16, after: Option<TeamId>) -> Vec<TeamId> {
        let teams: BTreeSet<_> = self.queued(now).map(|(_, one)| one.team).collect();
        let is_later = |team: &TeamId| after.is_none_or(|after| *team > after);
        let (later, earlier): (Vec<_>, Vec<_>) = teams.into_iter().partition(is_later);
        later.into_iter().chain(earlier).take(limit.into()).collect()
    }

    fn claim(
        &mut self,
        (now, lease): (DateTime<Utc>, TimeDelta),
        limit: u16,
        after: Option<TeamId>,
    ) -> Vec<NotificationClaim> {
        let teams = self.teams_due(now, limit, after);
        let mut claimed = vec![];
        for (at, team) in teams.iter().enumerate() {
            let remaining = usize::from(limit).saturating_sub(claimed.len());
            // Capacity that one team does not need is left to those after it.
            let share = remaining.div_ceil(teams.len().saturating_sub(at).max(1));
            let theirs = self.queued(now).filter(|(_, one)| one.team == *team);
            let due = theirs.map(|(place, one)| (one.schedule.due, place));
            let due = earliest(due, u16::try_from(share).unwrap_or(u16::MAX));
            claimed.extend(due.into_iter().filter_map(|place| {
                let one = self.records.get_mut(place)?;
                let attempt = one.schedule.claim(now, lease);
                let (id, session, team) = (one.id, one.session, one.team);
                Some(NotificationClaim { id, session, team, attempt })
            }));
        }
        claimed
    }

    fn settle(&mut self, claim: &NotificationClaim, verdict: NotificationOutcome) -> bool {
        let mut open = self.records.iter_mut().filter(|one| one.ended.is_none());
        let held = open.find(|one| one.id == claim.id && one.schedule.attempt == claim.attempt);
        let Some(one) = held else { return false };
        match verdict {
            NotificationOutcome::Sent { at } => one.ended = Some((at, None)),
            NotificationOutcome::RetryAt(due) => one.schedule.due = due,
            NotificationOutcome::Failed { at, why } => one.ended = Some((at, Some(why))),
        }
        true
    }

    /// Returns the number of the next notification of a session, or why there is none now.
    fn next_number(&self, session: SessionId, now: DateTime<Utc>) -> Result<i32, ResendOutcome> {
        let its = self.records.iter().filter(|one| one.session == session);
        let last = its.max_by_key(|one| one.number).ok_or(ResendOutcome::NoMore)?;
        if last.number >= MAX_NOTIFICATIONS {
            return Err(ResendOutcome::NoMore);
        }
        let earliest = last.created_at + MIN_NOTIFICATION_INTERVAL;
        if now < earliest {
            return Err(ResendOutcome::NotBefore(earliest));
        }
        Ok(last.number.saturating_add(1))
    }
}

impl State {
    fn notify_again(&mut self, session: SessionId, now: DateTime<Utc>) -> ResendOutcome {
        let open = self.sessions.is_open(session);
        let Some(team) = self.team_of_session(session).filter(|_| open) else {
            return ResendOutcome::NoMore;
        };
        match self.notifications.next_number(session, now) {
            Ok(number) => {
                self.notifications.enqueue(&mut self.ids, (session, team), number, now);
                ResendOutcome::Queued
            }
            Err(refusal) => refusal,
        }
    }
}

#[async_trait]
impl NotificationQueue for MemoryStore {
    async fn claim_notifications(
        &self,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
        after: Option<TeamId>,
    ) -> Result<Vec<NotificationClaim>, StoreError> {
        Ok(self.state().notifications.claim((now, lease), limit, after))
    }

    async fn settle_notification(
        &self,
        claim: &NotificationClaim,
        verdict: NotificationOutcome,
    ) -> Result<bool, StoreError> {
        Ok(self.state().notifications.settle(claim, verdict))
    }

    async fn notify_again(
        &self,
        session: SessionId,
        now: DateTime<Utc>,
    ) -> Result<ResendOutcome, StoreError> {
        Ok(self.state().notify_again(session, now))
    }
}
