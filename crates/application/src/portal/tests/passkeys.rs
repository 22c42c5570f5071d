//! Passkeys as a second factor.

use chrono::TimeDelta;
use domain::{account::Role, id::PasskeyId, notice::AccountEvent, secret::Secret};
use ports::{
    driving::{
        AccountService as _, PasskeyRegistered, PasskeyService as _, PortalError, SignedIn,
        SignedInUser,
    },
    passkeys::MAX_PASSKEYS,
};
use uuid::Uuid;

use super::fixture::{Fixture, PASSWORD, TEAM, attempt, error, origin, refusal, secret};

const ADA: &str = "ada@lender.example";

async fn ada(fixture: &Fixture) -> SignedInUser {
    fixture.add_member(TEAM, ADA, Role::Viewer).await;
    fixture.user_of(&fixture.token(ADA).await).await
}

/// Registers a passkey. Returns the recovery codes.
async fn register(
    fixture: &Fixture,
    user: &SignedInUser,
    (name, answer): (&str, &str),
) -> Result<Vec<Secret>, PortalError> {
    let challenge = fixture.passkeys().offer_passkey(user).await?;
    let (name, answer) = (name.to_owned(), answer.to_owned());
    fixture.passkeys().keep_passkey(user, name, challenge.sealed, answer).await
}

/// Signs in with the password alone.
async fn incomplete(fixture: &Fixture) -> (Secret, SignedInUser) {
    let signed_in = fixture.accounts().sign_in(attempt(ADA, PASSWORD)).await.unwrap();
    assert!(signed_in.needs_code);
    let user = fixture.user_of(&signed_in.token).await;
    (signed_in.token, user)
}

/// Answers a challenge for the second factor.
async fn answer(
    fixture: &Fixture,
    (token, user): (&Secret, &SignedInUser),
    (asked, answer): (Secret, &str),
) -> Result<SignedIn, PortalError> {
    let browsers = secret("");
    let answered = PasskeyRegistered { asked, answer: answer.to_owned(), browsers };
    fixture.passkeys().show_passkey(user, token.clone(), answered).await
}

#[tokio::test]
async fn the_first_passkey_comes_with_recovery_codes() {
    let fixture = Fixture::new().await;
    let user = ada(&fixture).await;
    let other = fixture.token(ADA).await;
    fixture.due_notices().await;
    let codes = register(&fixture, &user, (" Phone ", "key-1")).await.unwrap();
    assert_eq!(codes.len(), 10);
    assert_eq!(*fixture.actions().await.last().unwrap(), "passkey.add \"Phone\"");
    assert_eq!(fixture.due_notices().await, [AccountEvent::PasskeyAdded]);
    let signed_in = fixture.accounts().signed_in_user(&other, origin()).await.unwrap();
    assert!(signed_in.is_none(), "it was made without a second factor");
    let user = SignedInUser { has_passkey: true, ..user };
    let challenge = fixture.passkeys().offer_passkey(&user).await.unwrap();
    assert_eq!(challenge.options, "create for ada@lender.example beside 1");
    assert!(register(&fixture, &user, ("Laptop", "key-2")).await.unwrap().is_empty());
    let passkeys = fixture.passkeys().passkeys(&user).await.unwrap().unwrap();
    let names: Vec<_> = passkeys.iter().map(|passkey| passkey.name.as_str()).collect();
    assert_eq!(names, ["Phone", "Laptop"]);
    assert_eq!(fixture.stored(user.user).await.recovery_codes_left, 10);
}

#[tokio::test]
async fn a_passkey_is_refused_without_a_name_or_a_valid_answer() {
    let fixture = Fixture::new().await;
    let user = ada(&fixture).await;
    let long = "é".repeat(61);
    for name in ["", "  ", "a\nb", long.as_str()] {
        let refused = register(&fixture, &user, (name, "key-1")).await;
        assert_eq!(refusal(refused), "enter a name of 1 to 60 characters", "{name}");
    }
    let unfit = "the passkey couldn't be created. Try again";
    assert_eq!(refusal(register(&fixture, &user, ("Phone", "nonsense")).await), unfit);
    let passkeys = fixture.passkeys();
    let (name, key) = ("Phone".to_owned(), "key-1".to_owned());
    let forged = passkeys.keep_passkey(&user, name.clone(), secret("forged"), key.clone()).await;
    assert_eq!(refusal(forged), unfit);
    let stranger = fixture.user(Role::Viewer).await;
    let challenge = passkeys.offer_passkey(&stranger).await.unwrap();
    let foreign = passkeys.keep_passkey(&user, name, challenge.sealed, key).await;
    assert_eq!(refusal(foreign), unfit, "the challenge belongs to another member");
    assert_eq!(fixture.actions().await, <[&str; 0]>::default());
}

#[tokio::test]
async fn a_passkey_is_registered_once_and_a_member_has_ten() {
    let fixture = Fixture::new().await;
    let user = ada(&fixture).await;
    register(&fixture, &user, ("Phone", "key-0")).await.unwrap();
    let user = SignedInUser { has_passkey: true, ..user };
    let refused = "you already added this passkey or reached the limit of passkeys";
    assert_eq!(refusal(register(&fixture, &user, ("Again", "key-0")).await), refused);
    for number in 1..MAX_PASSKEYS {
        register(&fixture, &user, ("More", &format!("key-{number}"))).await.unwrap();
    }
    assert_eq!(refusal(register(&fixture, &user, ("Last", "key-last")).await), refused);
}

