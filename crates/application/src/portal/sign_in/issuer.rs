//! Issuing sign-ins: after the first factor, and once the second factor was shown.

use std::sync::Arc;

use chrono::TimeDelta;
use domain::{id::SignInId, notice::AccountEvent, secret::Secret};
use ports::{
    StoreError,
    account_store::{RequestOrigin, SignIn, SignInStore, StoredUser},
    clock::Clock,
    driving::{PortalError, SignedIn},
    random::RandomSource,
};

use super::{
    AttemptGuard, KnownBrowsers, attempt_guard::CountedAttempt, hash_of,
    known_browsers::SigningInBrowser, random_token,
};
use crate::{
    portal::{AccountNotices, AuditTrail},
    settings::SignInPolicy,
};

/// How long after the first factor the second one may be shown.
const SECOND_FACTOR_TTL: TimeDelta = TimeDelta::minutes(10);

/// Issues the tokens of sign-ins.
#[derive(Clone)]
pub struct SignInIssuer {
    pub sign_ins: Arc<dyn SignInStore>,
    pub policy: SignInPolicy,
    pub browsers: KnownBrowsers,
    pub guard: AttemptGuard,
    pub audit: AuditTrail,
    pub notices: AccountNotices,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn RandomSource>,
}

/// The first factor of a sign-in. It is never the second factor as well.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstFactorKind {
    Password,
    Provider,
}

/// An attempt to show the second factor, counted as a wrong one until it is accepted.
pub(crate) struct SecondFactorAttempt {
    /// The account whose first factor was right.
    pub(crate) account: StoredUser,
    browser: SigningInBrowser,
    counted: CountedAttempt,
}

impl SignInIssuer {
    /// Begins a sign-in of a member whose first factor was right. Where the account has a second
    /// factor, the token opens nothing before that factor was shown.
    pub(crate) async fn start(
        &self,
        account: &StoredUser,
        origin: RequestOrigin,
        by: FirstFactorKind,
        browser: SigningInBrowser,
    ) -> Result<SignedIn, PortalError> {
        let needs_code = account.user.has_second_factor;
        let token = random_token(&*self.random);
        let now = self.clock.now();
        let sign_in = SignIn {
            id: SignInId::from_u128(self.random.new_id()),
            user: account.user.id,
            passed: !needs_code,
            by_provider: by == FirstFactorKind::Provider,
            confirmed_at: None,
            form_token: random_token(&*self.random),
            created_at: now,
            seen_at: now,
            expires_at: now + if needs_code { SECOND_FACTOR_TTL } else { self.policy.absolute },
            from: origin,
        };
        let browsers = if needs_code {
            None
        } else {
            Some(self.record_sign_in(account, &sign_in.from, browser).await?)
        };
        self.sign_ins.add_sign_in(&sign_in, &hash_of(&token)).await?;
        Ok(SignedIn { token, needs_code, browsers })
    }

    /// Begins an attempt to show the second factor of the sign-in with this token.
    ///
    /// # Errors
    /// [`PortalError::Forbidden`]: the sign-in expired, or its second factor was shown already.
    /// [`PortalError::TooMany`]: the attempt comes too soon after others.
    pub(crate) async fn begin_second_factor(
        &self,
        token: &Secret,
        origin: &RequestOrigin,
        browsers: &Secret,
    ) -> Result<SecondFactorAttempt, PortalError> {
        let now = self.clock.now();
        let found = self.sign_ins.sign_in(&hash_of(token), SECOND_FACTOR_TTL, now).await?;
        let found = found.filter(|(sign_in, ..)| !sign_in.passed);
        let account = found.map(|(_, account, _)| account).ok_or(PortalError::Forbidden)?;
        let browser = self.browsers.recognize(Some(account.user.id), browsers).await?;
        let email = account.user.email.as_str();
        let counted = self.guard.count_sign_in(email, origin, &browser).await?;
        Ok(SecondFactorAttempt { account, browser, counted })
    }

    /// Signs the member in whose second factor was right, under a new token.
    ///
    /// # Errors
    /// [`PortalError::Forbidden`]: another attempt was accepted meanwhile.
    pub(crate) async fn accept_second_factor(
        &self,
        attempt: SecondFactorAttempt,
        token: &Secret,
        origin: &RequestOrigin,
    ) -> Result<SignedIn, PortalError> {
        let SecondFactorAttempt { account, browser, counted } = attempt;
        self.guard.undo(counted).await;
        let browsers = self.record_sign_in(&account, origin, browser).await?;
        let fresh = random_token(&*self.random);
        let (old, new) = (hash_of(token), hash_of(&fresh));
        let until = self.clock.now() + self.policy.absolute;
        if !self.sign_ins.mark_second_factor_verified(&old, &new, until).await? {
            return Err(PortalError::Forbidden);
        }
        Ok(SignedIn { token: fresh, needs_code: false, browsers: Some(browsers) })
    }

    /// Records a sign-in, and remembers the browser in which it was made. Returns the tokens that
    /// the browser keeps from now on.
    async fn record_sign_in(
        &self,
        account: &StoredUser,
        origin: &RequestOrigin,
        browser: SigningInBrowser,
    ) -> Result<Secret, StoreError> {
        metrics::counter!("avouch_portal_sign_ins_total", "outcome" => "in").increment(1);
        let (browsers, is_new) = self.browsers.remember(account.user.id, browser).await?;
        let subject = if is_new { "new browser" } else { "" };
        self.audit.record_for_account(account, origin, ("sign-in", subject)).await?;
        if is_new {
            self.notices.notify(account.user.id, AccountEvent::NewBrowser, origin).await?;
        }
        Ok(browsers)
    }
}
