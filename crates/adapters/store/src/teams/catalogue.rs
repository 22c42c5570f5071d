//! Platforms and their published definitions.

use ::diesel::{prelude::*, result::Error as DieselError};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel_async::RunQueryDsl;
use domain::{
    api_key::Environment, id::PlatformId, platform::Platform, session::DefinitionVersion,
    workflow::Definition,
};
use ports::{
    StoreError,
    catalogue::{Catalogue, PublishError},
};

use crate::engine::column::Timestamp;
use crate::engine::database::{Store, failed, with_conn, with_read, with_transaction};
use crate::engine::hash::{hex, sha256};
use crate::engine::schema::{definitions, platforms};

#[derive(Queryable, Selectable)]
#[diesel(table_name = platforms)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
struct PlatformRow {
    id: i32,
    name: String,
    environment: String,
    version: String,
    is_active: bool,
    created_at: Timestamp,
    updated_at: Timestamp,
    display_name: String,
    description: String,
    icon: String,
    login_url: String,
}

impl PlatformRow {
    fn read(self) -> Result<Platform, StoreError> {
        Ok(Platform {
            id: PlatformId(self.id),
            environment: self.environment.parse().map_err(failed("read a platform back"))?,
            name: self.name,
            display_name: self.display_name,
            description: self.description,
            icon: self.icon,
            login_url: self.login_url,
            is_active: self.is_active,
            version: self.version,
            created_at: self.created_at.0,
            updated_at: self.updated_at.0,
        })
    }
}

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = definitions)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
struct DefinitionRow {
    platform: i32,
    version: String,
    sha256: String,
    document: String,
    created_at: Timestamp,
}

/// The part of a definition that the lookup shows.
#[derive(Clone, Insertable, AsChangeset)]
#[diesel(table_name = platforms)]
struct PlatformSummaryRow<'a> {
    display_name: &'a str,
    description: &'a str,
    icon: &'a str,
    login_url: &'a str,
}

fn shown(definition: &Definition) -> PlatformSummaryRow<'_> {
    PlatformSummaryRow {
        display_name: &definition.display_name,
        description: &definition.description,
        icon: &definition.icon,
        login_url: &definition.login_url,
    }
}

fn definition(row: &DefinitionRow) -> Result<Definition, StoreError> {
    serde_json::from_str(&row.document).map_err(failed("read a definition back"))
}

#[async_trait]
impl Catalogue for Store {
    async fn platforms(&self, environment: Environment) -> Result<Vec<Platform>, StoreError> {
        let rows: QueryResult<Vec<PlatformRow>> = with_read!(self, |conn| {
            platforms::table
                .filter(platforms::environment.eq(environment.as_str()))
                .order(platforms::id)
                .select(PlatformRow::as_select())
                .load(conn)
                .await
        });
        rows.map_err(failed("list platforms"))?.into_iter().map(PlatformRow::read).collect()
    }

    async fn platform(&self, id: PlatformId) -> Result<Option<Platform>, StoreError> {
        let row: QueryResult<Option<PlatformRow>> = with_read!(self, |conn| {
            platforms::table
                .filter(platforms::id.eq(id.0))
                .select(PlatformRow::as_select())
                .first(conn)
                .await
                .optional()
        });
        row.map_err(failed("find a platform"))?.map(PlatformRow::read).transpose()
    }

    async fn definition(
        &self,
        id: PlatformId,
    ) -> Result<Option<(DefinitionVersion, Definition)>, StoreError> {
        let row: QueryResult<Option<DefinitionRow>> = with_conn!(self, |conn| {
            platforms::table
                .inner_join(definitions::table)
                .filter(definitions::version.eq(platforms::version))
                .filter(platforms::id.eq(id.0))
                .select(DefinitionRow::as_select())
                .first(conn)
                .await
                .optional()
        });
        let Some(row) = row.map_err(failed("find a definition"))? else { return Ok(None) };
        let definition = definition(&row)?;
        Ok(Some((DefinitionVersion { version: row.version, sha256: row.sha256 }, definition)))
    }

    async fn publish(
        &self,
        definition: &Definition,
        now: DateTime<Utc>,
    ) -> Result<(PlatformId, DefinitionVersion), PublishError> {
        // Struct members keep their order and maps are sorted, so equal definitions are equal text.
        let document = serde_json::to_value(definition).map_err(failed("write a definition"))?;
        let document = document.to_string();
        let sha256 = hex(&sha256(document.as_bytes()));
        let version = definition.version.clone();
        let pinned = DefinitionVersion { version: version.clone(), sha256: sha256.clone() };
        let (now, environment) = (Timestamp(now), definition.environment.as_str());
        let fresh = (
            platforms::name.eq(&definition.platform),
            platforms::environment.eq(environment),
            platforms::version.eq(&version),
            platforms::is_active.eq(true),
            platforms::created_at.eq(now),
            platforms::updated_at.eq(now),
            shown(definition),
        );
        let stored = definitions::table.filter(definitions::version.eq(&version));
        // The platform's number and environment, and the hash of the published content of this
        // version.
        let written: Result<(i32, String, String), DieselError> = with_transaction!(self, |conn| {
            let platform = ::diesel::insert_into(platforms::table).values(fresh);
            platform.on_conflict_do_nothing().execute(conn).await?;
            let (id, held): (i32, String) = platforms::table
                .filter(platforms::name.eq(&definition.platform))
                .select((platforms::id, platforms::environment))
                .first(conn)
                .await?;
            if held != environment {
                return Ok((id, held, sha256.clone()));
            }
            let row = (
                definitions::platform.eq(id),
                definitions::version.eq(&version),
                definitions::sha256.eq(&sha256),
                definitions::document.eq(&document),
                definitions::created_at.eq(now),
            );
            let new = ::diesel::insert_into(definitions::table).values(row);
            if new.on_conflict_do_nothing().execute(conn).await? == 1 {
                let newest = (
                    platforms::version.eq(&version),
                    platforms::updated_at.eq(now),
                    shown(definition),
                );
                let platform = platforms::table.filter(platforms::id.eq(id));
                ::diesel::update(platform).set(newest).execute(conn).await?;
            }
            let stored = stored.filter(definitions::platform.eq(id));
            Ok((id, held, stored.select(definitions::sha256).first(conn).await?))
        });
        let (id, held, found) = written.map_err(failed("publish a definition"))?;
        if held != environment {
            return Err(PublishError::OtherEnvironment(definition.platform.clone()));
        }
        if found != sha256 {
            return Err(PublishError::VersionTaken(version));
        }
        Ok((PlatformId(id), pinned))
    }
}
