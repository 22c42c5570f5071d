//! The browsers in which a member has signed in before.
//!
//! A browser in which a member has signed in keeps a token (a device cookie, OWASP), one for each
//! account. Attempts to sign in from it are not delayed by the attempts of others.

use std::sync::Arc;

use chrono::TimeDelta;
use domain::{id::UserId, secret::Secret};
use ports::{
    StoreError,
    account_store::CodeHash,
    clock::Clock,
    known_browsers::{KnownBrowser, KnownBrowserStore},
    random::RandomSource,
};
use uuid::Uuid;

use super::{hash_of, random_token};

/// How long a browser stays known after a sign-in in it.
const KNOWN_BROWSER_TTL: TimeDelta = TimeDelta::days(90);
/// The tokens that one browser keeps, each for another account.
const MAX_TOKENS_PER_BROWSER: usize = 4;
const SEPARATOR: char = '.';

/// Recognizes browsers and remembers them.
#[derive(Clone)]
pub struct KnownBrowsers {
    pub browsers: Arc<dyn KnownBrowserStore>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn RandomSource>,
}

/// A browser in which a member signs in.
pub(crate) struct SigningInBrowser {
    tokens: Vec<Secret>,
    /// The token that belongs to the account, if the browser has one.
    pub(super) known: Option<CodeHash>,
}

impl KnownBrowsers {
    /// Reads the tokens that a browser sent. `user` is `None` where no account has the address
    /// that was entered; the store is asked all the same, so that the time of an answer does not
    /// tell.
    pub(crate) async fn recognize(
        &self,
        user: Option<UserId>,
        sent: &Secret,
    ) -> Result<SigningInBrowser, StoreError> {
        let tokens = sent.expose().split(SEPARATOR).filter(|token| !token.is_empty());
        let tokens: Vec<_> = tokens
            .take(MAX_TOKENS_PER_BROWSER)
            .map(|token| Secret::new(token.to_owned()))
            .collect();
        let hashes: Vec<_> = tokens.iter().map(hash_of).collect();
        if hashes.is_empty() {
            return Ok(SigningInBrowser { tokens, known: None });
        }
        let user = user.unwrap_or_else(|| UserId::from_uuid(Uuid::nil()));
        let known = self.browsers.known_browser(user, &hashes, self.clock.now()).await?;
        Ok(SigningInBrowser { tokens, known })
    }

    /// Remembers a browser in which a member has signed in. Returns the tokens that it keeps from
    /// now on, and whether it is new to an account that has other browsers.
    pub(crate) async fn remember(
        &self,
        user: UserId,
        browser: SigningInBrowser,
    ) -> Result<(Secret, bool), StoreError> {
        let (token, now) = (random_token(&*self.random), self.clock.now());
        let fresh = KnownBrowser {
            user,
            token: hash_of(&token),
            used_at: now,
            expires_at: now + KNOWN_BROWSER_TTL,
        };
        let SigningInBrowser { tokens, known } = browser;
        let others = self.browsers.keep_browser(&fresh, known.as_ref()).await?;
        let kept = tokens.iter().filter(|token| Some(hash_of(token)) != known);
        let all = [&token].into_iter().chain(kept).take(MAX_TOKENS_PER_BROWSER);
        let all: Vec<_> = all.map(|token| token.expose().to_owned()).collect();
        let sent = Secret::new(all.join(&SEPARATOR.to_string()));
        Ok((sent, known.is_none() && others > 0))
    }
}
