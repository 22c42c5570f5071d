//! Which `secret.key` a database belongs to, and the key that outlasts it, sealed.

use ::diesel::{dsl::exists, prelude::*, select};
use diesel_async::RunQueryDsl;
use ports::StoreError;

use crate::engine::database::{Store, failed, with_conn};
use crate::engine::schema::{deployment_key, teams};

/// The one row.
const ONE: i16 = 1;

/// What a database says of its deployment's key.
#[derive(Debug, Clone, PartialEq, Eq, Queryable)]
pub struct DeploymentKey {
    /// Tells one key from another, and nothing else of it.
    pub fingerprint: Vec<u8>,
    /// A key whose uses outlast a change of `secret.key`, sealed with that.
    pub lasting: Vec<u8>,
}

impl Store {
    /// What the database says; `None` before the first start.
    pub async fn deployment_key(&self) -> Result<Option<DeploymentKey>, StoreError> {
        let row = deployment_key::table
            .find(ONE)
            .select((deployment_key::fingerprint, deployment_key::lasting));
        let found: QueryResult<Option<DeploymentKey>> =
            with_conn!(self, |conn| row.first(conn).await.optional());
        found.map_err(failed("read the deployment's key"))
    }

    /// Says it where nothing is said yet; answers what is said then, by whomever came first.
    pub async fn claim_deployment_key(
        &self,
        key: &DeploymentKey,
    ) -> Result<DeploymentKey, StoreError> {
        let row = (
            deployment_key::id.eq(ONE),
            deployment_key::fingerprint.eq(&key.fingerprint),
            deployment_key::lasting.eq(&key.lasting),
        );
        let made: QueryResult<usize> = with_conn!(self, |conn| {
            ::diesel::insert_into(deployment_key::table)
                .values(row)
                .on_conflict_do_nothing()
                .execute(conn)
                .await
        });
        made.map_err(failed("write the deployment's key"))?;
        Ok(self.deployment_key().await?.unwrap_or_else(|| key.clone()))
    }

    /// Says it anew, where the database still says what it said before.
    pub async fn renew_deployment_key(
        &self,
        before: &DeploymentKey,
        key: &DeploymentKey,
    ) -> Result<bool, StoreError> {
        let this = deployment_key::table
            .filter(deployment_key::id.eq(ONE))
            .filter(deployment_key::fingerprint.eq(&before.fingerprint));
        let anew = (
            deployment_key::fingerprint.eq(&key.fingerprint),
            deployment_key::lasting.eq(&key.lasting),
        );
        let changed: QueryResult<usize> =
            with_conn!(self, |conn| ::diesel::update(this).set(anew).execute(conn).await);
        Ok(changed.map_err(failed("write the deployment's key"))? > 0)
    }

    /// Whether there is a team, and so perhaps something that a key has sealed.
    pub async fn has_any_team(&self) -> Result<bool, StoreError> {
        let found: QueryResult<bool> = with_conn!(self, |conn| {
            select(exists(teams::table.select(teams::id))).get_result(conn).await
        });
        found.map_err(failed("look for a team"))
    }
}
