//! How receivers do: failures in a row, since when, and pauses.

use ::diesel::{
    pg::Pg,
    prelude::*,
    query_builder::{AstPass, QueryFragment, QueryId},
    sql_types::{Array, Integer, Nullable},
};
use chrono::{DateTime, TimeDelta, Utc};
use diesel_async::{AsyncConnection as _, RunQueryDsl};
use domain::webhook::{pause_after, with_more};
use ports::{StoreError, delivery::Tally};

use super::{
    column::{Id, Moment, SqlId, SqlMoment},
    database::{Store, failed, with_conn},
    schema::webhooks,
};

impl Store {
    pub(super) async fn note_successes(&self, tallies: &[Tally]) -> Result<(), StoreError> {
        let well = tallies.iter().filter(|tally| tally.success);
        let well: Vec<_> = well.map(|tally| Id(*tally.webhook.as_uuid())).collect();
        if well.is_empty() {
            return Ok(());
        }
        let ailing =
            webhooks::table.filter(webhooks::id.eq_any(&well)).filter(webhooks::failures.gt(0));
        let well = (
            webhooks::failures.eq(0),
            webhooks::failing_since.eq(None::<Moment>),
            webhooks::paused_until.eq(None::<Moment>),
        );
        let noted: QueryResult<usize> =
            with_conn!(self, |conn| ::diesel::update(ailing).set(well).execute(conn).await);
        noted.map(drop).map_err(failed("note successes"))
    }

    pub(super) async fn note_failures(
        &self,
        tallies: &[Tally],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let mut failing: Vec<_> = tallies.iter().filter(|tally| tally.failures > 0).collect();
        if failing.is_empty() {
            return Ok(());
        }
        failing.sort_by_key(|tally| tally.webhook);
        let ids: Vec<_> = failing.iter().map(|tally| Id(*tally.webhook.as_uuid())).collect();
        let before = webhooks::table
            .filter(webhooks::id.eq_any(&ids))
            .order(webhooks::id)
            .select((webhooks::id, webhooks::failures, webhooks::paused_until));
        let noted: QueryResult<()> = with_conn!(
            self,
            postgres | conn | {
                conn.transaction(async |conn| {
                    // Locked, so that what two processes count adds up; in their order, so that
                    // neither waits for the other.
                    let before: Vec<Before> = before.for_update().load(conn).await?;
                    Ailments::of(&before, &failing, now).execute(conn).await.map(drop)
                })
                .await
            },
            sqlite | conn | {
                conn.immediate_transaction(async |conn| {
                    let before: Vec<Before> = before.load(conn).await?;
                    let ailments = Ailments::of(&before, &failing, now);
                    let rows = ailments.ids.iter().zip(&ailments.failures).zip(&ailments.pauses);
                    for ((id, failures), pause) in rows {
                        let this = webhooks::table.filter(webhooks::id.eq(id));
                        let health =
                            (webhooks::failures.eq(failures), webhooks::paused_until.eq(pause));
                        ::diesel::update(this).set(health).execute(conn).await?;
                        let well = this.filter(webhooks::failing_since.is_null());
                        let since = webhooks::failing_since.eq(ailments.now);
                        ::diesel::update(well).set(since).execute(conn).await?;
                    }
                    Ok(())
                })
                .await
            }
        );
        noted.map_err(failed("note failures"))
    }
}

/// A webhook, its failures so far, and until when it is paused.
type Before = (Id, i32, Option<Moment>);

/// What is to be written of webhooks that fail.
struct Ailments {
    ids: Vec<Id>,
    failures: Vec<i32>,
    pauses: Vec<Option<Moment>>,
    now: Moment,
}

impl Ailments {
    fn of(before: &[Before], tallies: &[&Tally], now: DateTime<Utc>) -> Self {
        let (mut ids, mut failures, mut pauses) = (vec![], vec![], vec![]);
        for (id, count, paused) in before {
            let tally = tallies.iter().find(|tally| *tally.webhook.as_uuid() == id.0);
            // What comes in a pause is of calls from before it.
            let Some(tally) = tally.filter(|_| paused.is_none_or(|until| now >= until.0)) else {
                continue;
            };
            let more = with_more(u32::try_from(*count).unwrap_or(0), tally.failures);
            let pause = pause_after(more).and_then(|pause| TimeDelta::from_std(pause).ok());
            ids.push(*id);
            failures.push(i32::try_from(more).unwrap_or(i32::MAX));
            pauses.push(pause.map(|pause| Moment(now + pause)));
        }
        Self { ids, failures, pauses, now: Moment(now) }
    }
}

impl QueryId for Ailments {
    type QueryId = Self;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl<Conn> diesel::RunQueryDsl<Conn> for Ailments {}

impl QueryFragment<Pg> for Ailments {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(
            "UPDATE webhooks w SET failures = t.failures, paused_until = t.paused_until, \
             failing_since = COALESCE(w.failing_since, ",
        );
        out.push_bind_param::<SqlMoment, _>(&self.now)?;
        out.push_sql(") FROM unnest(");
        out.push_bind_param::<Array<SqlId>, _>(&self.ids)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Integer>, _>(&self.failures)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Nullable<SqlMoment>>, _>(&self.pauses)?;
        out.push_sql(") AS t (id, failures, paused_until) WHERE w.id = t.id");
        Ok(())
    }
}
