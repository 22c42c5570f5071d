//! The load of the database: how far the queues are behind, and how many connections are in use.

use ::diesel::{
    QueryResult, QueryableByName, sql_query,
    sql_types::{BigInt, Nullable, Text},
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel_async::RunQueryDsl as _;
use domain::id::InstanceId;
use ports::{
    StoreError,
    store_load::{Backlog, MAX_COUNTED, Queue, StoreLoad},
};

use crate::engine::column::{Id, SqlId, SqlTimestamp, Timestamp};
use crate::engine::database::{Database, Store, failed, with_conn};

/// Counts the due entries of all queues in one statement, `{most}` of each. Both databases bind a
/// parameter `$1` wherever it is named. The oldest delivery is looked up for each webhook, since the index of
/// deliveries begins with the webhook.
const BACKLOGS: &str = "
    SELECT 'jobs' AS queue, count(*) AS due, min(due) AS due_since FROM (
        SELECT due FROM outbox WHERE NOT buried AND due <= $1 AND (node IS NULL OR node = $2)
        ORDER BY due LIMIT {most}) AS jobs
    UNION ALL SELECT 'notifications', count(*), min(due) FROM (
        SELECT due FROM notifications WHERE state = 'queued' AND due <= $1
        ORDER BY due LIMIT {most}) AS links
    UNION ALL SELECT 'recordings', count(*), min(due) FROM (
        SELECT due FROM recordings WHERE state IN ('pending', 'in_progress') AND due <= $1
        ORDER BY due LIMIT {most}) AS films
    UNION ALL SELECT 'account_mails', count(*), min(due) FROM (
        SELECT due FROM account_links WHERE state = 'queued' AND due <= $1 AND expires_at > $1
        UNION ALL SELECT due FROM account_notices WHERE due <= $1
        ORDER BY due LIMIT {most}) AS mails
    UNION ALL SELECT 'deliveries', {deliveries_called}
    UNION ALL SELECT 'paused_deliveries', {deliveries_paused}";

/// The due deliveries of active webhooks, `{paused}` or not, that nobody sends.
const DELIVERIES: &str = "
    (SELECT count(*) FROM (SELECT 1 FROM delivery_queue q JOIN webhooks w ON w.id = q.webhook
        WHERE w.active AND w.paused_until {paused} AND q.due <= $1
        AND (q.leased_until IS NULL OR q.leased_until <= $1) LIMIT {most}) AS counted),
    (SELECT min(oldest.due) FROM (SELECT (SELECT q.due FROM delivery_queue q
        WHERE q.webhook = w.id AND q.due <= $1
        AND (q.leased_until IS NULL OR q.leased_until <= $1) ORDER BY q.due LIMIT 1) AS due
        FROM webhooks w WHERE w.active AND w.paused_until {paused}) AS oldest)";

#[derive(QueryableByName)]
struct BacklogRow {
    #[diesel(sql_type = Text)]
    queue: String,
    #[diesel(sql_type = BigInt)]
    due: i64,
    #[diesel(sql_type = Nullable<SqlTimestamp>)]
    due_since: Option<Timestamp>,
}

impl BacklogRow {
    fn read(self) -> Result<Backlog, StoreError> {
        let queue = Queue::ALL.into_iter().find(|queue| queue.as_str() == self.queue);
        let queue = queue.ok_or_else(|| failed("read a queue's name")("it is unknown"))?;
        let due = u32::try_from(self.due).unwrap_or(MAX_COUNTED);
        Ok(Backlog { queue, due, due_since: self.due_since.map(|since| since.0) })
    }
}

fn statement() -> String {
    let deliveries = |paused| DELIVERIES.replace("{paused}", paused);
    BACKLOGS
        .replace("{deliveries_called}", &deliveries("IS NULL"))
        .replace("{deliveries_paused}", &deliveries("IS NOT NULL"))
        .replace("{most}", &MAX_COUNTED.to_string())
}

#[async_trait]
impl StoreLoad for Store {
    async fn backlogs(
        &self,
        node: InstanceId,
        now: DateTime<Utc>,
    ) -> Result<Vec<Backlog>, StoreError> {
        let (now, node) = (Timestamp(now), Id::from(node));
        let rows: QueryResult<Vec<BacklogRow>> = with_conn!(self, |conn| {
            sql_query(statement())
                .bind::<SqlTimestamp, _>(now)
                .bind::<SqlId, _>(node)
                .load(conn)
                .await
        });
        let rows = rows.map_err(failed("count what is due"))?;
        rows.into_iter().map(BacklogRow::read).collect()
    }

    fn connections_in_use(&self) -> usize {
        let status = match &self.pool {
            Database::Postgres(pool, _) => pool.status(),
            Database::Sqlite(pool) => pool.status(),
        };
        status.size.saturating_sub(status.available)
    }
}
