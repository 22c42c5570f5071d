//! The browsers in which members have signed in before.

use std::cmp::Reverse;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::id::UserId;
use ports::{
    StoreError,
    account_store::CodeHash,
    known_browsers::{KnownBrowser, KnownBrowserStore, MAX_KNOWN_BROWSERS},
};

use super::AccountState;
use crate::MemoryStore;

impl AccountState {
    /// Adds a browser, which replaces the one with the token `before`, and returns the number of
    /// the person's browsers until then.
    fn keep_browser(&mut self, fresh: &KnownBrowser, before: Option<&CodeHash>) -> usize {
        let is_theirs = |one: &KnownBrowser| one.user == fresh.user;
        let known = self.browsers.iter().filter(|one| is_theirs(one)).count();
        self.browsers.retain(|one| !is_theirs(one) || Some(&one.token) != before);
        let theirs = self.browsers.iter().filter(|one| is_theirs(one));
        let mut latest: Vec<_> = theirs.map(|one| (Reverse(one.used_at), one.token.0)).collect();
        latest.sort_unstable();
        let forgotten = latest.split_off(latest.len().min(MAX_KNOWN_BROWSERS.saturating_sub(1)));
        let is_forgotten = |token: &CodeHash| forgotten.iter().any(|(_, old)| *old == token.0);
        self.browsers.retain(|one| !is_theirs(one) || !is_forgotten(&one.token));
        self.browsers.push(fresh.clone());
        known
    }
}

#[async_trait]
impl KnownBrowserStore for MemoryStore {
    async fn known_browser(
        &self,
        user: UserId,
        tokens: &[CodeHash],
        now: DateTime<Utc>,
    ) -> Result<Option<CodeHash>, StoreError> {
        let accounts = &self.state().accounts;
        let theirs = accounts.browsers.iter().filter(|one| one.user == user);
        let mut live = theirs.filter(|one| one.expires_at > now);
        Ok(live.find(|one| tokens.contains(&one.token)).map(|one| one.token.clone()))
    }

    async fn keep_browser(
        &self,
        browser: &KnownBrowser,
        before: Option<&CodeHash>,
    ) -> Result<usize, StoreError> {
        const ACTION: &str = "keep a browser";
        let accounts = &mut self.state().accounts;
        accounts.require(browser.user, ACTION)?;
        let replaced = before == Some(&browser.token);
        let mut theirs = accounts.browsers.iter().filter(|one| one.user == browser.user);
        if !replaced && theirs.any(|one| one.token == browser.token) {
            return Err(StoreError::new(ACTION, "the browser is known already"));
        }
        Ok(accounts.keep_browser(browser, before))
    }

    async fn delete_expired_browsers(&self, now: DateTime<Utc>) -> Result<usize, StoreError> {
        let accounts = &mut self.state().accounts;
        let known = accounts.browsers.len();
        accounts.browsers.retain(|one| one.expires_at > now);
        Ok(known.saturating_sub(accounts.browsers.len()))
    }
}
