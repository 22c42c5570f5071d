//! TOTP codes and recovery codes.

use std::sync::Arc;

use chrono::TimeDelta;
use domain::{account::Role, notice::AccountEvent, secret::Secret};
use ports::{
    clock::Clock as _,
    driving::{AccountService as _, PortalError, SignedInUser},
};

use super::{
    fakes::BrokenCipher,
    fixture::{Fixture, PASSWORD, TEAM, attempt, error, origin, refusal, secret},
};

const ADA: &str = "ada@lender.example";

/// Adds a member with TOTP codes. Returns the secret, the recovery codes, and the user.
async fn with_totp(fixture: &Fixture) -> (String, Vec<Secret>, SignedInUser) {
    fixture.add_member(TEAM, ADA, Role::Member).await;
    let user = fixture.user_of(&fixture.token(ADA).await).await;
    let (secret, codes) = fixture.enable_totp(&user).await;
    // The code that enabled them is used up.
    fixture.clock.forward(TimeDelta::seconds(30));
    (secret, codes, user)
}

/// Signs in with the password alone.
async fn incomplete(fixture: &Fixture) -> Secret {
    let signed_in = fixture.accounts().sign_in(attempt(ADA, PASSWORD)).await.unwrap();
    assert!(signed_in.needs_code && signed_in.browsers.is_none());
    signed_in.token
}

#[tokio::test]
async fn a_password_and_a_code_sign_in_under_a_new_token() {
    let fixture = Fixture::new().await;
    let (totp, _, _) = with_totp(&fixture).await;
    let accounts = fixture.accounts();
    let token = incomplete(&fixture).await;
    let user = accounts.signed_in_user(&token, origin()).await.unwrap().expect("a sign-in");
    assert!(!user.passed && user.has_codes && !user.has_passkey);
    let code = fixture.code(&totp);
    let signed_in = accounts.verify_totp(&token, &code, origin(), secret("")).await.unwrap();
    assert!(!signed_in.needs_code && signed_in.browsers.is_some());
    assert!(accounts.signed_in_user(&token, origin()).await.unwrap().is_none());
    assert!(fixture.user_of(&signed_in.token).await.passed);
    let again = accounts.verify_totp(&signed_in.token, &code, origin(), secret("")).await;
    assert!(matches!(error(again), PortalError::Forbidden), "it is complete already");
    assert_eq!(fixture.attempts.counted(), 0);
}

#[tokio::test]
async fn a_code_is_good_once() {
    let fixture = Fixture::new().await;
    let (totp, _, _) = with_totp(&fixture).await;
    let accounts = fixture.accounts();
    let code = fixture.code(&totp);
    let (first, second) = (incomplete(&fixture).await, incomplete(&fixture).await);
    assert!(accounts.verify_totp(&first, &code, origin(), secret("")).await.is_ok());
    let again = accounts.verify_totp(&second, &code, origin(), secret("")).await;
    assert!(matches!(error(again), PortalError::WrongCode));
    assert_eq!(*fixture.actions().await.last().unwrap(), "sign-in.refused code");
}

#[tokio::test]
async fn a_recovery_code_is_good_once_however_it_is_typed() {
    let fixture = Fixture::new().await;
    let (_, codes, user) = with_totp(&fixture).await;
    assert_eq!(codes.len(), 10);
    let typed = codes[0].expose().to_uppercase().replace('-', " ");
    let accounts = fixture.accounts();
    let (first, second) = (incomplete(&fixture).await, incomplete(&fixture).await);
    assert!(accounts.verify_totp(&first, &typed, origin(), secret("")).await.is_ok());
    assert_eq!(fixture.stored(user.user).await.recovery_codes_left, 9);
    let again = accounts.verify_totp(&second, &typed, origin(), secret("")).await;
    assert!(matches!(error(again), PortalError::WrongCode));
}

#[tokio::test]
async fn the_second_factor_is_shown_within_ten_minutes() {
    let fixture = Fixture::new().await;
    let (totp, _, _) = with_totp(&fixture).await;
    let token = incomplete(&fixture).await;
    fixture.clock.forward(TimeDelta::minutes(10));
    let code = fixture.code(&totp);
    for token in [token, secret("forged")] {
        let late = fixture.accounts().verify_totp(&token, &code, origin(), secret("")).await;
        assert!(matches!(error(late), PortalError::Forbidden));
    }
}

