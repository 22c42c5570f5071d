//! Encrypts rows that are plaintext or encrypted with an older data key, in bounded batches, while
//! processes are running.

use ::diesel::prelude::*;
use diesel_async::RunQueryDsl;
use ports::{Reencrypted, StoreError};
use uuid::Uuid;

use crate::engine::column::Id;
use crate::engine::data_key::{ANSWER, BODY, Column, EMAIL, NAME, PHONE};
use crate::engine::database::{Store, failed, with_conn};
use crate::engine::schema::{deliveries, delivery_attempts, notices, receivers, sessions};
use crate::sessions::row::SessionRow;

type StoredAttemptRow = (Id, i32, Option<String>, Id);
type StoredContactRow = (Id, Id, Option<String>, Option<String>, Option<String>);

/// Returns the result of a batch that ends with these rows.
pub(crate) fn page(ids: &[Id], limit: u16) -> Reencrypted<Uuid> {
    let last = ids.last().filter(|_| ids.len() >= usize::from(limit));
    Reencrypted { changed: 0, unreadable: vec![], next: last.map(|id| id.0) }
}

impl Store {
    pub(super) async fn encrypt_sessions(
        &self,
        after: Id,
        limit: u16,
    ) -> Result<Reencrypted<Uuid>, StoreError> {
        let some =
            sessions::table.filter(sessions::id.gt(after)).order(sessions::id).limit(limit.into());
        let rows: QueryResult<Vec<SessionRow>> =
            with_conn!(self, |conn| some.select(SessionRow::as_select()).load(conn).await);
        let rows = rows.map_err(failed("read sessions"))?;
        let mut done = page(&rows.iter().map(|row| row.id).collect::<Vec<_>>(), limit);
        for row in rows {
            let team = self.team_of_key(row.owner).await?;
            let writer = self.writer(team).await?;
            let values = [Some(&row.terms), Some(&row.state), row.reference.as_ref()];
            if values.into_iter().flatten().all(|value| writer.is_current(value)) {
                continue;
            }
            let this = sessions::table
                .find(row.id)
                .filter(sessions::version.eq(row.version))
                .filter(sessions::terms.eq(row.terms.clone()));
            let id = row.id.0;
            let Ok(session) = self.read_session_of(team, row).await else {
                done.unreadable.push(id);
                continue;
            };
            let anew = SessionRow::of(&session, &writer)?;
            let change = (
                sessions::terms.eq(anew.terms),
                sessions::state.eq(anew.state),
                sessions::reference.eq(anew.reference),
            );
            let changed: QueryResult<usize> =
                with_conn!(self, |conn| ::diesel::update(this).set(change).execute(conn).await);
            done.changed += changed.map_err(failed("encrypt a session"))?;
        }
        Ok(done)
    }

    pub(super) async fn encrypt_notices(
        &self,
        after: Id,
        limit: u16,
    ) -> Result<Reencrypted<Uuid>, StoreError> {
        let rows: QueryResult<Vec<(Id, String, Option<Id>)>> = with_conn!(self, |conn| {
            notices::table
                .filter(notices::id.gt(after))
                .order(notices::id)
                .limit(limit.into())
                .select((
                    notices::id,
                    notices::body,
                    // All webhooks of a notice belong to one team.
                    deliveries::table
                        .filter(deliveries::notice.eq(notices::id))
                        .select(deliveries::webhook)
                        .limit(1)
                        .single_value(),
                ))
                .load(conn)
                .await
        });
        let rows = rows.map_err(failed("read bodies of deliveries"))?;
        let mut done = page(&rows.iter().map(|row| row.0).collect::<Vec<_>>(), limit);
        for (id, old, webhook) in rows {
            let Some(webhook) = webhook else { continue };
            let team = self.team_of_webhook(webhook).await?;
            let writer = self.writer(team).await?;
            if writer.is_current(&old) {
                continue;
            }
            let Ok(plain) = self.opened(team, BODY, id, old.clone()).await else {
                done.unreadable.push(id.0);
                continue;
            };
            let body = notices::body.eq(writer.encrypt(BODY, id, &plain)?);
            let this = notices::table.find(id).filter(notices::body.eq(old));
            let changed: QueryResult<usize> =
                with_conn!(self, |conn| ::diesel::update(this).set(body).execute(conn).await);
            done.changed += changed.map_err(failed("encrypt the body of a delivery"))?;
        }
        Ok(done)
    }

