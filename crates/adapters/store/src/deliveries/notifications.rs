//! The queue of notifications, which bring applicants their links.

use ::diesel::prelude::*;
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use diesel_async::RunQueryDsl;
use domain::{
    id::{SessionId, TeamId},
    notification::{MAX_NOTIFICATIONS, MIN_NOTIFICATION_INTERVAL},
};
use ports::{
    StoreError,
    notifier::{NotificationClaim, NotificationOutcome, NotificationQueue, ResendOutcome},
};

use crate::engine::column::{Id, Timestamp};
use crate::engine::database::{Store, failed, with_conn, with_transaction};
use crate::engine::schema::{api_keys, notifications, sessions};
use crate::sessions::change_records::id_at;

const QUEUED: &str = "queued";
const SENT: &str = "sent";
const FAILED: &str = "failed";

#[derive(Insertable)]
#[diesel(table_name = notifications)]
pub(crate) struct NewNotificationRow {
    id: Id,
    session: Id,
    team: Id,
    number: i32,
    state: &'static str,
    due: Timestamp,
    created_at: Timestamp,
}

impl NewNotificationRow {
    pub(crate) fn of(session: Id, team: Id, number: i32, at: Timestamp) -> Self {
        Self { id: id_at(at), session, team, number, state: QUEUED, due: at, created_at: at }
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = notifications)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
struct NotificationClaimRow {
    id: Id,
    session: Id,
    team: Id,
    attempt: i32,
}

/// Leases due notifications of the teams after `$after` in turns, within the transaction of
/// `$conn`; `$pick` selects the identifiers of one team's.
macro_rules! claim_by_turns {
    ($conn:expr, $ask:expr, |$due:ident| $pick:expr) => {{
        let (now, lease, limit, after) = $ask;
        let queued = || {
            notifications::table
                .filter(notifications::state.eq(QUEUED))
                .filter(notifications::due.le(Timestamp(now)))
        };
        let teams = teams_from!($conn, queued(), limit, after);
        let (mut claimed, mut left) = (vec![], usize::from(limit));
        for (at, team) in teams.iter().enumerate() {
            // Capacity that one team does not need is left to the teams after it.
            let share = left.div_ceil(teams.len().saturating_sub(at).max(1));
            let $due = queued()
                .filter(notifications::team.eq(*team))
                .order(notifications::due)
                .select(notifications::id)
                .limit(i64::try_from(share).unwrap_or(i64::MAX));
            let due: Vec<Id> = $pick;
            let taken = (
                notifications::attempt.eq(notifications::attempt + 1),
                notifications::due.eq(Timestamp(now + lease)),
            );
            let rows: Vec<NotificationClaimRow> =
                ::diesel::update(notifications::table.filter(notifications::id.eq_any(due)))
                    .set(taken)
                    .returning(NotificationClaimRow::as_returning())
                    .get_results($conn)
                    .await?;
            left = left.saturating_sub(rows.len());
            claimed.extend(rows);
        }
        Ok(claimed)
    }};
}

/// Returns up to `$limit` teams with entries in a queue, starting after `$after` and wrapping
/// around.
macro_rules! teams_from {
    ($conn:expr, $queued:expr, $limit:expr, $after:expr) => {{
        let (mut teams, mut after): (Vec<Id>, Option<Id>) = (vec![], $after);
        let mut is_second_round = after.is_none();
        while teams.len() < usize::from($limit) {
            let next = $queued.order(notifications::team).select(notifications::team);
            let next: Option<Id> = match after {
                Some(after) => {
                    next.filter(notifications::team.gt(after)).first($conn).await.optional()?
                }
                None => next.first($conn).await.optional()?,
            };
            match next {
                Some(team) if teams.contains(&team) => break,
                Some(team) => {
                    teams.push(team);
                    after = Some(team);
                }
                None if is_second_round => break,
                None => {
                    is_second_round = true;
                    after = None;
                }
            }
        }
        teams
    }};
}

/// Queues a notification again if permitted, within the transaction of `$conn`; `$open` is the
/// owner of the session, whose row is locked against concurrent calls.
macro_rules! owe_again {
    ($conn:expr, $open:expr, $session:expr, $now:expr) => {{
        let open: Option<Id> = $open;
        let its = notifications::table.filter(notifications::session.eq($session));
        let last = its
            .order(notifications::number.desc())
            .select((notifications::number, notifications::created_at))
            .first::<(i32, Timestamp)>($conn)
            .await
            .optional()?;
        let again = may_be_sent(open, last, $now);
        if let (Ok(number), Some(owner)) = (again, open) {
            let team = api_keys::table.find(owner).select(api_keys::team);
            let team = team.first::<Id>($conn).await?;
            let row = NewNotificationRow::of($session, team, number, Timestamp($now));
            ::diesel::insert_into(notifications::table).values(row).execute($conn).await?;
        }
        Ok(again.map_or_else(|no| no, |_| ResendOutcome::Queued))
    }};
}

/// Returns the number of the next notification, if one is permitted.
fn may_be_sent(
    open: Option<Id>,
    last: Option<(i32, Timestamp)>,
    now: DateTime<Utc>,
) -> Result<i32, ResendOutcome> {
    let (Some(_), Some((number, Timestamp(at)))) = (open, last) else {
        return Err(ResendOutcome::NoMore);
    };
    if number >= MAX_NOTIFICATIONS {
        return Err(ResendOutcome::NoMore);
    }
    if now < at + MIN_NOTIFICATION_INTERVAL {
        return Err(ResendOutcome::NotBefore(at + MIN_NOTIFICATION_INTERVAL));
    }
    Ok(number.saturating_add(1))
}

#[async_trait]
impl NotificationQueue for Store {
    async fn claim_notifications(
        &self,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
        after: Option<TeamId>,
    ) -> Result<Vec<NotificationClaim>, StoreError> {
        let ask = (now, lease, limit, after.map(Id::from));
        let claimed: QueryResult<Vec<NotificationClaimRow>> = with_transaction!(
            self,
            postgres | conn | {
                claim_by_turns!(conn, ask, |due| due.for_update().skip_locked().load(conn).await?)
            },
            sqlite | conn | { claim_by_turns!(conn, ask, |due| due.load(conn).await?) }
        );
        let claims = claimed.map_err(failed("claim notifications"))?.into_iter();
        Ok(claims
            .map(|row| NotificationClaim {
                id: row.id.to(),
                session: row.session.to(),
                team: row.team.to(),
                attempt: row.attempt,
            })
            .collect())
    }

