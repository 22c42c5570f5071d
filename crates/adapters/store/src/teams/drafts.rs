//! The definitions that authors are writing; fixtures are encrypted.

use ::diesel::prelude::*;
use async_trait::async_trait;
use chrono::DateTime;
use diesel_async::RunQueryDsl;
use domain::{
    api_key::Environment,
    id::{DraftId, PlatformId, TeamId},
};
use ports::{
    Reencrypted, StoreError,
    authoring::{Draft, DraftContent, DraftStore, MAX_DRAFTS},
};
use uuid::Uuid;

use crate::engine::column::{Id, Timestamp};
use crate::engine::data_key::FIXTURE;
use crate::engine::database::{Store, failed, with_conn, with_transaction};
use crate::engine::rewrite::page;
use crate::engine::schema::{definition_drafts, platforms, teams};

#[derive(Queryable, Selectable)]
#[diesel(table_name = definition_drafts)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
struct DraftRow {
    id: Id,
    team: Id,
    name: String,
    platform_version: String,
    revision: i32,
    updated_by: String,
    updated_at: Timestamp,
}

impl DraftRow {
    fn read(self) -> Draft {
        Draft {
            id: self.id.to(),
            team: self.team.to(),
            name: self.name,
            version: self.platform_version,
            revision: self.revision,
            updated_by: self.updated_by,
            updated_at: self.updated_at.0,
        }
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = definition_drafts)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
struct ContentRow {
    document: String,
    fixture: Option<String>,
}

/// The columns that each change writes.
#[derive(Insertable, AsChangeset)]
#[diesel(table_name = definition_drafts)]
#[diesel(treat_none_as_null = true)]
struct ChangedRow<'a> {
    name: &'a str,
    platform_version: &'a str,
    document: &'a str,
    fixture: Option<String>,
    revision: i32,
    updated_by: &'a str,
    updated_at: Timestamp,
}

impl Store {
    async fn changed_row<'a>(
        &self,
        draft: &'a Draft,
        content: &'a DraftContent,
    ) -> Result<ChangedRow<'a>, StoreError> {
        let (id, team) = (Id::from(draft.id), Id::from(draft.team));
        let writer = self.writer(team).await?;
        Ok(ChangedRow {
            name: &draft.name,
            platform_version: &draft.version,
            document: &content.document,
            fixture: writer.encrypt_some(FIXTURE, id, content.fixture.as_deref())?,
            revision: draft.revision,
            updated_by: &draft.updated_by,
            updated_at: Timestamp(draft.updated_at),
        })
    }

    pub(crate) async fn encrypt_drafts(
        &self,
        after: Id,
        limit: u16,
    ) -> Result<Reencrypted<Uuid>, StoreError> {
        // Fixtures have up to 16 MiB.
        let limit = limit.min(4);
        let some = definition_drafts::table
            .filter(definition_drafts::fixture.is_not_null())
            .filter(definition_drafts::id.gt(after))
            .order(definition_drafts::id)
            .limit(limit.into())
            .select((definition_drafts::id, definition_drafts::team, definition_drafts::fixture));
        let rows: QueryResult<Vec<(Id, Id, Option<String>)>> =
            with_conn!(self, |conn| some.load(conn).await);
        let rows = rows.map_err(failed("read drafts"))?;
        let mut done = page(&rows.iter().map(|row| row.0).collect::<Vec<_>>(), limit);
        for (id, team, old) in rows {
            let writer = self.writer(team).await?;
            let Some(old) = old.filter(|old| !writer.is_current(old)) else { continue };
            let Ok(plain) = self.opened(team, FIXTURE, id, old.clone()).await else {
                done.unreadable.push(id.0);
                continue;
            };
            let fixture = definition_drafts::fixture.eq(writer.encrypt(FIXTURE, id, &plain)?);
            let this = definition_drafts::table.find(id).filter(definition_drafts::fixture.eq(old));
            let changed: QueryResult<usize> =
                with_conn!(self, |conn| ::diesel::update(this).set(fixture).execute(conn).await);
            done.changed += changed.map_err(failed("encrypt a fixture"))?;
        }
        Ok(done)
    }
}

/// Adds a row unless the team has enough.
macro_rules! add {
    ($conn:expr, $theirs:expr, $row:expr) => {{
        let count: i64 = $theirs.get_result($conn).await?;
        if usize::try_from(count).is_ok_and(|count| count >= MAX_DRAFTS) {
            Ok(false)
        } else {
            ::diesel::insert_into(definition_drafts::table).values($row).execute($conn).await?;
            Ok(true)
        }
    }};
}

