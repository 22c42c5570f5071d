//! The queue of deliveries, and the log of attempts.

use ::diesel::{prelude::*, result::Error as DieselError};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use diesel_async::{AsyncConnection as _, RunQueryDsl};
use domain::id::{DeliveryId, SessionId};
use ports::{
    StoreError,
    delivery::{Attempt, Delivery, DeliveryQueue},
    outbox::Verdict,
    webhook_sender::Answer,
};

use super::{
    column::{Id, Moment},
    database::{Store, failed, with_conn},
    schema::{deliveries, delivery_attempts, webhooks},
    webhooks::WebhookRow,
};

const PENDING: &str = "pending";
const DELIVERED: &str = "delivered";
const EXHAUSTED: &str = "exhausted";

#[derive(Queryable, Selectable)]
#[diesel(table_name = deliveries)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
struct DeliveryRow {
    id: Id,
    webhook: Id,
    session: Id,
    body: String,
    attempt: i32,
}

#[derive(Insertable)]
#[diesel(table_name = delivery_attempts)]
struct AttemptRow {
    delivery: Id,
    attempt: i32,
    started_at: Moment,
    took_ms: i32,
    status: Option<i32>,
    error: Option<&'static str>,
    answer: Option<String>,
}

/// Marks the due rows as taken and reads them with their webhooks.
macro_rules! take_up {
    ($conn:expr, $due:expr, $taken:expr) => {{
        let rows: Vec<DeliveryRow> =
            ::diesel::update(deliveries::table.filter(deliveries::id.eq_any($due)))
                .set($taken)
                .returning(DeliveryRow::as_returning())
                .get_results($conn)
                .await?;
        let ids: Vec<Id> = rows.iter().map(|row| row.webhook).collect();
        let webhooks = webhooks::table
            .filter(webhooks::id.eq_any(ids))
            .select(WebhookRow::as_select())
            .load($conn)
            .await?;
        Ok((rows, webhooks))
    }};
}

#[async_trait]
impl DeliveryQueue for Store {
    async fn claim_deliveries(
        &self,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
    ) -> Result<Vec<Delivery>, StoreError> {
        let due = deliveries::table
            .select(deliveries::id)
            .filter(deliveries::state.eq(PENDING))
            .filter(deliveries::due.le(Moment(now)))
            .order(deliveries::due)
            .limit(limit.into());
        let taken = (
            deliveries::attempt.eq(deliveries::attempt + 1),
            deliveries::due.eq(Moment(now + lease)),
        );
        let claimed: QueryResult<(Vec<DeliveryRow>, Vec<WebhookRow>)> = with_conn!(
            self,
            postgres | conn | {
                conn.transaction(async |conn| {
                    let due: Vec<Id> = due.for_update().skip_locked().load(conn).await?;
                    take_up!(conn, due, taken)
                })
                .await
            },
            sqlite | conn | {
                conn.immediate_transaction(async |conn| {
                    let due: Vec<Id> = due.load(conn).await?;
                    take_up!(conn, due, taken)
                })
                .await
            }
        );
        let (rows, webhooks) = claimed.map_err(failed("claim deliveries"))?;
        rows.into_iter().map(|row| self.delivery(row, &webhooks)).collect()
    }

    async fn settle_delivery(
        &self,
        delivery: &Delivery,
        attempt: &Attempt,
        verdict: Verdict,
    ) -> Result<bool, StoreError> {
        let id = Id(*delivery.id.as_uuid());
        let (status, error, answer) = match &attempt.answer {
            Answer::Status { code, body, .. } => (Some(i32::from(*code)), None, Some(body.clone())),
            Answer::Failed(class) => (None, Some(*class), None),
        };
        let log = AttemptRow {
            delivery: id,
            attempt: delivery.attempt,
            started_at: Moment(attempt.at),
            took_ms: i32::try_from(attempt.took.as_millis()).unwrap_or(i32::MAX),
            status,
            error,
            answer,
        };
        let (state, due) = match verdict {
            Verdict::Done => (DELIVERED, None),
            Verdict::Buried => (EXHAUSTED, None),
            Verdict::RetryAt(due) => (PENDING, Some(Moment(due))),
        };
        let settled: Result<bool, DieselError> = with_conn!(self, |conn| {
            conn.transaction(async |conn| {
                let held = deliveries::table
                    .filter(deliveries::id.eq(id))
                    .filter(deliveries::attempt.eq(delivery.attempt))
                    .filter(deliveries::state.eq(PENDING));
                let rows = match due {
                    Some(due) => {
                        ::diesel::update(held).set(deliveries::due.eq(due)).execute(conn).await?
                    }
                    None => {
                        ::diesel::update(held)
                            .set(deliveries::state.eq(state))
                            .execute(conn)
                            .await?
                    }
                };
                if rows == 0 {
                    return Ok(false);
                }
                ::diesel::insert_into(delivery_attempts::table).values(&log).execute(conn).await?;
                Ok(true)
            })
            .await
        });
        settled.map_err(failed("settle a delivery"))
    }
}

impl Store {
    fn delivery(&self, row: DeliveryRow, webhooks: &[WebhookRow]) -> Result<Delivery, StoreError> {
        let webhook = webhooks
            .iter()
            .find(|webhook| webhook.id == row.webhook)
            .ok_or_else(|| StoreError::new("read a delivery back", "its webhook is gone"))?;
        Ok(Delivery {
            id: DeliveryId::from_uuid(row.id.0),
            session: SessionId::from_uuid(row.session.0),
            webhook: self.read_webhook(webhook)?,
            body: row.body,
            attempt: row.attempt,
        })
    }
}
