//! Webhooks; their secrets are encrypted.

use std::{collections::HashMap, time::Duration};

use ::diesel::prelude::*;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel_async::RunQueryDsl;
use domain::{
    id::{ApiKeyId, TeamId, WebhookId},
    secret::Secret,
    webhook::{EndpointHealth, RetiringSecret, Webhook, WebhookHeader},
};
use ports::{
    Reencrypted, StoreError,
    webhook_store::{HeaderChange, StoredWebhook, WebhookChange, WebhookStore},
};

use crate::engine::column::{Id, Timestamp};
use crate::engine::database::{Store, failed, with_conn, with_transaction};
use crate::engine::schema::{webhook_keys, webhooks};

const SECRET: &str = "webhooks.secret";
pub(crate) const HEADER: &str = "webhooks.header_value";

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = webhooks)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
pub(crate) struct WebhookRow {
    pub(crate) id: Id,
    team: Id,
    url: String,
    header_name: Option<String>,
    header_value: Option<Vec<u8>>,
    secret: Vec<u8>,
    pub(crate) timeout_ms: i32,
    retries: i32,
    pub(crate) active: bool,
    created_at: Timestamp,
    retiring_secret: Option<Vec<u8>>,
    retiring_until: Option<Timestamp>,
    failures: i32,
    failing_since: Option<Timestamp>,
    paused_until: Option<Timestamp>,
}

#[derive(Insertable)]
#[diesel(table_name = webhook_keys)]
pub(crate) struct WebhookKeyRow {
    webhook: Id,
    key: Id,
}

impl WebhookKeyRow {
    pub(crate) fn all(webhook: Id, keys: &[ApiKeyId]) -> Vec<Self> {
        keys.iter().map(|key| Self { webhook, key: Id::from(*key) }).collect()
    }
}

#[async_trait]
impl WebhookStore for Store {
    async fn add_webhook(
        &self,
        webhook: &Webhook,
        keys: &[ApiKeyId],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let row = self.webhook_row(webhook, now)?;
        let choices = WebhookKeyRow::all(row.id, keys);
        let written: QueryResult<()> = with_transaction!(self, |conn| {
            ::diesel::insert_into(webhooks::table).values(&row).execute(conn).await?;
            for choice in &choices {
                ::diesel::insert_into(webhook_keys::table).values(choice).execute(conn).await?;
            }
            Ok(())
        });
        written.map_err(failed("add a webhook"))
    }

    async fn webhook(&self, id: WebhookId) -> Result<Option<StoredWebhook>, StoreError> {
        let this = webhooks::table.filter(webhooks::id.eq(Id::from(id)));
        let rows: QueryResult<Vec<WebhookRow>> =
            with_conn!(self, |conn| this.select(WebhookRow::as_select()).load(conn).await);
        Ok(self.kept(rows.map_err(failed("read a webhook"))?).await?.pop())
    }

    async fn webhooks(&self, team: TeamId) -> Result<Vec<StoredWebhook>, StoreError> {
        let rows: QueryResult<Vec<WebhookRow>> = with_conn!(self, |conn| {
            webhooks::table
                .filter(webhooks::team.eq(Id::from(team)))
                .order((webhooks::created_at, webhooks::id))
                .select(WebhookRow::as_select())
                .load(conn)
                .await
        });
        self.kept(rows.map_err(failed("read webhooks"))?).await
    }

    async fn change_webhook(
        &self,
        id: WebhookId,
        change: &WebhookChange,
    ) -> Result<bool, StoreError> {
        self.write_change(id, change).await
    }

    async fn set_active(&self, id: WebhookId, active: bool) -> Result<bool, StoreError> {
        let this = webhooks::table.filter(webhooks::id.eq(Id::from(id)));
        let changed: QueryResult<usize> = with_conn!(self, |conn| {
            ::diesel::update(this).set(webhooks::active.eq(active)).execute(conn).await
        });
        Ok(changed.map_err(failed("switch a webhook"))? > 0)
    }

    async fn rotate_secret(
        &self,
        id: WebhookId,
        fresh: &Secret,
        retiring: &RetiringSecret,
    ) -> Result<bool, StoreError> {
        let unfit = failed("seal a webhook's secret");
        let this = webhooks::table.filter(webhooks::id.eq(Id::from(id)));
        let change = (
            webhooks::secret
                .eq(self.cipher.encrypt_text(SECRET, fresh.expose()).map_err(&unfit)?),
            webhooks::retiring_secret
                .eq(self.cipher.encrypt_text(SECRET, retiring.secret.expose()).map_err(&unfit)?),
            webhooks::retiring_until.eq(Timestamp(retiring.until)),
        );
        let changed: QueryResult<usize> =
            with_conn!(self, |conn| ::diesel::update(this).set(change).execute(conn).await);
        Ok(changed.map_err(failed("rotate a webhook's secret"))? > 0)
    }

