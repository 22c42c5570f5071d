//! What people do in the portal.

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
    branding::BrandingService,
    contacts::ContactService,
    identity::{IdentityService, SignInOutcome},
    passkeys::{PasskeyChallenge, PasskeyRegistered, PasskeyService},
    reauthentication::{
        FirstFactor, PendingForm, ReauthenticationProof, ReauthenticationService, SecondFactorProof,
    },
    sessions::{
        DailyCounts, FailingNode, Overview, SessionDetails, TeamQuotas, TeamSession,
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

/// Somebody who is signed in.
#[derive(Clone)]
pub struct SignedInUser {
    pub user: UserId,
    pub email: String,
    pub role: Role,
    pub team: TeamId,
    pub team_name: String,
    pub sign_in: SignInId,
    /// Whether all was shown that is asked for; else nothing but that is open to them.
    pub passed: bool,
    /// Whether one-time codes are asked for.
    pub has_codes: bool,
    /// Whether a passkey is.
    pub has_passkey: bool,
    pub authenticated: AuthenticationTimes,
    /// From when on their password opens nothing; none where they chose it themselves.
    pub password_until: Option<DateTime<Utc>>,
    /// What they have to do before anything else is open to them.
    pub duty: Option<RequiredAction>,
    /// Comes with every form that they send.
    pub form_token: Secret,
    pub from: RequestOrigin,
}

impl SignedInUser {
    #[must_use]
    pub const fn has_second_factor(&self) -> bool {
        self.has_codes || self.has_passkey
    }

    /// # Errors
    /// Their role does not have this right, they have shown only half of what is asked for, or they
    /// have a [`Duty`].
    pub fn require(&self, right: Permission) -> Result<(), PortalError> {
        if self.passed && self.duty.is_none() && self.role.may(right) {
            Ok(())
        } else {
            Err(PortalError::Forbidden)
        }
    }
}

impl SignedInUser {
    /// Whether a provider of identities signed them in.
    #[must_use]
    pub const fn is_by_provider(&self) -> bool {
        self.authenticated.signed_in_at.is_none()
    }

    /// # Errors
    /// [`PortalError::Unconfirmed`]: they have to confirm first who they are.
    pub fn require_reauthentication(
        &self,
        change: SensitiveAction,
        now: DateTime<Utc>,
    ) -> Result<(), PortalError> {
        let confirmed = change.is_confirmed(self.authenticated, now);
        if confirmed { Ok(()) } else { Err(PortalError::Unconfirmed) }
    }
}

/// Signing in and out, and what one signs in with.
#[async_trait]
pub trait AccountService: Send + Sync {
    /// Checks an address and a password. Takes as long for an address that nobody has. That a
    /// password has run out is told to those alone who know it.
    async fn sign_in(&self, attempt: SignInAttempt) -> Result<SignedIn, PortalError>;

    /// Checks a one-time or recovery code of somebody whose password was right; answers their new
    /// token.
    async fn verify_totp(
        &self,
        token: &Secret,
        code: &str,
        from: RequestOrigin,
        browsers: Secret,
    ) -> Result<SignedIn, PortalError>;

    /// Who a token stands for.
    async fn signed_in_user(
        &self,
        token: &Secret,
        from: RequestOrigin,
    ) -> Result<Option<SignedInUser>, PortalError>;

    async fn sign_out(&self, visitor: &SignedInUser) -> Result<(), PortalError>;

    /// The visitor's sign-ins, the latest first.
    async fn sign_ins(&self, visitor: &SignedInUser) -> Result<Vec<SignIn>, PortalError>;

    async fn end_sign_in(&self, visitor: &SignedInUser, id: SignInId) -> Result<(), PortalError>;

    /// Changes the visitor's password and ends all of their other sign-ins.
    async fn change_password(&self, visitor: &SignedInUser, new: Secret)
    -> Result<(), PortalError>;

    /// A secret for one-time codes, which nothing keeps until it is proved: the one that was
    /// offered before, where that is still good, or a fresh one.
    fn totp_setup(&self, visitor: &SignedInUser, before: Option<&str>) -> TotpSetup;

    /// Keeps such a secret, proved by a code of it; answers recovery codes, which are shown once.
    async fn enable_totp(
        &self,
        visitor: &SignedInUser,
        offer: &str,
        code: &str,
    ) -> Result<Vec<Secret>, PortalError>;

    /// Takes the one-time codes away.
    async fn disable_totp(&self, visitor: &SignedInUser) -> Result<(), PortalError>;
}

/// A try to sign in.
pub struct SignInAttempt {
    pub email: String,
    pub password: Secret,
    pub from: RequestOrigin,
    /// What the browser was handed when somebody signed in there; empty: nothing.
    pub browsers: Secret,
}

/// A token for somebody, and whether a code is asked for before it is worth anything.
pub struct SignedIn {
    pub token: Secret,
    pub needs_code: bool,
    /// What the browser shows at its next attempt to sign in, once somebody is in.
    pub browsers: Option<Secret>,
}

/// A secret for one-time codes that may be taken.
pub struct TotpSetup {
    /// In base32, to be typed.
    pub secret: Secret,
    /// `otpauth:` URL, to be scanned.
    pub url: Secret,
    /// Says later that the offer was ours, and made to this person a moment ago.
    pub sealed: Secret,
}

/// A team's API keys.
#[async_trait]
pub trait KeyService: Send + Sync {
    async fn keys(&self, visitor: &SignedInUser) -> Result<Vec<StoredKey>, PortalError>;

    /// Makes a key. It is shown in this answer alone.
    async fn make_key(&self, visitor: &SignedInUser, order: NewKey) -> Result<Secret, PortalError>;

    /// Gives a record another key, which is shown in this answer alone; the one before opens
    /// nothing from then on.
    async fn rotate_key(&self, visitor: &SignedInUser, id: ApiKeyId)
    -> Result<Secret, PortalError>;

    async fn revoke_key(&self, visitor: &SignedInUser, id: ApiKeyId) -> Result<(), PortalError>;
}

/// A key to be made.
pub struct NewKey {
    pub label: String,
    pub environment: Environment,
    pub expires_at: Option<DateTime<Utc>>,
}

/// Whose pages may show a team's sessions.
#[async_trait]
pub trait EmbeddingService: Send + Sync {
    /// Empty: anybody's.
    async fn embed_origins(
        &self,
        visitor: &SignedInUser,
    ) -> Result<Vec<FrameAncestor>, PortalError>;

    async fn set_embed_origins(
        &self,
        visitor: &SignedInUser,
        origins: Vec<FrameAncestor>,
    ) -> Result<(), PortalError>;
}

/// A team's log of what was done in the portal.
#[async_trait]
pub trait AuditService: Send + Sync {
    /// Up to `limit` entries before a number, the newest first.
    async fn audit(
        &self,
        visitor: &SignedInUser,
        before: Option<i64>,
        limit: u16,
    ) -> Result<Vec<AuditEntry>, PortalError>;

    /// Computes the whole chain anew.
    async fn verify_audit(&self, visitor: &SignedInUser) -> Result<AuditCheck, PortalError>;
}

/// What came of computing a log's chain anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditCheck {
    pub entries: i64,
    /// The newest entry; whoever keeps its hash can tell later that nothing before was changed.
    pub last: Option<AuditEntry>,
    /// The newest entry that does not follow from the one before it.
    pub broken: Option<i64>,
}

#[derive(Debug, thiserror::Error)]
pub enum PortalError {
    /// As for what is another team's.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    #[error("your role does not allow that")]
    Forbidden,
    #[error("confirm first that it is you")]
    Unconfirmed,
    #[error("incorrect email or password")]
    WrongPassword,
    #[error(
        "that password was made for you and has run out: choose one of your own by a link, under \"I do \
         not know my password\", or ask whoever runs the service for a new one"
    )]
    PasswordRanOut,
    #[error("that code is not right, or was used before")]
    WrongCode,
    #[error("too many attempts: wait a moment, then try again")]
    TooMany {
        /// Whole seconds.
        retry_after: i64,
    },
    #[error(transparent)]
    Password(#[from] PasswordRejected),
    #[error("{0}")]
    Invalid(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}
