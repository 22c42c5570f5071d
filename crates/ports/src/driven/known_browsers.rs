//! The browsers in which people have signed in before.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::id::UserId;

use crate::{StoreError, account_store::CodeHash};

/// Browsers of one person.
pub const MAX_KNOWN_BROWSERS: usize = 10;

/// Keeps the browsers in which people have signed in, by the hash of a token that each was handed.
#[async_trait]
pub trait KnownBrowserStore: Send + Sync {
    /// Which of these tokens stands for a browser of this person's, if it has not run out. Takes as
    /// long for a person that there is not.
    async fn known_browser(
        &self,
        user: UserId,
        tokens: &[CodeHash],
        now: DateTime<Utc>,
    ) -> Result<Option<CodeHash>, StoreError>;

    /// Keeps a browser, in the place of what it was known by before; of a person's browsers beyond
    /// [`MOST`] those are forgotten in which they signed in longest ago. Answers how many the person
    /// had before.
    async fn keep_browser(
        &self,
        browser: &KnownBrowser,
        before: Option<&CodeHash>,
    ) -> Result<usize, StoreError>;

    /// Forgets what ran out before `now`. Answers how many.
    async fn delete_expired_browsers(&self, now: DateTime<Utc>) -> Result<usize, StoreError>;
}

/// A browser in which somebody has signed in.
#[derive(Clone, PartialEq, Eq)]
pub struct KnownBrowser {
    pub user: UserId,
    pub token: CodeHash,
    /// When they signed in there last.
    pub used_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
}
