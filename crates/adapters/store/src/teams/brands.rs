//! The branding of teams.

use ::diesel::prelude::*;
use async_trait::async_trait;
use diesel_async::RunQueryDsl;
use domain::{
    branding::{Brand, BrandName, Colour, Logo},
    https_url::HttpsUrl,
    id::{SessionId, TeamId},
};
use ports::{StoreError, brand_store::BrandStore};

use crate::engine::column::Id;
use crate::engine::database::{Store, failed, with_conn};
use crate::engine::schema::{api_keys, brands, sessions, teams};

#[derive(Queryable, Selectable)]
#[diesel(table_name = brands)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
struct BrandRow {
    name: Option<String>,
    colour: Option<String>,
    logo: Option<Vec<u8>>,
    privacy_url: Option<String>,
}

fn read(row: QueryResult<Option<BrandRow>>) -> Result<Brand, StoreError> {
    const ACTION: &str = "read a brand back";
    let Some(row) = row.map_err(failed(ACTION))? else { return Ok(Brand::default()) };
    let privacy_url = row.privacy_url.map(HttpsUrl::try_from).transpose();
    Ok(Brand {
        name: row.name.map(|name| name.parse()).transpose().map_err(failed(ACTION))?,
        colour: row.colour.map(|colour| colour.parse()).transpose().map_err(failed(ACTION))?,
        logo: row.logo.map(|logo| Logo::read(&logo)).transpose().map_err(failed(ACTION))?,
        privacy_url: privacy_url.map_err(failed(ACTION))?,
    })
}

#[async_trait]
impl BrandStore for Store {
    async fn brand(&self, team: TeamId) -> Result<Brand, StoreError> {
        let this = brands::table.filter(brands::team.eq(Id::from(team)));
        read(with_conn!(self, |conn| {
            this.select(BrandRow::as_select()).first(conn).await.optional()
        }))
    }

    async fn brand_of(&self, session: SessionId) -> Result<Brand, StoreError> {
        let owner = sessions::table.find(Id::from(session)).select(sessions::owner);
        let team = api_keys::table.filter(api_keys::id.eq_any(owner)).select(api_keys::team);
        let this = brands::table.filter(brands::team.eq_any(team));
        read(with_conn!(self, |conn| {
            this.select(BrandRow::as_select()).first(conn).await.optional()
        }))
    }

    async fn team_name_of(&self, session: SessionId) -> Result<Option<String>, StoreError> {
        let owner = sessions::table.find(Id::from(session)).select(sessions::owner);
        let team = api_keys::table.filter(api_keys::id.eq_any(owner)).select(api_keys::team);
        let name = teams::table.filter(teams::id.eq_any(team)).select(teams::name);
        let found = with_conn!(self, |conn| name.first(conn).await.optional());
        found.map_err(failed("find the name of a session's team"))
    }

    async fn set_brand(
        &self,
        team: TeamId,
        name: Option<&BrandName>,
        colour: Option<Colour>,
        privacy_url: Option<&HttpsUrl>,
    ) -> Result<(), StoreError> {
        let team = brands::team.eq(Id::from(team));
        let look = (
            brands::name.eq(name.map(BrandName::as_str)),
            brands::colour.eq(colour.map(|colour| colour.to_string())),
            brands::privacy_url.eq(privacy_url.map(HttpsUrl::as_str)),
        );
        let set = with_conn!(self, |conn| {
            ::diesel::insert_into(brands::table)
                .values((team, look.clone()))
                .on_conflict(brands::team)
                .do_update()
                .set(look)
                .execute(conn)
                .await
        });
        set.map(drop).map_err(failed("set a brand"))
    }

    async fn set_logo(&self, team: TeamId, logo: Option<&Logo>) -> Result<(), StoreError> {
        let team = brands::team.eq(Id::from(team));
        let look = brands::logo.eq(logo.map(Logo::bytes));
        let set = with_conn!(self, |conn| {
            ::diesel::insert_into(brands::table)
                .values((team, look))
                .on_conflict(brands::team)
                .do_update()
                .set(look)
                .execute(conn)
                .await
        });
        set.map(drop).map_err(failed("set a logo"))
    }
}
