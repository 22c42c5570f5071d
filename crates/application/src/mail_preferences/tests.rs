//! A recipient's choice.

use domain::branding::BrandName;
use ports::{
    brand_store::BrandStore as _,
    driving::{MailPreference, MailPreferenceService as _},
    tokens::TokenIssuer as _,
};

use super::MailPreferences;
use crate::testing::World;

#[tokio::test]
async fn a_recipient_unsubscribes_and_subscribes_again() {
    let world = World::new().await;
    let name: BrandName = "Lender".parse().unwrap();
    world.store.set_brand(world.team, Some(&name), None, None).await.unwrap();
    let preferences = MailPreferences {
        tokens: world.tokens.clone(),
        clock: world.clock.clone(),
        brands: world.store.clone(),
        suppressions: world.store.clone(),
    };
    let mailbox = world.tokens.mailbox(world.team, "ada@example.com");
    let token = world.tokens.mailbox_token(&mailbox);
    let read = async || preferences.mails(token.expose()).await.unwrap();
    let expected = |wanted| Some(MailPreference { sender: Some(name.clone()), wanted });
    assert_eq!(read().await, expected(true));
    for wanted in [false, false, true] {
        let chosen = preferences.choose_mails(token.expose(), wanted).await.unwrap();
        assert_eq!((chosen, read().await), (expected(wanted), expected(wanted)));
    }
    assert_eq!(preferences.mails("guessed").await.unwrap(), None);
    assert_eq!(preferences.choose_mails("guessed", false).await.unwrap(), None);
}