#[tokio::test]
async fn a_passkey_completes_a_sign_in() {
    let fixture = Fixture::new().await;
    let user = ada(&fixture).await;
    register(&fixture, &user, ("Phone", "key-1")).await.unwrap();
    let (token, user) = incomplete(&fixture).await;
    assert!(!user.passed && user.has_passkey && !user.has_codes);
    let challenge = fixture.passkeys().ask_passkey(&user).await.unwrap().expect("a challenge");
    assert_eq!(challenge.options, "get");
    let answered = answer(&fixture, (&token, &user), (challenge.sealed.clone(), "key-1")).await;
    let signed_in = answered.unwrap();
    assert!(fixture.user_of(&signed_in.token).await.passed && signed_in.browsers.is_some());
    let complete = SignedInUser { passed: true, ..user.clone() };
    let passkeys = fixture.passkeys().passkeys(&complete).await.unwrap().unwrap();
    assert!(passkeys[0].used_at.is_some() && passkeys[0].credential.state == [1]);
    let again = answer(&fixture, (&token, &user), (challenge.sealed, "key-1")).await;
    assert!(matches!(error(again), PortalError::Forbidden), "the old token is void");
}

#[tokio::test]
async fn a_wrong_answer_is_refused_and_recorded() {
    let fixture = Fixture::new().await;
    let ada = ada(&fixture).await;
    register(&fixture, &ada, ("Phone", "key-1")).await.unwrap();
    let registration = fixture.passkeys().offer_passkey(&ada).await.unwrap();
    let reauthentication = fixture.passkeys().ask_passkey(&ada).await.unwrap().unwrap();
    let (_, other) = incomplete(&fixture).await;
    let (token, user) = incomplete(&fixture).await;
    let own = fixture.passkeys().ask_passkey(&user).await.unwrap().unwrap();
    let foreign = fixture.passkeys().ask_passkey(&other).await.unwrap().unwrap();
    for (asked, text) in [
        (own.sealed, "key-2"),
        (foreign.sealed, "key-1"),
        (registration.sealed, "key-1"),
        (reauthentication.sealed, "key-1"),
        (secret("forged"), "key-1"),
    ] {
        let refused = answer(&fixture, (&token, &user), (asked, text)).await;
        assert_eq!(refusal(refused), "the passkey couldn't be verified");
    }
    let actions = fixture.actions().await;
    let refused = actions.iter().filter(|action| *action == "sign-in.refused passkey");
    assert_eq!(refused.count(), 5);
}

#[tokio::test]
async fn wrong_answers_delay_further_attempts() {
    let fixture = Fixture::new().await;
    let user = ada(&fixture).await;
    register(&fixture, &user, ("Phone", "key-1")).await.unwrap();
    let (token, user) = incomplete(&fixture).await;
    for _ in 0..6 {
        error(answer(&fixture, (&token, &user), (secret("forged"), "key-1")).await);
    }
    let early = answer(&fixture, (&token, &user), (secret("forged"), "key-1")).await;
    assert!(matches!(error(early), PortalError::TooMany { .. }));
    fixture.clock.forward(TimeDelta::minutes(10));
    let late = answer(&fixture, (&token, &user), (secret("forged"), "key-1")).await;
    assert!(matches!(error(late), PortalError::Forbidden));
}

#[tokio::test]
async fn a_removed_passkey_is_asked_for_no_more() {
    let fixture = Fixture::new().await;
    let user = ada(&fixture).await;
    register(&fixture, &user, ("Phone", "key-1")).await.unwrap();
    fixture.due_notices().await;
    let passkeys = fixture.passkeys();
    let id = passkeys.passkeys(&user).await.unwrap().unwrap()[0].id;
    let stranger = fixture.user(Role::Owner).await;
    for (user, id) in [(&stranger, id), (&user, PasskeyId::from_uuid(Uuid::nil()))] {
        assert_eq!(refusal(passkeys.drop_passkey(user, id).await), "passkey not found");
    }
    passkeys.drop_passkey(&user, id).await.unwrap();
    assert_eq!(*fixture.actions().await.last().unwrap(), format!("passkey.drop {id}"));
    assert_eq!(fixture.due_notices().await, [AccountEvent::PasskeyRemoved]);
    assert!(passkeys.ask_passkey(&user).await.unwrap().is_none());
    assert!(!fixture.accounts().sign_in(attempt(ADA, PASSWORD)).await.unwrap().needs_code);
}

#[tokio::test]
async fn a_deployment_without_a_host_name_has_no_passkeys() {
    let fixture = Fixture { verifier: None, ..Fixture::new().await };
    let user = ada(&fixture).await;
    let passkeys = fixture.passkeys();
    assert!(passkeys.passkeys(&user).await.unwrap().is_none());
    assert!(passkeys.ask_passkey(&user).await.unwrap().is_none());
    assert_eq!(refusal(passkeys.offer_passkey(&user).await), "passkey not found");
}

#[tokio::test]
async fn an_incomplete_sign_in_changes_no_passkeys() {
    let fixture = Fixture::new().await;
    let user = SignedInUser { passed: false, ..ada(&fixture).await };
    let passkeys = fixture.passkeys();
    let (name, key) = ("Phone".to_owned(), "key-1".to_owned());
    let refusals = [
        passkeys.passkeys(&user).await.map(drop),
        passkeys.offer_passkey(&user).await.map(drop),
        passkeys.keep_passkey(&user, name, secret(""), key).await.map(drop),
        passkeys.drop_passkey(&user, PasskeyId::from_uuid(Uuid::nil())).await,
    ];
    for refused in refusals {
        assert!(matches!(error(refused), PortalError::Forbidden));
    }
}
