//! Registering people for a team: the same rules in the portal and for operators.

use domain::{
    id::{ReceiverId, TeamId},
    request::Receiver,
};
use ports::{
    StoreError,
    clock::{Chance, Clock},
    receiver_store::{KeptReceiver, ReceiverStore},
};
use uuid::Uuid;

/// Receivers of one team.
pub const MOST: usize = 200;

/// Why somebody was not registered.
#[derive(Debug, thiserror::Error)]
pub enum Unregistered {
    #[error("a team has up to {MOST} registered receivers")]
    Full,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Registers somebody.
pub async fn register(
    store: &dyn ReceiverStore,
    (clock, chance): (&dyn Clock, &dyn Chance),
    team: TeamId,
    contact: Receiver,
) -> Result<KeptReceiver, Unregistered> {
    if store.receivers(team).await?.len() >= MOST {
        return Err(Unregistered::Full);
    }
    let id = ReceiverId::from_uuid(Uuid::from_u128(chance.id()));
    let receiver = KeptReceiver { id, team, contact, created_at: clock.now() };
    store.add_receiver(&receiver).await?;
    Ok(receiver)
}
