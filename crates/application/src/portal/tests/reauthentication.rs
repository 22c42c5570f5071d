//! Re-authentication, the changes that need it, and the forms that wait for it.

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use domain::{
    account::Role,
    api_key::Environment,
    id::{ApiKeyId, PasskeyId, UserId, WebhookId},
    reauthentication::AuthenticationTimes,
    secret::Secret,
};
use ports::{
    account_store::{NewPassword, UserStore as _},
    clock::Clock as _,
    driving::{
        AccountService as _, FirstFactor, KeyService as _, NewKey, NewMember, NewWebhook,
        PasskeyService as _, PortalError, ReauthenticationProof, ReauthenticationService as _,
        SecondFactorProof, SignedInUser, TeamService as _, TeamWebhookService as _,
    },
    webhook_store::{HeaderChange, WebhookChange},
};
use uuid::Uuid;

use super::{
    fakes::{BrokenCipher, plain_hash},
    fixture::{Fixture, PASSWORD, TEAM, error, origin, refusal, secret},
};

const ADA: &str = "ada@lender.example";

/// Returns a user who signed in and confirmed so long ago.
fn authenticated_before(
    fixture: &Fixture,
    user: &SignedInUser,
    (signed_in, confirmed): (Option<TimeDelta>, Option<TimeDelta>),
) -> SignedInUser {
    let now = fixture.clock.now();
    let ago = |time: Option<TimeDelta>| time.map(|time| now - time);
    let times = AuthenticationTimes { signed_in_at: ago(signed_in), confirmed_at: ago(confirmed) };
    SignedInUser { authenticated: times, ..user.clone() }
}

fn password(text: &str, second: Option<SecondFactorProof>) -> ReauthenticationProof {
    ReauthenticationProof { first: FirstFactor::Password(secret(text)), second }
}

fn code(text: &str) -> SecondFactorProof {
    SecondFactorProof::Code(text.to_owned())
}

/// Signs a member in. Returns the token and the user as the service sees them.
async fn ada(fixture: &Fixture) -> (Secret, SignedInUser) {
    fixture.add_member(TEAM, ADA, Role::Member).await;
    let token = fixture.token(ADA).await;
    (token.clone(), seen(fixture, &token).await)
}

async fn seen(fixture: &Fixture, token: &Secret) -> SignedInUser {
    fixture.accounts().signed_in_user(token, origin()).await.unwrap().expect("a sign-in")
}

#[tokio::test]
async fn a_change_of_credentials_needs_a_confirmation_and_no_recent_sign_in_counts() {
    let fixture = Fixture::new().await;
    let user = fixture.user(Role::Owner).await;
    let minute = TimeDelta::minutes(1);
    let (accounts, passkeys) = (fixture.accounts(), fixture.passkeys());
    for times in [(Some(minute), None), (None, None), (None, Some(minute * 10))] {
        let user = authenticated_before(&fixture, &user, times);
        let (name, none) = ("Phone".to_owned(), PasskeyId::from_uuid(Uuid::nil()));
        let refusals = [
            accounts.change_password(&user, secret("another good password")).await,
            accounts.enable_totp(&user, "", "").await.map(drop),
            accounts.disable_totp(&user).await,
            passkeys.offer_passkey(&user).await.map(drop),
            passkeys.keep_passkey(&user, name, secret(""), String::new()).await.map(drop),
            passkeys.drop_passkey(&user, none).await,
        ];
        for refused in refusals {
            assert!(matches!(error(refused), PortalError::Unconfirmed), "{times:?}");
        }
    }
    assert_eq!(fixture.actions().await, <[&str; 0]>::default());
    let user = authenticated_before(&fixture, &user, (None, Some(minute)));
    assert!(accounts.disable_totp(&user).await.is_ok());
}

