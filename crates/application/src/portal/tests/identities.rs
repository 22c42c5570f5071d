//! Signing in and re-authenticating at an identity provider.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    fakes::BrokenCipher,
    fixture::{Fixture, TEAM, error, origin, refusal, secret},
};
use crate::{portal::Identities, testing::Script};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    account::{Permission, Role},
    id::UserId,
    reauthentication::{AuthenticationTimes, SensitiveAction},
    secret::Secret,
};
use ports::{
    account_store::{ProviderSubjects as _, RequestOrigin},
    clock::Clock as _,
    driving::{
        AccountService as _, FirstFactor, IdentityService as _, PortalError, ReauthenticationProof,
        ReauthenticationService as _, SignInOutcome, SignedIn, SignedInUser,
    },
    identity::{
        AuthorizationCallback, AuthorizationPrompt, AuthorizationRequest, Identity, IdentityError,
        IdentityProvider,
    },
};

const ADA: &str = "ada@lender.example";
const SUBJECT: &str = "https://idp.example ada";
const LATE: &str = "this took too long. Try again";
const UNKNOWN: &str = "no account found for this identity. Ask an owner of your team to invite you";
const NOT_ASKED: &str = "the identity provider didn't ask you to sign in. Try again";

#[tokio::test]
async fn the_provider_signs_a_member_in_and_binds_its_name_for_them() {
    let fixture = Fixture::new().await;
    let id = fixture.add_member(TEAM, ADA, Role::Member).await;
    let provider = Provider::identifying(SUBJECT, ADA, None);
    let identities = fixture.identities(Some(provider.clone()));
    assert_eq!(identities.provider(), Some("Example"));
    let (url, kept) =
        identities.begin_sign_in("/portal/audit?before=7".into(), origin()).await.unwrap();
    assert_eq!(url, "https://idp.example/Any");
    let outcome = complete(&identities, kept, None).await.unwrap();
    let SignInOutcome::SignedIn(signed_in, next) = outcome else { panic!("no sign-in") };
    assert_eq!(next, "/portal/audit?before=7");
    assert!(!signed_in.needs_code && signed_in.browsers.is_some());
    let user = user_of(&fixture, &signed_in).await;
    assert_eq!((user.user, user.is_by_provider()), (id, true));
    assert_eq!(fixture.stored(id).await.subject.as_deref(), Some(SUBJECT));
    assert_eq!(provider.states(), ["nonce and more"], "the state comes back whole");
    assert_eq!(fixture.actions().await, [format!("identity.bind {SUBJECT}")]);
}

#[tokio::test]
async fn a_bound_member_is_known_by_the_name_and_no_longer_by_the_address() {
    let fixture = Fixture::new().await;
    let id = bound_member(&fixture).await;
    let renamed = Provider::identifying(SUBJECT, "ada.l@lender.example", None);
    let user = sign_in(&fixture, renamed).await.unwrap();
    assert_eq!(user_of(&fixture, &user).await.user, id);
    // The address was given to somebody else at the same provider.
    let successor = Provider::identifying("https://idp.example other", ADA, None);
    assert_eq!(refusal(sign_in(&fixture, successor).await), UNKNOWN);
    assert_eq!(fixture.stored(id).await.subject.as_deref(), Some(SUBJECT));
    // Another provider took the place of the first one.
    let moved = Provider::identifying("https://new.example 7", ADA, None);
    let user = sign_in(&fixture, moved).await.unwrap();
    assert_eq!(user_of(&fixture, &user).await.user, id);
    assert_eq!(fixture.stored(id).await.subject.as_deref(), Some("https://new.example 7"));
}

#[tokio::test]
async fn of_two_sign_ins_with_one_address_one_binds_it() {
    for round in 0..20 {
        let fixture = Fixture::new().await;
        let id = fixture.add_member(TEAM, ADA, Role::Member).await;
        let subjects =
            [format!("https://idp.example a{round}"), "https://idp.example b".to_owned()];
        let outcomes = tokio::join!(
            sign_in(&fixture, Provider::identifying(&subjects[0], ADA, None)),
            sign_in(&fixture, Provider::identifying(&subjects[1], ADA, None)),
        );
        let winner = if outcomes.0.is_ok() { &subjects[0] } else { &subjects[1] };
        assert!(outcomes.0.is_ok() != outcomes.1.is_ok(), "round {round}");
        assert_eq!(fixture.stored(id).await.subject.as_ref(), Some(winner));
    }
}

