//! Members: generated passwords and lost second factors.

use chrono::TimeDelta;
use domain::{
    account::{Email, INITIAL_PASSWORD_TTL, Role},
    id::{PasskeyId, SignInId, UserId},
    secret::Secret,
};
use ports::{
    account_store::{
        CodeHash, RequestOrigin, SecondFactor, SecondFactors as _, SignIn, SignInStore as _,
        StoredUser, UserStore as _,
    },
    driving::{AdministrationError, UserAdminService as _},
    passkeys::{Credential, PasskeyStore as _, StoredPasskey},
};

use super::*;
use crate::{
    administration::UserAdministration,
    fakes::{PlainHasher, PlainTotp, plain_hash},
};

#[tokio::test]
async fn a_member_is_created_with_a_password_that_expires() {
    let fixture = Fixture::new().await;
    let created = fixture.users().create(TEAM, email(), Role::Owner).await.unwrap();
    let groups: Vec<_> = created.password.expose().split('-').map(str::len).collect();
    assert_eq!(groups, [6, 6, 6, 6]);
    let stored = fixture.stored().await;
    assert_eq!((stored.user.id, stored.user.role), (created.user, Role::Owner));
    assert!(stored.password == Some(plain_hash(created.password.expose())));
    assert_eq!(stored.password_until, Some(noon() + INITIAL_PASSWORD_TTL));
    assert_eq!(fixture.audited().await, ["avouch admin: person.add ada@lender.example as owner"]);
}

#[tokio::test]
async fn a_second_member_with_an_address_and_an_unknown_team_are_refused() {
    let fixture = Fixture::new().await;
    let users = fixture.users();
    let refused = users.create(UNKNOWN_TEAM, email(), Role::Viewer).await.map(drop);
    assert_eq!(refused.unwrap_err().to_string(), format!("there is no team {UNKNOWN_TEAM}"));
    assert!(fixture.store.user_by_email(&email()).await.unwrap().is_none());
    let first = users.create(TEAM, email(), Role::Owner).await.unwrap().user;
    let refused = users.create(TEAM, email(), Role::Viewer).await.map(drop);
    assert!(matches!(refused, Err(AdministrationError::AddressTaken(_))), "{refused:?}");
    assert_eq!(fixture.stored().await.user.id, first);
}

#[tokio::test]
async fn a_reset_replaces_the_password_and_ends_the_sign_ins() {
    let fixture = Fixture::new().await;
    let users = fixture.users();
    let first = users.create(TEAM, email(), Role::Owner).await.unwrap();
    fixture.sign_in(first.user).await;
    let (second, ended) = users.reset_password(&email()).await.unwrap();
    assert_eq!((second.user, ended), (first.user, 1));
    assert_ne!(second.password.expose(), first.password.expose());
    assert!(fixture.stored().await.password == Some(plain_hash(second.password.expose())));
    assert_eq!(fixture.audited().await[1], "avouch admin: password.reset ada@lender.example");
}

#[tokio::test]
async fn a_lost_second_factor_is_removed_completely() {
    let fixture = Fixture::new().await;
    let users = fixture.users();
    let user = users.create(TEAM, email(), Role::Owner).await.unwrap().user;
    fixture.add_second_factors(user).await;
    fixture.sign_in(user).await;
    assert!(fixture.stored().await.user.has_second_factor);
    assert_eq!(users.drop_second_factor(&email()).await.unwrap(), (user, 1));
    let stored = fixture.stored().await;
    assert!(!stored.user.has_second_factor && stored.totp.is_none());
    assert_eq!((stored.passkeys, stored.recovery_codes_left), (0, 0));
    assert_eq!(fixture.audited().await[1], "avouch admin: second-factor.drop ada@lender.example");
}

#[tokio::test]
async fn an_unknown_address_is_refused_without_an_audit_event() {
    let fixture = Fixture::new().await;
    let users = fixture.users();
    let refused = [
        users.reset_password(&email()).await.map(drop),
        users.drop_second_factor(&email()).await.map(drop),
    ];
    for refused in refused {
        let text = refused.unwrap_err().to_string();
        assert_eq!(text, "nobody has the address ada@lender.example");
    }
    assert!(fixture.audited().await.is_empty());
}

#[tokio::test]
async fn nothing_changes_without_an_audit_event() {
    let fixture = Fixture::new().await;
    let user = fixture.users().create(TEAM, email(), Role::Owner).await.unwrap();
    fixture.add_second_factors(user.user).await;
    fixture.sign_in(user.user).await;
    let fixture = fixture.with_broken_audit_log();
    let users = fixture.users();
    let other: Email = "bob@lender.example".parse().unwrap();
    let failed = [
        users.create(TEAM, other.clone(), Role::Owner).await.map(drop),
        users.reset_password(&email()).await.map(drop),
        users.drop_second_factor(&email()).await.map(drop),
    ];
    for failed in failed {
        assert!(matches!(failed, Err(AdministrationError::Store(_))), "{failed:?}");
    }
    assert!(fixture.store.user_by_email(&other).await.unwrap().is_none());
    let stored = fixture.stored().await;
    assert!(stored.password == Some(plain_hash(user.password.expose())));
    assert!(stored.totp.is_some());
    assert_eq!(stored.passkeys, 1);
    let sign_ins = fixture.store.sign_ins(user.user, TimeDelta::hours(1), noon()).await.unwrap();
    assert_eq!(sign_ins.len(), 1);
}

fn email() -> Email {
    "ada@lender.example".parse().unwrap()
}

impl Fixture {
    fn users(&self) -> UserAdministration {
        UserAdministration {
            teams: self.store.clone(),
            users: self.store.clone(),
            second_factors: self.store.clone(),
            sign_ins: self.store.clone(),
            passkeys: self.store.clone(),
            hasher: Arc::new(PlainHasher::default()),
            totp: Arc::new(PlainTotp),
            audit: self.audit.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
        }
    }

    async fn stored(&self) -> StoredUser {
        self.store.user_by_email(&email()).await.unwrap().expect("a member")
    }

    async fn sign_in(&self, user: UserId) {
        let sign_in = SignIn {
            id: SignInId::from_uuid(Uuid::from_u128(1)),
            user,
            passed: true,
            by_provider: false,
            confirmed_at: None,
            form_token: Secret::new("token".into()),
            created_at: noon(),
            seen_at: noon(),
            expires_at: noon() + TimeDelta::hours(1),
            from: RequestOrigin { address: [192, 0, 2, 1].into(), agent: "Browser".into() },
        };
        self.store.add_sign_in(&sign_in, &CodeHash([1; 32])).await.unwrap();
    }

    async fn add_second_factors(&self, user: UserId) {
        let factor = SecondFactor {
            totp: Secret::new("SECRET".into()),
            step: 1,
            recovery: vec![CodeHash([2; 32])],
        };
        self.store.set_second_factor(user, Some(&factor)).await.unwrap();
        let passkey = StoredPasskey {
            id: PasskeyId::from_uuid(Uuid::from_u128(1)),
            user,
            name: "Phone".into(),
            credential: Credential { id: vec![1], key: vec![], state: vec![], transports: 0 },
            created_at: noon(),
            used_at: None,
        };
        assert!(self.store.add_passkey(&passkey, None).await.unwrap());
    }
}
