//! Where the people who use the portal are kept, and where they are signed in.

use std::net::IpAddr;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    account::{Email, INITIAL_PASSWORD_TTL, Role},
    id::{SignInId, TeamId, UserId},
    secret::Secret,
};

use crate::{Reencrypted, StoreError};

/// Keeps people, each in one team.
#[async_trait]
pub trait UserStore: Send + Sync {
    /// `false`: somebody has this address already.
    async fn add_user(
        &self,
        user: &User,
        password: Option<&NewPassword>,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    async fn user_by_email(&self, email: &Email) -> Result<Option<StoredUser>, StoreError>;

    async fn user(&self, id: UserId) -> Result<Option<StoredUser>, StoreError>;

    /// Whom a provider of identities knows by a name.
    async fn user_by_subject(&self, subject: &str) -> Result<Option<StoredUser>, StoreError>;

    /// Says whom a provider knows somebody as, in the place of what was said `before`. `false`, and
    /// nothing is changed: that was another, or the name is another person's. Of two at once one
    /// succeeds.
    async fn bind_subject(
        &self,
        id: UserId,
        before: Option<&str>,
        subject: &str,
    ) -> Result<bool, StoreError>;

    /// A team's people, by their addresses.
    async fn users(&self, team: TeamId) -> Result<Vec<User>, StoreError>;

    /// Sets a password and until when it opens something; links by which one could be chosen are
    /// void from then on.
    async fn set_password(&self, id: UserId, password: &NewPassword) -> Result<(), StoreError>;

    async fn set_role(
        &self,
        team: TeamId,
        id: UserId,
        role: Role,
    ) -> Result<MembershipChange, StoreError>;

    /// Takes somebody out, with all that they are signed in with.
    async fn remove_user(&self, team: TeamId, id: UserId) -> Result<MembershipChange, StoreError>;

    /// Says whether all of a team's people have to have a second factor.
    async fn require_second_factor(&self, team: TeamId, required: bool) -> Result<(), StoreError>;

    /// Whether they have to.
    async fn requires_second_factor(&self, team: TeamId) -> Result<bool, StoreError>;

    /// Gives somebody a secret for one-time codes, with codes for when they have lost it; none
    /// takes it away. Codes that were there before are gone, unless a passkey is left.
    async fn set_second_factor(
        &self,
        id: UserId,
        factor: Option<&SecondFactor>,
    ) -> Result<(), StoreError>;

    /// Notes that the code of this step was used. `false`: it, or a later one, was before, and
    /// this one MUST be refused (RFC 6238, section 5.2).
    async fn use_step(&self, id: UserId, step: i64) -> Result<bool, StoreError>;

    /// Takes a recovery code away. `false`: there is none like it. Of two at once one succeeds.
    async fn use_recovery(&self, id: UserId, code: &CodeHash) -> Result<bool, StoreError>;

    /// Seals secrets anew that another key than today's closed, a few at a time.
    async fn reencrypt_users(
        &self,
        after: Option<UserId>,
        limit: u16,
    ) -> Result<Reencrypted<UserId>, StoreError>;
}

/// Keeps who is signed in.
#[async_trait]
pub trait SignInStore: Send + Sync {
    async fn add_sign_in(&self, sign_in: &SignIn, token: &CodeHash) -> Result<(), StoreError>;

    /// Who a token stands for, if it has not run out and was seen within `idle`; notes that it was
    /// seen, to the minute.
    async fn sign_in(
        &self,
        token: &CodeHash,
        idle: TimeDelta,
        now: DateTime<Utc>,
    ) -> Result<Option<(SignIn, StoredUser, TeamMembership)>, StoreError>;

