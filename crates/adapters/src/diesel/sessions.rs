//! Sessions, and the effects and deliveries that are saved with them.

use ::diesel::{prelude::*, result::Error as DieselError};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel_async::{AsyncConnection as _, RunQueryDsl};
use domain::{
    id::{ApiKeyId, BrowserId, SessionId},
    request::ListQuery,
    session::{Change, Effect, Session, State},
    webhook,
};
use ports::{
    StoreError,
    session_store::{CommitError, Due, SessionStore},
};
use uuid::Uuid;

use super::{
    column::{Id, Moment},
    database::{Store, failed, with_conn},
    outbox::NewEntry,
    schema::{api_keys, deliveries, outbox, sessions, webhooks},
    session_row::SessionRow,
};

#[derive(Insertable)]
#[diesel(table_name = deliveries)]
struct NewDelivery {
    id: Id,
    webhook: Id,
    session: Id,
    body: String,
    due: Moment,
}

/// What a change writes besides the session itself.
struct Debts {
    entries: Vec<NewEntry>,
    /// The body of the deliveries, and from when on they are due.
    notice: Option<(String, Moment)>,
}

impl Debts {
    fn of(change: &Change) -> Result<Self, StoreError> {
        let session = &change.session;
        let mut debts = Self { entries: vec![], notice: None };
        for effect in &change.effects {
            if *effect == Effect::NotifyPartner {
                let body = webhook::payload(session).map(|body| body.to_string());
                debts.notice = body.map(|body| (body, Moment(change.at)));
            } else {
                debts.entries.push(NewEntry::of(session.id, effect, change.at)?);
            }
        }
        Ok(debts)
    }
}

/// Saves what is owed, within the transaction of `$conn`.
macro_rules! owe {
    ($conn:expr, $row:expr, $debts:expr) => {{
        for entry in &$debts.entries {
            ::diesel::insert_into(outbox::table).values(entry).execute($conn).await?;
        }
        if let Some((body, due)) = &$debts.notice {
            let team = api_keys::table
                .filter(api_keys::id.eq($row.owner))
                .select(api_keys::team)
                .first::<Id>($conn)
                .await?;
            let active = webhooks::table
                .filter(webhooks::team.eq(team))
                .filter(webhooks::active.eq(true))
                .select(webhooks::id)
                .load::<Id>($conn)
                .await?;
            for webhook in active {
                let delivery = NewDelivery {
                    id: Id(Uuid::new_v4()),
                    webhook,
                    session: $row.id,
                    body: body.clone(),
                    due: *due,
                };
                ::diesel::insert_into(deliveries::table).values(delivery).execute($conn).await?;
            }
        }
    }};
}

#[async_trait]
impl SessionStore for Store {
    async fn insert(&self, opening: &Change) -> Result<(), StoreError> {
        let (row, debts) = (SessionRow::of(&opening.session)?, Debts::of(opening)?);
        let written: Result<(), DieselError> = with_conn!(self, |conn| {
            conn.transaction(async |conn| {
                ::diesel::insert_into(sessions::table).values(&row).execute(conn).await?;
                owe!(conn, row, debts);
                Ok(())
            })
            .await
        });
        written.map_err(failed("insert a session"))
    }

    async fn find(&self, owner: ApiKeyId, id: SessionId) -> Result<Option<Session>, StoreError> {
        let found = with_conn!(self, |conn| {
            sessions::table
                .filter(sessions::id.eq(Id(*id.as_uuid())))
                .filter(sessions::owner.eq(Id(*owner.as_uuid())))
                .select(SessionRow::as_select())
                .first(conn)
                .await
                .optional()
        });
        found.map_err(failed("find a session"))?.map(SessionRow::read).transpose()
    }

    async fn open(&self, id: SessionId) -> Result<Option<Session>, StoreError> {
        let found = with_conn!(self, |conn| {
            sessions::table
                .filter(sessions::id.eq(Id(*id.as_uuid())))
                .select(SessionRow::as_select())
                .first(conn)
                .await
                .optional()
        });
        found.map_err(failed("open a session"))?.map(SessionRow::read).transpose()
    }

