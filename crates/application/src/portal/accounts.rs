//! Signing in to the portal.

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    account::{Email, MAX_PASSWORD_CHARS},
    id::SignInId,
    notice::AccountEvent,
    rate::RateLimit,
    reauthentication::{AuthenticationTimes, SensitiveAction},
    required_action::{AccountStatus, RequiredAction},
    secret::Secret,
};
use ports::{
    StoreError,
    account_store::{CodeHash, NewPassword, RequestOrigin, SignIn, StoredUser},
    driving::{AccountService, PortalError, SignInAttempt, SignedIn, SignedInUser, TotpSetup},
};
use uuid::Uuid;

use super::{People, attempts::SigningInBrowser};

/// How long a code may be shown after the password.
const SECOND_FACTOR_TTL: TimeDelta = TimeDelta::minutes(10);
/// Links to choose a password and sign-ins at a provider, from one address.
pub(super) const LIMIT_PER_ADDRESS: RateLimit = RateLimit { count: 100, seconds: 900 };

#[async_trait]
impl AccountService for People {
    async fn sign_in(&self, attempt: SignInAttempt) -> Result<SignedIn, PortalError> {
        let SignInAttempt { email, password, from, browsers } = attempt;
        let found = match email.parse::<Email>() {
            Ok(email) => self.users.user_by_email(&email).await?,
            Err(_) => None,
        };
        let browser = self.browser_of(found.as_ref().map(|kept| kept.user.id), &browsers).await?;
        let counted = self.count_attempt(&email, &from, &browser).await?;
        let hash = found.as_ref().and_then(|kept| kept.password.clone());
        let sane = password.expose().chars().count() <= MAX_PASSWORD_CHARS;
        let fits = self.passwords.verify(password, hash.filter(|_| sane)).await;
        let Some(kept) = found.as_ref().filter(|_| fits) else {
            self.note_refusal(found.as_ref(), "password", &from);
            return Err(PortalError::WrongPassword);
        };
        self.forgive(counted).await;
        if kept.has_expired_password(self.core.clock.now()) {
            self.note_refusal(found.as_ref(), "password that ran out", &from);
            return Err(PortalError::PasswordRanOut);
        }
        self.start_sign_in(kept, from, FirstFactorKind::Password, browser).await
    }

    async fn verify_totp(
        &self,
        token: &Secret,
        code: &str,
        from: RequestOrigin,
        browsers: Secret,
    ) -> Result<SignedIn, PortalError> {
        let now = self.core.clock.now();
        let kept = self.awaiting_second_factor(token, now).await?;
        let browser = self.browser_of(Some(kept.user.id), &browsers).await?;
        let counted = self.count_attempt(kept.user.email.as_str(), &from, &browser).await?;
        if !self.is_code_of(&kept, code, now).await? {
            self.note_refusal(Some(&kept), "code", &from);
            return Err(PortalError::WrongCode);
        }
        self.forgive(counted).await;
        self.finish_sign_in(&kept, token, &from, browser).await
    }

    async fn signed_in_user(
        &self,
        token: &Secret,
        from: RequestOrigin,
    ) -> Result<Option<SignedInUser>, PortalError> {
        let now = self.core.clock.now();
        let found = self.sign_ins.sign_in(&hash_of(token), self.rules.idle, now).await?;
        Ok(found.map(|(sign_in, kept, home)| SignedInUser {
            user: kept.user.id,
            email: kept.user.email.as_str().to_owned(),
            role: kept.user.role,
            team: kept.user.team,
            duty: RequiredAction::of(AccountStatus {
                role: kept.user.role,
                has_second_factor: kept.user.has_second_factor,
                team_needs_second_factor: home.needs_second_factor,
                operators_need_second_factor: self.rules.operators_need_second_factor,
            }),
            team_name: home.name,
            sign_in: sign_in.id,
            passed: sign_in.passed,
            password_until: kept.password_until,
            has_codes: kept.totp.is_some(),
            has_passkey: kept.passkeys > 0,
            authenticated: AuthenticationTimes {
                signed_in_at: Some(sign_in.created_at).filter(|_| !sign_in.by_provider),
                confirmed_at: sign_in.confirmed_at,
            },
            form_token: sign_in.form_token,
            from,
        }))
    }

    async fn sign_out(&self, visitor: &SignedInUser) -> Result<(), PortalError> {
        self.sign_ins.end_sign_in(visitor.user, visitor.sign_in).await?;
        Ok(())
    }

    async fn sign_ins(&self, visitor: &SignedInUser) -> Result<Vec<SignIn>, PortalError> {
        passed(visitor)?;
        let now = self.core.clock.now();
        Ok(self.sign_ins.sign_ins(visitor.user, self.rules.idle, now).await?)
    }

    async fn end_sign_in(&self, visitor: &SignedInUser, id: SignInId) -> Result<(), PortalError> {
        passed(visitor)?;
        self.note(visitor, "sign-in.end", &id.to_string()).await?;
        if self.sign_ins.end_sign_in(visitor.user, id).await? {
            Ok(())
        } else {
            Err(PortalError::NotFound("sign-in"))
        }
    }

