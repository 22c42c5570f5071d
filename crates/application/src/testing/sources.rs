//! Time, chance and tokens for tests.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    binding::SecretHash,
    id::{AccountLinkId, SessionId, TeamId},
    notification::Mailbox,
    secret::Secret,
};
use ports::{clock::Clock, random::RandomSource, tokens::TokenIssuer};
use testkit::sample::noon;
use tokio::time::Instant;

use crate::digest::sha256;

/// Begins at noon and follows tokio's time, which tests pause; can be set forward besides.
pub(crate) struct TestClock {
    began: Instant,
    ahead: Mutex<TimeDelta>,
}

impl TestClock {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), ahead: Mutex::new(TimeDelta::zero()) }
    }

    pub(crate) fn forward(&self, by: TimeDelta) {
        *self.ahead.lock().unwrap_or_else(PoisonError::into_inner) += by;
    }
}

impl Clock for TestClock {
    fn now(&self) -> DateTime<Utc> {
        let elapsed = TimeDelta::from_std(self.began.elapsed()).unwrap();
        noon() + elapsed + *self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts instead of drawing numbers.
#[derive(Default)]
pub(crate) struct Counting(AtomicU64);

impl Counting {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl RandomSource for Counting {
    fn new_id(&self) -> u128 {
        self.next().into()
    }

    fn random_u16(&self) -> u16 {
        u16::try_from(self.next() % 1000).unwrap()
    }

    fn random_bytes(&self) -> [u8; 32] {
        sha256(&self.next().to_be_bytes())
    }
}

/// Tokens that can be read.
#[derive(Default)]
pub(crate) struct PlainTokens;

impl TokenIssuer for PlainTokens {
    fn embed_token(&self, session: SessionId) -> Secret {
        Secret::new(format!("embed-{session}"))
    }

    fn verify_embed_token(&self, session: SessionId, token: &str) -> bool {
        token == self.embed_token(session).expose()
    }

    fn stream_token(&self, session: SessionId, until: DateTime<Utc>) -> Secret {
        Secret::new(format!("{}/{session}", until.timestamp()))
    }

    fn verify_stream_token(&self, session: SessionId, pass: &str, now: DateTime<Utc>) -> bool {
        pass.split_once('/').is_some_and(|(until, of)| {
            of == session.to_string() && until.parse().is_ok_and(|until| now.timestamp() < until)
        })
    }

    fn hash_secret(&self, session: SessionId, secret: &str) -> SecretHash {
        SecretHash(sha256(format!("{session} {secret}").as_bytes()))
    }

    fn account_link_token(&self, id: AccountLinkId) -> Secret {
        Secret::new(format!("link-{id}"))
    }

    fn verify_account_link_token(&self, token: &str) -> Option<AccountLinkId> {
        token.strip_prefix("link-")?.parse().ok()
    }

    fn mailbox(&self, team: TeamId, address: &str) -> Mailbox {
        let hash = sha256(address.to_lowercase().as_bytes());
        Mailbox { team, mark: hash[..16].try_into().unwrap() }
    }

    fn mailbox_token(&self, mailbox: &Mailbox) -> Secret {
        let mark = u128::from_be_bytes(mailbox.mark);
        Secret::new(format!("{}/{mark}", mailbox.team))
    }

    fn verify_mailbox_token(&self, token: &str) -> Option<Mailbox> {
        let (team, mark) = token.split_once('/')?;
        let mark = mark.parse::<u128>().ok()?.to_be_bytes();
        Some(Mailbox { team: team.parse().ok()?, mark })
    }
}