    async fn list(
        &self,
        owner: ApiKeyId,
        query: ListQuery,
    ) -> Result<(Vec<Session>, i64), StoreError> {
        let owner = Id(*owner.as_uuid());
        let status = query.status.map(domain::session::Status::as_str);
        let read = with_conn!(self, |conn| {
            let (mut page, mut count) = (
                sessions::table.filter(sessions::owner.eq(owner)).into_boxed(),
                sessions::table.filter(sessions::owner.eq(owner)).into_boxed(),
            );
            if let Some(status) = status {
                page = page.filter(sessions::status.eq(status));
                count = count.filter(sessions::status.eq(status));
            }
            let total = count.count().get_result::<i64>(conn).await;
            let rows = page
                .order((sessions::created_at.desc(), sessions::id.desc()))
                .limit(query.page.limit)
                .offset(query.page.offset)
                .select(SessionRow::as_select())
                .load(conn)
                .await;
            rows.and_then(|rows| Ok((rows, total?)))
        });
        let (rows, total) = read.map_err(failed("list sessions"))?;
        let sessions = rows.into_iter().map(SessionRow::read).collect::<Result<_, _>>()?;
        Ok((sessions, total))
    }

    async fn commit(&self, change: &Change, alive_until: DateTime<Utc>) -> Result<(), CommitError> {
        let (row, debts) = (SessionRow::of(&change.session)?, Debts::of(change)?);
        let lease = change.session.state.lease();
        let browser = lease.map(|lease| Id(*lease.browser.as_uuid()));
        let starts = matches!(change.session.state, State::Initializing { .. });
        let alive_until = Moment(alive_until);
        let written: Result<bool, DieselError> = with_conn!(self, |conn| {
            conn.transaction(async |conn| {
                let before = sessions::table
                    .filter(sessions::id.eq(row.id))
                    .filter(sessions::version.eq(row.version.saturating_sub(1)));
                if ::diesel::update(before).set(&row).execute(conn).await? == 0 {
                    return Ok(false);
                }
                let this = sessions::table.filter(sessions::id.eq(row.id));
                if starts {
                    let lease =
                        (sessions::browser.eq(browser), sessions::alive_until.eq(alive_until));
                    ::diesel::update(this).set(lease).execute(conn).await?;
                } else if browser.is_none() {
                    let free = sessions::browser.eq(None::<Id>);
                    ::diesel::update(this).set(free).execute(conn).await?;
                }
                owe!(conn, row, debts);
                Ok(true)
            })
            .await
        });
        match written {
            Ok(true) => Ok(()),
            Ok(false) => Err(CommitError::Stale),
            Err(error) => Err(failed("commit a change")(error).into()),
        }
    }

    async fn renew(
        &self,
        id: SessionId,
        browser: BrowserId,
        alive_until: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let held = sessions::table
            .filter(sessions::id.eq(Id(*id.as_uuid())))
            .filter(sessions::browser.eq(Id(*browser.as_uuid())));
        let renewed = with_conn!(self, |conn| {
            let until = sessions::alive_until.eq(Moment(alive_until));
            ::diesel::update(held).set(until).execute(conn).await
        });
        renewed.map(|rows| rows == 1).map_err(failed("renew a browser's lease"))
    }

    async fn due(&self, now: DateTime<Utc>, limit: u16) -> Result<Vec<(Session, Due)>, StoreError> {
        let now = Moment(now);
        let read = with_conn!(self, |conn| {
            let expired = sessions::table
                .filter(sessions::closed_at.is_null())
                .filter(sessions::expires_at.le(now))
                .order(sessions::expires_at)
                .limit(limit.into())
                .select(SessionRow::as_select())
                .load(conn)
                .await;
            let lapsed = sessions::table
                .filter(sessions::browser.is_not_null())
                .filter(sessions::alive_until.le(now))
                .order(sessions::alive_until)
                .limit(limit.into())
                .select(SessionRow::as_select())
                .load(conn)
                .await;
            expired.and_then(|expired| Ok((expired, lapsed?)))
        });
        let (expired, lapsed) = read.map_err(failed("find sessions that are due"))?;
        let mut due = Vec::new();
        for row in expired {
            due.push((row.read()?, Due::Expired));
        }
        for row in lapsed {
            let session = row.read()?;
            if let Some(lease) = session.state.lease() {
                due.push((session, Due::BrowserLapsed(lease.browser)));
            }
        }
        Ok(due)
    }
}