    async fn reseal(
        &self,
        after: Option<WebhookId>,
        limit: u16,
    ) -> Result<Reencrypted<WebhookId>, StoreError> {
        let after = after.map_or_else(uuid::Uuid::nil, |webhook| *webhook.as_uuid());
        let some = webhooks::table
            .filter(webhooks::id.gt(Id(after)))
            .order(webhooks::id)
            .limit(limit.into());
        let rows: QueryResult<Vec<WebhookRow>> =
            with_conn!(self, |conn| some.select(WebhookRow::as_select()).load(conn).await);
        let rows = rows.map_err(failed("read webhooks"))?;
        let mut done = Reencrypted { changed: 0, unreadable: vec![], next: None };
        for row in rows.iter().filter(|row| !self.is_current(row)) {
            let Ok(webhook) = self.read_webhook(row) else {
                done.unreadable.push(row.id.to());
                continue;
            };
            let anew = self.webhook_row(&webhook, row.created_at.0)?;
            done.changed += self.rewrite(row, &anew).await?;
        }
        let last = rows.last().filter(|_| rows.len() >= usize::from(limit));
        done.next = last.map(|row| row.id.to());
        Ok(done)
    }
}

impl WebhookRow {
    pub(crate) fn health(&self) -> EndpointHealth {
        EndpointHealth {
            failures: u32::try_from(self.failures).unwrap_or(0),
            failing_since: self.failing_since.map(|moment| moment.0),
            paused_until: self.paused_until.map(|moment| moment.0),
        }
    }
}

impl Store {
    fn is_current(&self, row: &WebhookRow) -> bool {
        let secrets = [Some(&row.secret), row.retiring_secret.as_ref()].into_iter().flatten();
        let secrets = secrets.map(|sealed| (SECRET, sealed));
        let headers = row.header_value.iter().map(|sealed| (HEADER, sealed));
        secrets.chain(headers).all(|(place, sealed)| self.cipher.is_current(place, sealed))
    }

    fn webhook_row(&self, webhook: &Webhook, now: DateTime<Utc>) -> Result<WebhookRow, StoreError> {
        let unfit = failed("seal a webhook's secret");
        let header = webhook.header.as_ref();
        let value = header.map(|header| self.cipher.encrypt_text(HEADER, header.value.expose()));
        let retiring = webhook.retiring.as_ref();
        let old = retiring.map(|old| self.cipher.encrypt_text(SECRET, old.secret.expose()));
        Ok(WebhookRow {
            id: Id::from(webhook.id),
            team: Id::from(webhook.team),
            url: webhook.url.clone(),
            header_name: header.map(|header| header.name.clone()),
            header_value: value.transpose().map_err(&unfit)?,
            secret: self.cipher.encrypt_text(SECRET, webhook.secret.expose()).map_err(&unfit)?,
            timeout_ms: i32::try_from(webhook.timeout.as_millis()).unwrap_or(i32::MAX),
            retries: webhook.retries.into(),
            active: webhook.active,
            created_at: Timestamp(now),
            retiring_secret: old.transpose().map_err(&unfit)?,
            retiring_until: retiring.map(|old| Timestamp(old.until)),
            failures: 0,
            failing_since: None,
            paused_until: None,
        })
    }

    /// A webhook that got a new secret or header meanwhile is not changed.
    async fn rewrite(&self, row: &WebhookRow, anew: &WebhookRow) -> Result<usize, StoreError> {
        let this = webhooks::table.filter(webhooks::id.eq(row.id));
        let secrets = this.filter(webhooks::secret.eq(&row.secret));
        let header = this.filter(webhooks::header_value.eq(&row.header_value));
        let change = (
            webhooks::secret.eq(&anew.secret),
            webhooks::retiring_secret.eq(&anew.retiring_secret),
        );
        let value = webhooks::header_value.eq(&anew.header_value);
        let changed: QueryResult<usize> = with_transaction!(self, |conn| {
            let one = ::diesel::update(secrets).set(change).execute(conn).await?;
            let other = ::diesel::update(header).set(value).execute(conn).await?;
            Ok(one.max(other))
        });
        changed.map_err(failed("seal a webhook's secret anew"))
    }