#[tokio::test]
async fn a_change_of_what_the_team_trusts_needs_a_confirmation_or_a_recent_sign_in() {
    let fixture = Fixture::new().await;
    let user = fixture.user(Role::Owner).await;
    let (keys, webhooks, members) = (fixture.api_keys(), fixture.webhooks(), fixture.members());
    let (key, webhook) = (ApiKeyId::from_uuid(Uuid::nil()), WebhookId::from_uuid(Uuid::nil()));
    let (member, hour) = (UserId::from_uuid(Uuid::nil()), TimeDelta::hours(1));
    let new_key = || NewKey {
        label: "Backend".to_owned(),
        environment: Environment::Development,
        expires_at: None,
    };
    let invited = || NewMember { email: "bob@lender.example".to_owned(), role: Role::Viewer };
    for times in [(Some(hour), None), (Some(hour), Some(hour)), (None, None)] {
        let user = authenticated_before(&fixture, &user, times);
        let refusals = [
            keys.make_key(&user, new_key()).await.map(drop),
            keys.rotate_key(&user, key).await.map(drop),
            keys.revoke_key(&user, key).await,
            webhooks.make_webhook(&user, new_webhook()).await.map(drop),
            webhooks.change_webhook(&user, webhook, change()).await,
            webhooks.rotate_webhook(&user, webhook, hour.to_std().unwrap()).await.map(drop),
            members.invite(&user, invited()).await,
            members.invite_again(&user, member).await,
            members.appoint(&user, member, Role::Viewer).await,
            members.sign_out_member(&user, member).await,
            members.require_second_factor(&user, true).await,
            members.remove(&user, member).await,
        ];
        for refused in refusals {
            assert!(matches!(error(refused), PortalError::Unconfirmed), "{times:?}");
        }
    }
    assert_eq!(fixture.actions().await, <[&str; 0]>::default());
    let minute = TimeDelta::minutes(1);
    for times in [(Some(minute), None), (None, Some(minute))] {
        let user = authenticated_before(&fixture, &user, times);
        assert!(keys.make_key(&user, new_key()).await.is_ok());
    }
}

#[tokio::test]
async fn the_password_reauthenticates_under_a_new_token() {
    let fixture = Fixture::new().await;
    let (token, user) = ada(&fixture).await;
    let service = fixture.reauthentication();
    let fresh = service.reauthenticate(&user, token.clone(), password(PASSWORD, None)).await;
    let fresh = fresh.unwrap();
    assert!(fixture.accounts().signed_in_user(&token, origin()).await.unwrap().is_none());
    let user = seen(&fixture, &fresh).await;
    assert_eq!(user.authenticated.confirmed_at, Some(fixture.clock.now()));
    assert_eq!(fixture.actions().await, ["sign-in.confirm"]);
    assert_eq!(fixture.attempts.counted(), 0);
    let old = service.reauthenticate(&user, token, password(PASSWORD, None)).await;
    assert!(matches!(error(old), PortalError::Forbidden), "the old token confirms nothing");
}

#[tokio::test]
async fn a_wrong_or_expired_password_does_not_reauthenticate() {
    let fixture = Fixture::new().await;
    let (token, user) = ada(&fixture).await;
    let service = fixture.reauthentication();
    let try_with = async |text: &str| {
        let proof = password(text, None);
        error(service.reauthenticate(&user, token.clone(), proof).await)
    };
    assert!(matches!(try_with("wrong").await, PortalError::WrongPassword));
    let made = NewPassword::made(plain_hash(PASSWORD), fixture.clock.now());
    fixture.store.set_password(user.user, &made).await.unwrap();
    fixture.clock.forward(TimeDelta::hours(72));
    assert!(matches!(try_with(PASSWORD).await, PortalError::PasswordRanOut));
    let refused = "sign-in.refused confirmation";
    assert_eq!(fixture.actions().await, [refused, refused]);
    for _ in 0..5 {
        try_with("wrong").await;
    }
    assert!(matches!(try_with(PASSWORD).await, PortalError::TooMany { .. }));
}

