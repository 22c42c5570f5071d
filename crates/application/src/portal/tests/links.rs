//! Choosing a password by a link that was mailed.

use std::net::IpAddr;

use chrono::TimeDelta;
use domain::{
    account::{LinkPurpose, Role},
    id::{AccountLinkId, UserId},
    notice::AccountEvent,
    secret::Secret,
};
use ports::{
    account_links::{AccountLink, AccountLinkStore as _, MailClaim},
    account_store::RequestOrigin,
    clock::Clock as _,
    driving::{AccountService as _, LinkService as _, MailedLink, PortalError},
    random::RandomSource as _,
    tokens::TokenIssuer as _,
};
use uuid::Uuid;

use super::{
    fakes::plain_hash,
    fixture::{Fixture, PASSWORD, TEAM, attempt, error, origin, refusal, secret, settle},
};
use crate::testing::PlainTokens;

const ADA: &str = "ada@lender.example";
const NEW: &str = "another good password";
const NO_LINK: &str = "this link is invalid or has expired. Request a new one";

#[tokio::test]
async fn a_forgotten_password_is_replaced_by_a_link() {
    let fixture = Fixture::new().await;
    let id = fixture.add_member(TEAM, ADA, Role::Member).await;
    let earlier = fixture.token(ADA).await;
    let links = fixture.links();
    links.forgot_password(" ADA@lender.example".to_owned(), origin()).await.unwrap();
    let mails = due_mails(&fixture).await;
    assert_eq!((mails.len(), mails[0].link.user, mails[0].email.as_str()), (1, id, ADA));
    let token = PlainTokens.account_link_token(mails[0].link.id);
    let expected = MailedLink { email: ADA.to_owned(), purpose: LinkPurpose::Reset };
    assert_eq!(links.mailed_link(&token).await.unwrap(), expected);
    links.choose_password(&token, secret(NEW), origin()).await.unwrap();
    assert!(fixture.stored(id).await.password == Some(plain_hash(NEW)));
    let before = fixture.accounts().signed_in_user(&earlier, origin()).await.unwrap();
    assert!(before.is_none(), "whoever knew the old password is signed out");
    let refused = error(fixture.accounts().sign_in(attempt(ADA, PASSWORD)).await);
    assert!(matches!(refused, PortalError::WrongPassword));
    assert_eq!(fixture.due_notices().await, [AccountEvent::PasswordChanged]);
    let actions = fixture.actions().await;
    assert_eq!(actions, ["password.forget", "password.choose reset", "sign-in.refused password"]);
}

#[tokio::test]
async fn an_invited_member_chooses_a_password_and_is_not_notified() {
    let fixture = Fixture::new().await;
    let id = fixture.add_member(TEAM, ADA, Role::Member).await;
    let token = link(&fixture, id, LinkPurpose::Invitation).await;
    fixture.links().choose_password(&token, secret(NEW), origin()).await.unwrap();
    assert!(fixture.accounts().sign_in(attempt(ADA, NEW)).await.is_ok());
    assert_eq!(fixture.due_notices().await, []);
    assert_eq!(fixture.actions().await[0], "password.choose invitation");
}

#[tokio::test]
async fn an_unknown_address_is_answered_like_a_known_one() {
    let fixture = Fixture::new().await;
    let links = fixture.links();
    for email in ["nobody@lender.example", "no address", ""] {
        links.forgot_password(email.to_owned(), origin()).await.unwrap();
    }
    assert!(due_mails(&fixture).await.is_empty());
    assert_eq!(fixture.actions().await, <[&str; 0]>::default());
}

#[tokio::test]
async fn links_to_one_address_are_limited_whether_an_account_has_it_or_not() {
    let fixture = Fixture::new().await;
    fixture.add_member(TEAM, ADA, Role::Member).await;
    let links = fixture.links();
    for email in [ADA, "nobody@lender.example"] {
        for number in 0..5 {
            let from = RequestOrigin { address: IpAddr::from([192, 0, 2, number]), ..origin() };
            links.forgot_password(email.to_owned(), from).await.unwrap();
        }
        let refused = error(links.forgot_password(email.to_uppercase(), origin()).await);
        assert!(matches!(refused, PortalError::TooMany { retry_after: 1.. }), "{email}: {refused}");
    }
}

#[tokio::test]
async fn requests_from_one_address_are_limited() {
    let fixture = Fixture::new().await;
    let links = fixture.links();
    for number in 0..100 {
        links.forgot_password(format!("a{number}@lender.example"), origin()).await.unwrap();
    }
    let refused = error(links.forgot_password(ADA.to_owned(), origin()).await);
    assert!(matches!(refused, PortalError::TooMany { retry_after: 1.. }), "{refused}");
    let refused = links.choose_password(&secret("link"), secret(NEW), origin()).await;
    assert!(matches!(error(refused), PortalError::TooMany { .. }));
    let elsewhere = RequestOrigin { address: IpAddr::from([198, 51, 100, 1]), ..origin() };
    links.forgot_password(ADA.to_owned(), elsewhere).await.unwrap();
}

