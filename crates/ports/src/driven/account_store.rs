//! The stores of members and of their sign-ins to the portal.

use std::net::IpAddr;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    account::{Email, INITIAL_PASSWORD_TTL, Role},
    id::{SignInId, TeamId, UserId},
    secret::Secret,
};

use crate::{Reencrypted, StoreError};

/// Stores users of the portal, each in one team.
#[async_trait]
pub trait UserStore: Send + Sync {
    /// Adds a member. Returns `false` if another member has the address.
    async fn add_user(
        &self,
        user: &User,
        password: Option<&NewPassword>,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    async fn user_by_email(&self, email: &Email) -> Result<Option<StoredUser>, StoreError>;

    async fn user(&self, id: UserId) -> Result<Option<StoredUser>, StoreError>;

    /// Sets a password and its expiry. The member's account links are void from then on.
    async fn set_password(&self, id: UserId, password: &NewPassword) -> Result<(), StoreError>;

    /// Encrypts secrets that an earlier key encrypted with the newest one, up to `limit` members
    /// after this one.
    async fn reencrypt_users(
        &self,
        after: Option<UserId>,
        limit: u16,
    ) -> Result<Reencrypted<UserId>, StoreError>;
}

/// Binds users to their subjects at the identity provider (OpenID Connect Core 1.0, section 2).
#[async_trait]
pub trait ProviderSubjects: Send + Sync {
    /// Returns the member with a subject of the identity provider.
    async fn user_by_subject(&self, subject: &str) -> Result<Option<StoredUser>, StoreError>;

    /// Replaces a member's subject at the identity provider, which is `before` so far. Returns
    /// `false`, and changes nothing, if the member has another subject, or another member has the
    /// new one. Of two concurrent calls one succeeds.
    async fn bind_subject(
        &self,
        id: UserId,
        before: Option<&str>,
        subject: &str,
    ) -> Result<bool, StoreError>;
}

/// Lists and changes the members of a team.
#[async_trait]
pub trait TeamMembers: Send + Sync {
    /// Returns a team's members, sorted by address.
    async fn users(&self, team: TeamId) -> Result<Vec<User>, StoreError>;

    async fn set_role(
        &self,
        team: TeamId,
        id: UserId,
        role: Role,
    ) -> Result<MembershipChange, StoreError>;

    /// Removes a member together with their sign-ins.
    async fn remove_user(&self, team: TeamId, id: UserId) -> Result<MembershipChange, StoreError>;

    /// Sets whether all members of a team must have a second factor.
    async fn require_second_factor(&self, team: TeamId, required: bool) -> Result<(), StoreError>;

    /// Returns whether all members of a team must have a second factor.
    async fn requires_second_factor(&self, team: TeamId) -> Result<bool, StoreError>;
}

/// Stores TOTP secrets and recovery codes.
#[async_trait]
pub trait SecondFactors: Send + Sync {
    /// Sets a member's TOTP secret and recovery codes; `None` removes the secret. Earlier recovery
    /// codes are deleted, unless the secret is removed and a passkey remains.
    async fn set_second_factor(
        &self,
        id: UserId,
        factor: Option<&SecondFactor>,
    ) -> Result<(), StoreError>;

    /// Records that the code of a time step was used. Returns `false` if a code of this step or a
    /// later one was used before: the caller MUST refuse the code (RFC 6238, section 5.2).
    async fn use_step(&self, id: UserId, step: i64) -> Result<bool, StoreError>;

    /// Deletes a recovery code. Returns `false` if the member does not have it. Of two concurrent
    /// calls one succeeds.
    async fn use_recovery(&self, id: UserId, code: &CodeHash) -> Result<bool, StoreError>;
}

/// Stores the sign-ins of members.
#[async_trait]
pub trait SignInStore: Send + Sync {
    async fn add_sign_in(&self, sign_in: &SignIn, token: &CodeHash) -> Result<(), StoreError>;

    /// Returns the sign-in of a token if it has not expired and was used within `idle`. Records the
    /// use, to the minute.
    async fn sign_in(
        &self,
        token: &CodeHash,
        idle: TimeDelta,
        now: DateTime<Utc>,
    ) -> Result<Option<(SignIn, StoredUser, TeamMembership)>, StoreError>;

