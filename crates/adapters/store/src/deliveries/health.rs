//! The health of webhook endpoints: consecutive failures, their start, and pauses.

use ::diesel::{
    pg::Pg,
    prelude::*,
    query_builder::{AstPass, QueryFragment, QueryId},
    sql_types::{Array, Integer, Nullable},
};
use chrono::{DateTime, TimeDelta, Utc};
use diesel_async::RunQueryDsl;
use domain::webhook::{count_failure, open_duration};
use ports::{StoreError, delivery::HealthUpdate};

use crate::engine::column::{Id, SqlId, SqlTimestamp, Timestamp};
use crate::engine::database::{Store, failed, with_transaction};
use crate::engine::schema::webhooks;

impl Store {
    pub(crate) async fn update_health(
        &self,
        tallies: &[HealthUpdate],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let ids: Vec<_> = tallies.iter().map(|tally| Id::from(tally.webhook)).collect();
        let before = webhooks::table.filter(webhooks::id.eq_any(&ids)).order(webhooks::id).select(
            (webhooks::id, webhooks::failures, webhooks::failing_since, webhooks::paused_until),
        );
        let noted: QueryResult<()> = with_transaction!(
            self,
            postgres | conn | {
                // The rows are locked, so that counts of concurrent processes add up; in their
                // order, against deadlocks; and not against sessions that insert deliveries
                // meanwhile, which only lock the keys.
                let before: Vec<HealthRow> = before.for_no_key_update().load(conn).await?;
                let changed = HealthChanges::of(&after(&before, tallies, now));
                changed.execute(conn).await.map(drop)
            },
            sqlite | conn | {
                let before: Vec<HealthRow> = before.load(conn).await?;
                for health in after(&before, tallies, now) {
                    let this = webhooks::table.filter(webhooks::id.eq(health.id));
                    ::diesel::update(this).set(&health).execute(conn).await?;
                }
                Ok(())
            }
        );
        noted.map_err(failed("update the health of webhooks"))
    }
}

#[derive(Clone, Copy, Queryable, AsChangeset)]
#[diesel(table_name = webhooks)]
#[diesel(treat_none_as_null = true)]
struct HealthRow {
    #[diesel(skip_update)]
    id: Id,
    failures: i32,
    failing_since: Option<Timestamp>,
    paused_until: Option<Timestamp>,
}

/// Returns the new health. Results that arrive during a pause are of requests before it and are
/// ignored, except for a success, which ends the pause.
fn after(before: &[HealthRow], tallies: &[HealthUpdate], now: DateTime<Utc>) -> Vec<HealthRow> {
    let changed = before.iter().filter_map(|health| {
        let tally = tallies.iter().find(|tally| *tally.webhook.as_uuid() == health.id.0)?;
        let mut health = *health;
        if tally.success {
            health = HealthRow { failures: 0, failing_since: None, paused_until: None, ..health };
        }
        let paused = health.paused_until.is_some_and(|until| now < until.0);
        if tally.failures > 0 && !paused {
            let more = count_failure(u32::try_from(health.failures).unwrap_or(0), tally.failures);
            let pause = open_duration(more).and_then(|pause| TimeDelta::from_std(pause).ok());
            health.failures = i32::try_from(more).unwrap_or(i32::MAX);
            health.failing_since = health.failing_since.or(Some(Timestamp(now)));
            health.paused_until = pause.map(|pause| Timestamp(now + pause));
        }
        Some(health)
    });
    changed.collect()
}

/// Writes the health of many webhooks, on PostgreSQL.
struct HealthChanges {
    ids: Vec<Id>,
    failures: Vec<i32>,
    since: Vec<Option<Timestamp>>,
    pauses: Vec<Option<Timestamp>>,
}

impl HealthChanges {
    fn of(all: &[HealthRow]) -> Self {
        Self {
            ids: all.iter().map(|health| health.id).collect(),
            failures: all.iter().map(|health| health.failures).collect(),
            since: all.iter().map(|health| health.failing_since).collect(),
            pauses: all.iter().map(|health| health.paused_until).collect(),
        }
    }
}

impl QueryId for HealthChanges {
    type QueryId = Self;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl<Conn> diesel::RunQueryDsl<Conn> for HealthChanges {}

impl QueryFragment<Pg> for HealthChanges {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(
            "UPDATE webhooks w SET failures = t.failures, failing_since = t.failing_since, \
             paused_until = t.paused_until FROM unnest(",
        );
        out.push_bind_param::<Array<SqlId>, _>(&self.ids)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Integer>, _>(&self.failures)?;
        for moments in [&self.since, &self.pauses] {
            out.push_sql(", ");
            out.push_bind_param::<Array<Nullable<SqlTimestamp>>, _>(moments)?;
        }
        out.push_sql(") AS t (id, failures, failing_since, paused_until) WHERE w.id = t.id");
        Ok(())
    }
}
