//! Slowing down attempts to guess passwords and codes.
//!
//! Attempts from a browser that the account knows are counted for that browser alone; all others
//! are counted for the account and for the network that they come from.

use std::sync::Arc;

use domain::attempts::{
    DELAYS_PER_ACCOUNT, DELAYS_PER_ACCOUNT_AND_NETWORK, DELAYS_PER_KNOWN_BROWSER,
    DELAYS_PER_NETWORK, Delays,
};
use ports::{
    account_store::{CodeHash, RequestOrigin},
    attempts::{AttemptLimiter, AttemptTarget},
    clock::Clock,
    driving::{PortalError, SignedInUser},
};

use super::{account_key, known_browsers::SigningInBrowser};

/// Counts attempts before anything is checked.
#[derive(Clone)]
pub struct AttemptGuard {
    pub attempts: Arc<dyn AttemptLimiter>,
    pub clock: Arc<dyn Clock>,
}

/// What an attempt was counted against.
pub(crate) struct CountedAttempt(Vec<AttemptTarget>);

impl AttemptGuard {
    /// Counts an attempt to sign in as a wrong one.
    ///
    /// # Errors
    /// [`PortalError::TooMany`]: it comes too soon after others, and is not counted.
    pub(crate) async fn count_sign_in(
        &self,
        email: &str,
        origin: &RequestOrigin,
        browser: &SigningInBrowser,
    ) -> Result<CountedAttempt, PortalError> {
        let account = account_key(email);
        if let Some(CodeHash(token)) = &browser.known {
            let token = token.first_chunk().copied().unwrap_or_default();
            return self.count(&[(AttemptTarget::Browser(token), DELAYS_PER_KNOWN_BROWSER)]).await;
        }
        let from = origin.address;
        self.count(&[
            (AttemptTarget::Network(from), DELAYS_PER_NETWORK),
            (AttemptTarget::AccountFrom(account, from), DELAYS_PER_ACCOUNT_AND_NETWORK),
            (AttemptTarget::Account(account), DELAYS_PER_ACCOUNT),
        ])
        .await
    }

    /// Counts an attempt to re-authenticate as a wrong one.
    ///
    /// # Errors
    /// [`PortalError::TooMany`]: it comes too soon after others, and is not counted.
    pub(crate) async fn count_reauthentication(
        &self,
        user: &SignedInUser,
    ) -> Result<CountedAttempt, PortalError> {
        self.count(&[(AttemptTarget::SignIn(user.sign_in), DELAYS_PER_KNOWN_BROWSER)]).await
    }

    async fn count(
        &self,
        targets: &[(AttemptTarget, Delays)],
    ) -> Result<CountedAttempt, PortalError> {
        let now = self.clock.now();
        let mut counted = CountedAttempt(vec![]);
        for (target, delays) in targets {
            match self.attempts.attempt(*target, *delays, now).await {
                Ok(()) => counted.0.push(*target),
                Err(next) => {
                    // An attempt that one target refuses is not made, and counts for no other.
                    self.undo(counted).await;
                    let outcome = ("outcome", "throttled");
                    metrics::counter!("avouch_portal_sign_ins_total", &[outcome]).increment(1);
                    let wait = (next - now).num_milliseconds().max(0).saturating_add(999);
                    return Err(PortalError::TooMany { retry_after: (wait / 1000).max(1) });
                }
            }
        }
        Ok(counted)
    }

    /// Takes back an attempt that was right, or was not made.
    pub(crate) async fn undo(&self, counted: CountedAttempt) {
        let now = self.clock.now();
        for target in counted.0 {
            self.attempts.undo_attempt(target, now).await;
        }
    }
}
