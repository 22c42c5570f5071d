//! Registers, lists and removes the contacts of any team.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{
    id::{ContactId, TeamId},
    request::Contact,
};
use ports::{
    clock::Clock,
    contact_store::{ContactStore, StoredContact},
    driving::{AdministrationError, ContactAdminService},
    key_store::TeamStore,
    random::RandomSource,
};

use super::{OperatorAudit, require, require_team};
use crate::contacts::{RegisterContactError, register};

/// Implements [`ContactAdminService`].
pub struct ContactAdministration {
    pub teams: Arc<dyn TeamStore>,
    pub contacts: Arc<dyn ContactStore>,
    pub audit: OperatorAudit,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn RandomSource>,
}

impl From<RegisterContactError> for AdministrationError {
    fn from(error: RegisterContactError) -> Self {
        match error {
            RegisterContactError::Full => Self::Invalid(error.to_string()),
            RegisterContactError::Store(error) => error.into(),
        }
    }
}

#[async_trait]
impl ContactAdminService for ContactAdministration {
    async fn register(
        &self,
        team: TeamId,
        contact: Contact,
    ) -> Result<ContactId, AdministrationError> {
        require_team(&*self.teams, team).await?;
        self.audit.record(team, "receiver.add", "").await?;
        let registered = register(&*self.contacts, (&*self.clock, &*self.random), team, contact);
        Ok(registered.await?.id)
    }

    async fn contacts(&self, team: TeamId) -> Result<Vec<StoredContact>, AdministrationError> {
        Ok(self.contacts.contacts(team).await?)
    }

    async fn remove(&self, team: TeamId, id: ContactId) -> Result<(), AdministrationError> {
        self.audit.record(team, "receiver.remove", &id.to_string()).await?;
        require(self.contacts.remove_contact(team, id).await?, "receiver of that team:", &id)
    }
}
