//! Platforms and their published definitions.

use ::diesel::{prelude::*, result::Error as DieselError};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel_async::RunQueryDsl;
use domain::{
    api_key::Environment,
    id::PlatformId,
    platform::{ActiveVersions, Canary, CanaryShare, Platform, PublishedVersion, VersionChange},
    session::{DefinitionVersion, Session},
    workflow::Definition,
};
use ports::{
    StoreError,
    catalogue::{Catalogue, ChooseVersionError, MAX_VERSIONS, PublishError},
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
    canary_version: Option<String>,
    canary_percent: Option<i16>,
}

impl PlatformRow {
    fn read(self) -> Result<Platform, StoreError> {
        let share = canary_share(self.canary_percent);
        let canary =
            self.canary_version.zip(share).map(|(version, share)| Canary { version, share });
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
            canary,
            created_at: self.created_at.0,
            updated_at: self.updated_at.0,
        })
    }
}

fn canary_share(percent: Option<i16>) -> Option<CanaryShare> {
    CanaryShare::percent(u8::try_from(percent?).ok()?)
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

/// What a transaction that publishes a version has found: the platform before it, whether the version
/// is new, and the hash of its published content.
type Publication = (PlatformRow, bool, String);

fn definition(row: &DefinitionRow) -> Result<Definition, StoreError> {
    serde_json::from_str(&row.document).map_err(failed("read a definition back"))
}

#[async_trait]
impl Catalogue for Store {
    async fn platforms(&self, environment: Environment) -> Result<Vec<Platform>, StoreError> {
        let rows: QueryResult<Vec<PlatformRow>> = with_read!(self, |conn| {
            platforms::table
                .filter(platforms::environment.eq(environment.as_str()))
                .filter(platforms::id.gt(0))
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
                .filter(platforms::id.gt(0))
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

    async fn definition_of(
        &self,
        session: &Session,
    ) -> Result<Option<(DefinitionVersion, Definition)>, StoreError> {
        let pinned = session.workflow.as_ref().map(|workflow| workflow.version.as_str());
        let id = session.terms.platform.0;
        // Up to two rows: the version that the platform has, and the one of a share.
        let rows: QueryResult<Vec<(DefinitionRow, String, Option<i16>)>> =
            with_conn!(self, |conn| {
                let mut found = platforms::table
                    .inner_join(definitions::table)
                    .filter(platforms::id.eq(id))
                    .select((
                        DefinitionRow::as_select(),
                        platforms::version,
                        platforms::canary_percent,
                    ))
                    .into_boxed();
                found = match pinned {
                    Some(version) => found.filter(definitions::version.eq(version)),
                    None => found.filter(
                        definitions::version
                            .eq(platforms::version)
                            .or(definitions::version.nullable().eq(platforms::canary_version)),
                    ),
                };
                found.load(conn).await
            });
        let rows = rows.map_err(failed("find a session's definition"))?;
        let is_canary = |(row, current, percent): &&(DefinitionRow, String, Option<i16>)| {
            row.version != *current
                && canary_share(*percent).is_some_and(|share| share.includes(session.id))
        };
        let is_current =
            |(row, current, _): &&(DefinitionRow, String, Option<i16>)| row.version == *current;
        let found = match pinned {
            Some(_) => rows.as_slice().first(),
            None => rows.iter().find(is_canary).or_else(|| rows.iter().find(is_current)),
        };
        let Some((row, ..)) = found else { return Ok(None) };
        let version =
            DefinitionVersion { version: row.version.clone(), sha256: row.sha256.clone() };
        Ok(Some((version, definition(row)?)))
    }

    async fn versions(&self, id: PlatformId) -> Result<Vec<PublishedVersion>, StoreError> {
        let rows: QueryResult<Vec<(String, String, Timestamp)>> = with_read!(self, |conn| {
            definitions::table
                .filter(definitions::platform.eq(id.0))
                .order((definitions::created_at.desc(), definitions::version.desc()))
                .limit(MAX_VERSIONS.into())
                .select((definitions::version, definitions::sha256, definitions::created_at))
                .load(conn)
                .await
        });
        let rows = rows.map_err(failed("list the versions of a platform"))?.into_iter();
        let version = |(version, sha256, at): (String, String, Timestamp)| PublishedVersion {
            definition: DefinitionVersion { version, sha256 },
            published_at: at.0,
        };
        Ok(rows.map(version).collect())
    }

    async fn choose_version(
        &self,
        id: PlatformId,
        change: &VersionChange,
        now: DateTime<Utc>,
    ) -> Result<(), ChooseVersionError> {
        let ActiveVersions { version, canary } = &change.to;
        let version = version.as_str();
        let tried = canary.as_ref().map(|canary| canary.version.as_str());
        let wanted = [Some(version), tried];
        let wanted: Vec<_> = wanted.into_iter().flatten().collect();
        let rows: QueryResult<Vec<DefinitionRow>> = with_conn!(self, |conn| {
            definitions::table
                .filter(definitions::platform.eq(id.0))
                .filter(definitions::version.eq_any(&wanted))
                .select(DefinitionRow::as_select())
                .load(conn)
                .await
        });
        let rows = rows.map_err(failed("find the versions of a platform"))?;
        let of = |version: &str| rows.iter().find(|row| row.version == version);
        let Some(row) = of(version).filter(|_| wanted.iter().all(|one| of(one).is_some())) else {
            if self.platform(id).await?.is_none() {
                return Err(ChooseVersionError::NoPlatform(id));
            }
            let unknown = wanted.iter().find(|one| of(one).is_none()).copied();
            return Err(ChooseVersionError::NotPublished(unknown.unwrap_or(version).to_owned()));
        };
        let definition = definition(row)?;
        let percent = |canary: &Canary| i16::from(canary.share.as_percent());
        let chosen = (
            platforms::version.eq(version),
            platforms::updated_at.eq(Timestamp(now)),
            platforms::canary_version.eq(tried),
            platforms::canary_percent.eq(canary.as_ref().map(percent)),
            shown(&definition),
        );
        // Published definitions stay, so that what was found above is still there.
        let written: QueryResult<usize> = with_conn!(self, |conn| {
            let platform = platforms::table.filter(platforms::id.eq(id.0));
            let mut update = ::diesel::update(platform).set(chosen).into_boxed();
            if let Some(from) = &change.from {
                update = update.filter(platforms::version.eq(&from.version));
                update = match &from.canary {
                    None => update.filter(platforms::canary_version.is_null()),
                    Some(tried) => update
                        .filter(platforms::canary_version.eq(&tried.version))
                        .filter(platforms::canary_percent.eq(percent(tried))),
                };
            }
            update.execute(conn).await
        });
        let written = written.map_err(failed("choose the version of a platform"))?;
        if written == 0 { Err(ChooseVersionError::Changed) } else { Ok(()) }
    }

    async fn publish(
        &self,
        definition: &Definition,
        canary: Option<CanaryShare>,
        now: DateTime<Utc>,
    ) -> Result<(PlatformId, DefinitionVersion), PublishError> {
        let document = serde_json_canonicalizer::to_string(definition);
        let document = document.map_err(failed("write a definition"))?;
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
        let written: Result<Publication, DieselError> = with_transaction!(self, |conn| {
            let platform = ::diesel::insert_into(platforms::table).values(fresh);
            let is_first = platform.on_conflict_do_nothing().execute(conn).await? == 1;
            let named = platforms::table.filter(platforms::name.eq(&definition.platform));
            let before: PlatformRow = named.select(PlatformRow::as_select()).first(conn).await?;
            let id = before.id;
            if before.environment != environment {
                return Ok((before, false, sha256.clone()));
            }
            let row = (
                definitions::platform.eq(id),
                definitions::version.eq(&version),
                definitions::sha256.eq(&sha256),
                definitions::document.eq(&document),
                definitions::created_at.eq(now),
            );
            let new = ::diesel::insert_into(definitions::table).values(row);
            let is_new = new.on_conflict_do_nothing().execute(conn).await? == 1;
            if let (true, false, Some(share)) = (is_new, is_first, canary) {
                let tried = (
                    platforms::canary_version.eq(Some(&version)),
                    platforms::canary_percent.eq(Some(i16::from(share.as_percent()))),
                    platforms::updated_at.eq(now),
                );
                let platform = platforms::table.filter(platforms::id.eq(id));
                ::diesel::update(platform).set(tried).execute(conn).await?;
            } else if is_new {
                let newest = (
                    platforms::version.eq(&version),
                    platforms::updated_at.eq(now),
                    platforms::canary_version.eq(None::<String>),
                    platforms::canary_percent.eq(None::<i16>),
                    shown(definition),
                );
                let platform = platforms::table.filter(platforms::id.eq(id));
                ::diesel::update(platform).set(newest).execute(conn).await?;
            }
            let stored = stored.filter(definitions::platform.eq(id));
            Ok((before, is_new, stored.select(definitions::sha256).first(conn).await?))
        });
        let (before, is_new, found) = written.map_err(failed("publish a definition"))?;
        if before.environment != environment {
            return Err(PublishError::OtherEnvironment(definition.platform.clone()));
        }
        if found != sha256 {
            return Err(PublishError::VersionTaken(version));
        }
        let platform = before.read()?;
        if !is_new && !platform.runs(&version, canary) {
            return Err(PublishError::AlreadyPublished(version));
        }
        Ok((platform.id, pinned))
    }
}