    /// Reads webhooks with the keys that they are restricted to.
    async fn kept(&self, rows: Vec<WebhookRow>) -> Result<Vec<StoredWebhook>, StoreError> {
        let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
        let chosen: QueryResult<Vec<(Id, Id)>> = with_conn!(self, |conn| {
            webhook_keys::table
                .filter(webhook_keys::webhook.eq_any(&ids))
                .select((webhook_keys::webhook, webhook_keys::key))
                .load(conn)
                .await
        });
        let mut keys: HashMap<Id, Vec<ApiKeyId>> = HashMap::new();
        for (webhook, key) in chosen.map_err(failed("read a webhook's keys"))? {
            keys.entry(webhook).or_default().push(key.to());
        }
        rows.iter()
            .map(|row| {
                Ok(StoredWebhook {
                    webhook: self.read_webhook(row)?,
                    keys: keys.remove(&row.id).unwrap_or_default(),
                    health: row.health(),
                    created_at: row.created_at.0,
                })
            })
            .collect()
    }

    pub(crate) fn read_webhook(&self, row: &WebhookRow) -> Result<Webhook, StoreError> {
        let unfit = failed("open a webhook's secret");
        let value = row.header_value.as_ref().map(|value| self.cipher.decrypt_text(HEADER, value));
        let value = value.transpose().map_err(&unfit)?.map(Secret::new);
        let header = row.header_name.clone().zip(value);
        let old =
            row.retiring_secret.as_ref().map(|secret| self.cipher.decrypt_text(SECRET, secret));
        let old = old.transpose().map_err(&unfit)?.map(Secret::new);
        Ok(Webhook {
            id: row.id.to(),
            team: row.team.to(),
            url: row.url.clone(),
            header: header.map(|(name, value)| WebhookHeader { name, value }),
            secret: Secret::new(self.cipher.decrypt_text(SECRET, &row.secret).map_err(&unfit)?),
            retiring: old
                .zip(row.retiring_until)
                .map(|(secret, until)| RetiringSecret { secret, until: until.0 }),
            timeout: Duration::from_millis(u64::try_from(row.timeout_ms).unwrap_or(0)),
            retries: u8::try_from(row.retries).unwrap_or(0),
            active: row.active,
        })
    }
}

impl Store {
    pub(crate) async fn write_change(
        &self,
        id: WebhookId,
        change: &WebhookChange,
    ) -> Result<bool, StoreError> {
        let id = Id::from(id);
        let choices = WebhookKeyRow::all(id, &change.keys);
        let header = match &change.header {
            HeaderChange::Keep => None,
            HeaderChange::Drop => Some((None, None)),
            HeaderChange::Set(header) => {
                let sealed = self.cipher.encrypt_text(HEADER, header.value.expose());
                let sealed = sealed.map_err(failed("seal a webhook's header"))?;
                Some((Some(&header.name), Some(sealed)))
            }
        };
        let this = webhooks::table.filter(webhooks::id.eq(id));
        let elsewhere = this.filter(webhooks::url.ne(&change.url));
        let old_keys = webhook_keys::table.filter(webhook_keys::webhook.eq(id));
        let plain = (
            webhooks::url.eq(&change.url),
            webhooks::timeout_ms.eq(i32::try_from(change.timeout.as_millis()).unwrap_or(i32::MAX)),
            webhooks::retries.eq(i32::from(change.retries)),
        );
        // Resets the health, which is that of the earlier endpoint.
        let healthy = (
            webhooks::failures.eq(0),
            webhooks::failing_since.eq(None::<Timestamp>),
            webhooks::paused_until.eq(None::<Timestamp>),
        );
        let changed: QueryResult<bool> = with_transaction!(self, |conn| {
            ::diesel::update(elsewhere).set(healthy).execute(conn).await?;
            if ::diesel::update(this).set(plain).execute(conn).await? == 0 {
                return Ok(false);
            }
            if let Some((name, value)) = &header {
                let header = (webhooks::header_name.eq(name), webhooks::header_value.eq(value));
                ::diesel::update(this).set(header).execute(conn).await?;
            }
            ::diesel::delete(old_keys).execute(conn).await?;
            for choice in &choices {
                ::diesel::insert_into(webhook_keys::table).values(choice).execute(conn).await?;
            }
            Ok(true)
        });
        changed.map_err(failed("change a webhook"))
    }
}