    pub(super) async fn encrypt_attempts(
        &self,
        after: Id,
        limit: u16,
    ) -> Result<Reencrypted<Uuid>, StoreError> {
        let answered = delivery_attempts::answer.is_not_null();
        let page_of = delivery_attempts::table
            .filter(answered)
            .filter(delivery_attempts::delivery.gt(after))
            .select(delivery_attempts::delivery)
            .distinct()
            .order(delivery_attempts::delivery)
            .limit(limit.into());
        let ids: QueryResult<Vec<Id>> = with_conn!(self, |conn| page_of.load(conn).await);
        let ids = ids.map_err(failed("read attempts"))?;
        let mut done = page(&ids, limit);
        let rows: QueryResult<Vec<StoredAttemptRow>> = with_conn!(self, |conn| {
            delivery_attempts::table
                .inner_join(deliveries::table.on(deliveries::id.eq(delivery_attempts::delivery)))
                .filter(answered)
                .filter(delivery_attempts::delivery.eq_any(&ids))
                .select((
                    delivery_attempts::delivery,
                    delivery_attempts::attempt,
                    delivery_attempts::answer,
                    deliveries::webhook,
                ))
                .load(conn)
                .await
        });
        for (id, attempt, old, webhook) in rows.map_err(failed("read attempts"))? {
            let Some(old) = old else { continue };
            let team = self.team_of_webhook(webhook).await?;
            let writer = self.writer(team).await?;
            if writer.is_current(&old) {
                continue;
            }
            let Ok(plain) = self.opened(team, ANSWER, id, old.clone()).await else {
                done.unreadable.push(id.0);
                continue;
            };
            let answer = delivery_attempts::answer.eq(writer.encrypt(ANSWER, id, &plain)?);
            let this = delivery_attempts::table
                .find((id, attempt))
                .filter(delivery_attempts::answer.eq(old));
            let changed: QueryResult<usize> =
                with_conn!(self, |conn| ::diesel::update(this).set(answer).execute(conn).await);
            done.changed += changed.map_err(failed("encrypt the answer to a delivery"))?;
        }
        Ok(done)
    }

    pub(super) async fn encrypt_receivers(
        &self,
        after: Id,
        limit: u16,
    ) -> Result<Reencrypted<Uuid>, StoreError> {
        let rows: QueryResult<Vec<StoredContactRow>> = with_conn!(self, |conn| {
            receivers::table
                .filter(receivers::id.gt(after))
                .order(receivers::id)
                .limit(limit.into())
                .select((
                    receivers::id,
                    receivers::team,
                    receivers::name,
                    receivers::email,
                    receivers::phone,
                ))
                .load(conn)
                .await
        });
        let rows = rows.map_err(failed("read receivers"))?;
        let mut done = page(&rows.iter().map(|row| row.0).collect::<Vec<_>>(), limit);
        for (id, team, name, email, phone) in rows {
            let writer = self.writer(team).await?;
            let mut changed = 0;
            for (column, old) in [(NAME, name), (EMAIL, email), (PHONE, phone)] {
                let Some(old) = old.filter(|old| !writer.is_current(old)) else { continue };
                let Ok(plain) = self.opened(team, column, id, old.clone()).await else {
                    done.unreadable.push(id.0);
                    continue;
                };
                let anew = writer.encrypt(column, id, &plain)?;
                changed = changed.max(self.change_contact(id, column, &old, &anew).await?);
            }
            done.changed += changed;
        }
        Ok(done)
    }

    /// Replaces a value, unless it changed meanwhile.
    async fn change_contact(
        &self,
        id: Id,
        column: Column,
        old: &str,
        anew: &str,
    ) -> Result<usize, StoreError> {
        macro_rules! change {
            ($column:ident) => {{
                let this = receivers::table.find(id).filter(receivers::$column.eq(old));
                let anew = receivers::$column.eq(anew);
                with_conn!(self, |conn| ::diesel::update(this).set(anew).execute(conn).await)
            }};
        }
        let changed: QueryResult<usize> = match column {
            NAME => change!(name),
            EMAIL => change!(email),
            _ => change!(phone),
        };
        changed.map_err(failed("encrypt a receiver"))
    }
}
