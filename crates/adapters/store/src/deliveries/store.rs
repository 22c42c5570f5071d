//! The queue of deliveries, and the log of attempts.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use ::diesel::prelude::*;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel_async::RunQueryDsl;
use domain::webhook::{DeliveryDecision, Webhook};
use ports::{
    StoreError,
    delivery::{
        AttemptResult, ClaimRef, ClaimRequest, ClaimedDeliveries, Delivery, DeliveryQueue,
        HealthUpdate,
    },
};

use crate::deliveries::claims::{
    ClaimQuery, ClaimedRow, DueWebhook, DueWebhooks, Quota, next, shares,
};
use crate::deliveries::renew_batch::RenewClaims;
use crate::deliveries::settle_batch::{NewAttemptRow, SettleBatch, answer, due};
use crate::engine::column::{Id, Timestamp};
use crate::engine::data_key::{ANSWER, BODY};
use crate::engine::database::{
    SqliteConn, Store, failed, with_conn, with_due, with_pipelined_connection,
};
use crate::engine::schema::{deliveries, delivery_attempts, delivery_queue, notices};

/// Like `with_conn`, over the pipelined connection if this store has one. For atomic statements
/// that may be executed twice.
macro_rules! with_queue {
    ($store:expr, |$conn:ident| $body:expr) => {
        with_queue!($store, postgres | $conn | $body, sqlite | $conn | $body)
    };
    ($store:expr, postgres |$pg:ident| $postgres:expr, sqlite |$lite:ident| $sqlite:expr) => {
        if let Some(connection) = &$store.pipelined {
            with_pipelined_connection!(connection, |$pg| $postgres)
        } else {
            with_conn!($store, postgres | $pg | $postgres, sqlite | $lite | $sqlite)
        }
    };
}

#[async_trait]
impl DeliveryQueue for Store {
    async fn claim_deliveries(&self, ask: &ClaimRequest) -> Result<ClaimedDeliveries, StoreError> {
        let lines: QueryResult<Vec<DueWebhook>> =
            with_queue!(self, |conn| DueWebhooks::of(ask).load(conn).await);
        let lines = lines.map_err(failed("look for deliveries"))?;
        let shares = shares(ask, &lines);
        let taken = if shares.is_empty() { vec![] } else { self.take(ask, &shares).await? };
        let next = next(ask, &lines, &taken);
        Ok(ClaimedDeliveries { deliveries: self.read_deliveries(taken, &lines).await, next })
    }

    async fn renew_claims(
        &self,
        claims: &[ClaimRef],
        until: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let renewed: QueryResult<()> = with_queue!(
            self,
            postgres | conn | RenewClaims::of(claims, until).execute(conn).await.map(drop),
            sqlite | conn | {
                conn.immediate_transaction(async |conn| {
                    for one in claims {
                        let held = delivery_queue::table
                            .filter(delivery_queue::delivery.eq(Id::from(one.delivery)))
                            .filter(delivery_queue::claim.eq(one.claim))
                            .filter(delivery_queue::leased_until.is_not_null());
                        let until = delivery_queue::leased_until.eq(Timestamp(until));
                        ::diesel::update(held).set(until).execute(conn).await?;
                    }
                    Ok(())
                })
                .await
            }
        );
        renewed.map_err(failed("renew the leases of deliveries"))
    }

    async fn settle_deliveries(&self, settled: &[AttemptResult]) -> Result<Vec<bool>, StoreError> {
        let answers = self.closed_answers(settled).await?;
        let held: QueryResult<Vec<Id>> = with_queue!(
            self,
            postgres | conn | SettleBatch::of(settled, &answers).load(conn).await,
            sqlite | conn | {
                conn.immediate_transaction(async |conn| {
                    let mut held = vec![];
                    for (one, answer) in settled.iter().zip(&answers) {
                        held.extend(settle_one(conn, one, answer.as_deref()).await?);
                    }
                    Ok(held)
                })
                .await
            }
        );
        let held = held.map_err(failed("settle deliveries"))?;
        let is_held = |one: &AttemptResult| held.contains(&Id::from(one.delivery));
        Ok(settled.iter().map(is_held).collect())
    }

