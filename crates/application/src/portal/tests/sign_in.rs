//! Signing in with a password.

use std::{net::IpAddr, sync::atomic::Ordering};

use chrono::TimeDelta;
use domain::{account::Role, notice::AccountEvent};
use ports::{
    account_store::{NewPassword, RequestOrigin, UserStore as _},
    clock::Clock as _,
    driving::{AccountService as _, PortalError, SignInAttempt},
};

use super::{
    fakes::plain_hash,
    fixture::{Fixture, PASSWORD, TEAM, attempt, browsers, error, origin, secret, settle},
};

const ADA: &str = "ada@lender.example";

#[tokio::test]
async fn the_right_password_signs_in_however_the_address_is_written() {
    let fixture = Fixture::new().await;
    let id = fixture.add_member(TEAM, ADA, Role::Member).await;
    let signed_in = fixture.accounts().sign_in(attempt(" ADA@lender.example ", PASSWORD)).await;
    let signed_in = signed_in.unwrap();
    assert!(!signed_in.needs_code && signed_in.browsers.is_some());
    let user = fixture.accounts().signed_in_user(&signed_in.token, origin()).await.unwrap();
    let user = user.expect("a sign-in");
    assert_eq!((user.user, user.team, user.role), (id, TEAM, Role::Member));
    assert_eq!((user.email.as_str(), user.team_name.as_str()), (ADA, "Lender"));
    assert!(user.passed && user.required_action.is_none() && !user.is_by_provider());
    assert_eq!(fixture.attempts.counted(), 0, "an attempt that was right is not counted");
}

#[tokio::test]
async fn a_wrong_password_and_an_unknown_address_are_refused_alike() {
    let fixture = Fixture::new().await;
    fixture.add_member(TEAM, ADA, Role::Member).await;
    let long = "a".repeat(201);
    for (email, password) in [
        (ADA, "wrong"),
        (ADA, long.as_str()),
        ("bob@lender.example", PASSWORD),
        ("no address", PASSWORD),
    ] {
        let refused = error(fixture.accounts().sign_in(attempt(email, password)).await);
        assert!(matches!(refused, PortalError::WrongPassword), "{email}: {refused}");
    }
    assert_eq!(fixture.hasher.verified.load(Ordering::Relaxed), 4, "each takes as long");
    assert_eq!(
        fixture.actions().await,
        ["sign-in.refused password", "sign-in.refused password"],
        "only what concerns an account is in the log of its team"
    );
}

#[tokio::test]
async fn a_password_longer_than_any_is_wrong_even_where_it_is_the_stored_one() {
    let fixture = Fixture::new().await;
    let id = fixture.add_member(TEAM, ADA, Role::Member).await;
    let long = "a".repeat(201);
    let password = NewPassword::chosen(plain_hash(&long));
    fixture.store.set_password(id, &password).await.unwrap();
    let refused = error(fixture.accounts().sign_in(attempt(ADA, &long)).await);
    assert!(matches!(refused, PortalError::WrongPassword));
}

#[tokio::test]
async fn a_password_that_was_made_for_a_member_expires() {
    let fixture = Fixture::new().await;
    let id = fixture.add_member(TEAM, ADA, Role::Member).await;
    let password = NewPassword::made(plain_hash(PASSWORD), fixture.clock.now());
    let until = password.until.expect("an end");
    fixture.store.set_password(id, &password).await.unwrap();
    let token = fixture.token(ADA).await;
    assert_eq!(fixture.user_of(&token).await.password_until, Some(until));
    fixture.clock.forward(until - fixture.clock.now());
    let refused = error(fixture.accounts().sign_in(attempt(ADA, "wrong")).await);
    assert!(matches!(refused, PortalError::WrongPassword), "only who knows it learns that");
    let refused = error(fixture.accounts().sign_in(attempt(ADA, PASSWORD)).await);
    assert!(matches!(refused, PortalError::PasswordRanOut));
    let actions = fixture.actions().await;
    let expected = ["sign-in.refused password", "sign-in.refused password that ran out"];
    assert_eq!(actions, expected);
}

#[tokio::test]
async fn wrong_passwords_delay_further_attempts() {
    let fixture = Fixture::new().await;
    fixture.add_member(TEAM, ADA, Role::Member).await;
    let accounts = fixture.accounts();
    for _ in 0..6 {
        let refused = error(accounts.sign_in(attempt(ADA, "wrong")).await);
        assert!(matches!(refused, PortalError::WrongPassword));
    }
    let counted = fixture.attempts.counted();
    let refused = error(accounts.sign_in(attempt(ADA, PASSWORD)).await);
    assert!(matches!(refused, PortalError::TooMany { retry_after: 15 }), "{refused}");
    assert_eq!(fixture.attempts.counted(), counted, "an attempt that is not made counts nowhere");
    assert_eq!(fixture.hasher.verified.load(Ordering::Relaxed), 6);
    fixture.clock.forward(TimeDelta::seconds(15));
    assert!(accounts.sign_in(attempt(ADA, PASSWORD)).await.is_ok());
}

