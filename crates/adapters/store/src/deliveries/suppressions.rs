//! Suppressions: mailboxes that receive no more mails of a team.

use ::diesel::{dsl::exists, prelude::*, select, sql_types::Binary};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel_async::RunQueryDsl;
use domain::notification::Mailbox;
use ports::{StoreError, suppression_store::SuppressionStore};

use crate::engine::column::{Id, SqlTimestamp, Timestamp};
use crate::engine::database::{Store, failed, with_conn};
use crate::engine::schema::{suppressions, teams};

#[async_trait]
impl SuppressionStore for Store {
    async fn is_suppressed(&self, mailbox: &Mailbox) -> Result<bool, StoreError> {
        let (team, mark) = (Id::from(mailbox.team), mailbox.mark.as_slice());
        let found: QueryResult<bool> = with_conn!(self, |conn| {
            select(exists(suppressions::table.find((team, mark)))).get_result(conn).await
        });
        found.map_err(failed("look for a suppression"))
    }

    async fn suppress(&self, mailbox: &Mailbox, at: DateTime<Utc>) -> Result<(), StoreError> {
        let (team, mark) = (Id::from(mailbox.team), mailbox.mark.as_slice());
        let made = with_conn!(self, |conn| {
            teams::table
                .find(team)
                .select((
                    teams::id,
                    mark.into_sql::<Binary>(),
                    Timestamp(at).into_sql::<SqlTimestamp>(),
                ))
                .insert_into(suppressions::table)
                .into_columns((suppressions::team, suppressions::mark, suppressions::created_at))
                .on_conflict_do_nothing()
                .execute(conn)
                .await
        });
        made.map(drop).map_err(failed("suppress mails"))
    }

    async fn unsuppress(&self, mailbox: &Mailbox) -> Result<(), StoreError> {
        let (team, mark) = (Id::from(mailbox.team), mailbox.mark.as_slice());
        let gone = with_conn!(self, |conn| {
            ::diesel::delete(suppressions::table.find((team, mark))).execute(conn).await
        });
        gone.map(drop).map_err(failed("admit mails"))
    }
}