#[tokio::test]
async fn wrong_codes_delay_further_attempts() {
    let fixture = Fixture::new().await;
    let (totp, _, _) = with_totp(&fixture).await;
    let token = incomplete(&fixture).await;
    let accounts = fixture.accounts();
    for _ in 0..6 {
        let wrong = accounts.verify_totp(&token, "000000", origin(), secret("")).await;
        assert!(matches!(error(wrong), PortalError::WrongCode));
    }
    let code = fixture.code(&totp);
    let early = accounts.verify_totp(&token, &code, origin(), secret("")).await;
    assert!(matches!(error(early), PortalError::TooMany { retry_after: 15 }));
}

#[tokio::test]
async fn enabling_codes_ends_the_sign_ins_that_were_made_without() {
    let fixture = Fixture::new().await;
    fixture.add_member(TEAM, ADA, Role::Member).await;
    let (own, other) = (fixture.token(ADA).await, fixture.token(ADA).await);
    let user = fixture.user_of(&own).await;
    fixture.due_notices().await;
    let (_, codes) = fixture.enable_totp(&user).await;
    let first = codes[0].expose();
    assert!(first.split('-').count() == 6 && first.split('-').all(|group| group.len() == 4));
    let accounts = fixture.accounts();
    assert!(accounts.signed_in_user(&own, origin()).await.unwrap().is_some());
    assert!(accounts.signed_in_user(&other, origin()).await.unwrap().is_none());
    assert_eq!(*fixture.actions().await.last().unwrap(), "second-factor.keep");
    assert_eq!(fixture.due_notices().await, [AccountEvent::CodesTurnedOn]);
}

#[tokio::test]
async fn a_setup_is_shown_again_until_it_expires() {
    let fixture = Fixture::new().await;
    let user = fixture.user(Role::Viewer).await;
    let accounts = fixture.accounts();
    let setup = accounts.totp_setup(&user, None);
    let url = format!("otpauth://totp/{}?secret={}", user.email, setup.secret.expose());
    assert_eq!(setup.url.expose(), url);
    let again = accounts.totp_setup(&user, Some(setup.sealed.expose()));
    assert!(again.secret == setup.secret && again.sealed == setup.sealed);
    let code = fixture.code("0000000000000000");
    let wrong = accounts.enable_totp(&user, setup.sealed.expose(), &code[1..]).await;
    assert!(matches!(error(wrong), PortalError::WrongCode));
    let stranger = fixture.user(Role::Viewer).await;
    let code = fixture.code(setup.secret.expose());
    let late = "the QR code has expired. Scan the new one";
    let other = accounts.enable_totp(&stranger, setup.sealed.expose(), &code).await;
    assert_eq!(refusal(other), late, "a setup belongs to one member");
    assert!(accounts.totp_setup(&stranger, Some(setup.sealed.expose())).secret != setup.secret);
    fixture.clock.forward(TimeDelta::minutes(30));
    let user = SignedInUser {
        authenticated: domain::reauthentication::AuthenticationTimes {
            confirmed_at: Some(fixture.clock.now()),
            ..user.authenticated
        },
        ..user
    };
    let code = fixture.code(setup.secret.expose());
    let expired = accounts.enable_totp(&user, setup.sealed.expose(), &code).await;
    assert_eq!(refusal(expired), late);
    assert!(accounts.totp_setup(&user, Some(setup.sealed.expose())).secret != setup.secret);
    assert!(fixture.stored(user.user).await.totp.is_none());
}

#[tokio::test]
async fn a_setup_that_cannot_be_encrypted_cannot_be_enabled() {
    let fixture = Fixture::new().await;
    let fixture = Fixture { cipher: Arc::new(BrokenCipher), ..fixture };
    let user = fixture.user(Role::Viewer).await;
    let setup = fixture.accounts().totp_setup(&user, None);
    assert_eq!(setup.sealed.expose(), "");
    let code = fixture.code(setup.secret.expose());
    let refused = fixture.accounts().enable_totp(&user, setup.sealed.expose(), &code).await;
    assert_eq!(refusal(refused), "the QR code has expired. Scan the new one");
}

#[tokio::test]
async fn disabled_codes_are_asked_for_no_more() {
    let fixture = Fixture::new().await;
    let (_, _, user) = with_totp(&fixture).await;
    fixture.due_notices().await;
    fixture.accounts().disable_totp(&user).await.unwrap();
    assert_eq!(*fixture.actions().await.last().unwrap(), "second-factor.drop");
    assert_eq!(fixture.due_notices().await, [AccountEvent::CodesTurnedOff]);
    assert!(!fixture.accounts().sign_in(attempt(ADA, PASSWORD)).await.unwrap().needs_code);
    let stored = fixture.stored(user.user).await;
    assert!(stored.totp.is_none() && stored.recovery_codes_left == 0);
}
