//! How attempts to sign in are slowed down, and the browsers that strangers' guesses do not delay.
//!
//! A browser in which somebody has signed in keeps a token (a device cookie, OWASP). Attempts that
//! come with it are counted for that browser alone; all others are counted for the account and for
//! the network that they come from.

use chrono::TimeDelta;
use domain::{
    attempts::{Delays, FROM_A_KNOWN_BROWSER, FROM_A_NETWORK, FROM_EVERYWHERE, OF_A_NETWORK},
    id::UserId,
    secret::Secret,
};
use ports::{
    StoreError,
    account_store::{CodeHash, Whence},
    attempts::Target,
    driving::{PortalError, Visitor},
    known_browsers::KnownBrowser,
};
use uuid::Uuid;

use super::{
    People,
    accounts::{half_hash, hash_of},
};

/// How long a browser is known after somebody signed in there.
const KNOWN_FOR: TimeDelta = TimeDelta::days(90);
/// Tokens that one browser keeps, for as many accounts.
const IN_ONE_BROWSER: usize = 4;
const SEPARATOR: char = '.';

/// What an attempt was counted against.
pub(super) struct Counted(Vec<Target>);

/// What a browser has kept, and the part of it that is this account's.
pub(super) struct Browser {
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
    ) -> Result<Browser, StoreError> {
        let tokens = shown.expose().split(SEPARATOR).filter(|token| !token.is_empty());
        let kept: Vec<_> =
            tokens.take(IN_ONE_BROWSER).map(|token| Secret::new(token.to_owned())).collect();
        let hashes: Vec<_> = kept.iter().map(hash_of).collect();
        if hashes.is_empty() {
            return Ok(Browser { kept, known: None });
        }
        let user = user.unwrap_or_else(|| UserId::from_uuid(Uuid::nil()));
        let known = self.browsers.known_browser(user, &hashes, self.core.clock.now()).await?;
        Ok(Browser { kept, known })
    }

    /// Keeps the browser in which somebody has signed in. Answers what it is to show from now on,
    /// and whether it is a new one beside others.
    pub(super) async fn keep_browser(
        &self,
        user: UserId,
        browser: Browser,
    ) -> Result<(Secret, bool), StoreError> {
        let (token, now) = (self.token(), self.core.clock.now());
        let anew = KnownBrowser {
            user,
            token: hash_of(&token),
            used_at: now,
            expires_at: now + KNOWN_FOR,
        };
        let Browser { kept, known } = browser;
        let others = self.browsers.keep_browser(&anew, known.as_ref()).await?;
        let kept = kept.iter().filter(|token| Some(hash_of(token)) != known);
        let all: Vec<_> = [&token].into_iter().chain(kept).take(IN_ONE_BROWSER).collect();
        let all: Vec<_> = all.into_iter().map(|token| token.expose().to_owned()).collect();
        let shown = Secret::new(all.join(&SEPARATOR.to_string()));
        Ok((shown, known.is_none() && others > 0))
    }

    /// Counts an attempt at an account, before anything is checked.
    pub(super) async fn count_attempt(
        &self,
        email: &str,
        from: &Whence,
        browser: &Browser,
    ) -> Result<Counted, PortalError> {
        let account = half_hash(email);
        if let Some(CodeHash(token)) = &browser.known {
            let token = token.first_chunk().copied().unwrap_or_default();
            return self.count(&[(Target::Browser(token), FROM_A_KNOWN_BROWSER)]).await;
        }
        self.count(&[
            (Target::Network(from.address), OF_A_NETWORK),
            (Target::AccountFrom(account, from.address), FROM_A_NETWORK),
            (Target::Account(account), FROM_EVERYWHERE),
        ])
        .await
    }

    /// Counts an attempt of somebody who is signed in to confirm who they are.
    pub(super) async fn count_confirmation(
        &self,
        visitor: &Visitor,
    ) -> Result<Counted, PortalError> {
        self.count(&[(Target::SignIn(visitor.sign_in), FROM_A_KNOWN_BROWSER)]).await
    }

    async fn count(&self, targets: &[(Target, Delays)]) -> Result<Counted, PortalError> {
        let now = self.core.clock.now();
        let mut counted = Counted(vec![]);
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
    pub(super) async fn forgive(&self, counted: Counted) {
        let now = self.core.clock.now();
        for target in counted.0 {
            self.attempts.forgive(target, now).await;
        }
    }
}
