//! The browsers in which members have signed in before; only the hash of a token is stored.

use ::diesel::prelude::*;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel_async::RunQueryDsl;
use domain::id::UserId;
use ports::{
    StoreError,
    account_store::CodeHash,
    known_browsers::{KnownBrowser, KnownBrowserStore, MAX_KNOWN_BROWSERS},
};

use crate::engine::column::{Id, Timestamp};
use crate::engine::database::{Store, failed, with_conn, with_transaction};
use crate::engine::schema::known_browsers;

#[async_trait]
impl KnownBrowserStore for Store {
    async fn known_browser(
        &self,
        user: UserId,
        tokens: &[CodeHash],
        now: DateTime<Utc>,
    ) -> Result<Option<CodeHash>, StoreError> {
        let tokens: Vec<_> = tokens.iter().map(|token| token.0.to_vec()).collect();
        let found: QueryResult<Option<Vec<u8>>> = with_conn!(self, |conn| {
            known_browsers::table
                .filter(known_browsers::person.eq(Id::from(user)))
                .filter(known_browsers::token.eq_any(&tokens))
                .filter(known_browsers::expires_at.gt(Timestamp(now)))
                .select(known_browsers::token)
                .first(conn)
                .await
                .optional()
        });
        let found = found.map_err(failed("find a browser"))?;
        Ok(found.and_then(|token| token.try_into().ok()).map(CodeHash))
    }

    async fn keep_browser(
        &self,
        browser: &KnownBrowser,
        before: Option<&CodeHash>,
    ) -> Result<usize, StoreError> {
        let person = Id::from(browser.user);
        let row = (
            known_browsers::person.eq(person),
            known_browsers::token.eq(browser.token.0.to_vec()),
            known_browsers::used_at.eq(Timestamp(browser.used_at)),
            known_browsers::expires_at.eq(Timestamp(browser.expires_at)),
        );
        let theirs = known_browsers::table.filter(known_browsers::person.eq(person));
        let before = before.map_or(vec![], |before| before.0.to_vec());
        let kept: QueryResult<usize> = with_transaction!(self, |conn| {
            let all: Vec<Vec<u8>> = theirs
                .order((known_browsers::used_at.desc(), known_browsers::token))
                .select(known_browsers::token)
                .load(conn)
                .await?;
            let mut gone: Vec<_> = all.iter().filter(|token| **token != before).collect();
            let gone = gone.split_off(gone.len().min(MAX_KNOWN_BROWSERS - 1));
            let gone: Vec<_> = gone.into_iter().chain([&before]).collect();
            let old = theirs.filter(known_browsers::token.eq_any(gone));
            ::diesel::delete(old).execute(conn).await?;
            ::diesel::insert_into(known_browsers::table).values(row.clone()).execute(conn).await?;
            Ok(all.len())
        });
        kept.map_err(failed("keep a browser"))
    }

    async fn delete_expired_browsers(&self, now: DateTime<Utc>) -> Result<usize, StoreError> {
        let these = known_browsers::table.filter(known_browsers::expires_at.le(Timestamp(now)));
        let gone = with_conn!(self, |conn| ::diesel::delete(these).execute(conn).await);
        gone.map_err(failed("forget browsers"))
    }
}
