//! The log of deliveries, and resending.

use ::diesel::{
    dsl::{exists, max, not},
    prelude::*,
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel_async::RunQueryDsl;
use domain::id::{DeliveryId, SessionId, WebhookId};
use ports::{
    StoreError,
    delivery_log::{
        DeliveryFilter, DeliveryLog, DeliveryScope, DeliveryState, DeliveryWithAttempts,
        StoredAttempt, StoredDelivery, TimeRange,
    },
};

use crate::engine::column::{Id, Timestamp};
use crate::engine::data_key::{ANSWER, BODY};
use crate::engine::database::{Store, failed, with_conn, with_transaction};
use crate::engine::schema::{deliveries, delivery_attempts, delivery_queue, notices};
use crate::sessions::change_records::{NewQueueEntry, WebhookBody, id_at};

/// Delivery, webhook, session, when it was created, when it was exhausted, when it is due, and
/// whether it is a test.
type DeliveryRow = (Id, Id, Id, Timestamp, Option<Timestamp>, Option<Timestamp>, bool);
type DeliveryAttemptRow =
    (i32, Timestamp, i32, Option<i32>, Option<String>, Option<String>, String);

/// The values that are needed to queue a delivery again.
const MAX_RESENT: (deliveries::id, deliveries::webhook, deliveries::session, deliveries::notice) =
    (deliveries::id, deliveries::webhook, deliveries::session, deliveries::notice);

/// Reads deliveries with their logged values, from either database.
macro_rules! rows {
    () => {
        deliveries::table
            .inner_join(notices::table)
            .left_join(delivery_queue::table.on(delivery_queue::delivery.eq(deliveries::id)))
            .select((
                deliveries::id,
                deliveries::webhook,
                deliveries::session,
                deliveries::created_at,
                deliveries::exhausted_at,
                delivery_queue::due.nullable(),
                notices::test,
            ))
            .order((deliveries::created_at.desc(), deliveries::id.desc()))
            .into_boxed()
    };
}

/// Queues deliveries again, within the transaction of `$conn`, and returns their number.
macro_rules! owe_again {
    ($conn:expr, $these:expr, $now:expr) => {{
        let mut count = 0;
        for (id, webhook, session, notice) in $these {
            let this = deliveries::table.filter(deliveries::id.eq(id));
            let open = deliveries::exhausted_at.eq(None::<Timestamp>);
            ::diesel::update(this).set(open).execute($conn).await?;
            let made: Option<i32> = delivery_attempts::table
                .filter(delivery_attempts::delivery.eq(id))
                .select(max(delivery_attempts::attempt))
                .first($conn)
                .await?;
            let task = NewQueueEntry {
                delivery: id,
                webhook,
                session,
                notice,
                since: $now,
                due: $now,
                single: false,
                attempts: made.unwrap_or(0),
            };
            let sooner = (
                delivery_queue::since.eq($now),
                delivery_queue::due.eq($now),
                delivery_queue::tries.eq(0),
            );
            ::diesel::insert_into(delivery_queue::table)
                .values(task)
                .on_conflict(delivery_queue::delivery)
                .do_update()
                .set(sooner)
                .execute($conn)
                .await?;
            count += 1;
        }
        Ok(count)
    }};
}

#[async_trait]
impl DeliveryLog for Store {
    async fn find_deliveries(
        &self,
        find: &DeliveryFilter,
    ) -> Result<Vec<StoredDelivery>, StoreError> {
        let rows: QueryResult<Vec<DeliveryRow>> = with_conn!(self, |conn| {
            let mut rows = rows!().limit(find.limit.into());
            rows = match find.of {
                DeliveryScope::Webhook(id) => rows.filter(deliveries::webhook.eq(Id::from(id))),
                DeliveryScope::Session(id) => rows.filter(deliveries::session.eq(Id::from(id))),
            };
            rows = match find.state {
                None => rows,
                Some(DeliveryState::Pending) => {
                    rows.filter(delivery_queue::delivery.nullable().is_not_null())
                }
                Some(DeliveryState::Exhausted) => rows
                    .filter(delivery_queue::delivery.nullable().is_null())
                    .filter(deliveries::exhausted_at.is_not_null()),
                Some(DeliveryState::Delivered) => rows
                    .filter(delivery_queue::delivery.nullable().is_null())
                    .filter(deliveries::exhausted_at.is_null()),
            };
            rows.load(conn).await
        });
        Ok(rows.map_err(failed("read deliveries"))?.into_iter().map(kept).collect())
    }

    async fn delivery(&self, id: DeliveryId) -> Result<Option<DeliveryWithAttempts>, StoreError> {
        let id = Id::from(id);
        let found: QueryResult<(Option<DeliveryRow>, Vec<DeliveryAttemptRow>)> =
            with_conn!(self, |conn| {
                let row = rows!().filter(deliveries::id.eq(id)).first(conn).await.optional();
                let attempts = delivery_attempts::table
                    .filter(delivery_attempts::delivery.eq(id))
                    .order(delivery_attempts::attempt)
                    .select((
                        delivery_attempts::attempt,
                        delivery_attempts::started_at,
                        delivery_attempts::took_ms,
                        delivery_attempts::status,
                        delivery_attempts::error,
                        delivery_attempts::answer,
                        delivery_attempts::sent,
                    ))
                    .load(conn)
                    .await;
                row.and_then(|row| Ok((row, attempts?)))
            });
        let (row, attempts) = found.map_err(failed("read a delivery"))?;
        let Some(row) = row else { return Ok(None) };
        let team = self.team_of_webhook(row.1).await?;
        let mut read = Vec::with_capacity(attempts.len());
        for mut row in attempts {
            row.5 = self.opened_some(team, ANSWER, id, row.5).await?;
            read.push(attempt(row));
        }
        Ok(Some((kept(row), read)))
    }

    async fn delivery_body(&self, id: DeliveryId) -> Result<Option<String>, StoreError> {
        let found: QueryResult<Option<(Id, Id, String)>> = with_conn!(self, |conn| {
            deliveries::table
                .inner_join(notices::table)
                .filter(deliveries::id.eq(Id::from(id)))
                .select((deliveries::webhook, notices::id, notices::body))
                .first(conn)
                .await
                .optional()
        });
        let found = found.map_err(failed("read the body of a delivery"))?;
        let Some((webhook, notice, body)) = found else { return Ok(None) };
        let team = self.team_of_webhook(webhook).await?;
        self.opened(team, BODY, notice, body).await.map(Some)
    }

    async fn send_again(&self, id: DeliveryId, now: DateTime<Utc>) -> Result<bool, StoreError> {
        let (id, now) = (Id::from(id), Timestamp(now));
        let owed: QueryResult<usize> = with_transaction!(self, |conn| {
            let this: Vec<(Id, Id, Id, Id)> = deliveries::table
                .filter(deliveries::id.eq(id))
                .select(MAX_RESENT)
                .load(conn)
                .await?;
            owe_again!(conn, this, now)
        });
        Ok(owed.map_err(failed("send a delivery again"))? > 0)
    }

    async fn send_exhausted_again(
        &self,
        webhook: WebhookId,
        span: TimeRange,
        now: DateTime<Utc>,
        limit: u16,
    ) -> Result<usize, StoreError> {
        let now = Timestamp(now);
        let owed: QueryResult<usize> = with_transaction!(self, |conn| {
            let these: Vec<(Id, Id, Id, Id)> = deliveries::table
                .filter(deliveries::webhook.eq(Id::from(webhook)))
                .filter(deliveries::created_at.ge(Timestamp(span.from)))
                .filter(deliveries::created_at.lt(Timestamp(span.to)))
                .filter(deliveries::exhausted_at.is_not_null())
                .order((deliveries::created_at.desc(), deliveries::id.desc()))
                .limit(limit.into())
                .select(MAX_RESENT)
                .load(conn)
                .await?;
            owe_again!(conn, these, now)
        });
        owed.map_err(failed("send deliveries again"))
    }

    async fn enqueue_test(
        &self,
        webhook: WebhookId,
        session: SessionId,
        body: &str,
        now: DateTime<Utc>,
    ) -> Result<DeliveryId, StoreError> {
        let team = self.team_of_webhook(Id::from(webhook)).await?;
        let id = id_at(Timestamp(now));
        let body = self.writer(team).await?.encrypt(BODY, id, body)?;
        let notice = WebhookBody::of(id, Id::from(session), &body, true, Timestamp(now));
        let (delivery, task) = notice.delivery_to(Id::from(webhook));
        let id = delivery.id.to();
        let written: QueryResult<()> = with_transaction!(self, |conn| {
            ::diesel::insert_into(notices::table).values(&notice.row).execute(conn).await?;
            ::diesel::insert_into(deliveries::table).values(delivery).execute(conn).await?;
            ::diesel::insert_into(delivery_queue::table).values(task).execute(conn).await?;
            Ok(())
        });
        written.map(|()| id).map_err(failed("owe a test"))
    }

    async fn delete_old_deliveries(
        &self,
        before: DateTime<Utc>,
        limit: u16,
    ) -> Result<usize, StoreError> {
        let owed = delivery_queue::table.filter(delivery_queue::delivery.eq(deliveries::id));
        let old = deliveries::table
            .filter(deliveries::created_at.lt(Timestamp(before)))
            .filter(not(exists(owed)))
            .order(deliveries::created_at)
            .limit(limit.into())
            .select((deliveries::id, deliveries::notice));
        let forgotten: QueryResult<usize> = with_transaction!(self, |conn| {
            let old: Vec<(Id, Id)> = old.load(conn).await?;
            let (ids, told): (Vec<_>, Vec<_>) = old.into_iter().unzip();
            let attempts =
                delivery_attempts::table.filter(delivery_attempts::delivery.eq_any(&ids));
            ::diesel::delete(attempts).execute(conn).await?;
            let these = deliveries::table.filter(deliveries::id.eq_any(&ids));
            let count = ::diesel::delete(these).execute(conn).await?;
            let others = deliveries::table.filter(deliveries::notice.eq(notices::id));
            let alone =
                notices::table.filter(notices::id.eq_any(&told)).filter(not(exists(others)));
            ::diesel::delete(alone).execute(conn).await?;
            Ok(count)
        });
        forgotten.map_err(failed("forget deliveries"))
    }
}

fn kept(
    (id, webhook, session, created_at, exhausted_at, due, test): DeliveryRow,
) -> StoredDelivery {
    let state = match (due, exhausted_at) {
        (Some(_), _) => DeliveryState::Pending,
        (None, Some(_)) => DeliveryState::Exhausted,
        (None, None) => DeliveryState::Delivered,
    };
    StoredDelivery {
        id: id.to(),
        webhook: webhook.to(),
        session: session.to(),
        test,
        state,
        created_at: created_at.0,
        due: due.map(|due| due.0),
    }
}

fn attempt(
    (number, at, took_ms, status, error, answer, sent): DeliveryAttemptRow,
) -> StoredAttempt {
    let answer = answer.unwrap_or_default();
    StoredAttempt { number, at: at.0, took_ms, status, error, answer, sent }
}