    /// Says that the second factor was shown, and gives the sign-in another token. `false`: it
    /// had another token, or none, by then.
    async fn mark_second_factor_verified(
        &self,
        old: &CodeHash,
        new: &CodeHash,
        until: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Notes that the person has confirmed who they are, and gives the sign-in another token.
    /// `false`, and nothing is changed: it had another token, or none, by then.
    async fn confirm_sign_in(
        &self,
        old: &CodeHash,
        new: &CodeHash,
        at: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Keeps a form with a sign-in, in the place of the one before.
    async fn hold_form(&self, id: SignInId, sealed: &[u8]) -> Result<(), StoreError>;

    /// The form that a sign-in has.
    async fn held_form(&self, id: SignInId) -> Result<Option<Vec<u8>>, StoreError>;

    /// Forgets this form of a sign-in. `false`: it has another, or none. Of two at once one
    /// succeeds.
    async fn drop_form(&self, id: SignInId, sealed: &[u8]) -> Result<bool, StoreError>;

    /// A person's sign-ins that have not run out and were seen within `idle`, the latest first.
    async fn sign_ins(
        &self,
        user: UserId,
        idle: TimeDelta,
        now: DateTime<Utc>,
    ) -> Result<Vec<SignIn>, StoreError>;

    /// Ends one of a person's sign-ins. `false`: there was none of that name.
    async fn end_sign_in(&self, user: UserId, id: SignInId) -> Result<bool, StoreError>;

    /// Ends all of a person's sign-ins but one.
    async fn end_other_sign_ins(
        &self,
        user: UserId,
        but: Option<SignInId>,
    ) -> Result<usize, StoreError>;

    /// Forgets what ran out before `now`. Answers how many.
    async fn delete_expired_sign_ins(&self, now: DateTime<Utc>) -> Result<usize, StoreError>;
}

/// What came of changing who somebody is in a team. Two at once MUST NOT leave a team without
/// anybody who governs it and has a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MembershipChange {
    Done,
    /// There is nobody of that name in the team.
    Nobody,
    /// Nobody would be left who governs the team.
    Last,
}

/// The team that somebody who is signed in is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamMembership {
    pub name: String,
    /// Whether all of its people have to have a second factor.
    pub needs_second_factor: bool,
}

/// A person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub id: UserId,
    pub team: TeamId,
    pub email: Email,
    pub role: Role,
    /// Whether they have chosen a password, or were given one.
    pub has_password: bool,
    /// Whether a one-time code or a passkey is asked for.
    pub has_second_factor: bool,
    pub created_at: DateTime<Utc>,
}

/// A person and what they sign in with.
#[derive(Clone)]
pub struct StoredUser {
    pub user: User,
    /// None: they have not chosen one yet.
    pub password: Option<PasswordHash>,
    /// From when on the password opens nothing; none where they chose it themselves.
    pub password_until: Option<DateTime<Utc>>,
    /// Whom a provider of identities knows them as.
    pub subject: Option<String>,
    /// The secret of their one-time codes.
    pub totp: Option<Secret>,
    pub passkeys: usize,
    pub recovery_codes_left: usize,
}

impl StoredUser {
    /// Whether their password was made for them too long ago to open anything.
    #[must_use]
    pub fn has_expired_password(&self, now: DateTime<Utc>) -> bool {
        self.password_until.is_some_and(|until| until <= now)
    }
}

/// A password as it is kept: a string of the PHC form.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(pub String);

/// A password to be kept.
#[derive(Clone, PartialEq, Eq)]
pub struct NewPassword {
    pub hash: PasswordHash,
    /// From when on it opens nothing, where it was made for the person; none where they chose it.
    pub until: Option<DateTime<Utc>>,
}

impl NewPassword {
    /// One that the person chose: it holds until it is changed.
    #[must_use]
    pub const fn chosen(hash: PasswordHash) -> Self {
        Self { hash, until: None }
    }

    /// One that was made for the person now.
    #[must_use]
    pub fn made(hash: PasswordHash, now: DateTime<Utc>) -> Self {
        Self { hash, until: Some(now + INITIAL_PASSWORD_TTL) }
    }
}

/// The SHA-256 hash of something that has 120 random bits or more (recovery codes
/// of earlier versions: 80); all of it that is kept.
#[derive(Clone, PartialEq, Eq)]
pub struct CodeHash(pub [u8; 32]);

/// What a second factor consists of.
pub struct SecondFactor {
    /// In base32 (RFC 4648, section 6), as authenticators are told it.
    pub totp: Secret,
    /// The step of the code that proved that somebody has it.
    pub step: i64,
    pub recovery: Vec<CodeHash>,
}

/// That somebody is signed in.
#[derive(Clone, PartialEq, Eq)]
pub struct SignIn {
    pub id: SignInId,
    pub user: UserId,
    /// Whether all is shown that was to be shown.
    pub passed: bool,
    /// Whether a provider of identities said who they are, in the place of a password.
    pub by_provider: bool,
    /// When they last confirmed who they are, beyond having signed in.
    pub confirmed_at: Option<DateTime<Utc>>,
    /// Comes with every form that they send.
    pub form_token: Secret,
    pub created_at: DateTime<Utc>,
    pub seen_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    pub from: RequestOrigin,
}

/// Where a request to the portal comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestOrigin {
    pub address: IpAddr,
    /// What the browser says that it is, cut.
    pub agent: String,
}