    async fn settle_notification(
        &self,
        claim: &NotificationClaim,
        verdict: NotificationOutcome,
    ) -> Result<bool, StoreError> {
        let (state, due, ended_at, reason) = match verdict {
            NotificationOutcome::Sent { at } => (SENT, None, Some(Timestamp(at)), None),
            NotificationOutcome::RetryAt(due) => (QUEUED, Some(Timestamp(due)), None, None),
            NotificationOutcome::Failed { at, why } => {
                (FAILED, None, Some(Timestamp(at)), Some(why.as_str()))
            }
        };
        let settled = with_conn!(self, |conn| {
            let held = ::diesel::update(notifications::table.find(Id::from(claim.id)))
                .filter(notifications::state.eq(QUEUED))
                .filter(notifications::attempt.eq(claim.attempt));
            let ended = (
                notifications::state.eq(state),
                notifications::ended_at.eq(ended_at),
                notifications::reason.eq(reason),
            );
            match due {
                Some(due) => held.set((ended, notifications::due.eq(due))).execute(conn).await,
                None => held.set(ended).execute(conn).await,
            }
        });
        settled.map(|rows| rows == 1).map_err(failed("settle a notification"))
    }

    async fn notify_again(
        &self,
        session: SessionId,
        now: DateTime<Utc>,
    ) -> Result<ResendOutcome, StoreError> {
        let id = Id::from(session);
        let open = sessions::table
            .select(sessions::owner)
            .filter(sessions::id.eq(id))
            .filter(sessions::closed_at.is_null());
        let again: QueryResult<ResendOutcome> = with_transaction!(
            self,
            postgres | conn | {
                let open = open.for_no_key_update().first::<Id>(conn).await.optional()?;
                owe_again!(conn, open, id, now)
            },
            sqlite | conn | {
                let open = open.first::<Id>(conn).await.optional()?;
                owe_again!(conn, open, id, now)
            }
        );
        again.map_err(failed("owe a link again"))
    }
}

/// The result of a session's notification: time, event and reason.
pub(crate) type ResendState = (Timestamp, &'static str, Option<String>);

#[derive(Queryable, Selectable)]
#[diesel(table_name = notifications)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
pub(crate) struct ResendStateRow {
    state: String,
    created_at: Timestamp,
    ended_at: Option<Timestamp>,
    reason: Option<String>,
}

impl ResendStateRow {
    /// Returns its entries in the session's timeline.
    pub(crate) fn lines(self) -> impl Iterator<Item = ResendState> {
        let event = if self.state == SENT { "NotificationSent" } else { "NotificationFailed" };
        let ended = self.ended_at.map(|at| (at, event, self.reason));
        [Some((self.created_at, "NotificationQueued", None)), ended].into_iter().flatten()
    }
}
