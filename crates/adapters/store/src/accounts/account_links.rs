//! Account links, with which members choose a password, and the queue of their mails.

use ::diesel::prelude::*;
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use diesel_async::RunQueryDsl;
use domain::id::{AccountLinkId, TeamId};
use ports::{
    StoreError,
    account_links::{AccountLink, AccountLinkStore, MailClaim, Mailed},
    account_store::{PasswordHash, StoredUser},
    notifier::NotificationOutcome,
};

use crate::accounts::users::UserRow;
use crate::engine::column::{Id, Timestamp};
use crate::engine::database::{Store, failed, with_conn, with_due, with_transaction};
use crate::engine::schema::{account_links, known_browsers, sign_ins, teams, users};

const QUEUED: &str = "queued";
const SENT: &str = "sent";
const FAILED: &str = "failed";

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = account_links)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
struct AccountLinkRow {
    id: Id,
    person: Id,
    purpose: String,
    state: String,
    reason: Option<String>,
    due: Timestamp,
    attempt: i32,
    created_at: Timestamp,
    expires_at: Timestamp,
}

impl AccountLinkRow {
    fn link(&self) -> Result<AccountLink, StoreError> {
        Ok(AccountLink {
            id: self.id.to(),
            user: self.person.to(),
            purpose: self.purpose.parse().map_err(failed("read a purpose back"))?,
            created_at: self.created_at.0,
            expires_at: self.expires_at.0,
        })
    }

    fn mailed(self) -> Mailed {
        match self.state.as_str() {
            SENT => Mailed::Sent,
            FAILED => Mailed::Failed(self.reason.unwrap_or_default()),
            _ => Mailed::Queued,
        }
    }
}

#[async_trait]
impl AccountLinkStore for Store {
    async fn enqueue_link(&self, link: &AccountLink) -> Result<(), StoreError> {
        let row = AccountLinkRow {
            id: Id::from(link.id),
            person: Id::from(link.user),
            purpose: link.purpose.as_str().to_owned(),
            state: QUEUED.to_owned(),
            reason: None,
            due: Timestamp(link.created_at),
            attempt: 0,
            created_at: Timestamp(link.created_at),
            expires_at: Timestamp(link.expires_at),
        };
        let others = account_links::table.filter(account_links::person.eq(row.person));
        let written: QueryResult<()> = with_transaction!(self, |conn| {
            ::diesel::delete(others).execute(conn).await?;
            ::diesel::insert_into(account_links::table).values(&row).execute(conn).await?;
            Ok(())
        });
        written.map_err(failed("owe somebody a link"))
    }

    async fn link(
        &self,
        id: AccountLinkId,
        now: DateTime<Utc>,
    ) -> Result<Option<(AccountLink, StoredUser)>, StoreError> {
        let found: QueryResult<Option<(AccountLinkRow, UserRow)>> = with_conn!(self, |conn| {
            let live = account_links::table
                .inner_join(users::table)
                .filter(account_links::id.eq(Id::from(id)))
                .filter(account_links::expires_at.gt(Timestamp(now)));
            let columns = (AccountLinkRow::as_select(), UserRow::as_select());
            live.select(columns).first(conn).await.optional()
        });
        let Some((row, user)) = found.map_err(failed("find a link"))? else { return Ok(None) };
        let link = row.link()?;
        Ok(self.stored_user(Some(user)).await?.map(|user| (link, user)))
    }

    async fn use_link(
        &self,
        id: AccountLinkId,
        password: &PasswordHash,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let this = account_links::table
            .filter(account_links::id.eq(Id::from(id)))
            .filter(account_links::expires_at.gt(Timestamp(now)));
        let used: QueryResult<bool> = with_transaction!(self, |conn| {
            let whose: Option<Id> = ::diesel::delete(this)
                .returning(account_links::person)
                .get_result(conn)
                .await
                .optional()?;
            let Some(whose) = whose else { return Ok(false) };
            ::diesel::update(users::table.filter(users::id.eq(whose)))
                .set((
                    users::password.eq(Some(&password.0)),
                    users::password_until.eq(None::<Timestamp>),
                ))
                .execute(conn)
                .await?;
            let theirs = sign_ins::table.filter(sign_ins::person.eq(whose));
            ::diesel::delete(theirs).execute(conn).await?;
            let known = known_browsers::table.filter(known_browsers::person.eq(whose));
            ::diesel::delete(known).execute(conn).await?;
            Ok(true)
        });
        used.map_err(failed("use a link"))
    }

