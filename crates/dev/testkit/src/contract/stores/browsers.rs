//! The contract of [`ports::known_browsers::KnownBrowserStore`].

use chrono::TimeDelta;
use domain::{
    account::{LinkPurpose, Role},
    id::{AccountLinkId, UserId},
};
use ports::{
    account_links::AccountLink,
    account_store::{CodeHash, PasswordHash},
    known_browsers::{KnownBrowser, MAX_KNOWN_BROWSERS},
};
use uuid::Uuid;

use super::{Backend, hash, members::added, team_fixture};
use crate::sample::noon;

fn token() -> CodeHash {
    CodeHash(hash().0)
}

fn browser(user: UserId, minutes: i64) -> KnownBrowser {
    let used_at = noon() + TimeDelta::minutes(minutes);
    KnownBrowser { user, token: token(), used_at, expires_at: used_at + TimeDelta::days(90) }
}

async fn known(backend: &Backend, user: UserId, tokens: &[&CodeHash]) -> Option<CodeHash> {
    let tokens: Vec<_> = tokens.iter().map(|token| (*token).clone()).collect();
    backend.browsers.known_browser(user, &tokens, noon()).await.unwrap()
}

pub async fn finds_known_browsers_until_they_expire(backend: &Backend) {
    let home = team_fixture(backend).await;
    let user = added(backend, home.team, Role::Member).await;
    let other = added(backend, home.team, Role::Member).await;
    let one = browser(user.id, 0);
    assert!(known(backend, user.id, &[&one.token]).await.is_none());
    assert_eq!(backend.browsers.keep_browser(&one, None).await.unwrap(), 0);
    assert!(known(backend, user.id, &[&token(), &one.token]).await == Some(one.token.clone()));
    assert!(known(backend, user.id, &[&token()]).await.is_none());
    assert!(known(backend, other.id, &[&one.token]).await.is_none(), "of another member");
    let (tokens, late) = ([one.token.clone()], one.expires_at);
    let later = backend.browsers.known_browser(user.id, &tokens, late).await.unwrap();
    assert!(later.is_none(), "expired");

    let newer = browser(user.id, 1);
    let kept = backend.browsers.keep_browser(&newer, Some(&one.token)).await.unwrap();
    assert_eq!(kept, 1);
    assert!(known(backend, user.id, &[&one.token]).await.is_none(), "the earlier token");
    assert!(known(backend, user.id, &[&newer.token]).await.is_some());
    assert_eq!(backend.browsers.delete_expired_browsers(noon()).await.unwrap(), 0);
    assert_eq!(backend.browsers.delete_expired_browsers(newer.expires_at).await.unwrap(), 1);
}

pub async fn keeps_no_more_than_the_maximum_of_browsers(backend: &Backend) {
    let home = team_fixture(backend).await;
    let user = added(backend, home.team, Role::Member).await;
    let mut all = vec![];
    for minutes in 0..=i64::try_from(MAX_KNOWN_BROWSERS).unwrap() {
        let one = browser(user.id, minutes);
        backend.browsers.keep_browser(&one, None).await.unwrap();
        all.push(one);
    }
    assert!(known(backend, user.id, &[&all[0].token]).await.is_none(), "the oldest");
    for one in &all[1..] {
        assert!(known(backend, user.id, &[&one.token]).await.is_some());
    }
    // Replacing a token of a known browser evicts no other one.
    let newer = browser(user.id, 60);
    let had = backend.browsers.keep_browser(&newer, Some(&all[3].token)).await.unwrap();
    assert_eq!(had, MAX_KNOWN_BROWSERS);
    assert!(known(backend, user.id, &[&all[1].token]).await.is_some());
    assert!(known(backend, user.id, &[&all[3].token]).await.is_none());
}

pub async fn deletes_known_browsers_when_a_password_is_set_with_a_link(backend: &Backend) {
    let home = team_fixture(backend).await;
    let user = added(backend, home.team, Role::Member).await;
    let one = browser(user.id, 0);
    backend.browsers.keep_browser(&one, None).await.unwrap();
    let link = AccountLink {
        id: AccountLinkId::from_uuid(Uuid::new_v4()),
        user: user.id,
        purpose: LinkPurpose::Reset,
        created_at: noon(),
        expires_at: noon() + TimeDelta::minutes(30),
    };
    backend.account_links.enqueue_link(&link).await.unwrap();
    let password = PasswordHash("another".into());
    assert!(backend.account_links.use_link(link.id, &password, noon()).await.unwrap());
    assert!(known(backend, user.id, &[&one.token]).await.is_none());
}