    async fn change_password(
        &self,
        visitor: &SignedInUser,
        new: Secret,
    ) -> Result<(), PortalError> {
        passed(visitor)?;
        self.confirmed(visitor, SensitiveAction::Credentials)?;
        let hash = self.good_password(new, &visitor.email).await?;
        self.note(visitor, "password.change", "").await?;
        self.users.set_password(visitor.user, &NewPassword::chosen(hash)).await?;
        self.sign_ins.end_other_sign_ins(visitor.user, Some(visitor.sign_in)).await?;
        self.tell(visitor.user, AccountEvent::PasswordChanged, &visitor.from).await?;
        Ok(())
    }

    fn totp_setup(&self, visitor: &SignedInUser, before: Option<&str>) -> TotpSetup {
        self.offer(visitor, before)
    }

    async fn enable_totp(
        &self,
        visitor: &SignedInUser,
        offer: &str,
        code: &str,
    ) -> Result<Vec<Secret>, PortalError> {
        passed(visitor)?;
        self.confirmed(visitor, SensitiveAction::Credentials)?;
        self.take_offer(visitor, offer, code).await
    }

    async fn disable_totp(&self, visitor: &SignedInUser) -> Result<(), PortalError> {
        passed(visitor)?;
        self.confirmed(visitor, SensitiveAction::Credentials)?;
        self.note(visitor, "second-factor.drop", "").await?;
        self.users.set_second_factor(visitor.user, None).await?;
        Ok(self.tell(visitor.user, AccountEvent::CodesTurnedOff, &visitor.from).await?)
    }
}

/// What somebody signs in with, in the place of which a second factor is not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstFactorKind {
    Password,
    Provider,
}

/// What everybody may do with their own account, once they have shown all that is asked for.
pub(super) fn passed(visitor: &SignedInUser) -> Result<(), PortalError> {
    if visitor.passed { Ok(()) } else { Err(PortalError::Forbidden) }
}

/// What an account is counted under: the same however its address is written.
pub fn account_key(email: &str) -> [u8; 16] {
    let hash = crate::digest::sha256(email.trim().to_lowercase().as_bytes());
    hash.first_chunk().copied().unwrap_or_default()
}

/// What is kept of a token or code.
pub(super) fn hash_of(secret: &Secret) -> CodeHash {
    CodeHash(crate::digest::sha256(secret.expose().as_bytes()))
}

impl People {
    /// 256 random bits.
    pub(super) fn token(&self) -> Secret {
        Secret::new(URL_SAFE_NO_PAD.encode(self.core.random.random_bytes()))
    }

    /// Signs somebody in who has shown who they are; a second factor is asked for where they have one.
    pub(super) async fn start_sign_in(
        &self,
        kept: &StoredUser,
        from: RequestOrigin,
        by: FirstFactorKind,
        browser: SigningInBrowser,
    ) -> Result<SignedIn, PortalError> {
        let needs_code = kept.user.has_second_factor;
        let token = self.token();
        let now = self.core.clock.now();
        let sign_in = SignIn {
            id: SignInId::from_uuid(Uuid::from_u128(self.core.random.new_id())),
            user: kept.user.id,
            passed: !needs_code,
            by_provider: by == FirstFactorKind::Provider,
            confirmed_at: None,
            form_token: self.token(),
            created_at: now,
            seen_at: now,
            expires_at: now + if needs_code { SECOND_FACTOR_TTL } else { self.rules.absolute },
            from,
        };
        let browsers = if needs_code {
            None
        } else {
            Some(self.note_sign_in(kept, &sign_in.from, browser).await?)
        };
        self.sign_ins.add_sign_in(&sign_in, &hash_of(&token)).await?;
        Ok(SignedIn { token, needs_code, browsers })
    }

    /// Whoever has shown their password, and nothing more.
    pub(super) async fn awaiting_second_factor(
        &self,
        token: &Secret,
        now: DateTime<Utc>,
    ) -> Result<StoredUser, PortalError> {
        let found = self.sign_ins.sign_in(&hash_of(token), SECOND_FACTOR_TTL, now).await?;
        let found = found.filter(|(sign_in, ..)| !sign_in.passed);
        found.map(|(_, kept, _)| kept).ok_or(PortalError::Forbidden)
    }

    /// Lets somebody in who has shown all that is asked for, with another token.
    pub(super) async fn finish_sign_in(
        &self,
        kept: &StoredUser,
        token: &Secret,
        from: &RequestOrigin,
        browser: SigningInBrowser,
    ) -> Result<SignedIn, PortalError> {
        let browsers = self.note_sign_in(kept, from, browser).await?;
        let (fresh, until) = (self.token(), self.core.clock.now() + self.rules.absolute);
        if !self
            .sign_ins
            .mark_second_factor_verified(&hash_of(token), &hash_of(&fresh), until)
            .await?
        {
            return Err(PortalError::Forbidden);
        }
        Ok(SignedIn { token: fresh, needs_code: false, browsers: Some(browsers) })
    }

    pub(super) async fn is_code_of(
        &self,
        kept: &StoredUser,
        code: &str,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let step = kept.totp.as_ref().and_then(|secret| self.codes.step(secret, code, now));
        if let Some(step) = step {
            return self.users.use_step(kept.user.id, step).await;
        }
        let code = super::totp::tidy(code);
        self.users.use_recovery(kept.user.id, &hash_of(&code)).await
    }
}