    /// Records that the second factor was verified, and replaces the token. Returns `false` if the
    /// sign-in no longer has the old token.
    async fn mark_second_factor_verified(
        &self,
        old: &CodeHash,
        new: &CodeHash,
        until: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Records a re-authentication, and replaces the token. Returns `false`, and changes nothing,
    /// if the sign-in no longer has the old token.
    async fn confirm_sign_in(
        &self,
        old: &CodeHash,
        new: &CodeHash,
        at: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Returns a member's sign-ins that have not expired and were used within `idle`, the latest
    /// first.
    async fn sign_ins(
        &self,
        user: UserId,
        idle: TimeDelta,
        now: DateTime<Utc>,
    ) -> Result<Vec<SignIn>, StoreError>;

    /// Ends one of a member's sign-ins. Returns `false` if there is none with this identifier.
    async fn end_sign_in(&self, user: UserId, id: SignInId) -> Result<bool, StoreError>;

    /// Ends all sign-ins of a member except one, and returns their number.
    async fn end_other_sign_ins(
        &self,
        user: UserId,
        except: Option<SignInId>,
    ) -> Result<usize, StoreError>;

    /// Deletes sign-ins that expired before `now` and returns their number.
    async fn delete_expired_sign_ins(&self, now: DateTime<Utc>) -> Result<usize, StoreError>;
}

/// Keeps the encrypted form that waits for a re-authentication, with its sign-in.
#[async_trait]
pub trait HeldForms: Send + Sync {
    /// Stores an encrypted form with a sign-in, in place of an earlier one.
    async fn hold_form(&self, id: SignInId, encrypted: &[u8]) -> Result<(), StoreError>;

    /// Returns the encrypted form of a sign-in.
    async fn held_form(&self, id: SignInId) -> Result<Option<Vec<u8>>, StoreError>;

    /// Deletes this form of a sign-in. Returns `false` if the sign-in has another form or none. Of
    /// two concurrent calls one succeeds.
    async fn drop_form(&self, id: SignInId, encrypted: &[u8]) -> Result<bool, StoreError>;
}

/// The result of changing or removing a member. Two concurrent changes MUST NOT leave a team
/// without a member who governs it and has a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MembershipChange {
    Done,
    /// The team has no such member.
    Nobody,
    /// The member is the last one who governs the team.
    Last,
}

/// The team of a signed-in user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamMembership {
    pub name: String,
    /// Whether all its members must have a second factor.
    pub needs_second_factor: bool,
}

/// A member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub id: UserId,
    pub team: TeamId,
    pub email: Email,
    pub role: Role,
    /// Whether the member has a password, chosen or generated.
    pub has_password: bool,
    /// Whether a one-time code or a passkey is required.
    pub has_second_factor: bool,
    pub created_at: DateTime<Utc>,
}

/// A member and their credentials.
#[derive(Clone)]
pub struct StoredUser {
    pub user: User,
    /// `None` until the member has chosen a password.
    pub password: Option<PasswordHash>,
    /// The expiry of a generated password; `None` if the member chose it.
    pub password_until: Option<DateTime<Utc>>,
    /// The member's subject at the identity provider.
    pub subject: Option<String>,
    /// The TOTP secret.
    pub totp: Option<Secret>,
    pub passkeys: usize,
    pub recovery_codes_left: usize,
}

impl StoredUser {
    /// Returns whether the password was generated and has expired.
    #[must_use]
    pub fn has_expired_password(&self, now: DateTime<Utc>) -> bool {
        self.password_until.is_some_and(|until| until <= now)
    }
}

/// The hash of a password, a string in PHC format.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(pub String);

/// A password to be stored.
#[derive(Clone, PartialEq, Eq)]
pub struct NewPassword {
    pub hash: PasswordHash,
    /// The expiry of a generated password; `None` if the member chose it.
    pub until: Option<DateTime<Utc>>,
}

impl NewPassword {
    /// A password that the member chose. It is valid until it is changed.
    #[must_use]
    pub const fn chosen(hash: PasswordHash) -> Self {
        Self { hash, until: None }
    }

    /// A password that was generated at `now`.
    #[must_use]
    pub fn made(hash: PasswordHash, now: DateTime<Utc>) -> Self {
        Self { hash, until: Some(now + INITIAL_PASSWORD_TTL) }
    }
}

/// The SHA-256 hash of a value with at least 120 random bits (recovery codes of earlier versions:
/// 80). The value itself is not stored.
#[derive(Clone, PartialEq, Eq)]
pub struct CodeHash(pub [u8; 32]);

/// A second factor of one-time codes.
pub struct SecondFactor {
    /// The TOTP secret in base32 (RFC 4648, section 6), as authenticators read it.
    pub totp: Secret,
    /// The time step of the code with which the member proved possession of the secret.
    pub step: i64,
    pub recovery: Vec<CodeHash>,
}

/// A sign-in of a member.
#[derive(Clone, PartialEq, Eq)]
pub struct SignIn {
    pub id: SignInId,
    pub user: UserId,
    /// Whether all required factors were verified.
    pub passed: bool,
    /// Whether the identity provider authenticated the member, in place of a password.
    pub by_provider: bool,
    /// The time of the last re-authentication.
    pub confirmed_at: Option<DateTime<Utc>>,
    /// The CSRF token of the sign-in's forms.
    pub form_token: Secret,
    pub created_at: DateTime<Utc>,
    pub seen_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    pub from: RequestOrigin,
}

/// The origin of a request to the portal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestOrigin {
    pub address: IpAddr,
    /// The `User-Agent` header, truncated.
    pub agent: String,
}
