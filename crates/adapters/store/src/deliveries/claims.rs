//! Claims deliveries: first the webhooks that have due ones, then some of each.
//!
//! A claim costs the same for a webhook with a million pending deliveries as for one with a single
//! delivery: the first statement steps from one webhook to the next over the index, skipping the
//! entries in between; the second one takes as many of each as there is capacity for.

use std::{collections::HashMap, sync::Arc};

use ::diesel::{
    dsl::SqlTypeOf,
    pg::Pg,
    prelude::*,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_types::{Array, BigInt, Bool, Integer, Text},
    sqlite::Sqlite,
};
use domain::{id::WebhookId, webhook::Webhook};
use ports::delivery::{CLAIM_TTL, ClaimRequest, Delivery};

use crate::deliveries::webhooks::WebhookRow;
use crate::engine::column::{Id, SqlId, SqlTimestamp, Timestamp};
use crate::engine::schema::webhooks;

/// The maximum number of webhooks that one claim examines.
pub(crate) const MAX_WEBHOOKS_VISITED: usize = 256;
const VISITS_BOUND: i32 = 256;

type Columns = <webhooks::table as Table>::AllColumns;

/// Reads the next webhooks with pending deliveries, and whether some are due.
pub(crate) struct DueWebhooks {
    columns: Columns,
    after: Id,
    now: Timestamp,
}

/// A webhook with pending deliveries, and whether some are due.
pub(crate) type DueWebhook = (WebhookRow, bool);

impl DueWebhooks {
    pub(crate) fn of(ask: &ClaimRequest) -> Self {
        let after = ask.after.map_or_else(uuid::Uuid::nil, |webhook| *webhook.as_uuid());
        Self { columns: webhooks::all_columns, after: Id(after), now: Timestamp(ask.now) }
    }
}

impl QueryId for DueWebhooks {
    type QueryId = Self;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl Query for DueWebhooks {
    type SqlType = (SqlTypeOf<Columns>, Bool);
}

macro_rules! lines_for {
    ($($backend:ty),+) => {$(
        impl QueryFragment<$backend> for DueWebhooks {
            fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, $backend>) -> QueryResult<()> {
                out.push_sql(
                    "WITH RECURSIVE lines (webhook, number) AS (\
                     SELECT (SELECT q.webhook FROM delivery_queue q WHERE q.webhook > ",
                );
                out.push_bind_param::<SqlId, _>(&self.after)?;
                out.push_sql(
                    " ORDER BY q.webhook LIMIT 1), 1 UNION ALL \
                     SELECT (SELECT q.webhook FROM delivery_queue q \
                     WHERE q.webhook > lines.webhook ORDER BY q.webhook LIMIT 1), number + 1 \
                     FROM lines WHERE webhook IS NOT NULL AND number < ",
                );
                out.push_bind_param::<Integer, _>(&VISITS_BOUND)?;
                out.push_sql(") SELECT ");
                self.columns.walk_ast(out.reborrow())?;
                out.push_sql(
                    ", EXISTS (SELECT 1 FROM delivery_queue q \
                     WHERE q.webhook = lines.webhook AND q.due <= ",
                );
                out.push_bind_param::<SqlTimestamp, _>(&self.now)?;
                out.push_sql(
                    ") FROM lines JOIN webhooks ON webhooks.id = lines.webhook \
                     ORDER BY lines.number",
                );
                Ok(())
            }
        }
    )+};
}
lines_for!(Pg, Sqlite);

/// How many of a webhook's deliveries are claimed, and until when they are leased.
pub(crate) struct Quota {
    pub(crate) webhook: Id,
    pub(crate) room: i32,
    pub(crate) lease: Timestamp,
}

/// Returns the number to claim for each webhook with due deliveries, in their order.
pub(crate) fn shares(ask: &ClaimRequest, lines: &[DueWebhook]) -> Vec<Quota> {
    let known: HashMap<_, _> =
        ask.capacities.iter().map(|room| (*room.webhook.as_uuid(), room)).collect();
    let ready = lines
        .iter()
        .filter(|(row, due)| *due && row.active && row.health().permits_delivery(ask.now));
    ready
        .filter_map(|(row, _)| {
            let known = known.get(&row.id.0);
            let room = known.map_or(ask.each, |room| room.most);
            let room = match known {
                Some(known) if row.health().is_half_open() && known.busy => 0,
                _ if row.health().is_half_open() => room.min(1),
                _ => room,
            };
            let lease = Timestamp(ask.now + CLAIM_TTL);
            (room > 0).then_some(Quota { webhook: row.id, room: room.into(), lease })
        })
        .collect()
}

