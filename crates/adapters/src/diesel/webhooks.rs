//! Webhooks; their secrets are sealed.

use std::time::Duration;

use ::diesel::prelude::*;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel_async::RunQueryDsl;
use domain::{
    id::{TeamId, WebhookId},
    secret::Secret,
    webhook::{Header, Webhook},
};
use ports::{StoreError, webhook_store::WebhookStore};

use super::{
    column::{Id, Moment},
    database::{Store, failed, with_conn},
    schema::webhooks,
};

const SECRET: &str = "webhooks.secret";
const HEADER: &str = "webhooks.header_value";

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = webhooks)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
pub(super) struct WebhookRow {
    pub(super) id: Id,
    team: Id,
    url: String,
    header_name: Option<String>,
    header_value: Option<Vec<u8>>,
    secret: Vec<u8>,
    timeout_ms: i32,
    retries: i32,
    active: bool,
    created_at: Moment,
}

#[async_trait]
impl WebhookStore for Store {
    async fn add_webhook(&self, webhook: &Webhook, now: DateTime<Utc>) -> Result<(), StoreError> {
        let unfit = failed("seal a webhook's secret");
        let header = webhook.header.as_ref();
        let value = header.map(|header| self.seal.close(HEADER, header.value.expose()));
        let row = WebhookRow {
            id: Id(*webhook.id.as_uuid()),
            team: Id(*webhook.team.as_uuid()),
            url: webhook.url.clone(),
            header_name: header.map(|header| header.name.clone()),
            header_value: value.transpose().map_err(&unfit)?,
            secret: self.seal.close(SECRET, webhook.secret.expose()).map_err(&unfit)?,
            timeout_ms: i32::try_from(webhook.timeout.as_millis()).unwrap_or(i32::MAX),
            retries: webhook.retries.into(),
            active: webhook.active,
            created_at: Moment(now),
        };
        let written = with_conn!(self, |conn| {
            ::diesel::insert_into(webhooks::table).values(&row).execute(conn).await
        });
        written.map(drop).map_err(failed("add a webhook"))
    }

    async fn webhooks(&self, team: TeamId) -> Result<Vec<Webhook>, StoreError> {
        let rows: QueryResult<Vec<WebhookRow>> = with_conn!(self, |conn| {
            webhooks::table
                .filter(webhooks::team.eq(Id(*team.as_uuid())))
                .order(webhooks::created_at)
                .select(WebhookRow::as_select())
                .load(conn)
                .await
        });
        let rows = rows.map_err(failed("read webhooks"))?;
        rows.iter().map(|row| self.read_webhook(row)).collect()
    }
}

impl Store {
    pub(super) fn read_webhook(&self, row: &WebhookRow) -> Result<Webhook, StoreError> {
        let unfit = failed("open a webhook's secret");
        let value = row.header_value.as_ref().map(|value| self.seal.open(HEADER, value));
        let value = value.transpose().map_err(&unfit)?.map(Secret::new);
        let header = row.header_name.clone().zip(value);
        Ok(Webhook {
            id: WebhookId::from_uuid(row.id.0),
            team: TeamId::from_uuid(row.team.0),
            url: row.url.clone(),
            header: header.map(|(name, value)| Header { name, value }),
            secret: Secret::new(self.seal.open(SECRET, &row.secret).map_err(&unfit)?),
            timeout: Duration::from_millis(u64::try_from(row.timeout_ms).unwrap_or(0)),
            retries: u8::try_from(row.retries).unwrap_or(0),
            active: row.active,
        })
    }
}
