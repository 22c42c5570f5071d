//! The store of known browsers, in which members have signed in before.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::id::UserId;

use crate::{StoreError, account_store::CodeHash};

/// The maximum number of known browsers of one member.
pub const MAX_KNOWN_BROWSERS: usize = 10;

/// Stores the browsers in which members have signed in, by the hash of a token that each browser
/// has.
#[async_trait]
pub trait KnownBrowserStore: Send + Sync {
    /// Returns which of these tokens is of a known browser of the member, if it has not expired.
    /// The call takes as long for a member who does not exist.
    async fn known_browser(
        &self,
        user: UserId,
        tokens: &[CodeHash],
        now: DateTime<Utc>,
    ) -> Result<Option<CodeHash>, StoreError>;

    /// Stores a browser, in place of its earlier token. If the member has more than
    /// [`MAX_KNOWN_BROWSERS`], those with the oldest sign-ins are deleted. Returns the number of
    /// browsers before the call.
    async fn keep_browser(
        &self,
        browser: &KnownBrowser,
        before: Option<&CodeHash>,
    ) -> Result<usize, StoreError>;

    /// Deletes browsers that expired before `now` and returns their number.
    async fn delete_expired_browsers(&self, now: DateTime<Utc>) -> Result<usize, StoreError>;
}

/// A browser in which a member has signed in.
#[derive(Clone, PartialEq, Eq)]
pub struct KnownBrowser {
    pub user: UserId,
    pub token: CodeHash,
    /// The time of the last sign-in in this browser.
    pub used_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
}