#[tokio::test]
async fn a_second_factor_is_part_of_the_proof() {
    let fixture = Fixture::new().await;
    let (token, _) = ada(&fixture).await;
    let (totp, recovery) = fixture.enable_totp(&fixture.user_of(&token).await).await;
    fixture.clock.forward(TimeDelta::seconds(30));
    let user = seen(&fixture, &token).await;
    let service = fixture.reauthentication();
    let right = fixture.code(&totp);
    for (first, second) in [(PASSWORD, None), (PASSWORD, Some(code("000000")))] {
        let proof = password(first, second);
        let refused = service.reauthenticate(&user, token.clone(), proof).await;
        assert!(matches!(error(refused), PortalError::WrongCode));
    }
    let refused =
        service.reauthenticate(&user, token.clone(), password("wrong", Some(code(&right))));
    assert!(matches!(error(refused.await), PortalError::WrongPassword));
    let proof = password(PASSWORD, Some(code(&right)));
    let token = service.reauthenticate(&user, token, proof).await.unwrap();
    let proof = password(PASSWORD, Some(code(recovery[0].expose())));
    assert!(service.reauthenticate(&user, token, proof).await.is_ok());
}

#[tokio::test]
async fn an_answer_of_a_passkey_counts_for_one_reauthentication() {
    let fixture = Fixture::new().await;
    let (token, _) = ada(&fixture).await;
    let passkeys = fixture.passkeys();
    let user = fixture.user_of(&token).await;
    let challenge = passkeys.offer_passkey(&user).await.unwrap();
    let (name, key) = ("Phone".to_owned(), "key-1".to_owned());
    passkeys.keep_passkey(&user, name, challenge.sealed, key).await.unwrap();
    let user = seen(&fixture, &token).await;
    let asked = passkeys.ask_passkey(&user).await.unwrap().expect("a challenge").sealed;
    let proof = || {
        let second = SecondFactorProof::Passkey { asked: asked.clone(), answer: "key-1".into() };
        password(PASSWORD, Some(second))
    };
    let service = fixture.reauthentication();
    let token = service.reauthenticate(&user, token, proof()).await.unwrap();
    let user = seen(&fixture, &token).await;
    let again = service.reauthenticate(&user, token, proof()).await;
    assert_eq!(refusal(again), "the passkey couldn't be verified");
}

#[tokio::test]
async fn each_user_reauthenticates_with_what_they_signed_in_with() {
    let fixture = Fixture::new().await;
    let (token, user) = ada(&fixture).await;
    let service = fixture.reauthentication();
    let provider =
        |proof| ReauthenticationProof { first: FirstFactor::Provider(proof), second: None };
    let refused = service.reauthenticate(&user, token.clone(), provider(secret("proof"))).await;
    assert!(matches!(error(refused), PortalError::Forbidden));
    let by_provider = authenticated_before(&fixture, &user, (None, None));
    let refused =
        service.reauthenticate(&by_provider, token.clone(), password(PASSWORD, None)).await;
    assert!(matches!(error(refused), PortalError::Forbidden));
    let late = "this took too long. Try again";
    let forged = service.reauthenticate(&by_provider, token.clone(), provider(secret("?"))).await;
    assert_eq!(refusal(forged), late);
    let proof = service.proofs.issue(&by_provider).unwrap();
    let other = fixture.user(Role::Member).await;
    assert_eq!(refusal(service.proofs.verify(&other, &proof)), late);
    fixture.clock.forward(TimeDelta::minutes(10));
    let expired = service.reauthenticate(&by_provider, token.clone(), provider(proof)).await;
    assert_eq!(refusal(expired), late);
    let proof = service.proofs.issue(&by_provider).unwrap();
    assert!(service.reauthenticate(&by_provider, token, provider(proof)).await.is_ok());
}

