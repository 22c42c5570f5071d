//! How attempts to sign in are slowed down, and the browsers that strangers' guesses do not delay.
//!
//! A browser in which somebody has signed in keeps a token (a device cookie, OWASP). Attempts that
//! come with it are counted for that browser alone; all others are counted for the account and for
//! the network that they come from.

use chrono::TimeDelta;
use domain::{
    attempts::{
        DELAYS_PER_ACCOUNT, DELAYS_PER_ACCOUNT_AND_NETWORK, DELAYS_PER_KNOWN_BROWSER,
        DELAYS_PER_NETWORK, Delays,
    },
    id::UserId,
    secret::Secret,
};
use ports::{
    StoreError,
    account_store::{CodeHash, RequestOrigin},
    attempts::AttemptTarget,
    driving::{PortalError, SignedInUser},
    known_browsers::KnownBrowser,
};
use uuid::Uuid;

use super::{
    People,
    accounts::{account_key, hash_of},
};

/// How long a browser is known after somebody signed in there.
const KNOWN_BROWSER_TTL: TimeDelta = TimeDelta::days(90);
/// Tokens that one browser keeps, for as many accounts.
const MAX_TOKENS_PER_BROWSER: usize = 4;
const SEPARATOR: char = '.';

/// What an attempt was counted against.
pub(super) struct CountedAttempt(Vec<AttemptTarget>);

/// What a browser has kept, and the part of it that is this account's.
pub(super) struct SigningInBrowser {
    kept: Vec<Secret>,
    known: Option<CodeHash>,
}

impl People {
    /// What a browser shows of the account that somebody tries to sign in to; `None`: there is no
    /// such account.
    pub(super) async fn browser_of(
        &self,
        user: Option<UserId>,
        shown: &Secret,
    ) -> Result<SigningInBrowser, StoreError> {
        let tokens = shown.expose().split(SEPARATOR).filter(|token| !token.is_empty());
        let kept: Vec<_> = tokens
            .take(MAX_TOKENS_PER_BROWSER)
            .map(|token| Secret::new(token.to_owned()))
            .collect();
        let hashes: Vec<_> = kept.iter().map(hash_of).collect();
        if hashes.is_empty() {
            return Ok(SigningInBrowser { kept, known: None });
        }
        let user = user.unwrap_or_else(|| UserId::from_uuid(Uuid::nil()));
        let known = self.browsers.known_browser(user, &hashes, self.core.clock.now()).await?;
        Ok(SigningInBrowser { kept, known })
    }

    /// Keeps the browser in which somebody has signed in. Answers what it is to show from now on,
    /// and whether it is a new one beside others.
    pub(super) async fn keep_browser(
        &self,
        user: UserId,
        browser: SigningInBrowser,
    ) -> Result<(Secret, bool), StoreError> {
        let (token, now) = (self.token(), self.core.clock.now());
        let anew = KnownBrowser {
            user,
            token: hash_of(&token),
            used_at: now,
            expires_at: now + KNOWN_BROWSER_TTL,
        };
        let SigningInBrowser { kept, known } = browser;
        let others = self.browsers.keep_browser(&anew, known.as_ref()).await?;
        let kept = kept.iter().filter(|token| Some(hash_of(token)) != known);
        let all: Vec<_> = [&token].into_iter().chain(kept).take(MAX_TOKENS_PER_BROWSER).collect();
        let all: Vec<_> = all.into_iter().map(|token| token.expose().to_owned()).collect();
        let shown = Secret::new(all.join(&SEPARATOR.to_string()));
        Ok((shown, known.is_none() && others > 0))
    }

    /// Counts an attempt at an account, before anything is checked.
    pub(super) async fn count_attempt(
        &self,
        email: &str,
        from: &RequestOrigin,
        browser: &SigningInBrowser,
    ) -> Result<CountedAttempt, PortalError> {
        let account = account_key(email);
        if let Some(CodeHash(token)) = &browser.known {
            let token = token.first_chunk().copied().unwrap_or_default();
            return self.count(&[(AttemptTarget::Browser(token), DELAYS_PER_KNOWN_BROWSER)]).await;
        }
        self.count(&[
            (AttemptTarget::Network(from.address), DELAYS_PER_NETWORK),
            (AttemptTarget::AccountFrom(account, from.address), DELAYS_PER_ACCOUNT_AND_NETWORK),
            (AttemptTarget::Account(account), DELAYS_PER_ACCOUNT),
        ])
        .await
    }

    /// Counts an attempt of somebody who is signed in to confirm who they are.
    pub(super) async fn count_confirmation(
        &self,
        visitor: &SignedInUser,
    ) -> Result<CountedAttempt, PortalError> {
        self.count(&[(AttemptTarget::SignIn(visitor.sign_in), DELAYS_PER_KNOWN_BROWSER)]).await
    }

    async fn count(
        &self,
        targets: &[(AttemptTarget, Delays)],
    ) -> Result<CountedAttempt, PortalError> {
        let now = self.core.clock.now();
        let mut counted = CountedAttempt(vec![]);
        for (target, delays) in targets {
            match self.attempts.attempt(*target, *delays, now).await {
                Ok(()) => counted.0.push(*target),
                Err(next) => {
                    // What is not tried does not count elsewhere either.
                    self.forgive(counted).await;
                    let outcome = ("outcome", "throttled");
                    metrics::counter!("avouch_portal_sign_ins_total", &[outcome]).increment(1);
                    let wait = (next - now).num_milliseconds().max(0).saturating_add(999);
                    return Err(PortalError::TooMany { retry_after: (wait / 1000).max(1) });
                }
            }
        }
        Ok(counted)
    }

    /// Takes an attempt back that was right.
    pub(super) async fn forgive(&self, counted: CountedAttempt) {
        let now = self.core.clock.now();
        for target in counted.0 {
            self.attempts.undo_attempt(target, now).await;
        }
    }
}