#[tokio::test]
async fn an_identity_that_no_team_knows_is_refused() {
    let fixture = Fixture::new().await;
    let stranger = Provider::identifying("https://idp.example eve", "eve@elsewhere.example", None);
    assert_eq!(refusal(sign_in(&fixture, stranger).await), UNKNOWN);
    assert_eq!(fixture.actions().await, <[&str; 0]>::default());
}

#[tokio::test]
async fn a_name_of_the_provider_is_bound_only_once_that_is_recorded() {
    let fixture = Fixture::new().await;
    let id = fixture.add_member(TEAM, ADA, Role::Member).await;
    let fixture = fixture.with_broken_audit_log();
    let failed = sign_in(&fixture, Provider::identifying(SUBJECT, ADA, None)).await;
    assert!(matches!(error(failed), PortalError::Store(_)));
    assert_eq!(fixture.stored(id).await.subject, None);
}

#[tokio::test]
async fn a_second_factor_is_required_after_the_provider_as_well() {
    let fixture = Fixture::new().await;
    fixture.add_member(TEAM, ADA, Role::Member).await;
    let user = fixture.user_of(&fixture.token(ADA).await).await;
    fixture.enable_totp(&user).await;
    let signed_in = sign_in(&fixture, Provider::identifying(SUBJECT, ADA, None)).await.unwrap();
    assert!(signed_in.needs_code && signed_in.browsers.is_none());
    let user = user_of(&fixture, &signed_in).await;
    assert!(matches!(error(user.require(Permission::View)), PortalError::Forbidden));
}

#[tokio::test]
async fn the_state_of_an_authorization_expires_and_cannot_be_forged() {
    let fixture = Fixture::new().await;
    fixture.add_member(TEAM, ADA, Role::Member).await;
    let provider = Provider::identifying(SUBJECT, ADA, None);
    let identities = fixture.identities(Some(provider.clone()));
    let (_, kept) = identities.begin_sign_in("/portal/".into(), origin()).await.unwrap();
    let mut other = kept.expose().to_owned();
    other.replace_range(..4, "AAAA");
    for forged in ["", "!", "AAAA", &other] {
        assert_eq!(refusal(complete(&identities, secret(forged), None).await), LATE, "{forged}");
    }
    fixture.clock.forward(TimeDelta::minutes(10));
    assert_eq!(refusal(complete(&identities, kept, None).await), LATE);
    assert!(provider.states().is_empty(), "no code is exchanged for it");
}

#[tokio::test]
async fn a_failure_of_the_provider_is_told_in_general_words() {
    let fixture = Fixture::new().await;
    fixture.add_member(TEAM, ADA, Role::Member).await;
    for (failure, text) in [
        (
            IdentityError::Unreachable("10.0.0.1".into()),
            "sign-in is temporarily unavailable. Try again",
        ),
        (
            IdentityError::Refused("bad nonce".into()),
            "your identity couldn't be verified. Try again",
        ),
        (IdentityError::NoAddress, "your email isn't verified at the identity provider"),
    ] {
        assert_eq!(refusal(sign_in(&fixture, Provider::failing(failure)).await), text);
    }
}

#[tokio::test]
async fn a_deployment_without_a_provider_has_no_such_sign_in() {
    let fixture = Fixture::new().await;
    let identities = fixture.identities(None);
    assert_eq!(identities.provider(), None);
    let begun = identities.begin_sign_in("/portal/".into(), origin()).await;
    assert_eq!(refusal(begun), "provider not found");
    let completed = complete(&identities, secret("state"), None).await;
    assert_eq!(refusal(completed), "provider not found");
}

#[tokio::test]
async fn an_authorization_begins_only_where_its_state_can_be_encrypted() {
    let fixture = Fixture { cipher: Arc::new(BrokenCipher), ..Fixture::new().await };
    let identities = fixture.identities(Some(Provider::identifying(SUBJECT, ADA, None)));
    let begun = identities.begin_sign_in("/portal/".into(), origin()).await;
    assert_eq!(refusal(begun), "something went wrong. Try again");
}

