//! Two teams with their members, and what the tests ask of them.

use std::{net::IpAddr, sync::Arc};

use domain::{
    account::Role,
    audit::AuditEntry,
    id::{TeamId, UserId},
    notice::AccountEvent,
    secret::Secret,
    session::Session,
};
use memory_store::MemoryStore;
use ports::{
    account_store::{NewPassword, RequestOrigin, StoredUser, User, UserStore as _},
    audit_log::AuditLog,
    catalogue::Catalogue as _,
    clock::Clock as _,
    driving::{AccountService as _, PortalError, SignInAttempt, SignedIn, SignedInUser},
    encryption::Cipher,
    key_store::{KeyStore as _, TeamStore as _},
    notice_store::NoticeStore as _,
    passkeys::PasskeyVerifier,
    random::RandomSource as _,
    session_store::SessionStore as _,
};
use testkit::{
    clock::FakeClock,
    sample::{self, noon},
};
use tokio::sync::Notify;

use super::{
    fakes::{
        BrokenAuditLog, ContextCipher, CountingAttempts, CountingRandom, OneWindow, PlainHasher,
        PlainPasskeys, PlainTotp, plain_hash,
    },
    services::{POLICY, QUOTAS},
};
use crate::{api_keys::ApiKeyText, browser_turns::BrowserTurns, settings::SignInPolicy};

pub(super) const TEAM: TeamId = TeamId::from_u128(0xA);
pub(super) const OTHER_TEAM: TeamId = TeamId::from_u128(0xB);
pub(super) const PASSWORD: &str = "correct horse battery staple";

/// All stores and fakes; the services are made of them by the methods in `services`.
pub(super) struct Fixture {
    pub(super) store: Arc<MemoryStore>,
    pub(super) audit: Arc<dyn AuditLog>,
    pub(super) clock: Arc<FakeClock>,
    pub(super) random: Arc<CountingRandom>,
    pub(super) cipher: Arc<dyn Cipher>,
    pub(super) hasher: Arc<PlainHasher>,
    pub(super) verifier: Option<Arc<dyn PasskeyVerifier>>,
    pub(super) limiter: Arc<OneWindow>,
    pub(super) attempts: Arc<CountingAttempts>,
    pub(super) turns: Arc<BrowserTurns>,
    pub(super) deliveries: Arc<Notify>,
    pub(super) policy: SignInPolicy,
}

impl Fixture {
    /// Creates two teams without members.
    pub(super) async fn new() -> Self {
        let store = Arc::new(MemoryStore::new());
        store.add_team(TEAM, "Lender", noon()).await.unwrap();
        store.add_team(OTHER_TEAM, "Broker", noon()).await.unwrap();
        Self {
            audit: store.clone(),
            store,
            clock: Arc::new(FakeClock::at(noon())),
            random: Arc::default(),
            cipher: Arc::new(ContextCipher),
            hasher: Arc::default(),
            verifier: Some(Arc::new(PlainPasskeys)),
            limiter: Arc::default(),
            attempts: Arc::default(),
            turns: Arc::new(BrowserTurns::new(QUOTAS)),
            deliveries: Arc::default(),
            policy: POLICY,
        }
    }

    /// Returns the same stores with an audit log that fails.
    pub(super) fn with_broken_audit_log(self) -> Self {
        Self { audit: Arc::new(BrokenAuditLog), ..self }
    }

    /// Adds a member with [`PASSWORD`].
    pub(super) async fn add_member(&self, team: TeamId, email: &str, role: Role) -> UserId {
        let user = User {
            id: UserId::from_u128(self.random.new_id()),
            team,
            email: email.parse().unwrap(),
            role,
            has_password: true,
            has_second_factor: false,
            created_at: noon(),
        };
        let password = NewPassword::chosen(plain_hash(PASSWORD));
        assert!(self.store.add_user(&user, Some(&password), noon()).await.unwrap());
        user.id
    }

    /// Signs in with [`PASSWORD`], and returns the token.
    pub(super) async fn token(&self, email: &str) -> Secret {
        self.accounts().sign_in(attempt(email, PASSWORD)).await.unwrap().token
    }

    /// Returns the user with a token, whom it re-authenticates.
    pub(super) async fn user_of(&self, token: &Secret) -> SignedInUser {
        let mut user =
            self.accounts().signed_in_user(token, origin()).await.unwrap().expect("a sign-in");
        user.authenticated.confirmed_at = Some(self.clock.now());
        user
    }

    /// Adds a member of the first team, and signs them in and re-authenticates them.
    pub(super) async fn user(&self, role: Role) -> SignedInUser {
        self.user_in(TEAM, role).await
    }

    /// Adds a member of a team, and signs them in and re-authenticates them.
    pub(super) async fn user_in(&self, team: TeamId, role: Role) -> SignedInUser {
        let email = format!("{}-{}@lender.example", role.as_str(), self.random.new_id());
        self.add_member(team, &email, role).await;
        self.user_of(&self.token(&email).await).await
    }

