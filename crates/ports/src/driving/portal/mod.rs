//! The services that members use through the portal.

mod authoring;
mod branding;
mod contacts;
mod identity;
mod passkeys;
mod reauthentication;
mod sessions;
mod team;
mod templates;
mod webhooks;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    account::{PasswordRejected, Permission, Role},
    api_key::Environment,
    audit::AuditEntry,
    frame_ancestors::FrameAncestor,
    id::{ApiKeyId, SignInId, TeamId, UserId},
    reauthentication::{AuthenticationTimes, SensitiveAction},
    required_action::RequiredAction,
    secret::Secret,
};

pub use self::{
    authoring::{AuthoringService, NewDraft, VersionChoice},
    branding::BrandingService,
    contacts::ContactService,
    identity::{IdentityService, SignInOutcome},
    passkeys::{PasskeyChallenge, PasskeyRegistered, PasskeyService},
    reauthentication::{
        FirstFactor, PendingForm, ReauthenticationProof, ReauthenticationService, SecondFactorProof,
    },
    sessions::{
        DailyCounts, FailingNode, FailureCount, FunnelStep, Overview, OverviewRange,
        PlatformOutcomes, SessionDetails, SessionSearch, TeamQuotas, TeamSession, TeamSessionList,
        TeamSessionService,
    },
    team::{LinkService, MailedLink, Member, NewMember, TeamService},
    templates::{Preview, TemplateService},
    webhooks::TeamWebhookService,
};
use crate::{
    StoreError,
    account_store::{RequestOrigin, SignIn},
    key_store::StoredKey,
};

/// A signed-in user.
#[derive(Clone)]
pub struct SignedInUser {
    pub user: UserId,
    pub email: String,
    pub role: Role,
    pub team: TeamId,
    pub team_name: String,
    pub sign_in: SignInId,
    /// Whether all required factors were verified; until then, the user can do nothing else.
    pub passed: bool,
    /// Whether the user has one-time codes.
    pub has_codes: bool,
    /// Whether the user has a passkey.
    pub has_passkey: bool,
    pub authenticated: AuthenticationTimes,
    /// The expiry of a generated password; `None` if the user chose it.
    pub password_until: Option<DateTime<Utc>>,
    /// The action that the user has to take before any other.
    pub required_action: Option<RequiredAction>,
    /// The CSRF token of the user's forms.
    pub form_token: Secret,
    pub from: RequestOrigin,
}

impl SignedInUser {
    #[must_use]
    pub const fn has_second_factor(&self) -> bool {
        self.has_codes || self.has_passkey
    }

    /// Checks a permission.
    ///
    /// # Errors
    /// The role lacks the permission, a required factor was not verified, or the user has to take a
    /// [`RequiredAction`] first.
    pub fn require(&self, permission: Permission) -> Result<(), PortalError> {
        if self.passed && self.required_action.is_none() && self.role.may(permission) {
            Ok(())
        } else {
            Err(PortalError::Forbidden)
        }
    }
}

impl SignedInUser {
    /// Returns whether the identity provider signed the user in.
    #[must_use]
    pub const fn is_by_provider(&self) -> bool {
        self.authenticated.signed_in_at.is_none()
    }

    /// Checks that the user has authenticated recently enough for a sensitive action.
    ///
    /// # Errors
    /// [`PortalError::Unconfirmed`] if the user has to re-authenticate first.
    pub fn require_reauthentication(
        &self,
        action: SensitiveAction,
        now: DateTime<Utc>,
    ) -> Result<(), PortalError> {
        let confirmed = action.is_confirmed(self.authenticated, now);
        if confirmed { Ok(()) } else { Err(PortalError::Unconfirmed) }
    }
}

/// Signs members in and out, and manages their credentials.
#[async_trait]
pub trait AccountService: Send + Sync {
    /// Verifies an address and a password. It takes as long for an unknown address. That a password
    /// has expired is reported only if it is right.
    async fn sign_in(&self, attempt: SignInAttempt) -> Result<SignedIn, PortalError>;

    /// Verifies a one-time code or recovery code after a right password, and returns the new token
    /// of the sign-in.
    async fn verify_totp(
        &self,
        token: &Secret,
        code: &str,
        from: RequestOrigin,
        browsers: Secret,
    ) -> Result<SignedIn, PortalError>;

    /// Returns the user of a token.
    async fn signed_in_user(
        &self,
        token: &Secret,
        from: RequestOrigin,
    ) -> Result<Option<SignedInUser>, PortalError>;

    async fn sign_out(&self, user: &SignedInUser) -> Result<(), PortalError>;

    /// Returns the user's sign-ins, the latest first.
    async fn sign_ins(&self, user: &SignedInUser) -> Result<Vec<SignIn>, PortalError>;

    async fn end_sign_in(&self, user: &SignedInUser, id: SignInId) -> Result<(), PortalError>;