    async fn note_health(
        &self,
        tallies: &[HealthUpdate],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        if tallies.is_empty() { Ok(()) } else { self.update_health(tallies, now).await }
    }

    async fn give_up(&self, before: DateTime<Utc>, limit: u16) -> Result<usize, StoreError> {
        // A lease may be running; the age of a delivery that is being sent is checked when its
        // result arrives.
        let free = delivery_queue::leased_until
            .is_null()
            .or(delivery_queue::leased_until.le(Timestamp(before)).assume_not_null());
        let old = delivery_queue::table
            .filter(delivery_queue::since.lt(Timestamp(before)))
            .filter(free)
            .order(delivery_queue::since)
            .select(delivery_queue::delivery)
            .limit(limit.into());
        let given_up: QueryResult<usize> = with_due!(self, old, |conn, old: Id| {
            let queued = delivery_queue::table.filter(delivery_queue::delivery.eq_any(&old));
            ::diesel::delete(queued).execute(conn).await?;
            let these = deliveries::table.filter(deliveries::id.eq_any(&old));
            let at = deliveries::exhausted_at.eq(Timestamp(before));
            ::diesel::update(these).set(at).execute(conn).await
        });
        given_up.map_err(failed("give deliveries up"))
    }
}

/// Records one attempt; does nothing if its claim was lost.
async fn settle_one(
    conn: &mut SqliteConn,
    one: &AttemptResult,
    answer: Option<&str>,
) -> QueryResult<Option<Id>> {
    let id = Id::from(one.delivery);
    let held = || {
        delivery_queue::table
            .filter(delivery_queue::delivery.eq(id))
            .filter(delivery_queue::claim.eq(one.claim))
            .filter(delivery_queue::leased_until.is_not_null())
    };
    let made: Option<i32> = held().select(delivery_queue::attempts).first(conn).await.optional()?;
    let Some(made) = made else { return Ok(None) };
    match due(one.decision) {
        Some(due) => {
            let later = (
                delivery_queue::due.eq(due),
                delivery_queue::leased_until.eq(None::<Timestamp>),
                delivery_queue::tries.eq(delivery_queue::tries + 1),
                delivery_queue::attempts.eq(delivery_queue::attempts + 1),
            );
            ::diesel::update(held()).set(later).execute(conn).await?;
        }
        None => {
            ::diesel::delete(held()).execute(conn).await?;
        }
    }
    if one.decision == DeliveryDecision::Exhausted {
        let this = deliveries::table.filter(deliveries::id.eq(id));
        let at = deliveries::exhausted_at.eq(Timestamp(one.attempt.at));
        ::diesel::update(this).set(at).execute(conn).await?;
    }
    let mut row = NewAttemptRow::of(one, answer);
    row.attempt = made.saturating_add(1);
    ::diesel::insert_into(delivery_attempts::table).values(row).execute(conn).await?;
    Ok(Some(id))
}

impl Store {
    async fn take(
        &self,
        ask: &ClaimRequest,
        shares: &[Quota],
    ) -> Result<Vec<ClaimedRow>, StoreError> {
        let taken: QueryResult<Vec<ClaimedRow>> = with_queue!(
            self,
            postgres | conn | ClaimQuery::of(ask, shares).load(conn).await,
            sqlite | conn | {
                conn.immediate_transaction(async |conn| {
                    let mut taken = vec![];
                    for share in shares {
                        let room = usize::from(ask.limit).saturating_sub(taken.len());
                        taken.extend(claim_of_webhook(conn, ask, share, room).await?);
                    }
                    Ok(taken)
                })
                .await
            }
        );
        taken.map_err(failed("claim deliveries"))
    }

