//! Signing in to the portal with a password, and the members' own accounts.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{
    account::Email,
    id::SignInId,
    notice::AccountEvent,
    reauthentication::{AuthenticationTimes, SensitiveAction},
    required_action::{AccountStatus, RequiredAction},
    secret::Secret,
};
use ports::{
    account_store::{
        NewPassword, RequestOrigin, SecondFactors, SignIn, SignInStore, StoredUser, TeamMembership,
        UserStore,
    },
    clock::Clock,
    driving::{AccountService, PortalError, SignInAttempt, SignedIn, SignedInUser, TotpSetup},
};

use super::{
    AccountNotices, AttemptGuard, AuditTrail, KnownBrowsers, PasswordRules, RefusedSignIns,
    SecondFactorCodes, SignInIssuer, require_complete_sign_in,
    sign_in::{FirstFactorKind, hash_of},
};
use crate::settings::SignInPolicy;

/// Implements [`AccountService`].
pub struct Accounts {
    pub users: Arc<dyn UserStore>,
    pub second_factors: Arc<dyn SecondFactors>,
    pub sign_ins: Arc<dyn SignInStore>,
    pub policy: SignInPolicy,
    pub passwords: PasswordRules,
    pub codes: SecondFactorCodes,
    pub browsers: KnownBrowsers,
    pub guard: AttemptGuard,
    pub issuer: SignInIssuer,
    pub refusals: RefusedSignIns,
    pub audit: AuditTrail,
    pub notices: AccountNotices,
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl AccountService for Accounts {
    async fn sign_in(&self, attempt: SignInAttempt) -> Result<SignedIn, PortalError> {
        let SignInAttempt { email, password, from: origin, browsers } = attempt;
        let found = match email.parse::<Email>() {
            Ok(email) => self.users.user_by_email(&email).await?,
            Err(_) => None,
        };
        let user = found.as_ref().map(|account| account.user.id);
        let browser = self.browsers.recognize(user, &browsers).await?;
        let counted = self.guard.count_sign_in(&email, &origin, &browser).await?;
        let hash = found.as_ref().and_then(|account| account.password.clone());
        let is_correct = self.passwords.is_correct(password, hash).await;
        let Some(account) = found.as_ref().filter(|_| is_correct) else {
            self.refusals.record(found.as_ref(), "password", &origin);
            return Err(PortalError::WrongPassword);
        };
        self.guard.undo(counted).await;
        if account.has_expired_password(self.clock.now()) {
            self.refusals.record(Some(account), "password that ran out", &origin);
            return Err(PortalError::PasswordRanOut);
        }
        self.issuer.start(account, origin, FirstFactorKind::Password, browser).await
    }

    async fn verify_totp(
        &self,
        token: &Secret,
        code: &str,
        origin: RequestOrigin,
        browsers: Secret,
    ) -> Result<SignedIn, PortalError> {
        let attempt = self.issuer.begin_second_factor(token, &origin, &browsers).await?;
        if !self.codes.use_code(&attempt.account, code).await? {
            self.refusals.record(Some(&attempt.account), "code", &origin);
            return Err(PortalError::WrongCode);
        }
        self.issuer.accept_second_factor(attempt, token, &origin).await
    }

    async fn signed_in_user(
        &self,
        token: &Secret,
        origin: RequestOrigin,
    ) -> Result<Option<SignedInUser>, PortalError> {
        let now = self.clock.now();
        let found = self.sign_ins.sign_in(&hash_of(token), self.policy.idle, now).await?;
        Ok(found.map(|found| signed_in_user(found, self.policy, origin)))
    }

    async fn sign_out(&self, user: &SignedInUser) -> Result<(), PortalError> {
        self.sign_ins.end_sign_in(user.user, user.sign_in).await?;
        Ok(())
    }

    async fn sign_ins(&self, user: &SignedInUser) -> Result<Vec<SignIn>, PortalError> {
        require_complete_sign_in(user)?;
        Ok(self.sign_ins.sign_ins(user.user, self.policy.idle, self.clock.now()).await?)
    }

    async fn end_sign_in(&self, user: &SignedInUser, id: SignInId) -> Result<(), PortalError> {
        require_complete_sign_in(user)?;
        self.audit.record(user, "sign-in.end", &id.to_string()).await?;
        let ended = self.sign_ins.end_sign_in(user.user, id).await?;
        if ended { Ok(()) } else { Err(PortalError::NotFound("sign-in")) }
    }

    async fn change_password(&self, user: &SignedInUser, new: Secret) -> Result<(), PortalError> {
        self.require_for_credentials(user)?;
        let hash = self.passwords.hash_chosen(new, &user.email).await?;
        self.audit.record(user, "password.change", "").await?;
        self.users.set_password(user.user, &NewPassword::chosen(hash)).await?;
        self.sign_ins.end_other_sign_ins(user.user, Some(user.sign_in)).await?;
        Ok(self.notices.notify(user.user, AccountEvent::PasswordChanged, &user.from).await?)
    }

    fn totp_setup(&self, user: &SignedInUser, earlier: Option<&str>) -> TotpSetup {
        self.codes.setup(user, earlier)
    }

    async fn enable_totp(
        &self,
        user: &SignedInUser,
        setup: &str,
        code: &str,
    ) -> Result<Vec<Secret>, PortalError> {
        self.require_for_credentials(user)?;
        let (factor, recovery_codes) = self.codes.complete_setup(user, setup, code)?;
        self.audit.record(user, "second-factor.keep", "").await?;
        self.second_factors.set_second_factor(user.user, Some(&factor)).await?;
        // The other sign-ins were made without the new factor.
        self.sign_ins.end_other_sign_ins(user.user, Some(user.sign_in)).await?;
        self.notices.notify(user.user, AccountEvent::CodesTurnedOn, &user.from).await?;
        Ok(recovery_codes)
    }

    async fn disable_totp(&self, user: &SignedInUser) -> Result<(), PortalError> {
        self.require_for_credentials(user)?;
        self.audit.record(user, "second-factor.drop", "").await?;
        self.second_factors.set_second_factor(user.user, None).await?;
        Ok(self.notices.notify(user.user, AccountEvent::CodesTurnedOff, &user.from).await?)
    }
}

impl Accounts {
    fn require_for_credentials(&self, user: &SignedInUser) -> Result<(), PortalError> {
        require_complete_sign_in(user)?;
        user.require_reauthentication(SensitiveAction::Credentials, self.clock.now())
    }
}

fn signed_in_user(
    (sign_in, account, team): (SignIn, StoredUser, TeamMembership),
    policy: SignInPolicy,
    origin: RequestOrigin,
) -> SignedInUser {
    SignedInUser {
        user: account.user.id,
        email: account.user.email.as_str().to_owned(),
        role: account.user.role,
        team: account.user.team,
        required_action: RequiredAction::of(AccountStatus {
            role: account.user.role,
            has_second_factor: account.user.has_second_factor,
            team_needs_second_factor: team.needs_second_factor,
            operators_need_second_factor: policy.operators_need_second_factor,
        }),
        team_name: team.name,
        sign_in: sign_in.id,
        passed: sign_in.passed,
        password_until: account.password_until,
        has_codes: account.totp.is_some(),
        has_passkey: account.passkeys > 0,
        authenticated: AuthenticationTimes {
            signed_in_at: Some(sign_in.created_at).filter(|_| !sign_in.by_provider),
            confirmed_at: sign_in.confirmed_at,
        },
        form_token: sign_in.form_token,
        from: origin,
    }
}
