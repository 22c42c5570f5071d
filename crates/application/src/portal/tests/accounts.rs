//! Members' own accounts: sign-ins and passwords.

use chrono::TimeDelta;
use domain::{account::Role, id::SignInId, notice::AccountEvent, required_action::RequiredAction};
use ports::{
    account_store::TeamMembers as _,
    driving::{AccountService as _, PortalError, SignedInUser},
};
use uuid::Uuid;

use super::{
    fakes::plain_hash,
    fixture::{Fixture, PASSWORD, TEAM, attempt, error, origin, refusal, secret},
    services::POLICY,
};
use crate::settings::SignInPolicy;

const ADA: &str = "ada@lender.example";

#[tokio::test]
async fn a_sign_in_ends_when_it_is_idle_or_old() {
    let fixture = Fixture::new().await;
    fixture.add_member(TEAM, ADA, Role::Member).await;
    let (idle, used) = (fixture.token(ADA).await, fixture.token(ADA).await);
    let accounts = fixture.accounts();
    for _ in 0..24 {
        fixture.clock.forward(TimeDelta::minutes(29));
        assert!(accounts.signed_in_user(&used, origin()).await.unwrap().is_some());
    }
    assert!(accounts.signed_in_user(&idle, origin()).await.unwrap().is_none());
    fixture.clock.forward(TimeDelta::minutes(29));
    assert!(accounts.signed_in_user(&used, origin()).await.unwrap().is_none());
    assert!(accounts.signed_in_user(&secret("forged"), origin()).await.unwrap().is_none());
}

#[tokio::test]
async fn a_member_signs_out_and_ends_other_sign_ins() {
    let fixture = Fixture::new().await;
    fixture.add_member(TEAM, ADA, Role::Viewer).await;
    let (first, second) = (fixture.token(ADA).await, fixture.token(ADA).await);
    let (first_user, second_user) = (fixture.user_of(&first).await, fixture.user_of(&second).await);
    let accounts = fixture.accounts();
    assert_eq!(accounts.sign_ins(&first_user).await.unwrap().len(), 2);
    accounts.end_sign_in(&first_user, second_user.sign_in).await.unwrap();
    assert!(accounts.signed_in_user(&second, origin()).await.unwrap().is_none());
    let ended = format!("sign-in.end {}", second_user.sign_in);
    assert_eq!(*fixture.actions().await.last().unwrap(), ended);
    accounts.sign_out(&first_user).await.unwrap();
    assert!(accounts.signed_in_user(&first, origin()).await.unwrap().is_none());
}

#[tokio::test]
async fn a_member_ends_no_sign_in_of_another_member() {
    let fixture = Fixture::new().await;
    let (owner, member) = (fixture.user(Role::Owner).await, fixture.user(Role::Member).await);
    let accounts = fixture.accounts();
    for id in [member.sign_in, SignInId::from_uuid(Uuid::nil())] {
        assert_eq!(refusal(accounts.end_sign_in(&owner, id).await), "sign-in not found");
    }
    assert_eq!(accounts.sign_ins(&member).await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_incomplete_sign_in_changes_nothing() {
    let fixture = Fixture::new().await;
    let user = SignedInUser { passed: false, ..fixture.user(Role::Owner).await };
    let accounts = fixture.accounts();
    let refusals = [
        accounts.sign_ins(&user).await.map(drop),
        accounts.end_sign_in(&user, user.sign_in).await,
        accounts.change_password(&user, secret("another good password")).await,
        accounts.enable_totp(&user, "", "").await.map(drop),
        accounts.disable_totp(&user).await,
    ];
    for refused in refusals {
        assert!(matches!(error(refused), PortalError::Forbidden));
    }
    assert_eq!(fixture.actions().await, <[&str; 0]>::default());
}

#[tokio::test]
async fn a_changed_password_ends_all_other_sign_ins() {
    let fixture = Fixture::new().await;
    let id = fixture.add_member(TEAM, ADA, Role::Member).await;
    let (own, other) = (fixture.token(ADA).await, fixture.token(ADA).await);
    let user = fixture.user_of(&own).await;
    let accounts = fixture.accounts();
    fixture.due_notices().await;
    accounts.change_password(&user, secret("another good password")).await.unwrap();
    assert!(accounts.signed_in_user(&own, origin()).await.unwrap().is_some());
    assert!(accounts.signed_in_user(&other, origin()).await.unwrap().is_none());
    assert_eq!(*fixture.actions().await.last().unwrap(), "password.change");
    assert_eq!(fixture.due_notices().await, [AccountEvent::PasswordChanged]);
    let stored = fixture.stored(id).await;
    assert!(stored.password == Some(plain_hash("another good password")));
    assert!(accounts.sign_in(attempt(ADA, "another good password")).await.is_ok());
    let refused = error(accounts.sign_in(attempt(ADA, PASSWORD)).await);
    assert!(matches!(refused, PortalError::WrongPassword));
}

#[tokio::test]
async fn a_new_password_follows_the_rules() {
    let fixture = Fixture::new().await;
    let id = fixture.add_member(TEAM, ADA, Role::Member).await;
    let user = fixture.user_of(&fixture.token(ADA).await).await;
    let long = "a".repeat(201);
    for (password, why) in [
        ("short", "the password must have at least 15 characters"),
        (long.as_str(), "the password can have at most 200 characters"),
        (
            "frequent password",
            "this password appears on lists of common and leaked passwords. Choose another one",
        ),
        ("ada@lender.example 1", "this password is too easy to guess. Choose another one"),
        ("my avouch password", "this password is too easy to guess. Choose another one"),
    ] {
        let refused = fixture.accounts().change_password(&user, secret(password)).await;
        assert_eq!(refusal(refused), why);
    }
    assert!(fixture.stored(id).await.password == Some(plain_hash(PASSWORD)));
    assert_eq!(fixture.actions().await, <[&str; 0]>::default());
}

#[tokio::test]
async fn a_required_second_factor_is_set_up_before_anything_else() {
    let fixture = Fixture::new().await;
    let policy = SignInPolicy { operators_need_second_factor: true, ..POLICY };
    let fixture = Fixture { policy, ..fixture };
    let operator = fixture.user(Role::Operator).await;
    assert_eq!(operator.required_action, Some(RequiredAction::SecondFactor));
    let member = fixture.user(Role::Member).await;
    assert_eq!(member.required_action, None);
    fixture.store.require_second_factor(TEAM, true).await.unwrap();
    fixture.add_member(TEAM, ADA, Role::Viewer).await;
    let token = fixture.token(ADA).await;
    let viewer = fixture.user_of(&token).await;
    assert_eq!(viewer.required_action, Some(RequiredAction::SecondFactor));
    let refused = viewer.require(domain::account::Permission::View);
    assert!(matches!(error(refused), PortalError::Forbidden));
    fixture.enable_totp(&viewer).await;
    assert_eq!(fixture.user_of(&token).await.required_action, None);
}