#[tokio::test]
async fn authorizations_from_one_address_are_limited() {
    let fixture = Fixture::new().await;
    let identities = fixture.identities(Some(Provider::identifying(SUBJECT, ADA, None)));
    for _ in 0..100 {
        identities.begin_sign_in("/portal/".into(), origin()).await.unwrap();
    }
    let begun = error(identities.begin_sign_in("/portal/".into(), origin()).await);
    assert!(matches!(begun, PortalError::TooMany { retry_after: 1.. }), "{begun}");
    let completed = error(complete(&identities, secret(""), None).await);
    assert!(matches!(completed, PortalError::TooMany { .. }), "{completed}");
    let from = RequestOrigin { address: IpAddr::from([198, 51, 100, 1]), ..origin() };
    assert!(identities.begin_sign_in("/portal/".into(), from).await.is_ok());
}

#[tokio::test]
async fn the_provider_reauthenticates_the_user_whom_it_asked_anew() {
    let fixture = Fixture::new().await;
    bound_member(&fixture).await;
    fixture.clock.forward(TimeDelta::hours(1));
    let provider = Provider::identifying(SUBJECT, ADA, Some(fixture.clock.now()));
    let token = sign_in(&fixture, provider.clone()).await.unwrap().token;
    let user = fixture.accounts().signed_in_user(&token, origin()).await.unwrap().unwrap();
    let unconfirmed = user.require_reauthentication(SensitiveAction::Team, fixture.clock.now());
    assert!(matches!(error(unconfirmed), PortalError::Unconfirmed), "no password was typed here");
    let identities = fixture.identities(Some(provider));
    let (url, kept) = identities.depart_to_confirm(&user).await.unwrap();
    assert_eq!(url, "https://idp.example/Login");
    let outcome = complete(&identities, kept, Some(user.clone())).await.unwrap();
    let SignInOutcome::Asked(proof) = outcome else { panic!("a sign-in") };
    let proof = ReauthenticationProof { first: FirstFactor::Provider(proof), second: None };
    let token = fixture.reauthentication().reauthenticate(&user, token, proof).await.unwrap();
    let user = fixture.accounts().signed_in_user(&token, origin()).await.unwrap().unwrap();
    assert_eq!(user.authenticated.confirmed_at, Some(fixture.clock.now()));
}

#[tokio::test]
async fn an_old_or_foreign_authentication_reauthenticates_no_one() {
    let fixture = Fixture::new().await;
    bound_member(&fixture).await;
    let begun_at = fixture.clock.now();
    let skew = TimeDelta::minutes(1);
    let token = sign_in(&fixture, Provider::identifying(SUBJECT, ADA, None)).await.unwrap().token;
    let user = fixture.accounts().signed_in_user(&token, origin()).await.unwrap().unwrap();
    for (subject, authenticated_at, is_accepted) in [
        (SUBJECT, None, false),
        (SUBJECT, Some(begun_at - skew - TimeDelta::seconds(1)), false),
        (SUBJECT, Some(begun_at - skew), true),
        ("https://idp.example bob", Some(begun_at), false),
    ] {
        let provider = Provider::identifying(subject, ADA, authenticated_at);
        let identities = fixture.identities(Some(provider));
        let (_, kept) = identities.depart_to_confirm(&user).await.unwrap();
        let outcome = complete(&identities, kept, Some(user.clone())).await;
        assert_eq!(outcome.is_ok(), is_accepted, "{subject} {authenticated_at:?}");
        if !is_accepted {
            assert_eq!(refusal(outcome), NOT_ASKED);
        }
    }
    let refused = fixture.actions().await;
    let refused = refused.iter().filter(|line| *line == "sign-in.refused confirmation").count();
    assert_eq!(refused, 3);
}

