//! The contract of [`ports::brand_store::BrandStore`].

use domain::{
    branding::{Brand, Logo},
    https_url::HttpsUrl,
    id::{SessionId, TeamId},
};
use uuid::Uuid;

use super::{Backend, TeamFixture, hash, inserted, team_fixture};
use crate::sample;

pub async fn keeps_the_brand_of_a_team(backend: &Backend) {
    let store = &backend.brands;
    let (home, other) = (team_fixture(backend).await, team_fixture(backend).await);
    let (session, theirs) = (inserted(backend, &home).await, inserted(backend, &other).await);
    assert_eq!(store.brand(home.team).await.unwrap(), Brand::default());
    assert_eq!(store.brand_of(session.id).await.unwrap(), Brand::default());
    let png: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x00\xff";
    let brand = Brand {
        name: Some("Lender".parse().unwrap()),
        colour: Some("#1f4fd8".parse().unwrap()),
        logo: Some(Logo::read(png).unwrap()),
        privacy_url: HttpsUrl::new("https://lender.example/privacy"),
    };
    store.set_logo(home.team, brand.logo.as_ref()).await.unwrap();
    let privacy_url = brand.privacy_url.as_ref();
    store.set_brand(home.team, brand.name.as_ref(), brand.colour, privacy_url).await.unwrap();
    assert_eq!(store.brand(home.team).await.unwrap(), brand);
    assert_eq!(store.brand_of(session.id).await.unwrap(), brand);
    assert_eq!(store.brand_of(theirs.id).await.unwrap(), Brand::default(), "of another team");
    let unknown = SessionId::from_uuid(Uuid::new_v4());
    assert_eq!(store.brand_of(unknown).await.unwrap(), Brand::default());

    store.set_brand(home.team, None, brand.colour, None).await.unwrap();
    let nameless = Brand { name: None, privacy_url: None, ..brand.clone() };
    assert_eq!(store.brand(home.team).await.unwrap(), nameless, "the logo stays");
    store.set_logo(home.team, None).await.unwrap();
    let bare = Brand { logo: None, ..nameless };
    assert_eq!(store.brand(home.team).await.unwrap(), bare, "the colour stays");
}

pub async fn returns_the_name_of_a_sessions_team(backend: &Backend) {
    let home = team_fixture(backend).await;
    let team = TeamId::from_uuid(Uuid::new_v4());
    backend.teams.add_team(team, "Another lender", sample::noon()).await.unwrap();
    let key = sample::key(team);
    backend.keys.add_key(&key, &hash(), "Backend", sample::noon()).await.unwrap();
    let other = TeamFixture { team, owner: key.id, platform: home.platform };
    for (team, name) in [(&home, "Lender"), (&other, "Another lender")] {
        let session = inserted(backend, team).await;
        let found = backend.brands.team_name_of(session.id).await.unwrap();
        assert_eq!(found.as_deref(), Some(name));
    }
    let unknown = SessionId::from_uuid(Uuid::new_v4());
    assert_eq!(backend.brands.team_name_of(unknown).await.unwrap(), None);
}
