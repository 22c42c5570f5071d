//! The queue of links to be sent to applicants.

use ::diesel::prelude::*;
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use diesel_async::RunQueryDsl;
use domain::{
    id::{NotificationId, SessionId},
    notification::{APART, MOST_SENT},
};
use ports::{
    StoreError,
    notifier::{NotificationClaim, NotificationQueue, NotificationVerdict, NotifiedAgain},
};

use super::{
    column::{Id, Moment},
    database::{Store, failed, with_conn, with_due, with_transaction},
    debts::id_at,
    schema::{notifications, sessions},
};

const QUEUED: &str = "queued";
const SENT: &str = "sent";
const FAILED: &str = "failed";

#[derive(Insertable)]
#[diesel(table_name = notifications)]
pub(super) struct NewNotification {
    id: Id,
    session: Id,
    number: i32,
    state: &'static str,
    due: Moment,
    created_at: Moment,
}

impl NewNotification {
    pub(super) fn of(session: Id, number: i32, at: Moment) -> Self {
        Self { id: id_at(at), session, number, state: QUEUED, due: at, created_at: at }
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = notifications)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
struct ClaimRow {
    id: Id,
    session: Id,
    attempt: i32,
}

/// Owes a link once more where that may be, within the transaction of `$conn`; `$open` is the
/// session's row, held against others who do the same.
macro_rules! owe_again {
    ($conn:expr, $open:expr, $session:expr, $now:expr) => {{
        let its = notifications::table.filter(notifications::session.eq($session));
        let last = its
            .order(notifications::number.desc())
            .select((notifications::number, notifications::created_at))
            .first::<(i32, Moment)>($conn)
            .await
            .optional()?;
        let again = may_be_sent($open, last, $now);
        if let Ok(number) = again {
            let row = NewNotification::of($session, number, Moment($now));
            ::diesel::insert_into(notifications::table).values(row).execute($conn).await?;
        }
        Ok(again.map_or_else(|no| no, |_| NotifiedAgain::Queued))
    }};
}

/// The number of the next sending, if there may be one.
fn may_be_sent(
    open: Option<Id>,
    last: Option<(i32, Moment)>,
    now: DateTime<Utc>,
) -> Result<i32, NotifiedAgain> {
    let (Some(_), Some((number, Moment(at)))) = (open, last) else {
        return Err(NotifiedAgain::NoMore);
    };
    if number >= MOST_SENT {
        return Err(NotifiedAgain::NoMore);
    }
    if now < at + APART {
        return Err(NotifiedAgain::NotBefore(at + APART));
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
    ) -> Result<Vec<NotificationClaim>, StoreError> {
        let due = notifications::table
            .select(notifications::id)
            .filter(notifications::state.eq(QUEUED))
            .filter(notifications::due.le(Moment(now)))
            .order(notifications::due)
            .limit(limit.into());
        let taken = (
            notifications::attempt.eq(notifications::attempt + 1),
            notifications::due.eq(Moment(now + lease)),
        );
        let claimed: QueryResult<Vec<ClaimRow>> = with_due!(self, due, |conn, due: Id| {
            ::diesel::update(notifications::table.filter(notifications::id.eq_any(due)))
                .set(taken)
                .returning(ClaimRow::as_returning())
                .get_results(conn)
                .await
        });
        let claims = claimed.map_err(failed("claim notifications"))?.into_iter().map(|row| {
            let (id, session) =
                (NotificationId::from_uuid(row.id.0), SessionId::from_uuid(row.session.0));
            NotificationClaim { id, session, attempt: row.attempt }
        });
        Ok(claims.collect())
    }

    async fn settle_notification(
        &self,
        claim: &NotificationClaim,
        verdict: NotificationVerdict,
    ) -> Result<bool, StoreError> {
        let (state, due, ended_at, reason) = match verdict {
            NotificationVerdict::Sent { at } => (SENT, None, Some(Moment(at)), None),
            NotificationVerdict::RetryAt(due) => (QUEUED, Some(Moment(due)), None, None),
            NotificationVerdict::Failed { at, why } => {
                (FAILED, None, Some(Moment(at)), Some(why.as_str()))
            }
        };
        let settled = with_conn!(self, |conn| {
            let held = ::diesel::update(notifications::table.find(Id(*claim.id.as_uuid())))
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
    ) -> Result<NotifiedAgain, StoreError> {
        let id = Id(*session.as_uuid());
        let open = sessions::table
            .select(sessions::id)
            .filter(sessions::id.eq(id))
            .filter(sessions::closed_at.is_null());
        let again: QueryResult<NotifiedAgain> = with_transaction!(
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

/// What became of a session's links: when, what, and why.
pub(super) type Told = (Moment, &'static str, Option<String>);

#[derive(Queryable, Selectable)]
#[diesel(table_name = notifications)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
pub(super) struct ToldRow {
    state: String,
    created_at: Moment,
    ended_at: Option<Moment>,
    reason: Option<String>,
}

impl ToldRow {
    /// Its lines in the session's timeline.
    pub(super) fn lines(self) -> impl Iterator<Item = Told> {
        let event = if self.state == SENT { "NotificationSent" } else { "NotificationFailed" };
        let ended = self.ended_at.map(|at| (at, event, self.reason));
        [Some((self.created_at, "NotificationQueued", None)), ended].into_iter().flatten()
    }
}