#[tokio::test]
async fn a_reauthentication_is_completed_in_the_sign_in_that_began_it() {
    let fixture = Fixture::new().await;
    bound_member(&fixture).await;
    let provider = Provider::identifying(SUBJECT, ADA, Some(fixture.clock.now()));
    let first = sign_in(&fixture, provider.clone()).await.unwrap();
    let second = sign_in(&fixture, provider.clone()).await.unwrap();
    let (first, second) = (user_of(&fixture, &first).await, user_of(&fixture, &second).await);
    let identities = fixture.identities(Some(provider));
    let (_, kept) = identities.depart_to_confirm(&first).await.unwrap();
    for other in [None, Some(second)] {
        assert_eq!(refusal(complete(&identities, kept.clone(), other).await), LATE);
    }
    assert!(complete(&identities, kept, Some(first)).await.is_ok());
}

#[tokio::test]
async fn only_complete_sign_ins_by_the_provider_are_reauthenticated_there() {
    let fixture = Fixture::new().await;
    let by_password = fixture.user(Role::Owner).await;
    let authenticated = AuthenticationTimes { signed_in_at: None, confirmed_at: None };
    let incomplete = SignedInUser { passed: false, authenticated, ..by_password.clone() };
    let identities = fixture.identities(Some(Provider::identifying(SUBJECT, ADA, None)));
    for user in [by_password, incomplete] {
        let refused = error(identities.depart_to_confirm(&user).await);
        assert!(matches!(refused, PortalError::Forbidden));
    }
}

/// Adds a member, whom the provider has identified before by [`SUBJECT`].
async fn bound_member(fixture: &Fixture) -> UserId {
    let id = fixture.add_member(TEAM, ADA, Role::Member).await;
    assert!(fixture.store.bind_subject(id, None, SUBJECT).await.unwrap());
    id
}

/// Signs in at a provider.
async fn sign_in(fixture: &Fixture, provider: Arc<Provider>) -> Result<SignedIn, PortalError> {
    let identities = fixture.identities(Some(provider));
    let (_, kept) = identities.begin_sign_in("/portal/".into(), origin()).await?;
    match complete(&identities, kept, None).await? {
        SignInOutcome::SignedIn(signed_in, _) => Ok(signed_in),
        SignInOutcome::Asked(_) => panic!("a re-authentication"),
    }
}

/// Comes back from the provider.
async fn complete(
    identities: &Identities,
    kept: Secret,
    user: Option<SignedInUser>,
) -> Result<SignInOutcome, PortalError> {
    let callback = AuthorizationCallback { state: "state".to_owned(), code: secret("code") };
    identities.complete_sign_in(kept, callback, origin(), (user, secret(""))).await
}

async fn user_of(fixture: &Fixture, signed_in: &SignedIn) -> SignedInUser {
    let found = fixture.accounts().signed_in_user(&signed_in.token, origin()).await.unwrap();
    found.expect("a sign-in")
}

/// A provider that identifies one person, or fails.
struct Provider {
    identity: Option<Identity>,
    failures: Script<IdentityError>,
    /// The states with which codes were exchanged.
    states: Mutex<Vec<String>>,
}

impl Provider {
    fn identifying(
        subject: &str,
        email: &str,
        authenticated_at: Option<DateTime<Utc>>,
    ) -> Arc<Self> {
        let (subject, email) = (subject.to_owned(), email.parse().unwrap());
        let identity = Some(Identity { subject, email, authenticated_at });
        Arc::new(Self { identity, failures: Script::default(), states: Mutex::default() })
    }

    /// Returns a provider that identifies no one, for this reason.
    fn failing(failure: IdentityError) -> Arc<Self> {
        let failures = Script::default();
        failures.push(failure);
        Arc::new(Self { identity: None, failures, states: Mutex::default() })
    }

    fn states(&self) -> Vec<String> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl IdentityProvider for Provider {
    fn name(&self) -> &'static str {
        "Example"
    }

    async fn authorization_request(
        &self,
        prompt: AuthorizationPrompt,
    ) -> Result<AuthorizationRequest, IdentityError> {
        Ok(AuthorizationRequest {
            url: format!("https://idp.example/{prompt:?}"),
            kept: secret("nonce and more"),
        })
    }

    async fn exchange_code(
        &self,
        state: &Secret,
        _: &AuthorizationCallback,
    ) -> Result<Identity, IdentityError> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner).push(state.expose().to_owned());
        match &self.identity {
            Some(identity) => Ok(identity.clone()),
            None => Err(self.failures.next().expect("a failure")),
        }
    }
}
