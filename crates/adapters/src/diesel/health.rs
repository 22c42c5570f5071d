//! How receivers do: failures in a row, since when, and pauses.

use ::diesel::prelude::*;
use chrono::{DateTime, TimeDelta, Utc};
use diesel_async::{AsyncConnection as _, RunQueryDsl};
use domain::{
    id::WebhookId,
    webhook::{pause_after, with_more},
};
use ports::{StoreError, delivery::Tally};

use super::{
    column::{Id, Moment},
    database::{Store, failed, with_conn},
    schema::webhooks,
};

impl Store {
    pub(super) async fn note_success(&self, webhook: WebhookId) -> Result<(), StoreError> {
        let ailing = webhooks::table
            .filter(webhooks::id.eq(Id(*webhook.as_uuid())))
            .filter(webhooks::failures.gt(0));
        let well = (
            webhooks::failures.eq(0),
            webhooks::failing_since.eq(None::<Moment>),
            webhooks::paused_until.eq(None::<Moment>),
        );
        let noted: QueryResult<usize> =
            with_conn!(self, |conn| ::diesel::update(ailing).set(well).execute(conn).await);
        noted.map(drop).map_err(failed("note a success"))
    }

    pub(super) async fn note_failures(
        &self,
        tally: &Tally,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let this = webhooks::table.filter(webhooks::id.eq(Id(*tally.webhook.as_uuid())));
        let noted: QueryResult<()> = with_conn!(self, |conn| {
            conn.transaction(async |conn| {
                // Locks the row, so that what two processes count adds up.
                let same = webhooks::failures.eq(webhooks::failures);
                ::diesel::update(this).set(same).execute(conn).await?;
                let before: Option<(i32, Option<Moment>)> = this
                    .select((webhooks::failures, webhooks::paused_until))
                    .first(conn)
                    .await
                    .optional()?;
                let Some((before, paused)) = before else { return Ok(()) };
                if paused.is_some_and(|until| now < until.0) {
                    // Of calls from before the pause.
                    return Ok(());
                }
                let failures = with_more(u32::try_from(before).unwrap_or(0), tally.failures);
                let pause = pause_after(failures);
                let failures = i32::try_from(failures).unwrap_or(i32::MAX);
                let pause = pause.and_then(|pause| TimeDelta::from_std(pause).ok());
                let health = (
                    webhooks::failures.eq(failures),
                    webhooks::paused_until.eq(pause.map(|pause| Moment(now + pause))),
                );
                ::diesel::update(this).set(health).execute(conn).await?;
                let well = this.filter(webhooks::failing_since.is_null());
                let since = webhooks::failing_since.eq(Moment(now));
                ::diesel::update(well).set(since).execute(conn).await?;
                Ok(())
            })
            .await
        });
        noted.map_err(failed("note failures"))
    }
}