/// Returns where the next claim continues: after the last webhook that got something if the limit
/// was reached, after the last one examined if there may be more.
pub(crate) fn next(
    ask: &ClaimRequest,
    lines: &[DueWebhook],
    taken: &[ClaimedRow],
) -> Option<WebhookId> {
    let place = |id: Id| lines.iter().position(|(row, _)| row.id == id);
    let last = if taken.len() >= usize::from(ask.limit) {
        taken.iter().filter_map(|row| place(row.webhook)).max()
    } else {
        (lines.len() >= MAX_WEBHOOKS_VISITED).then(|| lines.len().saturating_sub(1))
    };
    last.and_then(|last| lines.get(last)).map(|(row, _)| row.id.to())
}

/// A claimed delivery.
#[derive(Queryable)]
pub(crate) struct ClaimedRow {
    pub(crate) id: Id,
    pub(crate) webhook: Id,
    session: Id,
    notice: Id,
    body: String,
    since: Timestamp,
    due: Timestamp,
    single: bool,
    tries: i32,
    claim: i32,
}

impl ClaimedRow {
    /// The notice with its body, as it is stored.
    pub(crate) fn body(&mut self) -> (Id, String) {
        (self.notice, std::mem::take(&mut self.body))
    }

    pub(crate) fn read(
        self,
        webhook: Arc<Webhook>,
        endpoint_failing: bool,
        body: String,
    ) -> Delivery {
        Delivery {
            id: self.id.to(),
            session: self.session.to(),
            webhook,
            endpoint_failing,
            body,
            attempts: u32::try_from(self.tries).unwrap_or(u32::MAX),
            is_test: self.single,
            created_at: self.since.0,
            due: self.due.0,
            claim: self.claim,
        }
    }
}

/// Claims on PostgreSQL; rows that are locked by another claim are skipped.
pub(crate) struct ClaimQuery {
    webhooks: Vec<Id>,
    rooms: Vec<i32>,
    leases: Vec<Timestamp>,
    now: Timestamp,
    limit: i64,
}

impl ClaimQuery {
    pub(crate) fn of(ask: &ClaimRequest, shares: &[Quota]) -> Self {
        Self {
            webhooks: shares.iter().map(|share| share.webhook).collect(),
            rooms: shares.iter().map(|share| share.room).collect(),
            leases: shares.iter().map(|share| share.lease).collect(),
            now: Timestamp(ask.now),
            limit: ask.limit.into(),
        }
    }
}

impl QueryId for ClaimQuery {
    type QueryId = Self;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl Query for ClaimQuery {
    type SqlType =
        (SqlId, SqlId, SqlId, SqlId, Text, SqlTimestamp, SqlTimestamp, Bool, Integer, Integer);
}

impl QueryFragment<Pg> for ClaimQuery {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("WITH shares AS MATERIALIZED (SELECT * FROM unnest(");
        out.push_bind_param::<Array<SqlId>, _>(&self.webhooks)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Integer>, _>(&self.rooms)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<SqlTimestamp>, _>(&self.leases)?;
        // By their physical location (`ctid`), since the rows are locked: no other rows are read,
        // whatever row count the planner estimates.
        out.push_sql(
            ") AS s (webhook, room, lease)) \
             UPDATE delivery_queue q SET claim = q.claim + 1, leased_until = shares.lease \
             FROM shares, notices n WHERE q.ctid = ANY (ARRAY(SELECT p.place FROM shares \
             CROSS JOIN LATERAL (SELECT q.ctid AS place FROM delivery_queue q \
             WHERE q.webhook = shares.webhook AND q.due <= ",
        );
        out.push_bind_param::<SqlTimestamp, _>(&self.now)?;
        out.push_sql(" AND (q.leased_until IS NULL OR q.leased_until <= ");
        out.push_bind_param::<SqlTimestamp, _>(&self.now)?;
        out.push_sql(") ORDER BY q.due LIMIT shares.room FOR UPDATE SKIP LOCKED) AS p LIMIT ");
        out.push_bind_param::<BigInt, _>(&self.limit)?;
        out.push_sql(
            ")) AND shares.webhook = q.webhook AND n.id = q.notice \
             RETURNING q.delivery, q.webhook, q.session, n.id, n.body, q.since, q.due, q.single, q.tries, \
             q.claim",
        );
        Ok(())
    }
}