#[async_trait]
impl DraftStore for Store {
    async fn drafts(&self, team: TeamId) -> Result<Vec<Draft>, StoreError> {
        let theirs = definition_drafts::table
            .filter(definition_drafts::team.eq(Id::from(team)))
            .order((definition_drafts::updated_at.desc(), definition_drafts::id))
            .limit(i64::try_from(MAX_DRAFTS).unwrap_or(i64::MAX));
        let rows: QueryResult<Vec<DraftRow>> =
            with_conn!(self, |conn| theirs.select(DraftRow::as_select()).load(conn).await);
        let rows = rows.map_err(failed("read a team's drafts"))?;
        Ok(rows.into_iter().map(DraftRow::read).collect())
    }

    async fn draft(
        &self,
        team: TeamId,
        id: DraftId,
    ) -> Result<Option<(Draft, DraftContent)>, StoreError> {
        let (team, id) = (Id::from(team), Id::from(id));
        let this = definition_drafts::table.find(id).filter(definition_drafts::team.eq(team));
        let row: QueryResult<Option<(DraftRow, ContentRow)>> = with_conn!(self, |conn| {
            this.select((DraftRow::as_select(), ContentRow::as_select()))
                .first(conn)
                .await
                .optional()
        });
        let Some((draft, content)) = row.map_err(failed("find a draft"))? else { return Ok(None) };
        let fixture = self.opened_some(team, FIXTURE, id, content.fixture).await?;
        Ok(Some((draft.read(), DraftContent { document: content.document, fixture })))
    }

    async fn add_draft(&self, draft: &Draft, content: &DraftContent) -> Result<bool, StoreError> {
        let key = (Id::from(draft.id), Id::from(draft.team));
        let row = self.changed_row(draft, content).await?;
        let row = (definition_drafts::id.eq(key.0), definition_drafts::team.eq(key.1), row);
        // Of two that are added at once, the second one counts the first.
        let team = teams::table.find(key.1).select(teams::id);
        let theirs = definition_drafts::table.filter(definition_drafts::team.eq(key.1)).count();
        let added: QueryResult<bool> = with_transaction!(
            self,
            postgres | conn | {
                let _: Option<Id> = team.for_no_key_update().first(conn).await.optional()?;
                add!(conn, theirs, row)
            },
            sqlite | conn | { add!(conn, theirs, row) }
        );
        added.map_err(failed("add a draft"))
    }

    async fn replace_draft(
        &self,
        draft: &Draft,
        content: &DraftContent,
    ) -> Result<bool, StoreError> {
        let before = draft.revision.saturating_sub(1);
        let this = definition_drafts::table
            .find(Id::from(draft.id))
            .filter(definition_drafts::team.eq(Id::from(draft.team)))
            .filter(definition_drafts::revision.eq(before));
        let row = self.changed_row(draft, content).await?;
        let replaced: QueryResult<usize> =
            with_conn!(self, |conn| ::diesel::update(this).set(row).execute(conn).await);
        replaced.map(|rows| rows == 1).map_err(failed("replace a draft"))
    }

    async fn delete_draft(&self, team: TeamId, id: DraftId) -> Result<bool, StoreError> {
        let this = definition_drafts::table
            .find(Id::from(id))
            .filter(definition_drafts::team.eq(Id::from(team)));
        let deleted: QueryResult<usize> =
            with_conn!(self, |conn| ::diesel::delete(this).execute(conn).await);
        deleted.map(|rows| rows == 1).map_err(failed("delete a draft"))
    }

    /// It is not written by a migration, since processes of the release before would list it.
    async fn prepare_platform_of_drafts(&self, environment: Environment) -> Result<(), StoreError> {
        let id = PlatformId::of_drafts(environment).0;
        let never = Timestamp(DateTime::UNIX_EPOCH);
        let row = (
            platforms::id.eq(id),
            // No definition has a platform with such a name.
            platforms::name.eq(format!("draft:{}", environment.as_str())),
            platforms::environment.eq(environment.as_str()),
            platforms::version.eq(""),
            platforms::is_active.eq(false),
            (platforms::created_at.eq(never), platforms::updated_at.eq(never)),
            (platforms::display_name.eq("Draft"), platforms::description.eq("")),
            (platforms::icon.eq(""), platforms::login_url.eq("")),
        );
        let added: QueryResult<usize> = with_conn!(self, |conn| {
            ::diesel::insert_into(platforms::table)
                .values(row)
                .on_conflict_do_nothing()
                .execute(conn)
                .await
        });
        added.map(drop).map_err(failed("prepare the platform of drafts"))
    }
}
