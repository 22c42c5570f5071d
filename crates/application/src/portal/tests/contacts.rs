//! The registered contacts and the brand of a team.

use domain::{
    account::Role,
    branding::{Brand, BrandName, Logo},
    id::{ContactId, TeamId},
    request::Contact,
};
use ports::{
    contact_store::{ContactStore as _, StoredContact},
    driving::{BrandingService as _, ContactService as _, PortalError},
    random::RandomSource as _,
};
use testkit::sample::noon;
use uuid::Uuid;

use super::fixture::{Fixture, OTHER_TEAM, TEAM, error, refusal};

#[tokio::test]
async fn a_contact_is_registered_changed_and_removed() {
    let fixture = Fixture::new().await;
    let user = fixture.user(Role::Member).await;
    let contacts = fixture.contacts();
    let id = contacts.register(&user, contact("Ada")).await.unwrap();
    assert_eq!(contacts.receiver(&user, id).await.unwrap().contact, contact("Ada"));
    contacts.change_receiver(&user, id, contact("Grace")).await.unwrap();
    let listed = contacts.receivers(&user).await.unwrap();
    assert_eq!((listed.len(), listed[0].id, listed[0].team), (1, id, TEAM));
    assert_eq!(listed[0].contact, contact("Grace"));
    contacts.remove_receiver(&user, id).await.unwrap();
    assert_eq!(refusal(contacts.receiver(&user, id).await), "recipient not found");
    let expected = [
        "receiver.add".to_owned(),
        format!("receiver.change {id}"),
        format!("receiver.remove {id}"),
    ];
    assert_eq!(fixture.actions().await, expected, "the log names no applicant");
}

#[tokio::test]
async fn contacts_of_another_team_are_as_if_they_were_not_there() {
    let fixture = Fixture::new().await;
    let user = fixture.user(Role::Owner).await;
    let theirs = add_contact(&fixture, OTHER_TEAM).await;
    let contacts = fixture.contacts();
    for id in [theirs, ContactId::from_uuid(Uuid::nil())] {
        let refusals = [
            contacts.receiver(&user, id).await.map(drop),
            contacts.change_receiver(&user, id, contact("Eve")).await,
            contacts.remove_receiver(&user, id).await,
        ];
        for refused in refusals {
            assert_eq!(refusal(refused), "recipient not found");
        }
    }
    assert_eq!(contacts.receivers(&user).await.unwrap(), []);
    let stored = fixture.store.contact(OTHER_TEAM, theirs).await.unwrap();
    assert_eq!(stored.expect("a contact").contact, contact("Ada"));
}

#[tokio::test]
async fn a_team_has_a_limited_number_of_contacts() {
    let fixture = Fixture::new().await;
    let user = fixture.user(Role::Member).await;
    for _ in 0..199 {
        add_contact(&fixture, TEAM).await;
    }
    add_contact(&fixture, OTHER_TEAM).await;
    let contacts = fixture.contacts();
    contacts.register(&user, contact("Ada")).await.unwrap();
    let refused = contacts.register(&user, contact("Ada")).await;
    assert_eq!(refusal(refused), "a team can have up to 200 recipients");
    assert_eq!(contacts.receivers(&user).await.unwrap().len(), 200);
}

#[tokio::test]
async fn a_contact_changes_only_once_the_change_is_recorded() {
    let fixture = Fixture::new().await;
    let user = fixture.user(Role::Member).await;
    let id = add_contact(&fixture, TEAM).await;
    let fixture = fixture.with_broken_audit_log();
    let contacts = fixture.contacts();
    let failures = [
        contacts.register(&user, contact("Grace")).await.map(drop),
        contacts.change_receiver(&user, id, contact("Grace")).await,
        contacts.remove_receiver(&user, id).await,
    ];
    for failed in failures {
        assert!(matches!(error(failed), PortalError::Store(_)));
    }
    let listed = contacts.receivers(&user).await.unwrap();
    assert_eq!(listed.iter().map(|stored| &stored.contact).collect::<Vec<_>>(), [&contact("Ada")]);
}

#[tokio::test]
async fn a_brand_belongs_to_one_team_and_is_recorded() {
    let fixture = Fixture::new().await;
    let user = fixture.user(Role::Owner).await;
    let branding = fixture.branding();
    let (name, colour) = ("Lender".parse().unwrap(), "#336699".parse().unwrap());
    branding.set_brand(&user, Some(name), Some(colour), None).await.unwrap();
    branding.set_logo(&user, Some(logo())).await.unwrap();
    let brand = branding.brand(&user).await.unwrap();
    assert_eq!(brand.name.as_ref().map(BrandName::as_str), Some("Lender"));
    assert_eq!(brand.colour, Some(colour));
    assert!(brand.logo.is_some());
    let other = fixture.user_in(OTHER_TEAM, Role::Owner).await;
    assert_eq!(branding.brand(&other).await.unwrap(), Brand::default());
    branding.set_logo(&user, None).await.unwrap();
    assert!(branding.brand(&user).await.unwrap().logo.is_none());
    let expected = ["branding.set \"Lender\" #336699", "branding.logo", "branding.no-logo"];
    assert_eq!(fixture.actions().await, expected);
}

fn contact(name: &str) -> Contact {
    Contact::parse(name, "applicant@example.com", "", "").unwrap()
}

async fn add_contact(fixture: &Fixture, team: TeamId) -> ContactId {
    let id = ContactId::from_uuid(Uuid::from_u128(fixture.random.new_id()));
    let stored = StoredContact { id, team, contact: contact("Ada"), created_at: noon() };
    fixture.store.add_contact(&stored).await.unwrap();
    id
}

/// Returns the beginning of a PNG file of one pixel.
fn logo() -> Logo {
    Logo::read(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01").unwrap()
}