#[tokio::test]
async fn a_form_waits_for_the_reauthentication_and_is_taken_once() {
    let fixture = Fixture::new().await;
    let (_, user) = ada(&fixture).await;
    let service = fixture.reauthentication();
    assert!(service.held_form(&user).await.unwrap().is_none());
    assert!(service.take_held_form(&user, String::new()).await.unwrap().is_none());
    let (path, fields) = ("/portal/keys".to_owned(), "label=Back%0Aend".to_owned());
    service.hold_form(&user, path, Some(fields)).await.unwrap();
    let form = service.held_form(&user).await.unwrap().expect("a form");
    assert_eq!(
        (form.path.as_str(), form.fields.as_deref()),
        ("/portal/keys", Some("label=Back%0Aend"))
    );
    assert!(service.take_held_form(&user, "another".to_owned()).await.unwrap().is_none());
    let taken = service.take_held_form(&user, form.id.clone()).await.unwrap();
    assert!(taken.is_some_and(|taken| taken.id == form.id));
    assert!(service.take_held_form(&user, form.id).await.unwrap().is_none());
}

#[tokio::test]
async fn a_page_waits_as_a_form_without_fields_and_expires() {
    let fixture = Fixture::new().await;
    let (_, user) = ada(&fixture).await;
    let service = fixture.reauthentication();
    service.hold_form(&user, "/portal/account".to_owned(), None).await.unwrap();
    let page = service.held_form(&user).await.unwrap().expect("a page");
    assert!(page.fields.is_none());
    fixture.clock.forward(TimeDelta::minutes(10));
    assert!(service.held_form(&user).await.unwrap().is_none());
    assert!(service.take_held_form(&user, page.id).await.unwrap().is_none());
}

#[tokio::test]
async fn a_form_has_a_bound() {
    let fixture = Fixture::new().await;
    let (_, user) = ada(&fixture).await;
    let service = fixture.reauthentication();
    let (path, room) = ("/portal".to_owned(), 32 * 1024 - "/portal".len());
    let fields = |length| Some("a".repeat(length));
    service.hold_form(&user, path.clone(), fields(room)).await.unwrap();
    let refused = service.hold_form(&user, path, fields(room + 1)).await;
    assert_eq!(refusal(refused), "the form is too large");
}

#[tokio::test]
async fn nothing_is_held_or_proved_without_an_encryption_key() {
    let fixture = Fixture { cipher: Arc::new(BrokenCipher), ..Fixture::new().await };
    let (_, user) = ada(&fixture).await;
    let service = fixture.reauthentication();
    let held = service.hold_form(&user, "/portal".to_owned(), None).await;
    assert_eq!(refusal(held), "something went wrong. Try again");
    assert_eq!(refusal(service.proofs.issue(&user)), "something went wrong. Try again");
}

#[tokio::test]
async fn an_incomplete_sign_in_reauthenticates_nothing() {
    let fixture = Fixture::new().await;
    let (token, user) = ada(&fixture).await;
    let user = SignedInUser { passed: false, ..user };
    let service = fixture.reauthentication();
    let refusals = [
        service.hold_form(&user, "/portal".to_owned(), None).await,
        service.held_form(&user).await.map(drop),
        service.take_held_form(&user, String::new()).await.map(drop),
        service.reauthenticate(&user, token, password(PASSWORD, None)).await.map(drop),
    ];
    for refused in refusals {
        assert!(matches!(error(refused), PortalError::Forbidden));
    }
}

fn new_webhook() -> NewWebhook {
    NewWebhook {
        team: TEAM,
        url: "https://lender.example/hooks".to_owned(),
        header: None,
        keys: vec![],
        timeout: Duration::from_secs(10),
        retries: 3,
        active: true,
    }
}

fn change() -> WebhookChange {
    WebhookChange {
        url: "https://lender.example/other".to_owned(),
        header: HeaderChange::Keep,
        keys: vec![],
        timeout: Duration::from_secs(10),
        retries: 3,
    }
}
