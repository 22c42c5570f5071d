//! The contract of [`ports::contact_store::ContactStore`].

use chrono::TimeDelta;
use domain::{
    id::{ContactId, TeamId},
    request::Contact,
};
use ports::contact_store::StoredContact;
use uuid::Uuid;

use super::{Backend, team_fixture};
use crate::sample::noon;

fn contact(team: TeamId, minutes: i64, contact: Contact) -> StoredContact {
    let id = ContactId::from_uuid(Uuid::new_v4());
    StoredContact { id, team, contact, created_at: noon() + TimeDelta::minutes(minutes) }
}

pub async fn keeps_the_contacts_of_each_team_separate(backend: &Backend) {
    let store = &backend.contacts;
    let (home, other) = (team_fixture(backend).await.team, team_fixture(backend).await.team);
    let ada = Contact::parse("Ada", "ada@example.com", "", "en-GB").unwrap();
    let bob = Contact::parse("", "", "+15551234567", "").unwrap();
    let (ada, bob) = (contact(home, 0, ada), contact(home, 1, bob));
    for one in [&ada, &bob] {
        store.add_contact(one).await.unwrap();
    }
    assert_eq!(store.contacts(home).await.unwrap(), [bob.clone(), ada.clone()]);
    assert_eq!(store.contact(home, ada.id).await.unwrap().as_ref(), Some(&ada));

    assert!(store.contacts(other).await.unwrap().is_empty());
    assert_eq!(store.contact(other, ada.id).await.unwrap(), None);
    assert!(!store.change_receiver(other, ada.id, &bob.contact).await.unwrap());
    assert!(!store.remove_contact(other, ada.id).await.unwrap());

    assert!(store.change_receiver(home, ada.id, &bob.contact).await.unwrap());
    let changed = StoredContact { contact: bob.contact.clone(), ..ada.clone() };
    assert_eq!(store.contacts(home).await.unwrap(), [bob.clone(), changed]);
    assert!(store.remove_contact(home, ada.id).await.unwrap());
    assert!(!store.remove_contact(home, ada.id).await.unwrap());
    assert!(!store.change_receiver(home, ada.id, &bob.contact).await.unwrap());
    assert_eq!(store.contacts(home).await.unwrap(), [bob]);
}