#[tokio::test]
async fn a_known_browser_is_not_delayed_by_the_attempts_of_others() {
    let fixture = Fixture::new().await;
    fixture.add_member(TEAM, ADA, Role::Member).await;
    let accounts = fixture.accounts();
    let known = browsers(&accounts.sign_in(attempt(ADA, PASSWORD)).await.unwrap());
    for _ in 0..6 {
        error(accounts.sign_in(attempt(ADA, "wrong")).await);
    }
    let from_known = || SignInAttempt { browsers: known.clone(), ..attempt(ADA, PASSWORD) };
    assert!(accounts.sign_in(from_known()).await.is_ok());
    let elsewhere = RequestOrigin { address: IpAddr::from([198, 51, 100, 1]), ..origin() };
    let elsewhere = SignInAttempt { from: elsewhere, ..attempt(ADA, PASSWORD) };
    assert!(accounts.sign_in(elsewhere).await.is_ok(), "another network is delayed later");
}

#[tokio::test]
async fn attempts_from_a_known_browser_are_delayed_as_well() {
    let fixture = Fixture::new().await;
    fixture.add_member(TEAM, ADA, Role::Member).await;
    let accounts = fixture.accounts();
    let known = browsers(&accounts.sign_in(attempt(ADA, PASSWORD)).await.unwrap());
    let wrong = || SignInAttempt { browsers: known.clone(), ..attempt(ADA, "wrong") };
    for _ in 0..6 {
        let refused = error(accounts.sign_in(wrong()).await);
        assert!(matches!(refused, PortalError::WrongPassword));
    }
    assert!(matches!(error(accounts.sign_in(wrong()).await), PortalError::TooMany { .. }));
    assert!(accounts.sign_in(attempt(ADA, PASSWORD)).await.is_ok(), "others are not delayed");
}

#[tokio::test]
async fn a_sign_in_in_a_second_browser_is_noticed() {
    let fixture = Fixture::new().await;
    fixture.add_member(TEAM, ADA, Role::Member).await;
    let accounts = fixture.accounts();
    let first = accounts.sign_in(attempt(ADA, PASSWORD)).await.unwrap();
    assert_eq!(fixture.due_notices().await, [], "the first browser is no surprise");
    let again = SignInAttempt { browsers: browsers(&first), ..attempt(ADA, PASSWORD) };
    let again = accounts.sign_in(again).await.unwrap();
    assert_eq!(fixture.due_notices().await, []);
    assert!(browsers(&again) != browsers(&first), "the token of a browser is replaced");
    accounts.sign_in(attempt(ADA, PASSWORD)).await.unwrap();
    assert_eq!(fixture.due_notices().await, [AccountEvent::NewBrowser]);
    assert_eq!(fixture.actions().await, ["sign-in new browser"]);
    let old = SignInAttempt { browsers: browsers(&first), ..attempt(ADA, PASSWORD) };
    accounts.sign_in(old).await.unwrap();
    assert_eq!(fixture.due_notices().await, [AccountEvent::NewBrowser], "the old token is void");
}

#[tokio::test]
async fn a_browser_keeps_the_tokens_of_the_last_four_accounts() {
    let fixture = Fixture::new().await;
    let accounts = fixture.accounts();
    let mut kept = secret("");
    for name in ["ada", "bob", "cyd", "dan", "eve"] {
        let email = format!("{name}@lender.example");
        fixture.add_member(TEAM, &email, Role::Member).await;
        let attempt = SignInAttempt { browsers: kept.clone(), ..attempt(&email, PASSWORD) };
        kept = browsers(&accounts.sign_in(attempt).await.unwrap());
    }
    assert_eq!(kept.expose().split('.').count(), 4);
    for (email, is_known) in [("eve@lender.example", true), (ADA, false)] {
        for _ in 0..6 {
            error(accounts.sign_in(attempt(email, "wrong")).await);
        }
        let again = SignInAttempt { browsers: kept.clone(), ..attempt(email, PASSWORD) };
        let outcome = accounts.sign_in(again).await;
        assert_eq!(outcome.is_ok(), is_known, "{email}");
    }
}

#[tokio::test]
async fn a_sign_in_is_recorded_before_it_begins() {
    let fixture = Fixture::new().await;
    let id = fixture.add_member(TEAM, ADA, Role::Member).await;
    let user = fixture.user_of(&fixture.token(ADA).await).await;
    assert_eq!(user.user, id);
    let fixture = fixture.with_broken_audit_log();
    let failed = error(fixture.accounts().sign_in(attempt(ADA, PASSWORD)).await);
    assert!(matches!(failed, PortalError::Store(_)));
    let sign_ins = fixture.accounts().sign_ins(&user).await.unwrap();
    assert_eq!(sign_ins.len(), 1, "a sign-in that is not in the log does not exist");
    // The record of a refusal is not waited for: that it fails is logged, and changes no answer.
    let refused = error(fixture.accounts().sign_in(attempt(ADA, "wrong")).await);
    assert!(matches!(refused, PortalError::WrongPassword));
    settle().await;
}
