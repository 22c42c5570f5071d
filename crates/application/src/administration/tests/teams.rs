//! Teams, API keys and contacts.

use chrono::TimeDelta;
use domain::{
    api_key::Environment,
    frame_ancestors::{FrameAncestor, MAX_FRAME_ANCESTORS},
    id::{ApiKeyId, ContactId},
    request::Contact,
};
use ports::{
    contact_store::ContactStore as _,
    driving::{
        AdministrationError, ApiKeyAdminService as _, ContactAdminService as _, NewApiKey,
        TeamAdminService as _,
    },
    key_store::{KeyStore as _, KeyVerification as _},
};

use tokio::time::Instant;

use super::*;
use crate::{
    administration::{ApiKeyAdministration, ContactAdministration, TeamAdministration},
    api_keys::ApiKeyText,
    trusted_keys::TRUST,
};

#[tokio::test]
async fn a_team_is_created_with_a_name_of_bounded_length() {
    let fixture = Fixture::new().await;
    let teams = fixture.teams();
    for name in ["", "  ", &"x".repeat(201)] {
        let error = teams.create(name).await.unwrap_err();
        assert_eq!(error.to_string(), "a team's name has 1 to 200 characters");
    }
    let team = teams.create(&format!(" {} ", "x".repeat(200))).await.unwrap();
    assert!(fixture.store.has_team(team).await.unwrap());
}

#[tokio::test]
async fn frame_ancestors_are_set_for_a_known_team_up_to_a_limit() {
    let fixture = Fixture::new().await;
    let teams = fixture.teams();
    let origin: FrameAncestor = "https://partner.example".parse().unwrap();
    teams.set_frame_ancestors(TEAM, std::slice::from_ref(&origin)).await.unwrap();
    let many = vec![origin.clone(); MAX_FRAME_ANCESTORS + 1];
    assert!(teams.set_frame_ancestors(TEAM, &many).await.is_err());
    assert_eq!(fixture.store.frame_ancestors(TEAM).await.unwrap(), [origin]);
    unknown_team(teams.set_frame_ancestors(UNKNOWN_TEAM, &[]).await);
}

#[tokio::test]
async fn a_key_is_stored_as_a_hash_and_expires() {
    let fixture = Fixture::new().await;
    let keys = fixture.api_keys();
    let expires_in = Some(TimeDelta::days(30));
    let issued = keys.create(NewApiKey { expires_in, ..new_key(TEAM) }).await.unwrap();
    let hash = ApiKeyText::read(issued.text.expose()).unwrap().hash();
    let (stored, _) = fixture.store.key_by_hash(&hash).await.unwrap().unwrap();
    assert_eq!((stored.id, stored.expires_at), (issued.id, Some(noon() + TimeDelta::days(30))));
    assert_eq!(fixture.store.keys(TEAM).await.unwrap()[0].label, "Backend");
    unknown_team(keys.create(new_key(UNKNOWN_TEAM)).await.map(drop));
}

#[tokio::test(start_paused = true)]
async fn a_rotated_or_revoked_key_is_reported_when_no_process_trusts_it() {
    let fixture = Fixture::new().await;
    let keys = fixture.api_keys();
    let issued = keys.create(new_key(TEAM)).await.unwrap();
    let began = Instant::now();
    keys.rotate(issued.id).await.unwrap();
    let rotated = Instant::now();
    assert!(rotated - began > TRUST);
    keys.revoke(issued.id).await.unwrap();
    assert!(rotated.elapsed() > TRUST);
}

#[tokio::test]
async fn a_rotated_key_replaces_the_earlier_one_and_a_revoked_one_stays_revoked() {
    let fixture = Fixture::new().await;
    let keys = fixture.api_keys();
    let first = keys.create(new_key(TEAM)).await.unwrap();
    let second = keys.rotate(first.id).await.unwrap();
    let found = [first.text, second.text].map(|text| ApiKeyText::read(text.expose()).unwrap());
    let [first_found, second_found] = found.map(|text| text.hash());
    assert!(fixture.store.key_by_hash(&first_found).await.unwrap().is_none());
    assert!(fixture.store.key_by_hash(&second_found).await.unwrap().is_some());
    keys.revoke(first.id).await.unwrap();
    for refused in [keys.revoke(first.id).await, keys.rotate(first.id).await.map(drop)] {
        let text = refused.unwrap_err().to_string();
        assert_eq!(text, format!("there is no key that is not revoked: {}", first.id));
    }
    let unknown = ApiKeyId::from_uuid(Uuid::nil());
    let text = keys.rotate(unknown).await.map(drop).unwrap_err().to_string();
    assert_eq!(text, format!("there is no key {unknown}"));
}

#[tokio::test]
async fn contacts_are_registered_and_removed_with_an_audit_event() {
    let fixture = Fixture::new().await;
    let contacts = fixture.contacts();
    let id = contacts.register(TEAM, contact()).await.unwrap();
    assert_eq!(contacts.contacts(TEAM).await.unwrap()[0].id, id);
    contacts.remove(TEAM, id).await.unwrap();
    let text = contacts.remove(TEAM, id).await.unwrap_err().to_string();
    assert_eq!(text, format!("there is no receiver of that team: {id}"));
    let removed = format!("avouch admin: receiver.remove {id}");
    let audited = ["avouch admin: receiver.add", &removed, &removed];
    assert_eq!(fixture.audited().await, audited);
    unknown_team(contacts.register(UNKNOWN_TEAM, contact()).await.map(drop));
}

#[tokio::test]
async fn a_contact_does_not_change_without_an_audit_event() {
    let fixture = Fixture::new().await;
    let id = fixture.contacts().register(TEAM, contact()).await.unwrap();
    let fixture = fixture.with_broken_audit_log();
    let contacts = fixture.contacts();
    store_failed(&contacts.register(TEAM, contact()).await.map(drop));
    store_failed(&contacts.remove(TEAM, id).await);
    store_failed(&contacts.remove(TEAM, ContactId::from_uuid(Uuid::nil())).await);
    assert_eq!(fixture.store.contacts(TEAM).await.unwrap().len(), 1);
}

fn new_key(team: TeamId) -> NewApiKey {
    let environment = Environment::Development;
    NewApiKey { team, environment, expires_in: None, label: "Backend".into() }
}

fn contact() -> Contact {
    Contact::parse("Ada", "ada@example.com", "", "").unwrap()
}

fn unknown_team(result: Result<(), AdministrationError>) {
    assert_eq!(result.unwrap_err().to_string(), format!("there is no team {UNKNOWN_TEAM}"));
}

fn store_failed(result: &Result<(), AdministrationError>) {
    assert!(matches!(result, Err(AdministrationError::Store(_))), "{result:?}");
}

impl Fixture {
    fn teams(&self) -> TeamAdministration {
        TeamAdministration {
            teams: self.store.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
        }
    }

    fn api_keys(&self) -> ApiKeyAdministration {
        ApiKeyAdministration {
            teams: self.store.clone(),
            keys: self.store.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
        }
    }

    fn contacts(&self) -> ContactAdministration {
        ContactAdministration {
            teams: self.store.clone(),
            contacts: self.store.clone(),
            audit: self.audit.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
        }
    }
}
