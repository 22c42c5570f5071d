//! Rate limits of the portal's requests that cost mails, hashes or calls to a provider.

use std::{net::IpAddr, sync::Arc};

use domain::rate::RateLimit;
use ports::{
    clock::Clock,
    driving::PortalError,
    rate_limiter::{Charge, RateLimiter, Subject},
};

use super::sign_in::account_key;

/// Requests for account links and sign-ins at an identity provider, from one network.
const LIMIT_PER_ADDRESS: RateLimit = RateLimit { count: 100, seconds: 900 };
/// Mails with account links to one address, from however many networks they are requested.
const LIMIT_PER_MAILBOX: RateLimit = RateLimit { count: 5, seconds: 3600 };

/// Counts requests against their limits.
#[derive(Clone)]
pub struct RequestLimits {
    pub limiter: Arc<dyn RateLimiter>,
    pub clock: Arc<dyn Clock>,
}

impl RequestLimits {
    /// Counts a request from an address.
    ///
    /// # Errors
    /// [`PortalError::TooMany`]: its network has reached the limit.
    pub(super) async fn count_request(&self, address: IpAddr) -> Result<(), PortalError> {
        self.count(Subject::SignIns(address), LIMIT_PER_ADDRESS).await
    }

    /// Counts a mail to an address, whether an account has it or not.
    ///
    /// # Errors
    /// [`PortalError::TooMany`]: the address has reached the limit.
    pub(super) async fn count_mail(&self, email: &str) -> Result<(), PortalError> {
        self.count(Subject::Mails(account_key(email)), LIMIT_PER_MAILBOX).await
    }

    async fn count(&self, subject: Subject, limit: RateLimit) -> Result<(), PortalError> {
        let now = self.clock.now();
        let windows = self.limiter.charge(&[Charge { subject, limit }], now).await;
        match windows.iter().find(|window| !window.admits()) {
            Some(full) => Err(PortalError::TooMany { retry_after: full.retry_after(now) }),
            None => Ok(()),
        }
    }
}