#[tokio::test]
async fn a_link_opens_nothing_once_it_is_used_expired_replaced_or_forged() {
    let fixture = Fixture::new().await;
    let id = fixture.add_member(TEAM, ADA, Role::Member).await;
    let links = fixture.links();
    let used = link(&fixture, id, LinkPurpose::Reset).await;
    links.choose_password(&used, secret(NEW), origin()).await.unwrap();
    let replaced = link(&fixture, id, LinkPurpose::Reset).await;
    let expired = link(&fixture, id, LinkPurpose::Reset).await;
    fixture.clock.forward(LinkPurpose::Reset.ttl());
    for token in [used, replaced, expired, secret("forged"), secret("link-forged")] {
        assert_eq!(refusal(links.mailed_link(&token).await), NO_LINK);
        let chosen = links.choose_password(&token, secret("a third good password"), origin()).await;
        assert_eq!(refusal(chosen), NO_LINK);
    }
    assert!(fixture.stored(id).await.password == Some(plain_hash(NEW)));
}

#[tokio::test]
async fn a_refused_password_does_not_use_the_link_up() {
    let fixture = Fixture::new().await;
    let id = fixture.add_member(TEAM, ADA, Role::Member).await;
    let token = link(&fixture, id, LinkPurpose::Invitation).await;
    let links = fixture.links();
    let refused = links.choose_password(&token, secret("short"), origin()).await;
    assert_eq!(refusal(refused), "the password must have at least 15 characters");
    let refused = links.choose_password(&token, secret("ada@lender.example 1"), origin()).await;
    assert_eq!(refusal(refused), "this password is too easy to guess. Choose another one");
    links.choose_password(&token, secret(NEW), origin()).await.unwrap();
}

#[tokio::test]
async fn of_two_uses_of_a_link_one_sets_the_password() {
    let fixture = Fixture::new().await;
    let id = fixture.add_member(TEAM, ADA, Role::Member).await;
    for round in 0..20 {
        let token = link(&fixture, id, LinkPurpose::Reset).await;
        let links = [fixture.links(), fixture.links()];
        let (one, other) = (format!("the good password {round}"), format!("password two {round}"));
        let from =
            |number| RequestOrigin { address: IpAddr::from([192, 0, 2, number]), ..origin() };
        let outcomes = tokio::join!(
            links[0].choose_password(&token, secret(&one), from(1)),
            links[1].choose_password(&token, secret(&other), from(2)),
        );
        let expected = if outcomes.0.is_ok() { one } else { other };
        assert!(outcomes.0.is_ok() != outcomes.1.is_ok(), "round {round}");
        assert!(fixture.stored(id).await.password == Some(plain_hash(&expected)));
    }
}

#[tokio::test]
async fn a_password_is_chosen_only_once_that_is_recorded() {
    let fixture = Fixture::new().await;
    let id = fixture.add_member(TEAM, ADA, Role::Member).await;
    let token = link(&fixture, id, LinkPurpose::Reset).await;
    let fixture = fixture.with_broken_audit_log();
    let links = fixture.links();
    let failed = error(links.choose_password(&token, secret(NEW), origin()).await);
    assert!(matches!(failed, PortalError::Store(_)));
    assert!(fixture.stored(id).await.password == Some(plain_hash(PASSWORD)));
    assert!(links.mailed_link(&token).await.is_ok(), "the link can be used later");
    // A request for a link is answered before it is recorded: the failure is logged.
    due_mails(&fixture).await;
    links.forgot_password(ADA.to_owned(), origin()).await.unwrap();
    settle().await;
    assert!(due_mails(&fixture).await.is_empty());
}

/// Enqueues a link, and returns its token.
async fn link(fixture: &Fixture, user: UserId, purpose: LinkPurpose) -> Secret {
    let id = AccountLinkId::from_uuid(Uuid::from_u128(fixture.random.new_id()));
    let now = fixture.clock.now();
    let link = AccountLink { id, user, purpose, created_at: now, expires_at: now + purpose.ttl() };
    fixture.store.enqueue_link(&link).await.unwrap();
    PlainTokens.account_link_token(id)
}

/// Takes the mails with account links that are due, once the tasks that enqueue them have run.
async fn due_mails(fixture: &Fixture) -> Vec<MailClaim> {
    settle().await;
    fixture.store.claim_mails(fixture.clock.now(), TimeDelta::days(1), 100).await.unwrap()
}
