//! What is changed of a webhook: where it is called, what it is sent, and which keys it is for.

use ::diesel::prelude::*;
use diesel_async::RunQueryDsl;
use domain::id::WebhookId;
use ports::{
    StoreError,
    webhook_store::{HeaderChange, WebhookChange},
};

use crate::deliveries::webhooks::{HEADER, WebhookKeyRow};
use crate::engine::column::{Id, Timestamp};
use crate::engine::database::{Store, failed, with_transaction};
use crate::engine::schema::{webhook_keys, webhooks};

impl Store {
    pub(crate) async fn write_change(
        &self,
        id: WebhookId,
        change: &WebhookChange,
    ) -> Result<bool, StoreError> {
        let id = Id(*id.as_uuid());
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
        // Another receiver has not failed yet.
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
