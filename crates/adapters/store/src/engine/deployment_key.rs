//! The record of the secret key that a database belongs to.

use ::diesel::{dsl::exists, prelude::*, select};
use async_trait::async_trait;
use diesel_async::RunQueryDsl;
use ports::{
    StoreError,
    deployment_keys::{DeploymentKey, DeploymentKeys},
};

use super::{
    database::{Store, failed, with_conn},
    schema::{deployment_key, teams},
};

/// The identifier of the only row.
const ROW_ID: i16 = 1;

#[async_trait]
impl DeploymentKeys for Store {
    async fn deployment_key(&self) -> Result<Option<DeploymentKey>, StoreError> {
        let row = deployment_key::table
            .find(ROW_ID)
            .select((deployment_key::fingerprint, deployment_key::lasting));
        let found: QueryResult<Option<(Vec<u8>, Vec<u8>)>> =
            with_conn!(self, |conn| row.first(conn).await.optional());
        let found = found.map_err(failed("read the deployment's key"))?;
        Ok(found.map(|(fingerprint, encrypted_stable_key)| DeploymentKey {
            fingerprint,
            encrypted_stable_key,
        }))
    }

    async fn claim_deployment_key(&self, key: &DeploymentKey) -> Result<DeploymentKey, StoreError> {
        let row = (
            deployment_key::id.eq(ROW_ID),
            deployment_key::fingerprint.eq(&key.fingerprint),
            deployment_key::lasting.eq(&key.encrypted_stable_key),
        );
        let inserted: QueryResult<usize> = with_conn!(self, |conn| {
            ::diesel::insert_into(deployment_key::table)
                .values(row)
                .on_conflict_do_nothing()
                .execute(conn)
                .await
        });
        inserted.map_err(failed("write the deployment's key"))?;
        Ok(self.deployment_key().await?.unwrap_or_else(|| key.clone()))
    }

    async fn renew_deployment_key(
        &self,
        before: &DeploymentKey,
        key: &DeploymentKey,
    ) -> Result<bool, StoreError> {
        let row = deployment_key::table
            .filter(deployment_key::id.eq(ROW_ID))
            .filter(deployment_key::fingerprint.eq(&before.fingerprint));
        let change = (
            deployment_key::fingerprint.eq(&key.fingerprint),
            deployment_key::lasting.eq(&key.encrypted_stable_key),
        );
        let changed: QueryResult<usize> =
            with_conn!(self, |conn| ::diesel::update(row).set(change).execute(conn).await);
        Ok(changed.map_err(failed("write the deployment's key"))? > 0)
    }

    async fn has_any_team(&self) -> Result<bool, StoreError> {
        let found: QueryResult<bool> = with_conn!(self, |conn| {
            select(exists(teams::table.select(teams::id))).get_result(conn).await
        });
        found.map_err(failed("look for a team"))
    }
}