    /// Changes the user's password and ends all their other sign-ins.
    async fn change_password(&self, user: &SignedInUser, new: Secret) -> Result<(), PortalError>;

    /// Offers a TOTP secret, which is not stored before [`Self::enable_totp`]: the one of an
    /// earlier offer if that is still valid, otherwise a new one.
    fn totp_setup(&self, user: &SignedInUser, before: Option<&str>) -> TotpSetup;

    /// Stores the offered secret if the code is right, and returns recovery codes, which are shown
    /// once.
    async fn enable_totp(
        &self,
        user: &SignedInUser,
        offer: &str,
        code: &str,
    ) -> Result<Vec<Secret>, PortalError>;

    /// Removes the TOTP secret.
    async fn disable_totp(&self, user: &SignedInUser) -> Result<(), PortalError>;
}

/// An attempt to sign in.
pub struct SignInAttempt {
    pub email: String,
    pub password: Secret,
    pub from: RequestOrigin,
    /// The known-browser tokens of the browser; empty if it has none.
    pub browsers: Secret,
}

/// The token of a sign-in, and whether a second factor is required before the token is valid.
pub struct SignedIn {
    pub token: Secret,
    pub needs_code: bool,
    /// The known-browser tokens for the browser's next attempt, once the sign-in is complete.
    pub browsers: Option<Secret>,
}

/// An offered TOTP secret.
pub struct TotpSetup {
    /// The secret in base32, for typing.
    pub secret: Secret,
    /// The `otpauth:` URL, for scanning.
    pub url: Secret,
    /// The encrypted offer, which proves later that it was made to this user recently.
    pub sealed: Secret,
}

/// Manages a team's API keys.
#[async_trait]
pub trait KeyService: Send + Sync {
    async fn keys(&self, user: &SignedInUser) -> Result<Vec<StoredKey>, PortalError>;

    /// Creates a key. Only this result contains it.
    async fn make_key(&self, user: &SignedInUser, key: NewKey) -> Result<Secret, PortalError>;

    /// Replaces the key of a record. Only this result contains the new key; the earlier one is
    /// invalid from then on.
    async fn rotate_key(&self, user: &SignedInUser, id: ApiKeyId) -> Result<Secret, PortalError>;

    async fn revoke_key(&self, user: &SignedInUser, id: ApiKeyId) -> Result<(), PortalError>;
}

/// A key to be created.
pub struct NewKey {
    pub label: String,
    pub environment: Environment,
    pub expires_at: Option<DateTime<Utc>>,
}

/// Manages the origins whose pages may embed a team's sessions.
#[async_trait]
pub trait EmbeddingService: Send + Sync {
    /// Returns the origins; an empty list allows any origin.
    async fn embed_origins(&self, user: &SignedInUser) -> Result<Vec<FrameAncestor>, PortalError>;

    async fn set_embed_origins(
        &self,
        user: &SignedInUser,
        origins: Vec<FrameAncestor>,
    ) -> Result<(), PortalError>;
}

/// Reads a team's audit log.
#[async_trait]
pub trait AuditService: Send + Sync {
    /// Returns up to `limit` entries before a number, the newest first.
    async fn audit(
        &self,
        user: &SignedInUser,
        before: Option<i64>,
        limit: u16,
    ) -> Result<Vec<AuditEntry>, PortalError>;

    /// Verifies the hash chain of the whole log.
    async fn verify_audit(&self, user: &SignedInUser) -> Result<AuditCheck, PortalError>;
}

/// The result of verifying a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditCheck {
    pub entries: i64,
    /// The newest entry. With a copy of its hash, a later change of the log up to it is detected.
    pub last: Option<AuditEntry>,
    /// The newest entry whose hash does not match the previous one.
    pub broken: Option<i64>,
}

#[derive(Debug, thiserror::Error)]
pub enum PortalError {
    /// The object does not exist, or belongs to another team.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// The account link was not issued by this service, was used, or has expired.
    #[error("this link is invalid or has expired. Request a new one")]
    InvalidLink,
    #[error("your role doesn't have permission to do this")]
    Forbidden,
    #[error("confirm your identity to continue")]
    Unconfirmed,
    #[error("incorrect email or password")]
    WrongPassword,
    #[error(
        "your temporary password has expired. Use \"Forgot password?\" to choose a new one, or ask \
         your administrator"
    )]
    PasswordRanOut,
    #[error("incorrect or already used code")]
    WrongCode,
    #[error("too many attempts. Wait a moment, then try again")]
    TooMany {
        /// The delay in whole seconds.
        retry_after: i64,
    },
    #[error(transparent)]
    Password(#[from] PasswordRejected),
    #[error("{0}")]
    Invalid(String),
    /// The process is about to stop. Another one answers the same request within seconds.
    #[error("the service is being restarted. Try again in a few seconds")]
    Restarting,
    #[error(transparent)]
    Store(#[from] StoreError),
}
