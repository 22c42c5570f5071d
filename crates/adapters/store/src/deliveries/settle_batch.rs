//! Records the results of attempts, many in one statement.

use ::diesel::{
    pg::Pg,
    prelude::*,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_types::{Array, Bool, Integer, Nullable, Text},
};
use domain::webhook::DeliveryDecision;
use ports::{delivery::AttemptResult, webhook_sender::WebhookResponse};

use crate::engine::column::{Id, SqlId, SqlTimestamp, Timestamp};
use crate::engine::schema::delivery_attempts;

/// A stored attempt.
#[derive(Insertable)]
#[diesel(table_name = delivery_attempts)]
pub(crate) struct NewAttemptRow<'a> {
    pub(crate) delivery: Id,
    pub(crate) attempt: i32,
    started_at: Timestamp,
    took_ms: i32,
    status: Option<i32>,
    error: Option<&'static str>,
    answer: Option<&'a str>,
    sent: &'a str,
}

impl<'a> NewAttemptRow<'a> {
    /// `answer` is encrypted. The store assigns the number of the attempt.
    pub(crate) fn of(settled: &'a AttemptResult, answer: Option<&'a str>) -> Self {
        let (status, error) = match &settled.attempt.call.answer {
            WebhookResponse::Status { code, .. } => (Some(i32::from(*code)), None),
            WebhookResponse::Failed(class) => (None, Some(class.as_str())),
        };
        Self {
            delivery: Id::from(settled.delivery),
            attempt: 0,
            started_at: Timestamp(settled.attempt.at),
            took_ms: i32::try_from(settled.attempt.took.as_millis()).unwrap_or(i32::MAX),
            status,
            error,
            answer,
            sent: &settled.attempt.call.sent,
        }
    }
}

/// Returns the response of the partner's server, if there is one.
pub(crate) fn answer(settled: &AttemptResult) -> Option<&str> {
    match &settled.attempt.call.answer {
        WebhookResponse::Status { body, .. } => Some(body.as_str()).filter(|body| !body.is_empty()),
        WebhookResponse::Failed(_) => None,
    }
}

/// When the delivery is attempted again; `None` if it is not.
pub(crate) const fn due(verdict: DeliveryDecision) -> Option<Timestamp> {
    match verdict {
        DeliveryDecision::RetryAt(due) => Some(Timestamp(due)),
        DeliveryDecision::Delivered | DeliveryDecision::Exhausted => None,
    }
}

/// Records results on PostgreSQL. Rows whose claim was lost or already settled are not changed, nor
/// are their related rows, so the statement may be executed twice.
pub(crate) struct SettleBatch<'a> {
    ids: Vec<Id>,
    claims: Vec<i32>,
    due_times: Vec<Option<Timestamp>>,
    exhausted: Vec<bool>,
    started: Vec<Timestamp>,
    took: Vec<i32>,
    statuses: Vec<Option<i32>>,
    errors: Vec<Option<&'a str>>,
    answers: Vec<Option<&'a str>>,
    sent: Vec<&'a str>,
}

impl<'a> SettleBatch<'a> {
    /// `answers` are encrypted, one for each attempt.
    pub(crate) fn of(settled: &'a [AttemptResult], answers: &'a [Option<String>]) -> Self {
        let rows = settled.iter().zip(answers);
        let rows: Vec<_> =
            rows.map(|(one, answer)| NewAttemptRow::of(one, answer.as_deref())).collect();
        let verdicts = || settled.iter().map(|one| one.decision);
        Self {
            ids: rows.iter().map(|row| row.delivery).collect(),
            claims: settled.iter().map(|one| one.claim).collect(),
            due_times: verdicts().map(due).collect(),
            exhausted: verdicts().map(|verdict| verdict == DeliveryDecision::Exhausted).collect(),
            started: rows.iter().map(|row| row.started_at).collect(),
            took: rows.iter().map(|row| row.took_ms).collect(),
            statuses: rows.iter().map(|row| row.status).collect(),
            errors: rows.iter().map(|row| row.error).collect(),
            answers: rows.iter().map(|row| row.answer).collect(),
            sent: rows.iter().map(|row| row.sent).collect(),
        }
    }
}

impl QueryId for SettleBatch<'_> {
    type QueryId = SettleBatch<'static>;
    const HAS_STATIC_QUERY_ID: bool = true;
}

/// Returns the deliveries whose claims were held.
impl Query for SettleBatch<'_> {
    type SqlType = SqlId;
}

impl QueryFragment<Pg> for SettleBatch<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("WITH told AS (SELECT * FROM unnest(");
        out.push_bind_param::<Array<SqlId>, _>(&self.ids)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Integer>, _>(&self.claims)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Nullable<SqlTimestamp>>, _>(&self.due_times)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Bool>, _>(&self.exhausted)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<SqlTimestamp>, _>(&self.started)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Integer>, _>(&self.took)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Nullable<Integer>>, _>(&self.statuses)?;
        for texts in [&self.errors, &self.answers] {
            out.push_sql(", ");
            out.push_bind_param::<Array<Nullable<Text>>, _>(texts)?;
        }
        out.push_sql(", ");
        out.push_bind_param::<Array<Text>, _>(&self.sent)?;
        out.push_sql(
            ") AS t (delivery, claim, due, exhausted, started_at, took_ms, status, error, answer, \
                 sent)), \
             gone AS (DELETE FROM delivery_queue q USING told t WHERE q.delivery = t.delivery \
                 AND q.claim = t.claim AND q.leased_until IS NOT NULL AND t.due IS NULL \
                 RETURNING t.*, q.attempts + 1 AS attempt), \
             later AS (UPDATE delivery_queue q SET due = t.due, leased_until = NULL, \
                 tries = q.tries + 1, attempts = q.attempts + 1 FROM told t \
                 WHERE q.delivery = t.delivery AND q.claim = t.claim \
                 AND q.leased_until IS NOT NULL AND t.due IS NOT NULL \
                 RETURNING t.*, q.attempts AS attempt), \
             held AS (SELECT * FROM gone UNION ALL SELECT * FROM later), \
             given_up AS (UPDATE deliveries d SET exhausted_at = h.started_at \
                 FROM held h WHERE h.exhausted AND d.id = h.delivery), \
             logged AS (INSERT INTO delivery_attempts (delivery, attempt, started_at, took_ms, \
                 status, error, answer, sent) \
                 SELECT delivery, attempt, started_at, took_ms, status, error, answer, sent \
                 FROM held) \
             SELECT delivery FROM held",
        );
        Ok(())
    }
}
