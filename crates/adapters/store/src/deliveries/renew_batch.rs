//! Renews the leases of deliveries, many in one statement.

use ::diesel::{
    pg::Pg,
    prelude::*,
    query_builder::{AstPass, QueryFragment, QueryId},
    sql_types::{Array, Integer},
};
use chrono::{DateTime, Utc};
use ports::delivery::ClaimRef;

use crate::engine::column::{Id, SqlId, SqlTimestamp, Timestamp};

/// Renews on PostgreSQL. Rows that are locked are skipped: their results are being stored, or they are
/// being claimed.
pub(crate) struct RenewClaims {
    deliveries: Vec<Id>,
    claims: Vec<i32>,
    until: Timestamp,
}

impl RenewClaims {
    pub(crate) fn of(claims: &[ClaimRef], until: DateTime<Utc>) -> Self {
        Self {
            deliveries: claims.iter().map(|one| Id::from(one.delivery)).collect(),
            claims: claims.iter().map(|one| one.claim).collect(),
            until: Timestamp(until),
        }
    }
}

impl QueryId for RenewClaims {
    type QueryId = Self;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl QueryFragment<Pg> for RenewClaims {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("UPDATE delivery_queue SET leased_until = ");
        out.push_bind_param::<SqlTimestamp, _>(&self.until)?;
        out.push_sql(" WHERE ctid = ANY (ARRAY(SELECT q.ctid FROM delivery_queue q JOIN unnest(");
        out.push_bind_param::<Array<SqlId>, _>(&self.deliveries)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Integer>, _>(&self.claims)?;
        out.push_sql(
            ") AS t (delivery, claim) ON q.delivery = t.delivery AND q.claim = t.claim \
             WHERE q.leased_until IS NOT NULL FOR UPDATE OF q SKIP LOCKED))",
        );
        Ok(())
    }
}

impl<Conn> ::diesel::RunQueryDsl<Conn> for RenewClaims {}