    async fn links(&self, team: TeamId) -> Result<Vec<(AccountLink, Mailed)>, StoreError> {
        let rows: QueryResult<Vec<AccountLinkRow>> = with_conn!(self, |conn| {
            account_links::table
                .inner_join(users::table)
                .filter(users::team.eq(Id::from(team)))
                .select(AccountLinkRow::as_select())
                .load(conn)
                .await
        });
        let rows = rows.map_err(failed("read a team's links"))?;
        rows.into_iter().map(|row| Ok((row.link()?, row.mailed()))).collect()
    }

    async fn claim_mails(
        &self,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
    ) -> Result<Vec<MailClaim>, StoreError> {
        let due = account_links::table
            .select(account_links::id)
            .filter(account_links::state.eq(QUEUED))
            .filter(account_links::due.le(Timestamp(now)))
            .filter(account_links::expires_at.gt(Timestamp(now)))
            .order(account_links::due)
            .limit(limit.into());
        let taken = (
            account_links::attempt.eq(account_links::attempt + 1),
            account_links::due.eq(Timestamp(now + lease)),
        );
        let claimed: QueryResult<Vec<(AccountLinkRow, String, Option<String>, String)>> =
            with_due!(self, due, |conn, due: Id| {
                let these = account_links::table.filter(account_links::id.eq_any(&due));
                ::diesel::update(these).set(taken).execute(conn).await?;
                account_links::table
                    .inner_join(users::table.inner_join(teams::table))
                    .filter(account_links::id.eq_any(&due))
                    .select((
                        AccountLinkRow::as_select(),
                        users::email,
                        users::invited_as,
                        teams::name,
                    ))
                    .load(conn)
                    .await
            });
        let claims = claimed.map_err(failed("claim mails"))?.into_iter().map(|claimed| {
            let (row, email, invited_as, team) = claimed;
            let is_taken = invited_as.is_some();
            let email =
                invited_as.unwrap_or(email).parse().map_err(failed("read an address back"))?;
            Ok(MailClaim { link: row.link()?, email, is_taken, team, attempt: row.attempt })
        });
        claims.collect()
    }

    async fn settle_mail(
        &self,
        claim: &MailClaim,
        verdict: NotificationOutcome,
    ) -> Result<bool, StoreError> {
        let (state, due, reason) = match verdict {
            NotificationOutcome::Sent { at } => (SENT, at, None),
            NotificationOutcome::RetryAt(due) => (QUEUED, due, None),
            NotificationOutcome::Failed { at, why } => (FAILED, at, Some(why.as_str())),
        };
        let held = account_links::table
            .filter(account_links::id.eq(Id::from(claim.link.id)))
            .filter(account_links::state.eq(QUEUED))
            .filter(account_links::attempt.eq(claim.attempt));
        let change = (
            account_links::state.eq(state),
            account_links::due.eq(Timestamp(due)),
            account_links::reason.eq(reason),
        );
        let settled =
            with_conn!(self, |conn| ::diesel::update(held).set(change).execute(conn).await);
        settled.map(|rows| rows == 1).map_err(failed("settle a mail"))
    }

    async fn delete_expired_links(&self, now: DateTime<Utc>) -> Result<usize, StoreError> {
        let these = account_links::table.filter(account_links::expires_at.le(Timestamp(now)));
        let gone = with_conn!(self, |conn| ::diesel::delete(these).execute(conn).await);
        gone.map_err(failed("forget links"))
    }
}