    /// Adds a session that was created now with a new key of a team, which is labelled `Backend`.
    pub(super) async fn add_session(&self, team: TeamId) -> Session {
        self.insert_session(team, |session| session).await
    }

    /// Adds a session as [`Self::add_session`] does, changed by a function.
    pub(super) async fn insert_session(
        &self,
        team: TeamId,
        change: impl FnOnce(Session) -> Session,
    ) -> Session {
        let key = sample::key(team);
        let hash = ApiKeyText::new(key.environment, self.random.random_bytes()).hash();
        self.store.add_key(&key, &hash, "Backend", noon()).await.unwrap();
        let definition = sample::definition("sample", "1.0.0");
        let (platform, _) = self.store.publish(&definition, None, noon()).await.unwrap();
        let mut session = sample::opening(key.id, platform).session;
        session.created_at = self.clock.now();
        let opening = change(session).opening();
        self.store.insert(&opening, None).await.unwrap();
        opening.session
    }

    pub(super) async fn stored(&self, id: UserId) -> StoredUser {
        self.store.user(id).await.unwrap().expect("an account")
    }

    /// Enables TOTP codes. Returns the secret and the recovery codes.
    pub(super) async fn enable_totp(&self, user: &SignedInUser) -> (String, Vec<Secret>) {
        let accounts = self.accounts();
        let setup = accounts.totp_setup(user, None);
        let secret = setup.secret.expose().to_owned();
        let code = self.code(&secret);
        let codes = accounts.enable_totp(user, setup.sealed.expose(), &code).await.unwrap();
        (secret, codes)
    }

    /// Returns the TOTP code of this moment.
    pub(super) fn code(&self, secret: &str) -> String {
        PlainTotp::code(secret, self.clock.now())
    }

    /// Returns the actions and subjects in the log of the first team, the oldest first, without
    /// those of successful sign-ins.
    pub(super) async fn actions(&self) -> Vec<String> {
        settle().await;
        let entries = self.store.entries(TEAM, None, 1000).await.unwrap();
        let text = |entry: AuditEntry| format!("{} {}", entry.event.action, entry.event.subject);
        let actions = entries.into_iter().rev().map(text).map(|line| line.trim().to_owned());
        actions.filter(|line| line != "sign-in").collect()
    }

    /// Takes the notices that are due, in their order.
    pub(super) async fn due_notices(&self) -> Vec<AccountEvent> {
        let (now, lease) = (self.clock.now(), chrono::TimeDelta::days(1));
        let claims = self.store.claim_notices(now, lease, 100).await.unwrap();
        claims.into_iter().map(|claim| claim.notice.event).collect()
    }
}

/// Returns where the requests of the tests come from.
pub(super) fn origin() -> RequestOrigin {
    RequestOrigin { address: IpAddr::from([192, 0, 2, 1]), agent: "Browser".to_owned() }
}

/// Returns an attempt from a browser that is not known.
pub(super) fn attempt(email: &str, password: &str) -> SignInAttempt {
    SignInAttempt {
        email: email.to_owned(),
        password: secret(password),
        from: origin(),
        browsers: secret(""),
    }
}

pub(super) fn secret(text: &str) -> Secret {
    Secret::new(text.to_owned())
}

/// Lets the tasks run that a service has spawned.
pub(super) async fn settle() {
    for _ in 0..4 {
        tokio::task::yield_now().await;
    }
}

/// Returns the error of a call whose success has no `Debug`.
pub(super) fn error<T>(result: Result<T, PortalError>) -> PortalError {
    match result {
        Ok(_) => panic!("the call succeeded"),
        Err(error) => error,
    }
}

/// Returns the text of a call's error.
pub(super) fn refusal<T>(result: Result<T, PortalError>) -> String {
    error(result).to_string()
}

pub(super) fn browsers(signed_in: &SignedIn) -> Secret {
    signed_in.browsers.clone().expect("the tokens of a browser")
}

pub(super) const EVERYONE: [&str; 5] = ["viewer", "member", "author", "owner", "operator"];
pub(super) const MEMBERS: [&str; 4] = ["member", "author", "owner", "operator"];
pub(super) const OWNERS: [&str; 2] = ["owner", "operator"];
pub(super) const OPERATORS: [&str; 1] = ["operator"];

/// Returns the roles whose calls are not forbidden, whatever else becomes of them.
pub(super) async fn permitted<T>(
    fixture: &Fixture,
    call: impl AsyncFn(SignedInUser) -> Result<T, PortalError>,
) -> Vec<&'static str> {
    let mut roles = vec![];
    for role in Role::ALL {
        let user = fixture.user(role).await;
        if !matches!(call(user).await, Err(PortalError::Forbidden)) {
            roles.push(role.as_str());
        }
    }
    roles
}
