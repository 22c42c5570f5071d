//! The contract of the stores: sessions, jobs, deliveries, keys, definitions and others.

pub mod account_links;
pub mod attestations;
pub mod brands;
pub mod browsers;
pub mod catalogue;
pub mod contacts;
pub mod deliveries;
pub mod delivery_log;
pub mod devices;
pub mod drafts;
pub mod health;
pub mod instances;
pub mod keys;
pub mod members;
pub mod notices;
pub mod notifications;
pub mod outbox;
pub mod partners;
pub mod passkeys;
pub mod recordings;
pub mod sessions;
pub mod sign_ins;
pub mod suppressions;
pub mod templates;

use chrono::TimeDelta;
use domain::{
    api_key::KeyHash,
    id::{ApiKeyId, PlatformId, TeamId},
    session::{Change, Event, Lease, Session},
};
use uuid::Uuid;

use super::Backend;
use crate::sample;

pub(crate) const LEASE: TimeDelta = TimeDelta::seconds(30);
pub(crate) const ALIVE: TimeDelta = TimeDelta::seconds(60);
/// The number of rounds of a race, whose outcome varies.
pub(crate) const ROUNDS: usize = 20;
pub(crate) const CLAIMERS: usize = 8;

/// A team with a key and a platform.
pub(crate) struct TeamFixture {
    pub(crate) team: TeamId,
    pub(crate) owner: ApiKeyId,
    pub(crate) platform: PlatformId,
}

pub(crate) async fn team_fixture(backend: &Backend) -> TeamFixture {
    let team = TeamId::from_uuid(Uuid::new_v4());
    backend.teams.add_team(team, "Lender", sample::noon()).await.unwrap();
    let key = sample::key(team);
    backend.keys.add_key(&key, &hash(), "Backend", sample::noon()).await.unwrap();
    let definition = sample::definition("sample", "1.0.0");
    let (platform, _) = backend.catalogue.publish(&definition, None, sample::noon()).await.unwrap();
    TeamFixture { team, owner: key.id, platform }
}

pub(crate) fn hash() -> KeyHash {
    let (a, b) = (Uuid::new_v4(), Uuid::new_v4());
    KeyHash([a.into_bytes(), b.into_bytes()].concat().try_into().unwrap())
}

pub(crate) async fn inserted(backend: &Backend, home: &TeamFixture) -> Session {
    let opening = sample::opening(home.owner, home.platform);
    backend.sessions.insert(&opening, None).await.unwrap();
    opening.session
}

pub(crate) async fn commit(backend: &Backend, change: &Change) {
    backend.sessions.commit(change, sample::noon() + ALIVE).await.unwrap();
}

pub(crate) fn requested(session: &Session) -> (Change, Lease) {
    let lease = sample::lease();
    (sample::transition(session, Event::BrowserRequested { lease }), lease)
}

pub(crate) fn ended(session: &Session) -> Change {
    sample::transition(session, Event::TerminatedByPartner)
}
