//! Registers the contacts of a team: the same rules in the portal and for operators.

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

/// Registered contacts of one team.
pub const MAX_CONTACTS: usize = 200;

/// Why a contact was not registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterContactError {
    #[error("a team can have up to {MAX_CONTACTS} recipients")]
    Full,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Registers a contact, and returns it with its identifier.
pub async fn register(
    store: &dyn ContactStore,
    (clock, random): (&dyn Clock, &dyn RandomSource),
    team: TeamId,
    contact: Contact,
) -> Result<StoredContact, RegisterContactError> {
    if store.contacts(team).await?.len() >= MAX_CONTACTS {
        return Err(RegisterContactError::Full);
    }
    let id = ContactId::from_u128(random.new_id());
    let stored = StoredContact { id, team, contact, created_at: clock.now() };
    store.add_contact(&stored).await?;
    Ok(stored)
}