    async fn read_deliveries(&self, taken: Vec<ClaimedRow>, lines: &[DueWebhook]) -> Vec<Delivery> {
        let given: HashSet<_> = taken.iter().map(|row| row.webhook).collect();
        let mut webhooks: HashMap<Id, (Arc<Webhook>, bool)> = HashMap::new();
        for (row, _) in lines.iter().filter(|(row, _)| given.contains(&row.id)) {
            let endpoint_failing = row.health().failures > 0;
            match self.read_webhook(row) {
                Ok(webhook) => {
                    webhooks.insert(row.id, (Arc::new(webhook), endpoint_failing));
                }
                // It does not block other deliveries, and is tried again when the claim has
                // expired.
                Err(error) => {
                    let (webhook, error): (_, &dyn std::error::Error) = (row.id.0, &error);
                    tracing::error!(%webhook, error, "failed to read webhook {webhook}; its deliveries wait");
                }
            }
        }
        // Only webhooks that were examined get deliveries.
        let mut whole = Vec::with_capacity(taken.len());
        for mut row in taken {
            let Some((webhook, endpoint_failing)) = webhooks.get(&row.webhook).cloned() else {
                continue;
            };
            let (notice, body) = row.body();
            match self.opened(Id::from(webhook.team), BODY, notice, body).await {
                Ok(body) => whole.push(row.read(webhook, endpoint_failing, body)),
                Err(error) => {
                    let (delivery, error): (_, &dyn std::error::Error) = (row.id.0, &error);
                    tracing::error!(delivery.id = %delivery, error, "failed to read the body of delivery {delivery}");
                }
            }
        }
        whole
    }

    /// Encrypts the responses of partners' servers for the log, in the order of the attempts.
    async fn closed_answers(
        &self,
        settled: &[AttemptResult],
    ) -> Result<Vec<Option<String>>, StoreError> {
        let mut answers = Vec::with_capacity(settled.len());
        for one in settled {
            answers.push(match answer(one) {
                Some(text) => {
                    let team = self.team_of_webhook(Id::from(one.webhook)).await?;
                    let delivery = Id::from(one.delivery);
                    Some(self.writer(team).await?.encrypt(ANSWER, delivery, text)?)
                }
                None => None,
            });
        }
        Ok(answers)
    }
}

async fn claim_of_webhook(
    conn: &mut SqliteConn,
    ask: &ClaimRequest,
    share: &Quota,
    room: usize,
) -> QueryResult<Vec<ClaimedRow>> {
    let now = Timestamp(ask.now);
    let free = delivery_queue::leased_until
        .is_null()
        .or(delivery_queue::leased_until.le(now).assume_not_null());
    let picked: Vec<Id> = delivery_queue::table
        .filter(delivery_queue::webhook.eq(share.webhook))
        .filter(delivery_queue::due.le(now))
        .filter(free)
        .order(delivery_queue::due)
        .limit(i64::from(share.room).min(i64::try_from(room).unwrap_or(i64::MAX)))
        .select(delivery_queue::delivery)
        .load(conn)
        .await?;
    let these = delivery_queue::table.filter(delivery_queue::delivery.eq_any(&picked));
    let taken = (
        delivery_queue::claim.eq(delivery_queue::claim + 1),
        delivery_queue::leased_until.eq(share.lease),
    );
    ::diesel::update(these).set(taken).execute(conn).await?;
    delivery_queue::table
        .filter(delivery_queue::delivery.eq_any(&picked))
        .inner_join(notices::table)
        .order(delivery_queue::due)
        .select((
            delivery_queue::delivery,
            delivery_queue::webhook,
            delivery_queue::session,
            notices::id,
            notices::body,
            delivery_queue::since,
            delivery_queue::due,
            delivery_queue::single,
            delivery_queue::tries,
            delivery_queue::claim,
        ))
        .load(conn)
        .await
}
