//! Reads the templates of concurrently asking teams in one statement.

use std::collections::HashMap;

use ::diesel::prelude::*;
use diesel_async::RunQueryDsl;
use ports::{StoreError, template_store::StoredTemplate};

use crate::engine::batcher::{BatchQueue, BatchRequest};
use crate::engine::column::Id;
use crate::engine::database::{failed, with_pipelined_connection};
use crate::engine::pipelined::PipelinedConnection;
use crate::engine::schema::email_templates;
use crate::teams::templates::TemplateRow;

/// A request for all templates of a team.
pub(crate) struct TemplatesRequest(pub(crate) Id);

impl BatchRequest for TemplatesRequest {
    /// The templates, newest first.
    type Answer = Result<Vec<StoredTemplate>, StoreError>;

    fn waiting(connection: &PipelinedConnection) -> &BatchQueue<Self> {
        &connection.templates
    }

    /// Requests of the same team share its rows. A template that cannot be read fails the requests of
    /// its team alone.
    async fn answer(
        connection: &PipelinedConnection,
        asks: &[Self],
    ) -> Result<Vec<Self::Answer>, StoreError> {
        let mut teams: Vec<_> = asks.iter().map(|TemplatesRequest(team)| *team).collect();
        teams.sort_unstable_by_key(|team| team.0);
        teams.dedup();
        let rows: QueryResult<Vec<TemplateRow>> = with_pipelined_connection!(connection, |conn| {
            email_templates::table
                .filter(email_templates::team.eq_any(&teams))
                .order(email_templates::id.desc())
                .select(TemplateRow::as_select())
                .load(conn)
                .await
        });
        let mut of: HashMap<Id, Vec<TemplateRow>> = HashMap::new();
        for row in rows.map_err(failed("read a team's templates"))? {
            of.entry(row.team).or_default().push(row);
        }
        let read = |TemplatesRequest(team): &Self| {
            let rows = of.get(team).into_iter().flatten();
            rows.map(|row| row.clone().read()).collect()
        };
        Ok(asks.iter().map(read).collect())
    }
}
