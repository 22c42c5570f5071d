//! The queue of notices, the mails about events of an account.

use ::diesel::prelude::*;
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use diesel_async::RunQueryDsl;
use ports::{
    StoreError,
    account_store::RequestOrigin,
    notice_store::{Notice, NoticeClaim, NoticeStore},
};

use crate::engine::column::{Id, Timestamp};
use crate::engine::database::{Store, failed, with_conn, with_due};
use crate::engine::schema::{account_notices, users};

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = account_notices)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
struct NoticeRow {
    id: Id,
    person: Id,
    event: String,
    at: Timestamp,
    address: String,
    agent: String,
    due: Timestamp,
    attempt: i32,
}

impl NoticeRow {
    fn notice(self) -> Result<Notice, StoreError> {
        let address = self.address.parse().map_err(failed("read an address back"))?;
        Ok(Notice {
            id: self.id.to(),
            user: self.person.to(),
            event: self.event.parse().map_err(failed("read an event back"))?,
            at: self.at.0,
            from: RequestOrigin { address, agent: self.agent },
        })
    }
}

#[async_trait]
impl NoticeStore for Store {
    async fn enqueue_notice(&self, notice: &Notice) -> Result<(), StoreError> {
        let row = NoticeRow {
            id: Id::from(notice.id),
            person: Id::from(notice.user),
            event: notice.event.as_str().to_owned(),
            at: Timestamp(notice.at),
            address: notice.from.address.to_string(),
            agent: notice.from.agent.clone(),
            due: Timestamp(notice.at),
            attempt: 0,
        };
        let written = with_conn!(self, |conn| {
            ::diesel::insert_into(account_notices::table).values(&row).execute(conn).await
        });
        written.map(drop).map_err(failed("owe somebody a notice"))
    }

    async fn claim_notices(
        &self,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
    ) -> Result<Vec<NoticeClaim>, StoreError> {
        let due = account_notices::table
            .select(account_notices::id)
            .filter(account_notices::due.le(Timestamp(now)))
            .order(account_notices::due)
            .limit(limit.into());
        let taken = (
            account_notices::attempt.eq(account_notices::attempt + 1),
            account_notices::due.eq(Timestamp(now + lease)),
        );
        let claimed: QueryResult<Vec<(NoticeRow, String)>> =
            with_due!(self, due, |conn, due: Id| {
                let these = account_notices::table.filter(account_notices::id.eq_any(&due));
                ::diesel::update(these).set(taken).execute(conn).await?;
                account_notices::table
                    .inner_join(users::table)
                    .filter(account_notices::id.eq_any(&due))
                    .select((NoticeRow::as_select(), users::email))
                    .load(conn)
                    .await
            });
        let claims = claimed.map_err(failed("claim notices"))?.into_iter().map(|(row, email)| {
            let attempt = row.attempt;
            let email = email.parse().map_err(failed("read an address back"))?;
            Ok(NoticeClaim { notice: row.notice()?, email, attempt })
        });
        claims.collect()
    }

    async fn settle_notice(
        &self,
        claim: &NoticeClaim,
        again: Option<DateTime<Utc>>,
    ) -> Result<bool, StoreError> {
        let held = account_notices::table
            .filter(account_notices::id.eq(Id::from(claim.notice.id)))
            .filter(account_notices::attempt.eq(claim.attempt));
        let settled = with_conn!(self, |conn| if let Some(due) = again {
            let change = account_notices::due.eq(Timestamp(due));
            ::diesel::update(held).set(change).execute(conn).await
        } else {
            ::diesel::delete(held).execute(conn).await
        });
        settled.map(|rows| rows == 1).map_err(failed("settle a notice"))
    }
}
