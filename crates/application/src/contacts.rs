//! Registering people for a team: the same rules in the portal and for operators.

use domain::{
    id::{ContactId, TeamId},
    request::Contact,
};
use ports::{
    StoreError,
    clock::Clock,
    contact_store::{ContactStore, StoredContact},
    random::RandomSource,
};
use uuid::Uuid;

/// Receivers of one team.
pub const MAX_CONTACTS: usize = 200;

/// Why somebody was not registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterContactError {
    #[error("a team has up to {MAX_CONTACTS} registered receivers")]
    Full,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Registers somebody.
pub async fn register(
    store: &dyn ContactStore,
    (clock, chance): (&dyn Clock, &dyn RandomSource),
    team: TeamId,
    contact: Contact,
) -> Result<StoredContact, RegisterContactError> {
    if store.contacts(team).await?.len() >= MAX_CONTACTS {
        return Err(RegisterContactError::Full);
    }
    let id = ContactId::from_uuid(Uuid::from_u128(chance.new_id()));
    let receiver = StoredContact { id, team, contact, created_at: clock.now() };
    store.add_contact(&receiver).await?;
    Ok(receiver)
}
